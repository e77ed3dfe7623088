"""Conditions row by row (status/generate_test.go), and the resources that a container's status shows."""

from typing import Any

import pytest

from lastcall.kube.cri.api import (
    ContainerMetadata,
    ContainerState,
    ContainerStatus,
    LinuxContainerResources,
)
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.status.conditions import (
    containers_ready_condition,
    force_unready_when_terminal,
    initialized_condition,
    make_condition,
    pod_ready_condition,
    ready_to_start_containers_condition,
    set_pod_condition,
    terminal_ready_condition,
)
from lastcall.kube.node.status.resources import container_resources

SIDECAR = {"name": "s", "restartPolicy": "Always"}


def pod(*init: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}], "initContainers": list(init), **spec}}


def status(name: str, ready: bool = False, **more: Any) -> dict[str, Any]:
    return {"name": name, "ready": ready, "state": {"waiting": {}}, **more}


def brief(condition: Any) -> tuple[str, str, str]:
    return condition["status"], condition.get("reason", ""), condition.get("message", "")


READY = status("a", True)
UNREADY = "containers with unready status: "


@pytest.mark.parametrize(
    ("the_pod", "statuses", "phase", "expected"),
    [
        (pod(), [READY], "Running", ("True", "", "")),
        (pod(SIDECAR), [READY, status("s", True)], "Running", ("True", "", "")),
        (pod(SIDECAR), [READY, status("s")], "Running", ("False", "ContainersNotReady", f"{UNREADY}[s]")),
        (pod({"name": "i"}), [READY, status("i")], "Running", ("True", "", "")),
        (pod(SIDECAR), [status("a"), status("s")], "Running", ("False", "ContainersNotReady", f"{UNREADY}[s a]")),
        (pod(), [status("other")], "Succeeded", ("False", "ContainersNotReady", "containers with unknown status: [a]")),
        (pod(), [status("other")], "Failed", ("False", "PodFailed", "")),
        (pod(), [READY], "Succeeded", ("False", "PodCompleted", "")),
        (pod(), [], "Failed", ("False", "UnknownContainerStatuses", "")),
    ],
)
def test_containers_are_ready_when_regular_ones_and_sidecars_are(
    the_pod: dict[str, Any], statuses: list[Any], phase: str, expected: tuple[str, str, str]
) -> None:
    assert brief(containers_ready_condition(the_pod, statuses, phase)) == expected
    ready = pod_ready_condition(the_pod, [], statuses, phase)
    assert (brief(ready), ready["type"]) == (expected, "Ready")


INCOMPLETE = "containers with incomplete status: "


@pytest.mark.parametrize(
    ("the_pod", "statuses", "phase", "expected"),
    [
        (pod(), [], "Pending", ("True", "", "")),
        (pod({"name": "i"}), [], "Pending", ("False", "UnknownContainerStatuses", "")),
        (pod({"name": "i"}), [status("i", True), status("a")], "Pending", ("True", "", "")),
        (
            pod({"name": "i"}),
            [status("i"), status("a")],
            "Pending",
            ("False", "ContainersNotInitialized", f"{INCOMPLETE}[i]"),
        ),
        (
            pod({"name": "i"}, {"name": "j"}),
            [status("j"), status("a")],
            "Pending",
            ("False", "ContainersNotInitialized", f"containers with unknown status: [i], {INCOMPLETE}[j]"),
        ),
        (pod(SIDECAR), [status("s", started=True), status("a")], "Pending", ("True", "", "")),
        (
            pod(SIDECAR),
            [status("s", True, started=False), status("a")],
            "Pending",
            ("False", "ContainersNotInitialized", f"{INCOMPLETE}[s]"),
        ),
        (pod({"name": "i"}), [status("i"), status("a")], "Succeeded", ("True", "PodCompleted", "")),
        (
            pod({"name": "i"}),
            [status("a")],
            "Succeeded",
            ("False", "ContainersNotInitialized", "containers with unknown status: [i]"),
        ),
        (pod({"name": "i"}), [status("i"), status("a", state={"running": {}})], "Running", ("True", "", "")),
        (pod({"name": "i"}), [status("i"), status("a", state={"terminated": {}})], "Running", ("True", "", "")),
        (
            pod({"name": "i"}),
            [status("i"), status("a", lastState={"terminated": {"exitCode": 1}})],
            "Running",
            ("True", "", ""),
        ),
        (
            pod({"name": "i"}),
            [status("i"), status("a", lastState={})],
            "Running",
            ("False", "ContainersNotInitialized", f"{INCOMPLETE}[i]"),
        ),
    ],
)
def test_a_pod_is_initialised_when_all_came_through_or_a_container_has_run(
    the_pod: dict[str, Any], statuses: list[Any], phase: str, expected: tuple[str, str, str]
) -> None:
    assert brief(initialized_condition(the_pod, statuses, phase)) == expected


def test_a_condition_has_only_what_is_said_of_it() -> None:
    assert make_condition("T", False) == {"type": "T", "status": "False", "lastProbeTime": None}
    assert make_condition("T", True, reason="R", message="m", observed_generation=3) == {
        "type": "T",
        "observedGeneration": 3,
        "status": "True",
        "lastProbeTime": None,
        "reason": "R",
        "message": "m",
    }


@pytest.mark.parametrize(("phase", "reason"), [("Failed", "PodFailed"), ("Succeeded", "PodCompleted"), ("Running", "")])
def test_why_a_pod_that_has_ended_is_not_ready(phase: str, reason: str) -> None:
    assert brief(terminal_ready_condition("Ready", phase)) == ("False", reason, "")


@pytest.mark.parametrize(
    "made",
    [
        lambda: containers_ready_condition(pod(), [READY], "Running", 7),
        lambda: containers_ready_condition(pod(), [status("a")], "Running", 7),
        lambda: containers_ready_condition(pod(), [], "Running", 7),
        lambda: containers_ready_condition(pod(), [READY], "Failed", 7),
        lambda: pod_ready_condition(pod(), [], [READY], "Running", 7),
        lambda: pod_ready_condition(pod(readinessGates=[{"conditionType": "x"}]), [], [READY], "Running", 7),
        lambda: initialized_condition(pod(), [], "Pending", 7),
        lambda: initialized_condition(pod({"name": "i"}), [], "Pending", 7),
        lambda: initialized_condition(pod({"name": "i"}), [status("i")], "Pending", 7),
        lambda: initialized_condition(pod({"name": "i"}), [status("i")], "Succeeded", 7),
        lambda: initialized_condition(pod(), [status("a", state={"running": {}})], "Running", 7),
        lambda: ready_to_start_containers_condition(pod(), PodStatus("u", "p", "n"), 7),
    ],
)
def test_every_condition_observes_the_generation_that_it_is_given(made: Any) -> None:
    assert made()["observedGeneration"] == 7


def test_since_1_37_the_condition_of_the_sandbox_says_why_it_is_false() -> None:
    """(kubernetes#135300)"""
    none = PodStatus("u", "p", "n")
    made = ready_to_start_containers_condition(pod(), none, says_why=True)
    assert (made["status"], made["reason"], made["message"]) == (
        "False",
        "PodSandboxNotReady",
        "no pod sandbox exists",
    )
    assert "reason" not in ready_to_start_containers_condition(pod(), none)


def test_a_condition_takes_the_place_of_its_namesake_and_observes_what_others_do() -> None:
    own: dict[str, Any] = {"type": "D", "status": "True"}
    empty: dict[str, Any] = {}
    set_pod_condition(empty, own)
    assert empty == {"conditions": [own]}
    status_: dict[str, Any] = {
        "conditions": [
            {"type": "D", "status": "False", "observedGeneration": 2},
            {"type": "Ready", "observedGeneration": 5},
            {"type": "Other"},
        ]
    }
    set_pod_condition(status_, own)
    assert [each["type"] for each in status_["conditions"]] == ["Ready", "Other", "D"]
    assert status_["conditions"][-1] == {**own, "observedGeneration": 5}


def test_a_pod_that_runs_keeps_its_ready_condition_and_one_that_has_ended_does_not() -> None:
    def conditions() -> list[Any]:
        return [
            {"type": "ContainersReady", "status": "False", "lastTransitionTime": "t0", "observedGeneration": 4},
            {"type": "Initialized", "status": "True", "lastTransitionTime": "t0"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "t0"},
        ]

    running: dict[str, Any] = {"phase": "Running", "conditions": conditions()}
    force_unready_when_terminal(running, "t1")
    assert running["conditions"] == conditions()
    ended: dict[str, Any] = {"phase": "Succeeded", "conditions": conditions()}
    force_unready_when_terminal(ended, "t1")
    containers, initialized, ready = ended["conditions"]
    assert (brief(containers), containers["lastTransitionTime"], containers["observedGeneration"]) == (
        ("False", "PodCompleted", ""),
        "t0",
        4,
    )
    assert initialized == conditions()[1]
    assert (brief(ready), ready["lastTransitionTime"]) == (("False", "PodCompleted", ""), "t1")
    bare: dict[str, Any] = {"phase": "Failed"}
    force_unready_when_terminal(bare, "t1")
    assert bare == {"phase": "Failed"}


# -- resources of containers -------------------------------------------------------------------------------------------

MI = 1 << 20


def instance(state: ContainerState = ContainerState.CONTAINER_RUNNING, **resources: int) -> ContainerStatus:
    has = LinuxContainerResources(**resources)
    return ContainerStatus("i", ContainerMetadata("a"), "s", state, "x", "x", 1, resources=has)


GIVEN = {"limits": {"cpu": "2", "memory": "200Mi"}, "requests": {"cpu": "1", "memory": "100Mi"}}
SHOWN = {"limits": {"cpu": "1", "memory": "100Mi"}, "requests": {"cpu": "500m", "memory": "50Mi"}}
AS_GIVEN = {"cpu_quota": 200_000, "cpu_period": 100_000, "cpu_shares": 1024, "memory_limit_in_bytes": 200 * MI}
AS_SHOWN = {"cpu_quota": 100_000, "cpu_period": 100_000, "cpu_shares": 512, "memory_limit_in_bytes": 100 * MI}


@pytest.mark.parametrize(
    ("found", "shown", "expected"),
    [
        (instance(**AS_GIVEN), SHOWN, GIVEN),
        (instance(**AS_GIVEN), None, GIVEN),
        (instance(**AS_SHOWN), SHOWN, SHOWN),
        (instance(ContainerState.CONTAINER_EXITED, **AS_SHOWN), SHOWN, GIVEN),
        (instance(), SHOWN, GIVEN),
        # nobody has written it like this: millicores and bytes
        (
            instance(cpu_quota=150_000, cpu_period=50_000, cpu_shares=256, memory_limit_in_bytes=7),
            SHOWN,
            {"limits": {"cpu": "3000m", "memory": "7"}, "requests": {"cpu": "250m", "memory": "50Mi"}},
        ),
        (
            instance(cpu_quota=150_000, cpu_shares=3),
            None,
            {"limits": {"cpu": "1500m", "memory": "200Mi"}, "requests": {"cpu": "3m", "memory": "100Mi"}},
        ),
    ],
)
def test_a_status_shows_what_the_container_has(found: ContainerStatus, shown: Any, expected: Any) -> None:
    given = {"name": "a", "resources": {each: dict(amounts) for each, amounts in GIVEN.items()}}
    assert container_resources(given, found, shown) == expected
    assert given["resources"] == GIVEN, "the spec stays as it is"


@pytest.mark.parametrize("resources", [{}, {"limits": {"cpu": "2"}}, {"requests": {"cpu": "1"}}])
def test_what_was_not_asked_for_is_not_shown(resources: Any) -> None:
    assert container_resources({"name": "a", "resources": resources}, instance(**AS_GIVEN), None) == resources
