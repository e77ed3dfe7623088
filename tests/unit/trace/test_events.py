"""What an Event is taken to say."""

from typing import Any

import pytest

from lastcall.records import kinds
from lastcall.trace.events import kill_reason, names_job, names_pod, pod_event_of, refusing_webhook, steps_of
from lastcall.trace.following.events import EventIndex
from lastcall.trace.following.state import SharedState
from lastcall.world.world import World


def event(reason: str, message: str = "", kind: str = "Pod", **more: Any) -> dict[str, Any]:
    about = {"kind": kind, "name": "p", "namespace": "n", "uid": "u", "fieldPath": more.pop("path", "")}
    return {
        "metadata": {"uid": "e", "resourceVersion": "7"},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "source": {"component": "kubelet", "host": "node"},
        **more,
    }


@pytest.mark.parametrize(
    ("reason", "kind", "kept"),
    [
        ("Killing", "Pod", True),
        ("FailedPreStopHook", "Pod", True),
        ("Started", "Pod", False),
        ("BackOff", "Pod", False),
        ("SuccessfulDelete", "ReplicaSet", True),
        ("SuccessfulDelete", "Pod", False),
        ("Killing", "ReplicaSet", False),
        ("", "Pod", False),
    ],
)
def test_only_events_of_use_are_kept(reason: str, kind: str, kept: bool) -> None:
    assert (pod_event_of(event(reason, kind=kind)) is not None) is kept


@pytest.mark.parametrize(
    ("times", "stamp"),
    [
        ({"eventTime": "c"}, "c"),
        ({"eventTime": "c", "lastTimestamp": "b"}, "b"),
        ({"eventTime": "c", "lastTimestamp": "b", "series": {"lastObservedTime": "a"}}, "a"),
        ({"eventTime": None, "lastTimestamp": None}, ""),
    ],
)
def test_the_newest_time_is_its_stamp(times: dict[str, Any], stamp: str) -> None:
    told = pod_event_of(event("Killing", **times))
    assert told is not None
    assert told.stamp == stamp


@pytest.mark.parametrize(
    ("path", "container"),
    [
        ("spec.containers{app}", "app"),
        ("spec.initContainers{side-car}", "side-car"),
        ("spec.ephemeralContainers{debug}", "debug"),
        ("spec.volumes{data}", ""),
        ("spec.containers", ""),
        ("", ""),
    ],
)
def test_the_container_stands_in_the_field_path(path: str, container: str) -> None:
    told = pod_event_of(event("Killing", path=path))
    assert told is not None
    assert (told.container, told.node, told.reporter) == (container, "node", "kubelet")


def test_a_message_without_end_is_cut() -> None:
    told = pod_event_of(event("Killing", "x" * 100_000))
    assert told is not None
    assert len(told.message) == 500


def test_events_of_the_newer_kind_name_their_reporter_elsewhere() -> None:
    told = pod_event_of(event("Preempted", source={}, reportingComponent="default-scheduler"))
    assert told is not None
    assert (told.reporter, told.node) == ("default-scheduler", "")


@pytest.mark.parametrize(
    ("kind", "message", "job"),
    [
        ("CronJob", "Deleted job etl-29", "etl-29"),
        ("CronJob", "Created job etl-29", ""),
        ("ReplicaSet", "Deleted job etl-29", ""),
    ],
)
def test_a_cron_job_names_the_job_that_it_deleted(kind: str, message: str, job: str) -> None:
    found = pod_event_of(event("SuccessfulDelete", message, kind=kind))
    assert found is not None
    assert names_job(found) == job


DENIED = 'Error deleting: admission webhook "guard.example.com" denied the request: keep it'
FAILED = (
    'Error deleting: Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: EOF'
)


@pytest.mark.parametrize(
    ("reason", "message", "webhook"),
    [
        ("FailedDelete", DENIED, "guard.example.com"),
        ("FailedDelete", FAILED, "guard.example.com"),
        ("FailedDelete", "Error deleting: etcdserver: request timed out", ""),
        ("SuccessfulDelete", DENIED, ""),
    ],
)
def test_an_owner_names_the_webhook_that_keeps_its_pod(reason: str, message: str, webhook: str) -> None:
    found = pod_event_of(event(reason, message, kind="ReplicaSet"))
    assert found is not None
    assert refusing_webhook(found) == webhook


def test_a_webhook_that_keeps_the_pods_of_an_owner_is_noted_once_with_what_to_do() -> None:
    notes: list[str] = []
    shared = SharedState(World(), lambda record: None)
    index = EventIndex(shared, None, lambda error: None, notes.append)  # type: ignore[arg-type]
    for _ in range(3):
        index.event("ADDED", event("FailedDelete", DENIED, kind="ReplicaSet"))
    index.event("ADDED", event("FailedDelete", "Error deleting: timed out", kind="ReplicaSet"))
    told, what = notes
    assert told == f"ReplicaSet n/p cannot delete its Pods: {DENIED}"
    assert what.startswith("fix: The API server asks webhook guard.example.com before it deletes a Pod.")


@pytest.mark.parametrize(
    ("message", "pod"),
    [
        ("Deleted pod: web-7d9-x2", "web-7d9-x2"),
        ("delete Pod web-2 in StatefulSet web successful", "web-2"),
        ("Delete Pod web-2 in StatefulSet web", "web-2"),
        ("Created pod: web-1", ""),
        ("the Deleted pod: web-1", ""),
    ],
)
def test_an_owner_names_the_pod_that_it_deleted(message: str, pod: str) -> None:
    told = pod_event_of(event("SuccessfulDelete", message, kind="ReplicaSet"))
    assert told is not None
    assert names_pod(told) == pod


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Stopping container app", ""),
        ("Container app failed liveness probe, will be restarted", "LivenessProbe"),
        ("Container app failed startup probe", "StartupProbe"),
        ("FailedPostStartHook", "FailedPostStartHook"),
        ("Container app definition changed, will be restarted", ""),
    ],
)
def test_why_a_container_is_killed_stands_in_the_message(message: str, reason: str) -> None:
    assert kill_reason(message) == reason


@pytest.mark.parametrize(
    ("reason", "message", "path", "kind", "facts"),
    [
        ("Unhealthy", "Readiness probe failed: HTTP 500", "spec.containers{app}", kinds.PROBE_CHANGED,
         {"probe": "readiness", "output": "HTTP 500"}),
        ("Unhealthy", "Liveness probe errored and resulted in unknown state: gone", "spec.containers{app}",
         kinds.PROBE_CHANGED, {"probe": "liveness", "output": "gone"}),
        ("FailedMount", 'MountVolume.SetUp failed for volume "data" : no', "", kinds.VOLUME_FAILED, {"volume": "data"}),
        ("Failed", "no such file", "spec.containers{app}", kinds.CONTAINER_START_FAILED, {"message": "no such file"}),
    ],
)  # fmt: skip
def test_steps_that_an_event_alone_gives(
    reason: str, message: str, path: str, kind: str, facts: dict[str, Any]
) -> None:
    told = pod_event_of(event(reason, message, path=path, lastTimestamp="2026-01-01T00:00:00Z"))
    assert told is not None
    (step,) = steps_of(told)
    assert (step.kind, step.evidence, step.clock) == (kind, "inferred", "node")
    assert facts.items() <= step.facts.items()


@pytest.mark.parametrize(
    ("reason", "message"),
    [("Unhealthy", "something else"), ("FailedMount", "no volume named"), ("Failed", "no pull"), ("Killing", "x")],
)
def test_what_is_not_understood_gives_no_step(reason: str, message: str) -> None:
    told = pod_event_of(event(reason, message))
    assert told is not None
    assert list(steps_of(told)) == []
