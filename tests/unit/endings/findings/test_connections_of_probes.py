"""A kubelet's tcpSocket probe opens a connection and closes it at once: nobody is cut off when that ends."""

from dataclasses import replace
from typing import Any

import pytest
from ending_stories import PORT, at_exit, at_stop, begin, exited, killed, peer

from lastcall.endings.facts.pod import pod_facts
from lastcall.records import kinds as k

NODE = "10.244.0.1"
CLOSED = {**peer(NODE, 41000, accepted=False), "unreadBytes": 1}
ONE = {"listeners": [PORT], "connections": 1, "unread": 1, "unreadBytes": 1, "backlog": 1, "resets": 1}
PORTS = [{"containerPort": 8080, "name": "web"}, {"containerPort": 9000}]
ASKS = {"readinessProbe": {"tcpSocket": {"port": "web"}}, "livenessProbe": {"httpGet": {"port": 9000}}}


def story(tape: Any, *peers: dict[str, Any], probes: Any = ASKS, sigkill: bool = False, **facts: Any) -> list[str]:
    container = {"name": "app", "ports": PORTS, **probes}
    tape.pod = replace(tape.pod, containers=pod_facts({"metadata": {}, "spec": {"containers": [container]}}).containers)
    begin(tape)
    at_stop(tape, 0, PORT)
    at_exit(tape, 10.012 if sigkill else 0.502, **{**ONE, **facts}, peers=list(peers))
    (killed if sigkill else exited)(tape)
    return [f"{each.id}: {each.text}" for each in tape.ending().findings]


def about_connections(found: list[str]) -> list[str]:
    return [each for each in found if each.startswith(("connections", "backlog"))]


def test_a_connection_that_its_own_tcp_probe_opened_and_closed_is_not_cut_off(new_tape: Any) -> None:
    assert about_connections(story(new_tape(), CLOSED)) == []


def test_a_program_that_had_accepted_the_connection_of_its_probe_did_not_wait_for_it(new_tape: Any) -> None:
    accepted = {**CLOSED, "accepted": True}
    assert about_connections(story(new_tape(), accepted, sigkill=True, backlog=0, resets=0)) == []


def test_the_connections_of_clients_beside_it_are_counted_without_it(new_tape: Any) -> None:
    asked = {**peer("192.0.2.9", 51000, accepted=False), "unreadBytes": 120}
    found = story(new_tape(), CLOSED, asked, connections=2, unread=2, unreadBytes=121, backlog=2, resets=2)
    (backlog,) = [each for each in found if each.startswith("backlog")]
    (cut,) = [each for each in found if each.startswith("connections")]
    assert "1 connection to app had been accepted by the kernel" in backlog
    assert "ended with 1 connection open, 1 ended by a reset, 1 had sent 120 bytes" in cut


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"unreadBytes": 120}, id="it sent a request"),
        pytest.param({"unreadBytes": 0}, id="it waits for an answer"),
        pytest.param({"address": "127.0.0.1"}, id="it is of the same Pod"),
        pytest.param({"address": "10.244.0.7"}, id="it is another Pod"),
        pytest.param({"ownPort": 9000}, id="the probe asks another port"),
    ],
)
def test_a_connection_that_may_be_a_clients_is_told(new_tape: Any, other: dict[str, Any]) -> None:
    tape = new_tape()
    tape.add(-3.0, "apiserver", k.POD_CREATED, namespace="shop", name="client", containers=[])
    tape.add(-2.9, "runtime", k.NETWORK_ATTACHED, ip="10.244.0.7", seconds=0.1)
    tape.records[-2:] = [replace(each, pod_uid="another") for each in tape.records[-2:]]
    assert len(about_connections(story(tape, {**CLOSED, **other}))) == 2


def test_without_a_tcp_probe_nobody_but_clients_connects(new_tape: Any) -> None:
    assert len(about_connections(story(new_tape(), CLOSED, probes={}))) == 2
