"""A readinessProbe that asks where nobody listens is named with what is open, and with the change that repairs it."""

from typing import Any

import pytest
from cause_examples import asks_port, edit, probe_succeeds

from lastcall.endings import pod_facts
from lastcall.kube.api.patch.apply import strategic_merge_patch
from lastcall.kube.api.resources import PODS
from lastcall.records import kinds as k

ASKS = {"httpGet": {"path": "/", "port": 8081}}


def pod(container: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": {"containers": [container]}}


def found(new_tape: Any, story: Any, container: dict[str, Any], *changes: Any) -> Any:
    """Return the finding about the probe and the container after its change; None where it has none."""
    tape = new_tape()
    for change in (story, *changes):
        change(tape)
    given = pod({"name": "app", **container})
    facts = pod_facts(given)
    tape.pod = type(tape.pod)(tape.pod.uid, "d", "p", containers=facts.containers)
    (finding,) = [each for each in tape.ending().findings if each.id == "probeFailed"]
    if finding.change is None or finding.change.patch is None:
        return finding, None
    return finding, strategic_merge_patch(PODS, given, {"spec": finding.change.patch})["spec"]["containers"][0]


def test_the_only_open_port_takes_the_place_of_the_one_that_is_asked(new_tape: Any) -> None:
    spec = {"ports": [{"name": "web", "containerPort": 8081, "protocol": "TCP"}], "readinessProbe": ASKS}
    finding, repaired = found(new_tape, asks_port(8081, "::"), {**spec, "livenessProbe": {"tcpSocket": {"port": 8081}}})
    assert "asks port 8081, on which nothing listens: app listens on port 8080" in finding.text
    assert repaired["readinessProbe"]["httpGet"] == {"path": "/", "port": 8080}
    assert repaired["livenessProbe"]["tcpSocket"] == {"port": 8080}
    assert repaired["ports"] == [{"name": "web", "containerPort": 8080, "protocol": "TCP"}]


def test_a_probe_that_names_its_port_keeps_the_name(new_tape: Any) -> None:
    spec = {"ports": [{"name": "web", "containerPort": 8081}], "readinessProbe": {"httpGet": {"port": "web"}}}
    _, repaired = found(new_tape, asks_port(8081, "0.0.0.0"), spec)
    assert repaired["readinessProbe"] == {"httpGet": {"port": "web"}}
    assert repaired["ports"] == [{"name": "web", "containerPort": 8080}]


def test_of_several_open_ports_the_declared_one_is_meant_and_without_one_none(new_tape: Any) -> None:
    listeners = edit(k.PROBE_FAILING, listeners=[{"address": "::", "port": 8080}, {"address": "::", "port": 9090}])
    declared = {"ports": [{"containerPort": 9090}], "readinessProbe": ASKS}
    finding, repaired = found(new_tape, asks_port(8081, "::"), declared, listeners)
    assert "listens on port 8080 and 9090" in finding.text
    assert repaired["readinessProbe"]["httpGet"]["port"] == 9090
    finding, repaired = found(new_tape, asks_port(8081, "::"), {"readinessProbe": ASKS}, listeners)
    assert repaired is None
    assert finding.change.program == "fixProbe"


def test_a_program_that_listens_only_at_its_loopback_has_to_listen_everywhere(new_tape: Any) -> None:
    finding, _ = found(new_tape, asks_port(8080, "127.0.0.1"), {"readinessProbe": ASKS})
    assert "on which app listens only at 127.0.0.1" in finding.text
    assert finding.change.program == "listenEverywhere"


@pytest.mark.parametrize("change", [probe_succeeds, lambda tape: tape.accepted(10)])
def test_nothing_is_said_of_one_that_has_answered_or_of_a_pod_that_is_to_end(new_tape: Any, change: Any) -> None:
    tape = new_tape()
    asks_port(8081, "::")(tape)
    change(tape)
    assert not [each for each in tape.ending().findings if each.id == "probeFailed"]
