"""What surrounds a Pod's containers: a node that goes, a Job with a sidecar, a hook's own command, a reload."""

from dataclasses import replace
from typing import Any

import pytest
from ending_stories import (
    PRESSURE,
    by_kubelet,
    job,
    lost,
    reloads,
    shut_down,
)

from lastcall.endings.findings.rules import find_causes
from lastcall.endings.story import ContainerFacts, DecidedBy, Finding, PodFacts
from lastcall.records import kinds as k


def found(tape: Any, id_: str) -> Finding | None:
    return next((each for each in tape.ending().findings if each.id == id_), None)


def test_a_node_that_gives_less_than_the_grace_period_is_named_when_that_killed_the_container(new_tape: Any) -> None:
    tape = new_tape()
    shut_down(tape, 2, 30, killed=True)
    finding = found(tape, "nodeShutdown")
    assert finding is not None and finding.severity == "problem"
    assert "2 s instead of the 30 s" in finding.text and "at least 30 s" in finding.advice


@pytest.mark.parametrize(("given", "wanted", "killed"), [(2, 30, False), (30, 30, True)])
def test_a_shutdown_is_no_finding_where_the_time_was_enough_or_the_pods_own(
    new_tape: Any, given: int, wanted: int, killed: bool
) -> None:
    tape = new_tape()
    shut_down(tape, given, wanted, killed=killed)
    assert found(tape, "nodeShutdown") is None


def test_an_eviction_for_want_of_memory_asks_for_requests(new_tape: Any) -> None:
    tape = new_tape()
    by_kubelet(tape, PRESSURE, why="The node was low on resource: memory. Threshold quantity: 100Mi")
    tape.exit(0.5, 0)
    finding = found(tape, "nodePressure")
    assert finding is not None and "low on resource: memory" in finding.text
    assert "memory in resources.requests" in finding.advice


def test_a_pod_of_a_lost_node_is_told_as_one_of_which_nobody_knows_whether_it_runs(new_tape: Any) -> None:
    tape = new_tape()
    lost(tape, seen=False)
    finding = found(tape, "nodeUnreachable")
    assert finding is not None and "may still run" in finding.text
    assert "out-of-service" in finding.advice and "node-1" in finding.advice


def test_a_node_that_has_seen_the_delete_is_not_lost(new_tape: Any) -> None:
    tape = new_tape()
    lost(tape, seen=True)
    assert found(tape, "nodeUnreachable") is None


@pytest.mark.parametrize(("kind", "code", "told"), [("Job", 0, True), ("Job", 1, False), ("ReplicaSet", 0, False)])
def test_a_sidecar_that_outlives_the_work_of_a_job_is_named(new_tape: Any, kind: str, code: int, told: bool) -> None:
    tape = new_tape()
    job(tape, kind, code)
    finding = found(tape, "sidecarHoldsJob")
    assert (finding is not None) is told
    if finding is not None:
        assert "work ended with exit code 0 3.0 s before the DELETE, and logs still ran" in finding.text
        assert "Move logs to initContainers" in finding.advice


@pytest.mark.parametrize(
    ("after_signal", "listeners", "told"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_a_program_that_begins_anew_on_its_stop_signal_reloads(
    new_tape: Any, after_signal: bool, listeners: bool, told: bool
) -> None:
    tape = new_tape()
    reloads(tape, after_signal=after_signal, listeners=listeners)
    finding = found(tape, "reloadsOnSignal")
    assert (finding is not None) is told
    if finding is not None:
        assert "die-on-term" in finding.advice


@pytest.mark.parametrize(
    ("facts", "detail", "advice"),
    [
        ({"exitCode": 127}, "sh -c sleep 5", "preStop: {sleep: {seconds: 5}}"),
        ({"message": 'failed - error: exec: "sleep": executable file not found in $PATH'}, "sleep 7", "{seconds: 7}"),
        ({"exitCode": 127}, "/hooks/stop", "Put the program into the image"),
        ({"exitCode": 126}, "/hooks/stop.sh", "chmod +x"),
        ({"exitCode": 126, "stderr": "sh: 1: /x: Interrupted system call\n"}, "/hooks/stop.sh", "see why it fails"),
        ({"exitCode": 1}, "sleep 5", "see why it fails"),
    ],
)
def test_a_failed_hook_is_advised_by_how_it_failed(
    new_tape: Any, facts: dict[str, Any], detail: str, advice: str
) -> None:
    tape = new_tape()
    tape.started()
    tape.accepted(10)
    tape.observed(10)
    tape.hook(0.01, 0.05, "failed", **facts)
    for record in tape.records:
        if record.kind == k.PRE_STOP_STARTED:
            record.facts["detail"] = detail
    tape.stop(0.1, 10)
    tape.exit(0.2, 0)
    finding = found(tape, "hookFailed")
    assert finding is not None and advice in finding.advice


def refused(
    tape: Any,
    port: int,
    listeners: dict[str, list[tuple[str, int]]],
    asked: str = "POD",
) -> Finding:
    """The httpGet hook of app is refused on a port; `listeners` are those of each container at its stop signal."""
    tape.pod = PodFacts(tape.uid, "default", "web", containers=tuple(ContainerFacts(name) for name in listeners))
    for name in listeners:
        tape.started(name)
    tape.accepted(10)
    tape.observed(10)
    message = f'Get "http://10.244.0.2:{port}/drain": dial tcp 10.244.0.2:{port}: connect: connection refused'
    tape.hook(0.01, 0.05, "failed", handler="httpGet", command=f"GET http://{asked}:{port}/drain", message=message)
    for name, open_ in listeners.items():
        tape.stop(0.1, 10, container=name)
        there = [{"address": address, "port": number, "backlog": 0} for address, number in open_]
        if there:
            facts = {"signal": "SIGTERM", "listeners": there, "connections": 0, "scope": "container"}
            tape.add(0.11, "runtime", k.SOCKETS_AT_STOP, name, **facts)
        tape.exit(0.2, 0, container=name)
    finding = found(tape, "hookFailed")
    assert finding is not None
    return finding


def test_a_hook_that_asks_a_port_on_which_nothing_listens_is_advised_to_ask_the_one_that_is_open(new_tape: Any) -> None:
    finding = refused(new_tape(), 8081, {"app": [("0.0.0.0", 9090), ("127.0.0.1", 5000)]})
    assert "port: 9090 in the httpGet of the preStop hook, because nothing listened on 8081" in finding.advice
    assert "A sleep" in finding.advice
    change = {"containers": [{"name": "app", "lifecycle": {"preStop": {"httpGet": {"port": 9090}}}}]}
    assert finding.change is not None and finding.change.patch == change


def test_of_several_open_ports_a_hook_is_advised_to_choose(new_tape: Any) -> None:
    finding = refused(new_tape(), 8081, {"app": [("::", 9090), ("0.0.0.0", 8080)]})
    assert "nothing listened on 8081; what listened: 8080 and 9090" in finding.advice
    assert finding.change is not None and (finding.change.patch, finding.change.program) == (None, "fixHook")


def test_the_port_of_another_container_is_named_with_it(new_tape: Any) -> None:
    finding = refused(new_tape(), 8081, {"app": [("0.0.0.0", 8080)], "proxy": [("0.0.0.0", 15020)]})
    assert "what listened: 8080 (app) and 15020 (proxy)" in finding.advice
    finding = refused(new_tape(), 8081, {"app": [("127.0.0.1", 8080)], "proxy": [("0.0.0.0", 15020)]})
    assert "what listened: 15020 (proxy)" in finding.advice
    assert finding.change is not None and finding.change.patch is None


def test_a_port_that_is_open_only_at_the_loopback_is_not_one_to_choose(new_tape: Any) -> None:
    finding = refused(new_tape(), 8081, {"app": [("127.0.0.1", 8081), ("0.0.0.0", 8080)]})
    assert "listened on port 8081 only at 127.0.0.1" in finding.advice
    assert finding.change is not None and finding.change.program == "listenEverywhere"


@pytest.mark.parametrize(
    ("listeners", "asked"),
    [
        ({"app": [("0.0.0.0", 8081)]}, "POD"),  # a moment later
        ({"app": [("0.0.0.0", 8080)], "proxy": [("0.0.0.0", 8081)]}, "POD"),  # its own end was quicker
        ({"app": []}, "POD"),  # nobody looked, or nothing was open
        ({"app": [("0.0.0.0", 8080)]}, "10.0.0.9"),  # it is another host's
    ],
)
def test_where_no_other_port_is_known_to_be_right_none_is_named(
    new_tape: Any, listeners: dict[str, list[tuple[str, int]]], asked: str
) -> None:
    assert "nothing listened" not in refused(new_tape(), 8081, listeners, asked).advice


def test_a_hook_that_asks_the_node_in_place_of_its_pod_is_advised_to_ask_the_pod(new_tape: Any) -> None:
    tape = new_tape()
    asks = (("lifecycle.preStop", "httpGet", "localhost"),)
    tape.pod = PodFacts(tape.uid, "default", "web", containers=(ContainerFacts("app", asks_node=asks),))
    tape.started()
    tape.accepted(10)
    tape.observed(10)
    refused = 'Get "http://localhost:8161/drain": dial tcp localhost:8161: connect: connection refused'
    tape.hook(0.01, 0.05, "failed", handler="httpGet", detail=refused)
    tape.stop(0.1, 10)
    tape.exit(0.2, 0)
    finding = found(tape, "hookFailed")
    assert finding is not None and "Leave host out of the preStop hook" in finding.advice
    assert finding.change is not None and finding.change.patch is not None


@pytest.mark.parametrize(
    ("client", "owner", "told"),
    [("lastcall", "Job", True), ("kubectl", "Job", False), ("lastcall", "ReplicaSet", False)],
)
@pytest.mark.parametrize("signal", [None, 15])
def test_work_of_a_job_that_an_experiment_cut_short_is_advised_to_work_first(
    new_tape: Any, client: str, owner: str, told: bool, signal: int | None
) -> None:
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.observed(30)
    tape.stop(0.005, 30)
    tape.exit(0.2, 143, signal)
    by = DecidedBy("user", "delete", "it was deleted", client=client, owner_kind=owner)
    findings = find_causes(replace(tape.ending(), decided_by=by), "1.36").findings
    finding = next(each for each in findings if each.id == "exitCodeNotZero")
    assert ("--after" in finding.advice) is told
