"""node-semantics 12.2 and golden corrections 5, 13, 14."""

from typing import Any

import pytest

from lastcall.kube.cri.api import NamespaceOption, PodSandboxMetadata, PodSandboxState, PodSandboxStatus
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.pods.runtime_pod import pod_sandbox_changed
from lastcall.kube.node.status.conditions import (
    containers_ready_condition,
    force_unready_when_terminal,
    initialized_condition,
    pod_ready_condition,
)


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "b"}, {"name": "a"}], **spec}}


def status(name: str, ready: bool, **more: Any) -> dict[str, Any]:
    return {"name": name, "ready": ready, "state": {"waiting": {}}, **more}


def brief(condition: dict[str, Any]) -> tuple[str, str, str]:
    return condition["status"], condition.get("reason", ""), condition.get("message", "")


@pytest.mark.rule("node-semantics 12.2/ready")
@pytest.mark.parametrize(
    ("statuses", "phase", "expected"),
    [
        ([], "Pending", ("False", "UnknownContainerStatuses", "")),
        ([status("a", True), status("b", True)], "Running", ("True", "", "")),
        (
            [status("a", False), status("b", False)],
            "Running",
            ("False", "ContainersNotReady", "containers with unready status: [b a]"),
        ),
        (
            [status("a", False)],
            "Running",
            (
                "False",
                "ContainersNotReady",
                "containers with unknown status: [b], containers with unready status: [a]",
            ),
        ),
        ([status("a", True), status("b", True)], "Failed", ("False", "PodFailed", "")),
        ([status("a", False), status("b", False)], "Succeeded", ("False", "PodCompleted", "")),
    ],
)
def test_containers_ready(statuses: list[dict[str, Any]], phase: str, expected: tuple[str, str, str]) -> None:
    assert brief(containers_ready_condition(pod(), statuses, phase)) == expected
    assert brief(pod_ready_condition(pod(), [], statuses, phase)) == expected


@pytest.mark.rule("node-semantics 21.3/phase")
def test_an_ephemeral_container_that_is_not_ready_makes_nothing_unready() -> None:
    debugged = pod(ephemeralContainers=[{"name": "debug"}])
    statuses = [status("a", True), status("b", True), status("debug", False)]
    assert brief(containers_ready_condition(debugged, statuses, "Running")) == ("True", "", "")


@pytest.mark.rule("node-semantics 12.2/gates")
def test_ready_waits_for_every_readiness_gate() -> None:
    gated = pod(readinessGates=[{"conditionType": "x/lb"}, {"conditionType": "x/dns"}])
    statuses = [status("a", True), status("b", True)]
    conditions = [{"type": "x/dns", "status": "False"}]
    assert brief(pod_ready_condition(gated, conditions, statuses, "Running")) == (
        "False",
        "ReadinessGatesNotReady",
        'corresponding condition of pod readiness gate "x/lb" does not exist., '
        'the status of pod readiness gate "x/dns" is not "True", but False',
    )
    both = [{"type": "x/dns", "status": "True"}, {"type": "x/lb", "status": "True"}]
    assert pod_ready_condition(gated, both, statuses, "Running")["status"] == "True"


@pytest.mark.rule("node-semantics 12.2/initialized")
def test_initialized_names_what_is_missing_and_stays_true_once_the_app_has_run() -> None:
    two = pod(initContainers=[{"name": "i"}, {"name": "s", "restartPolicy": "Always"}])
    waiting = [status("i", True), status("s", False, started=False), status("a", False), status("b", False)]
    assert brief(initialized_condition(two, waiting, "Pending")) == (
        "False",
        "ContainersNotInitialized",
        "containers with incomplete status: [s]",
    )
    ran = [*waiting[:3], {"name": "b", "ready": False, "state": {"terminated": {"exitCode": 1}}}]
    assert brief(initialized_condition(two, ran, "Running")) == ("True", "", "")
    assert brief(initialized_condition(two, ran, "Succeeded")) == ("True", "PodCompleted", "")
    assert brief(initialized_condition(two, [], "Pending")) == ("False", "UnknownContainerStatuses", "")


@pytest.mark.rule("node-semantics 12.2/generation")
def test_the_observed_generation_stands_in_every_condition() -> None:
    condition = containers_ready_condition(pod(), [status("a", True), status("b", True)], "Running", 3)
    assert list(condition) == ["type", "observedGeneration", "status", "lastProbeTime"]
    assert condition["observedGeneration"] == 3


@pytest.mark.rule("node-semantics 11.2/ready")
def test_a_terminal_phase_replaces_only_a_true_ready() -> None:
    never_ready = {
        "phase": "Failed",
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": "t0"}
        ],
    }
    force_unready_when_terminal(never_ready, "t1")
    assert never_ready["conditions"][0]["reason"] == "ContainersNotReady"
    was_ready = {"phase": "Failed", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "t0"}]}
    force_unready_when_terminal(was_ready, "t1")
    assert was_ready["conditions"][0]["reason"] == "PodFailed"
    assert was_ready["conditions"][0]["lastTransitionTime"] == "t1"


def sandbox(
    state: PodSandboxState = PodSandboxState.SANDBOX_READY, *ips: str, network: Any = "POD"
) -> PodSandboxStatus:
    return PodSandboxStatus(
        "s", PodSandboxMetadata("p", "u", "n"), state, 1, ips=ips, namespace_options=NamespaceOption(network=network)
    )


@pytest.mark.rule("node-semantics 12.2/sandbox")
@pytest.mark.parametrize(
    ("sandboxes", "changed"),
    [
        ((), True),
        ((sandbox(PodSandboxState.SANDBOX_READY, "10.0.0.1"),), False),
        ((sandbox(PodSandboxState.SANDBOX_NOTREADY, "10.0.0.1"),), True),
        ((sandbox(),), True),
        ((sandbox(PodSandboxState.SANDBOX_READY, "10.0.0.1"),) * 2, True),
        ((sandbox(PodSandboxState.SANDBOX_READY, "10.0.0.1", network="NODE"),), True),
    ],
)
def test_a_new_sandbox_is_needed(sandboxes: tuple[PodSandboxStatus, ...], changed: bool) -> None:
    assert pod_sandbox_changed(pod(), PodStatus("u", "p", "n", sandbox_statuses=sandboxes)) is changed
