"""The restart of all containers as pure rules, with the cases of upstream status/generate_test.go."""

from typing import Any

import pytest

from lastcall.kube.cri.api import ContainerMetadata, ContainerState, ContainerStatus
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.pods.restart_all import containers_to_reset, is_cleaned_up, should_restart_all
from lastcall.kube.node.status.conditions import all_containers_restarting_condition

RULES = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}]
RUNNING, EXITED = ContainerState.CONTAINER_RUNNING, ContainerState.CONTAINER_EXITED
UNDERWAY = {"conditions": [{"type": "AllContainersRestarting", "status": "True"}]}


def pod(**metadata: Any) -> dict[str, Any]:
    trigger = {"name": "trigger", "restartPolicy": "Never", "restartPolicyRules": RULES}
    return {
        "metadata": metadata,
        "spec": {"initContainers": [{"name": "init"}], "containers": [{"name": "container"}, trigger]},
    }


def runtime(*ended: tuple[str, ContainerState, int]) -> PodStatus:
    statuses = tuple(
        ContainerStatus(
            f"id-{name}-{number}", ContainerMetadata(name), "s", state, "i", "r", 100 - number, exit_code=code
        )
        for number, (name, state, code) in enumerate(ended)
    )
    return PodStatus("u", "p", "n", container_statuses=statuses)


TRIGGERED = (("container", RUNNING, 0), ("trigger", EXITED, 42))


@pytest.mark.parametrize(
    ("records", "api", "expected"),
    [
        ((), {}, False),
        (TRIGGERED, {}, True),
        ((("container", EXITED, 42), ("trigger", RUNNING, 0)), {}, False),
        ((("trigger", EXITED, 1),), {}, False),
        ((("container", RUNNING, 0),), UNDERWAY, True),
        # The record is gone, and the status says how it ended.
        ((), {"containerStatuses": [{"name": "trigger", "state": {"terminated": {"exitCode": 42}}}]}, True),
        # A new instance runs: what the status says of the one before is over.
        (
            (("trigger", RUNNING, 0),),
            {"containerStatuses": [{"name": "trigger", "state": {"terminated": {"exitCode": 42}}}]},
            False,
        ),
    ],
)
def test_when_all_containers_restart(records: tuple[Any, ...], api: dict[str, Any], expected: bool) -> None:
    assert should_restart_all(pod(), runtime(*records), api) is expected
    assert not should_restart_all(pod(deletionTimestamp="2030-01-01T00:00:00Z"), runtime(*records), api)


def test_what_goes_and_in_which_order() -> None:
    records = runtime(("trigger", EXITED, 42), ("init", EXITED, 0), ("container", RUNNING, 0), ("trigger", EXITED, 1))
    names = [status.id for status in containers_to_reset(pod(), records)]
    assert names == ["id-container-2", "id-trigger-3", "id-init-1", "id-trigger-0"]
    assert not is_cleaned_up(pod(), records)
    assert is_cleaned_up(pod(), runtime(("debug", RUNNING, 0)))


@pytest.mark.parametrize(
    ("phase", "underway", "expected"),
    [
        ("Pending", False, ("False", "", "")),
        ("Failed", True, ("False", "PodFailed", "")),
        ("Succeeded", False, ("False", "PodCompleted", "")),
        ("Running", True, ("True", "RestartAllContainersStarted", "container exited with restart policy rule")),
    ],
)
def test_the_condition(phase: str, underway: bool, expected: tuple[str, str, str]) -> None:
    made = all_containers_restarting_condition(phase, underway)
    assert (made["status"], made.get("reason", ""), made.get("message", "")) == expected
