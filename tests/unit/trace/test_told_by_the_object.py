"""What a Pod's object tells of the past, in the order in which it was."""

from typing import Any

import pytest

from lastcall.records import kinds
from lastcall.trace import pods
from lastcall.trace.events import PodEvent
from lastcall.trace.pod_timeline import Moment, PodTimeline, runs_in_order
from lastcall.trace.stamps import SECOND, Clocks

NOW = Moment(1000 * SECOND, 1000 * SECOND)


def pod(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"uid": "u", "name": "p", "namespace": "n", "creationTimestamp": "1970-01-01T00:10:00Z"},
        "spec": {"nodeName": "node", "containers": [{"name": "app"}], "terminationGracePeriodSeconds": 5},
        "status": status,
    }


def run(start: int, end: int | None = None, code: int = 0, **more: Any) -> dict[str, Any]:
    if end is None:
        return {"running": {"startedAt": stamp(start), **more}}
    times = {"startedAt": stamp(start), "finishedAt": stamp(end)}
    return {"terminated": {**times, "exitCode": code, "containerID": f"x://{start}", **more}}


def stamp(seconds: int) -> str:
    return f"1970-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"


def timeline(obj: dict[str, Any]) -> PodTimeline:
    numbers = iter(range(1000))
    return PodTimeline(obj, Clocks(), lambda actor: f"{actor}-{next(numbers)}", lambda record: None, NOW, first=obj)


def told(made: PodTimeline) -> list[str]:
    wanted = (kinds.CONTAINER_STARTED, kinds.KILLING, kinds.STOP_REQUESTED, kinds.PROCESS_EXITED)
    records = sorted(made.past(NOW), key=lambda each: each.at_ns)
    return [f"{each.kind} {each.facts.get('exitCode', '')}".strip() for each in records if each.kind in wanted]


def test_a_run_that_ended_in_the_second_in_which_the_next_began_ended_first() -> None:
    status = {"name": "app", "restartCount": 1, "lastState": run(900, 910, 1), "state": run(910)}
    assert told(timeline(pod(containerStatuses=[status]))) == [
        "ContainerStarted",
        "ProcessExited 1",
        "ContainerStarted",
    ]


def test_a_run_of_less_than_a_second_has_a_beginning_before_its_end() -> None:
    status = {"name": "app", "restartCount": 2, "lastState": run(910, 910, 1), "state": run(910, 910, 1)}
    found = told(timeline(pod(containerStatuses=[status])))
    assert found == ["ContainerStarted", "ProcessExited 1"] * 2


def test_an_exit_in_the_second_of_a_killing_comes_after_it() -> None:
    status = {"name": "app", "restartCount": 0, "state": run(900, 910, 0)}
    made = timeline(pod(phase="Succeeded", containerStatuses=[status]))
    event = PodEvent(
        "e", "1", "Killing", "FailedPostStartHook", "Pod", "n", "p", "u", "app", "kubelet", "node", stamp(910)
    )
    made.history.append((event, Moment(911 * SECOND, 911 * SECOND)))
    assert told(made) == ["ContainerStarted", "Killing", "StopRequested", "ProcessExited 0"]


@pytest.mark.parametrize(
    ("policy", "status", "message", "at", "reason"),
    [
        ("Never", {}, "Liveness probe failed: HTTP 500", 909, "LivenessProbe"),
        ("Never", {}, "Startup probe failed: HTTP 500", 909, "StartupProbe"),
        ("Never", {}, "Readiness probe failed: HTTP 500", 909, None),
        ("Never", {}, "Liveness probe failed: HTTP 500", 900, None),  # it was not the last straw
        ("Never", {"reason": "Evicted"}, "Liveness probe failed: HTTP 500", 909, None),
        ("Always", {}, "Liveness probe failed: HTTP 500", 909, None),  # its Killing would say so
    ],
)
def test_a_pod_that_starts_nothing_again_and_fails_its_probe_is_ended_for_that(
    policy: str, status: dict[str, Any], message: str, at: int, reason: str | None
) -> None:
    obj = pod(**status, containerStatuses=[{"name": "app", "restartCount": 0, "state": run(800)}])
    probe = {"terminationGracePeriodSeconds": 2}
    obj["spec"] |= {"restartPolicy": policy, "containers": [{"name": "app", "livenessProbe": probe}]}
    made = timeline(obj)

    def event(number: int, reason: str, message: str, seconds: int) -> None:
        said = PodEvent(str(number), "1", reason, message, "Pod", "n", "p", "u", "app", "kubelet", "node", "")
        made.event(said, Moment(seconds * SECOND, seconds * SECOND))

    event(1, "Unhealthy", message, at)
    event(2, "Killing", "Stopping container app", 910)
    (killing,) = (each.facts for each in made.records if each.kind == kinds.KILLING)
    assert killing.get("reason") == reason
    assert killing["gracePeriodSeconds"] == 5  # the Pod's: the kubelet ends it as a whole


@pytest.mark.parametrize(
    ("state", "ran"),
    [
        (run(900, 910), True),
        (run(0, 910, 128), False),  # containerd has no start to tell
        (run(900, 910, 128, reason="StartError"), False),
        (run(900, 910, 127, reason="ContainerCannotRun"), False),
        ({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "finishedAt": None}}, False),
    ],
)
def test_a_container_that_could_not_be_started_has_neither_begun_nor_ended(state: dict[str, Any], ran: bool) -> None:
    status = {"name": "app", "restartCount": 0, "state": state}
    found = [each.kind for each in pods.before_the_end(pod(containerStatuses=[status])) if each.container]
    assert found == ([kinds.CONTAINER_STARTED, kinds.PROCESS_EXITED] if ran else [])


def test_places_are_moved_only_as_far_as_the_order_asks() -> None:
    status = {"name": "app", "restartCount": 1, "lastState": run(900, 910, 1), "state": run(910)}
    drafts = pods.before_the_end(pod(containerStatuses=[status]))
    places = [1, 2, 900, 910, 905]
    runs_in_order(drafts, places)
    assert places == [1, 2, 900, 904, 905]
