"""Which probes and hooks ask the node in place of the Pod."""

from typing import Any

import pytest

from lastcall.kube.api import asks_node


@pytest.mark.parametrize(
    ("host", "asks"),
    [("localhost", True), ("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("", False), ("10.0.0.1", False),
     ("localhost.example", False), ("::", False)],
)  # fmt: skip
@pytest.mark.parametrize("handler", ["httpGet", "tcpSocket"])
def test_a_loopback_address_is_the_node(host: str, asks: bool, handler: str) -> None:
    container = {"livenessProbe": {handler: {"host": host, "port": 80}}}
    assert asks_node({}, container) == ((("livenessProbe", handler, host),) if asks else ())


def test_hooks_ask_the_node_too() -> None:
    container = {"lifecycle": {"preStop": {"httpGet": {"host": "localhost", "port": 80}}}}
    assert asks_node({}, container) == (("lifecycle.preStop", "httpGet", "localhost"),)


@pytest.mark.parametrize("container", [{}, {"livenessProbe": None}, {"livenessProbe": {"exec": {"command": ["x"]}}}])
def test_what_has_no_host_asks_the_pod(container: dict[str, Any]) -> None:
    assert asks_node({}, container) == ()


def test_with_the_network_of_the_node_both_are_the_same() -> None:
    assert asks_node({"hostNetwork": True}, {"livenessProbe": {"httpGet": {"host": "localhost"}}}) == ()
