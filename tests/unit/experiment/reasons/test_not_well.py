"""What is told of containers that are not well: the cluster is gone when somebody reads it."""

from typing import Any

import pytest

from lastcall.endings import fix_of
from lastcall.experiment.reasons.failures import describe_ends, ends_of_all, explain, group_alike
from lastcall.experiment.reasons.why_not_ready import has_failed, why_not_ready
from lastcall.records import kinds
from lastcall.records.record import Record

REFUSED = "dial tcp 10.244.0.2:8080: connect: connection refused"


def explained(*args, **options):
    return list(explain(*args, **options).lines)


def record(at: float, kind: str, container: str = "app", uid: str = "u", **facts: Any) -> Record:
    return Record(f"r-{uid}-{at}-{kind}", int(at * 1e9), 0, "a", kind, uid, container, facts=facts)


def crash(at: float, uid: str = "u") -> list[Record]:
    return [
        record(at, kinds.PROCESS_STARTED, uid=uid, pid=7, exe="/bin/sh", argv=["sh"]),
        record(at + 0.1, kinds.OUTPUT, uid=uid, stream="stdout", text="FATAL no DB_URL\x1b[0m"),
        record(at + 0.2, kinds.PROCESS_EXITED, uid=uid, pid=7, exitCode=3, signal=None),
    ]


def pod(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "app"}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "app", **status}]},
    }


def test_a_container_that_crashed_is_told_with_its_exit_code_and_its_last_lines() -> None:
    lines = describe_ends(pod(), [*crash(1), *crash(3)], "1.36")
    assert lines[0].startswith("  app crashed 2 times, the last one 200 ms after its start (exit code 3)")
    assert lines[-2:] == ["  what app printed last (exit code 3):", "    | FATAL no DB_URL\\x1b[0m"]


def test_a_container_that_runs_and_is_not_ready_is_told_with_its_last_lines() -> None:
    records = crash(1)[:2]
    assert describe_ends(pod(ready=False, state={"running": {}}), records, "1.36") == [
        "  what app printed last (it runs and is not ready):",
        "    | FATAL no DB_URL\\x1b[0m",
    ]
    assert describe_ends(pod(ready=True, state={"running": {}}), records, "1.36") == []


def test_a_failure_on_a_stand_in_image_says_so() -> None:
    stand_in = record(0.5, kinds.IMAGE_SUBSTITUTED, image="busybox:1.36", substitute="localhost/x:latest")
    note = (
        "  note: Image busybox:1.36 is not available: localhost/x:latest ran in its place. Programs in it may behave "
        "differently."
    )
    assert describe_ends(pod(), [stand_in, *crash(1)], "1.36")[-1] == note
    assert explained(["why"], pod(), [stand_in], "1.36") == ["why", note]
    assert ends_of_all([stand_in, *crash(1)], "1.36")[0].lines[-1] == note
    assert describe_ends(pod(ready=True, state={"running": {}}), [stand_in], "1.36") == []


def test_a_container_that_ran_out_of_memory_before_is_told() -> None:
    killed = [
        record(1, kinds.PROCESS_STARTED, pid=7, exe="/bin/app", argv=["app"]),
        record(2, kinds.PROCESS_EXITED, pid=7, exitCode=137, signal="SIGKILL", oomKilled=True, oomKills=1,
               memoryLimit=64 << 20, limitReached=True),
        record(3, kinds.PROCESS_STARTED, pid=8, exe="/bin/app", argv=["app"]),
    ]  # fmt: skip
    lines = describe_ends(pod(ready=True, state={"running": {}}), killed, "1.36")
    assert "ran out of memory: it used more than its memory limit of 64Mi" in lines[0]
    assert lines[1].startswith("  fix: resources: {limits: {memory: more than 64Mi}}, or a program that uses less. ")
    assert lines[1].endswith("not known, because it was killed at the limit. [outOfMemory]")


def waiting_pod(policy: str | None = None) -> dict[str, Any]:
    """Its init container (with `policy` Always: its sidecar) runs, and nothing else was started."""
    running = {"name": "wait", "state": {"running": {}}, "ready": False, "started": False}
    idle = {"name": "app", "state": {"waiting": {"reason": "PodInitializing"}}, "ready": False}
    return {
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {
            "initContainers": [{"name": "wait", **({"restartPolicy": policy} if policy else {})}],
            "containers": [{"name": "app"}],
        },
        "status": {"phase": "Pending", "initContainerStatuses": [running], "containerStatuses": [idle]},
    }


INIT_LINES = [
    ("** server can't find databse.default.svc.cluster.local: NXDOMAIN", "databse.default.svc.cluster.local"),
    ("nc: bad address 'databse'", "databse"),
    ("curl: (6) Could not resolve host: databse", "databse"),
    ('psql: error: could not translate host name "databse" to address: Name or service not known', "databse"),
    ("Error: getaddrinfo ENOTFOUND databse", "databse"),
    ("dial tcp: lookup databse on 10.96.0.10:53: no such host", "databse"),
    ("nc: can't connect to remote host (10.0.0.9): Connection refused", "what it connects to refuses"),
    ("waiting", "see what it waits for"),
]


@pytest.mark.parametrize(("line", "words"), INIT_LINES)
def test_an_init_container_that_still_runs_is_told_with_its_time_and_what_it_waits_for(line: str, words: str) -> None:
    records = [
        record(1, kinds.PROCESS_STARTED, "wait", pid=7, exe="/bin/sh", argv=["sh"]),
        record(50, kinds.OUTPUT, "wait", stream="stdout", text=line),
        record(51, kinds.OUTPUT, "wait", stream="stdout", text="trying again"),
    ]
    why = why_not_ready(waiting_pod())
    assert "  container wait: Init: wait still runs, and the containers after it wait for its end" in why
    (fixed, *told) = explained([], waiting_pod(), records, "1.36", now_ns=61_000_000_000)
    assert fixed.startswith("  fix: ") and words in fixed and fixed.endswith(" [initContainerRuns]")
    assert told == [
        "  what wait printed last (an init container that has been running for 60 s):",
        f"    | {line}",
        "    | trying again",
    ]


@pytest.mark.parametrize(("now", "waits"), [(62, False), (90, True)])
def test_an_init_container_that_failed_before_is_said_to_wait_only_if_it_runs_longer_than_then(
    now: int, waits: bool
) -> None:
    records = [
        record(1, kinds.PROCESS_STARTED, "wait", pid=7, exe="/bin/sh", argv=["sh"]),
        record(3, kinds.PROCESS_EXITED, "wait", pid=7, exitCode=1),
        record(60, kinds.PROCESS_STARTED, "wait", pid=8, exe="/bin/sh", argv=["sh"]),
    ]
    lines = explained([], waiting_pod(), records, "1.36", now_ns=now * 1_000_000_000)
    assert any("[initContainerFailed]" in line for line in lines)
    assert any("[initContainerRuns]" in line for line in lines) is waits
    assert "and succeeded" not in "".join(lines)


def test_an_init_container_that_prints_nothing_is_told_too_and_a_sidecar_is_none() -> None:
    records = [record(1, kinds.PROCESS_STARTED, "wait", pid=7, exe="/bin/sh", argv=["sh"])]
    lines = explained([], waiting_pod(), records, "1.36", now_ns=61_000_000_000)
    assert lines[1:] == ["  wait, an init container that has been running for 60 s, printed nothing"]
    assert explained([], waiting_pod("Always"), records, "1.36", now_ns=61_000_000_000) == []
    assert "Init: " not in "".join(why_not_ready(waiting_pod("Always")))


@pytest.mark.parametrize("status", [400, 403])
@pytest.mark.parametrize(
    "line",
    [
        "ERROR django.security.DisallowedHost: Invalid HTTP_HOST header: '10.244.0.2:8000'.",
        "Invalid host header",
        "[ActionDispatch::HostAuthorization::DefaultResponseApp] Blocked hosts: 10.244.0.2:8000",
    ],
)
def test_a_probe_whose_host_header_is_refused_is_not_told_to_ask_another_path(line: str, status: int) -> None:
    why = [f"  fix: {fix_of('probeFailed', 'status', status=status)}"]
    unready = pod(ready=False, state={"running": {}})
    started = record(1, kinds.PROCESS_STARTED, pid=7, exe="/bin/app", argv=["app"])
    printed = [started, *(record(at, kinds.OUTPUT, stream="stdout", text=line) for at in (2, 3, 4))]
    fixed, heading, *lines = explained(why, unready, printed, "1.36")
    assert "httpHeaders: [{name: Host" in fixed and f"with {status}" in fixed and "path" not in fixed
    assert "printed last" in heading and lines == [f"    | {line} (3 times)"]
    other = [started, record(2, kinds.OUTPUT, stream="stdout", text="the host is up")]
    assert explained(why, unready, other, "1.36")[0] == why[0]


def test_what_is_known_of_an_end_takes_the_place_of_what_is_said_in_general() -> None:
    killed = [
        record(1, kinds.PROCESS_STARTED, pid=7, exe="/bin/app", argv=["app"]),
        record(4, kinds.PROBE_CHANGED, probe="liveness", result="failure", output=REFUSED, succeededBefore=False),
        record(4, kinds.KILLING, message="", gracePeriodSeconds=30, reason="LivenessProbe"),
        record(4, kinds.STOP_REQUESTED, timeoutSeconds=30),
        record(4.1, kinds.PROCESS_EXITED, pid=7, exitCode=143, signal="SIGTERM"),
    ]
    general = f"  fix: {fix_of('probeFailed')}"
    refused = f"  fix: {fix_of('probeFailed', 'tooEarly')}"
    assert explained(["  Event Unhealthy", general], pod(), [], "1.36") == ["  Event Unhealthy", general]
    lines = explained(["  Event Unhealthy", general], pod(), killed, "1.36")
    assert general not in lines and lines[0] == "  Event Unhealthy"
    assert refused not in explained(["  Event Unhealthy", refused], pod(), killed, "1.36")
    assert "it did not listen yet" in lines[1]
    assert lines[2].startswith("  fix: A startupProbe with the same check") and "at least 30 s (3.0 s were" in lines[2]
    assert lines[2].endswith(" [livenessProbeKilled]")


def test_of_all_pods_those_are_told_whose_containers_ended_before() -> None:
    made = record(0, kinds.POD_CREATED, "", namespace="shop", name="web", containers=[])
    well = [record(1, kinds.PROCESS_STARTED, uid="v", pid=8)]
    ended = [record(1, kinds.PROCESS_STARTED, uid="w", pid=9), record(2, kinds.DELETE_ACCEPTED, "", uid="w"),
             record(3, kinds.STOP_REQUESTED, uid="w"),
             record(4, kinds.PROCESS_EXITED, uid="w", pid=9, exitCode=143)]  # fmt: skip
    (found,) = ends_of_all([made, *crash(1), *well, *ended], "1.36")
    assert found.pod == "shop/web" and "app crashed" in found.lines[0]
    assert found.failed and [each.id for each in found.findings] == ["crashed"]


def test_pods_that_ended_alike_are_told_once() -> None:
    records = [*crash(1, "a"), *crash(1, "b"), *crash(1.5, "c"), *crash(1, "d")[:2],
               record(2, kinds.PROCESS_EXITED, uid="d", pid=7, exitCode=4, signal=None)]  # fmt: skip
    told = group_alike(ends_of_all(records, "1.36"))
    assert [names for names, _ in told] == ["/a and 2 other Pods", "/d"]


def test_a_container_that_its_own_rule_restarted_is_well() -> None:
    created = record(0, kinds.POD_CREATED, "", namespace="shop", name="web",
                     containers=[{"name": "app", "kind": "container", "restartRules": [["In", [3]]]}])  # fmt: skip
    assert ends_of_all([created, *crash(1), *crash(3)], "1.36") == []


def test_a_status_says_whether_a_container_has_failed() -> None:
    assert not has_failed(pod(restartCount=0, state={"running": {}}))
    assert not has_failed(pod(restartCount=0, state={"terminated": {"exitCode": 0}}))
    assert has_failed(pod(restartCount=1, state={"running": {}}))
    assert has_failed(pod(restartCount=0, state={"terminated": {"exitCode": 3}}))
