"""Which container's end is the Pod's: not an init container's, nor a debugger's; of a restarted one the last."""

from typing import Any

import pytest
from rollout_lives import pod_life

from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.traffic.account import account
from lastcall.traffic.lives import PodLife
from lastcall.traffic.moments import Moment
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.reduce import pod_lives
from lastcall.traffic.serving import serving_containers
from lastcall.traffic.verdict import judge

AT = Moment.at


def record(at: float, kind: str, container: str = "", **facts: Any) -> Record:
    return Record(f"r-{at}-{kind}-{container}", int(at * 1e9), 0, "a", kind, "u", container, facts=facts)


def created(**sorts: str) -> list[Record]:
    """At 1; its address is 10.244.0.2, and it is in the rules from 3 on."""
    containers = [{"name": name, "kind": kind, "preStop": ""} for name, kind in sorts.items()]
    return [
        record(1, kinds.POD_CREATED, namespace="d", name="web-1", containers=containers),
        record(1.1, kinds.NETWORK_ATTACHED, ip="10.244.0.2"),
        record(2.9, kinds.POD_STATUS_WRITTEN, ready=True),
        record(3, kinds.ENDPOINT_RULES_WRITTEN, node="n", receives=True),
    ]


def run(container: str, start: float, stop: float | None, exit_: float | None, killed: bool = False) -> list[Record]:
    found = [record(start, kinds.PROCESS_STARTED, container, pid=1)]
    if stop is not None:
        found += [
            record(stop, kinds.STOP_REQUESTED, container),
            record(stop + 0.01, kinds.SIGNAL_SENT, container, signal="SIGTERM", why="StopContainer"),
        ]
    if killed and exit_ is not None:
        found.append(record(exit_ - 0.01, kinds.SIGNAL_SENT, container, signal="SIGKILL", why="grace over"))
    if exit_ is not None:
        code, signal = (137, "SIGKILL") if killed else (0, None)
        found.append(record(exit_, kinds.PROCESS_EXITED, container, exitCode=code, signal=signal))
    return found


def life_of(records: list[Record], port: int | None = None, declared: set[str] | None = None) -> PodLife:
    (found,) = pod_lives(records, port, declared or set())
    return found


def listening(at: float, container: str, port: int) -> Record:
    listeners = [{"address": "0.0.0.0", "port": port, "backlog": 0}]
    return record(
        at, kinds.SOCKETS_AT_STOP, container, signal="SIGTERM", listeners=listeners, connections=0, scope="pod"
    )


@pytest.mark.parametrize(
    ("seen", "declared", "container"),
    [
        pytest.param([("app", 8080), ("log", 9100)], set(), "app", id="who was seen to listen on the port"),
        pytest.param(
            [("app", 8080), ("log", 9100)], {"log"}, "app", id="what was seen counts more than what is declared"
        ),
        pytest.param([], {"app"}, "app", id="who declares the port"),
        pytest.param([], set(), "", id="nothing is known"),
    ],
)
def test_of_several_containers_a_lost_request_names_the_one_that_it_went_to(
    seen: list[tuple[str, int]], declared: set[str], container: str
) -> None:
    records = [*created(app="container", log="container"), record(10, kinds.DELETE_ACCEPTED)]
    records += [*run("app", 2, 10, 12), *run("log", 2, 10, 13)]
    records += [listening(10.02, *each) for each in seen]
    life = life_of(records, 8080, declared)
    (found,) = account([request(12.5, 12.5, "refused")], [life], [], 5.0).lost
    assert (found.pod, found.container) == ("web-1", container)


@pytest.mark.parametrize(
    ("line", "kind", "behind"),
    [
        ("connection refused, upstream: fastcgi://127.0.0.1:9000", "container", {"fpm": AT(10.1)}),
        ("connection refused, upstream: fastcgi://127.0.0.1:9000", "sidecar", {}),
        ("bye", "container", {}),
    ],
)
def test_a_container_that_leaves_at_once_is_behind_the_one_that_misses_it(
    line: str, kind: str, behind: dict[str, Moment]
) -> None:
    records = [*created(app="container", fpm=kind), record(10, kinds.DELETE_ACCEPTED), listening(15.02, "app", 8080)]
    records += [*run("app", 2, 15, 16), *run("fpm", 2, 10, 10.1)]
    records += [record(11, kinds.OUTPUT, "app", stream="stderr", text=line)]
    assert life_of(records, 8080).behind == behind


def test_of_an_only_container_it_is_not_said() -> None:
    life = life_of([*created(app="container"), *run("app", 2, 10, 12), record(10, kinds.DELETE_ACCEPTED)], 8080)
    (found,) = account([request(12.5, 12.5, "refused")], [life], [], 5.0).lost
    assert found.container == ""


def test_a_port_that_closed_during_the_hook_was_closed_from_the_look_before_on() -> None:
    of_hook = [
        record(10, kinds.PRE_STOP_STARTED, "app", handler="exec"),
        record(10.3, kinds.LISTENER_CLOSED_IN_HOOK, "app", address="", port=8080, seconds=0.3, notBefore=0.2),
        record(11, kinds.PRE_STOP_FINISHED, "app", handler="exec", outcome="succeeded", seconds=1.0),
    ]
    found = life_of([*created(app="container"), *run("app", 2, 12, 12.5), *of_hook], 8080)
    assert found.hook == AT(10) and found.quit is not None
    assert found.quit.latest == pytest.approx(10.2)
    other = life_of([*created(app="container"), *run("app", 2, 12, 12.5), *of_hook], 9090)
    assert other.quit is not None, "it was not seen to listen on that port: any of its ports counts"


@pytest.mark.parametrize(
    ("seen", "until", "cause"),
    [
        pytest.param({"exit_listeners": [8080]}, 13.9, "not listening yet", id="open until the kill"),
        pytest.param({"closed": (8080, 1.0, 1.2)}, 11.01, "not listening yet", id="open until after the refusal"),
        pytest.param({"closed": (8080, 0.1, 0.2)}, 10.11, "late endpoint", id="closed before the refusal"),
        pytest.param({"closed": (9090, 0.1, 0.2), "exit_listeners": [8080]}, 13.9, "not listening yet",
                     id="another port closed"),
        pytest.param({}, None, "late endpoint", id="nobody saw it"),
    ],
)  # fmt: skip
def test_a_pod_whose_port_is_open_refuses_nobody(seen: dict[str, Any], until: float | None, cause: str) -> None:
    records = [*created(app="container"), *run("app", 2, 10, 14, killed=True), DELETED, listening(10.02, "app", 8080)]
    if closed := seen.get("closed"):
        port, before, after = closed
        records.append(record(10 + after, kinds.LISTENER_CLOSED, "app", port=port, notBefore=before, seconds=after))
    if open_ports := seen.get("exit_listeners"):
        listeners = [{"address": "0.0.0.0", "port": each, "backlog": 0} for each in open_ports]
        records.append(record(14.001, kinds.SOCKETS_AT_EXIT, "app", listeners=listeners, secondsBefore=0.1))
    old = life_of(records, 8080)
    new = pod_life("v", "web-2", "10.244.0.9", ready=9.0, routed=9.5)
    assert old.open_until == (AT(pytest.approx(until)) if until is not None else None)
    (lost,) = account([request(10.5, 10.5, "refused", served_by="")], [old, new], [], 5.0).lost
    assert lost.cause == cause


def test_a_request_that_is_sent_after_the_rules_left_a_pod_did_not_lead_to_it() -> None:
    gone = pod_life("u", "web-1", "10.244.0.2", ready=0.5, routed=1.0, deleted=10.0, term=10.1, exited=14.0,
                    unrouted=10.2)  # fmt: skip
    new = pod_life("v", "web-2", "10.244.0.9", ready=9.0, routed=10.21)
    outcomes = [request(at, at + 0.002, "refused", served_by="") for at in (10.199, 10.205)]
    lost = account(outcomes, [gone, new], [], 5.0).lost
    assert [(each.pod, each.cause) for each in lost] == [("web-1", "late endpoint"), ("web-2", "not listening yet")]


def request(sent: float, finished: float, lost: str = "", **more: Any) -> Outcome:
    values = {"id": 1, "connection": 1, "age": 0.0, "status": 200, "served_by": "10.244.0.2", **more}
    return Outcome(kind="fresh", planned=sent, sent=sent, finished=finished, lost=lost, **values)  # type: ignore[arg-type]


DELETED = record(10, kinds.DELETE_ACCEPTED)


def test_an_init_container_that_has_ended_is_not_the_pods_end() -> None:
    healthy = life_of(
        [*created(init="init", app="container"), *run("init", 1.2, None, 1.5), *run("app", 2, None, None)]
    )
    assert (healthy.exited, healthy.phase(5), healthy.refuses(5, 5.1)) == (None, "ready", False)
    assert healthy.listens(5) and not healthy.outages


def test_a_refusal_is_not_laid_to_a_healthy_pod_whose_init_container_has_ended() -> None:
    healthy = life_of(
        [*created(init="init", app="container"), *run("init", 1.2, None, 1.5), *run("app", 2, None, None)]
    )
    ending = pod_life("v", "web-0", "10.244.0.9", ready=0.5, routed=1.0, deleted=10.0, term=10.1, exited=10.2,
                     unrouted=11.0)  # fmt: skip
    (lost,) = account([request(10.5, 10.5, "refused", served_by="")], [healthy, ending], [], 5.0).lost
    assert (lost.pod, lost.cause) == ("web-0", "late endpoint")


def test_an_ephemeral_container_that_is_killed_is_not_the_pods_end() -> None:
    added = record(4, kinds.EPHEMERAL_CONTAINERS_ADDED, containers=[{"name": "debug", "target": ""}])
    records = [*created(app="container"), *run("app", 2, 10.1, 10.5), added, *run("debug", 4, 10.0, 40, True), DELETED]
    found = life_of(records)
    assert (found.exited, found.killed, found.stop) == (AT(10.5), False, AT(10.1))


def test_a_pod_has_ended_when_the_last_of_its_containers_and_sidecars_has() -> None:
    begun = [*created(proxy="sidecar", app="container"), *run("app", 2, 10, 10.5), DELETED]
    assert life_of([*begun, *run("proxy", 1.5, 10.5, None)]).exited is None
    assert life_of([*begun, *run("proxy", 1.5, 10.5, 11)]).exited == AT(11)


def test_of_several_containers_the_end_of_the_one_that_serves_counts() -> None:
    """The sidecar that is killed at the end has cut off nothing."""
    sockets = record(10.02, kinds.SOCKETS_AT_STOP, "app", listeners=[{"address": "", "port": 8080, "backlog": 0}])
    metrics = record(10.03, kinds.LISTENER_CLOSED, "app", port=9090, seconds=0.1)
    records = [*created(proxy="sidecar", app="container"), *run("app", 2, 10, 12), sockets, metrics, DELETED,
               *run("proxy", 1.5, 12, 20, True)]  # fmt: skip
    by_look, by_word = life_of(records, 8080), life_of(records, None, {"app"})
    assert (by_look.exited, by_look.killed, by_look.listener_closed) == (AT(12), False, None)
    assert (by_word.exited, by_word.killed, by_word.listener_closed) == (AT(12), False, AT(10.11))
    (lost,) = account([request(11, 12, "truncated")], [by_look], [], 5.0).lost
    assert lost.cause == "cut off"
    assert life_of(records).killed, "without a port nobody knows which of them serves"


@pytest.mark.parametrize(("stop", "cause"), [(None, "crashed"), (5.9, "restarted")])
def test_what_a_crash_or_a_restart_lost_is_laid_to_it(stop: float | None, cause: str) -> None:
    records = [*created(app="container"), *run("app", 2, stop, 6), *run("app", 8, 20, 20.5),
               record(20, kinds.DELETE_ACCEPTED)]  # fmt: skip
    found = life_of(records)
    assert (found.exited, found.stop) == (AT(20.5), AT(20))
    assert [found.phase(at) for at in (5, 7, 9, 21)] == ["ready", "restarting", "ready", "after its exit"]
    lost = account([request(5.5, 6, "truncated"), request(7, 7, "refused", served_by=""),
                    request(12, 13, "truncated")], [found], [], 4.0).lost  # fmt: skip
    assert [each.cause for each in lost] == [cause, cause, "unexplained"]
    owner = {"spec": {"template": {"spec": {"containers": [{"name": "app"}]}}}}
    judged = judge(account([request(5.5, 6, "truncated")], [found], [], 4.0), [found], owner, 8080)
    assert [(each.id, each.patch) for each in judged.advice] == [(f"{cause}UnderLoad", {})]


def test_a_container_that_crashed_and_is_not_back_yet_refuses_what_the_rules_still_send() -> None:
    found = life_of([*created(app="container"), *run("app", 2, None, 6)])
    (lost,) = account([request(6.5, 6.5, "refused", served_by="")], [found], [], 4.0).lost
    assert (lost.pod, lost.cause, lost.phase) == ("web-1", "crashed", "after its exit")


def test_a_named_port_is_the_containers_that_declares_it() -> None:
    spec = {
        "initContainers": [{"name": "proxy", "restartPolicy": "Always", "ports": [{"containerPort": 15000}]}],
        "containers": [{"name": "log"}, {"name": "app", "ports": [{"name": "http", "containerPort": 8080}]}],
    }
    assert serving_containers(spec, "http") == (8080, {"app"})
    assert serving_containers(spec, 15000) == (15000, {"proxy"})
    assert serving_containers(spec, 9999) == (9999, set())
    assert serving_containers(spec, "grpc") == (None, set())


def test_a_stop_that_is_tried_again_began_with_the_first_request() -> None:
    """The stop signal is sent once in a container's life, so a later request has none after it."""
    again = record(10.5, kinds.STOP_REQUESTED, "app")
    found = life_of([*created(app="container"), *run("app", 2, 10.1, 12), again, DELETED])
    assert (found.stop, found.term, found.signalled) == (AT(10.1), AT(10.11), AT(10.1))


def test_signals_that_go_to_an_exec_or_to_another_process_are_not_the_containers() -> None:
    execs = [
        record(5, kinds.SIGNAL_SENT, "app", signal="SIGKILL", pid=9, why="exec timeout"),
        record(10.05, kinds.SIGNAL_SENT, "app", signal="SIGTERM", why="caller gone"),
    ]
    found = life_of([*created(app="container"), *run("app", 2, 10.1, 12), *execs, DELETED])
    assert (found.term, found.killed) == (AT(10.11), False)


@pytest.mark.parametrize(("why", "killed"), [("grace over", True), ("StopContainer", True), ("the shim died", False)])
def test_a_pod_was_killed_when_sigkill_for_its_grace_period_ended_a_container(why: str, killed: bool) -> None:
    """With a grace period of 0 nothing but SIGKILL is sent, as the stop itself."""
    kill = [record(10.5, kinds.SIGNAL_SENT, "app", signal="SIGKILL", pid=1, why=why)]
    ends = [record(10.6, kinds.PROCESS_EXITED, "app", exitCode=137, signal="SIGKILL")]
    begun = [*created(app="container"), *run("app", 2, None, None), DELETED]
    assert life_of([*begun, *kill, *ends]).killed == killed
    by_itself = [record(10.6, kinds.PROCESS_EXITED, "app", exitCode=0, signal=None)]
    assert not life_of([*begun, *kill, *by_itself]).killed, "it was quicker than the signal"


def test_a_container_that_outlived_its_shim_ended_when_init_says_so() -> None:
    died = Record("r-d", 12 * 10**9, 0, "init", kinds.PROCESS_DIED, facts={"role": "orphan", "pid": 1, "exitCode": 0})
    assert life_of([*created(app="container"), *run("app", 2, 10, None), died, DELETED]).exited == AT(12)
