"""A Pod's control group by its quality of service, and the notices of what the machine cannot do."""

from typing import Any

import pytest

from lastcall.kube.cri.api import (
    LIMITS_ENFORCED,
    MISSING_GROUPS,
    SINGLE_USER_ID,
    USER_NAMESPACES,
    ContainerMetadata,
    ContainerState,
    ContainerStatus,
    RuntimeCondition,
    RuntimeStatus,
)
from lastcall.kube.cri.sandbox.runtime_status import runtime_status
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.pods.cgroups import cgroup_parent, resource_config_for_pod
from lastcall.kube.node.runtime.container_config import oom_score_adjust, seccomp_profile
from lastcall.kube.node.runtime.environment import ContainerConfigError
from lastcall.kube.node.runtime.notices import RuntimeNotices


def pod(*resources: dict[str, Any], init: list[dict[str, Any]] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": f"c{index}", "image": "i", "resources": each} for index, each in enumerate(resources)]
    metadata = {"name": "p", "namespace": "default", "uid": "u-1"}
    return {"metadata": metadata, "spec": {"containers": containers, "initContainers": init or [], **spec}}


BOTH = {"limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"cpu": "500m", "memory": "64Mi"}}


@pytest.mark.parametrize(
    ("resources", "path"),
    [
        ({}, "/kubepods/besteffort/podu-1"),
        ({"requests": {"cpu": "1"}}, "/kubepods/burstable/podu-1"),
        (BOTH, "/kubepods/podu-1"),
        ({"limits": BOTH["limits"]}, "/kubepods/podu-1"),
    ],
)
def test_the_group_is_below_its_quality_of_service(resources: dict[str, Any], path: str) -> None:
    assert cgroup_parent(pod(resources)) == path


def test_a_pod_is_limited_by_the_sum_only_where_every_container_has_a_limit() -> None:
    both = resource_config_for_pod(pod(BOTH, BOTH))
    assert (both.cpu_quota, both.cpu_shares, both.memory_limit_in_bytes) == (100_000, 1024, 128 << 20)
    one = resource_config_for_pod(pod(BOTH, {"requests": {"cpu": "100m"}}), 99)
    assert (one.cpu_quota, one.memory_limit_in_bytes, one.cpu_shares) == (0, 0, 614)
    assert one.unified == {"pids.max": "99"}
    assert resource_config_for_pod(pod({})).cpu_shares == 2
    unlimited_init = [{"name": "i", "image": "i", "resources": {}}]
    assert resource_config_for_pod(pod(BOTH, init=unlimited_init)).memory_limit_in_bytes == 0


def test_scores_for_the_out_of_memory_killer() -> None:
    gigabyte = 1 << 30
    burstable = pod({"requests": {"memory": "256Mi"}})
    assert oom_score_adjust(burstable, 256 << 20, gigabyte) == 750
    assert oom_score_adjust(pod(BOTH), 64 << 20, gigabyte) == -997
    assert oom_score_adjust(pod({}), 0, gigabyte) == 1000
    critical = pod({}, priorityClassName="system-node-critical", priority=2_000_001_000)
    assert oom_score_adjust(critical, 0, gigabyte) == -997
    sidecar = {"name": "s", "image": "i", "restartPolicy": "Always", "resources": {}}
    served = pod({"requests": {"memory": "256Mi"}}, init=[sidecar])
    assert oom_score_adjust(served, 0, gigabyte, sidecar) == 750, "not before the container it serves"


def test_a_container_that_asks_for_no_seccomp_profile_has_the_runtime_s_unless_the_kubelet_says_otherwise() -> None:
    silent = pod({})
    container = silent["spec"]["containers"][0]
    assert seccomp_profile(silent, container).profile_type == "RuntimeDefault"
    assert seccomp_profile(silent, container, seccomp_default=False).profile_type == "Unconfined"
    asks = pod({}, securityContext={"seccompProfile": {"type": "Unconfined"}})
    assert seccomp_profile(asks, asks["spec"]["containers"][0]).profile_type == "Unconfined"


def test_the_container_s_seccomp_profile_goes_before_the_pod_s() -> None:
    of_pod = pod({}, securityContext={"seccompProfile": {"type": "RuntimeDefault"}})
    container = of_pod["spec"]["containers"][0]
    assert seccomp_profile(of_pod, container).profile_type == "RuntimeDefault"
    container["securityContext"] = {"seccompProfile": {"type": "Unconfined"}}
    assert seccomp_profile(of_pod, container).profile_type == "Unconfined"
    container["securityContext"] = {"seccompProfile": {"type": "Localhost", "localhostProfile": "a/b.json"}}
    assert seccomp_profile(of_pod, container).localhost_ref == "/var/lib/kubelet/seccomp/a/b.json"
    container["securityContext"] = {"seccompProfile": {"type": "Localhost"}}
    with pytest.raises(ContainerConfigError, match="localhostProfile must be set if seccompProfile type is Localhost"):
        seccomp_profile(of_pod, container)
    assert seccomp_profile(pod({}), {}, seccomp_default=False).profile_type == "Unconfined"


class Events:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def event(self, obj: Any, event_type: str, reason: str, message: str, **more: Any) -> None:
        self.seen.append((event_type, reason, message))


class Runtime:
    def __init__(self, enforced: bool) -> None:
        self.asked = 0
        self.condition = RuntimeCondition(LIMITS_ENFORCED, enforced, "NoCgroups", "no cgroup is delegated")

    async def status(self) -> RuntimeStatus:
        self.asked += 1
        return RuntimeStatus((self.condition,))


async def test_limits_that_nobody_enforces_are_told_once_per_pod() -> None:
    events = Events()
    notices = RuntimeNotices(Runtime(enforced=False), events)
    for _ in range(2):
        await notices.sandbox_ready(pod(BOTH))
    await notices.sandbox_ready(pod({"requests": {"cpu": "1"}}))
    assert events.seen == [
        (
            "Warning",
            "LimitsNotEnforced",
            "CPU and memory limits are not enforced (no cgroup is delegated); `lastcall doctor` says what to do",
        )
    ]


async def test_nothing_is_told_where_limits_count_or_none_are_asked_for() -> None:
    events, runtime = Events(), Runtime(enforced=True)
    notices = RuntimeNotices(runtime, events)
    await notices.sandbox_ready(pod(BOTH))
    await notices.sandbox_ready(pod({}))
    assert (events.seen, runtime.asked) == ([], 1)


def test_answered_calls_and_missing_groups_are_told_once_per_pod() -> None:
    events = Events()
    notices = RuntimeNotices(Runtime(enforced=True), events)

    def status(**info: str) -> PodStatus:
        running = ContainerState.CONTAINER_RUNNING
        one = ContainerStatus("id", ContainerMetadata("c0"), "s", running, "i", "i", 0, info=info)
        return PodStatus("u-1", "p", "default", container_statuses=(one,))

    notices.look(pod({}), status())
    assert events.seen == []
    for calls in ("chown", "chown setuid"):
        notices.look(pod({}), status(**{SINGLE_USER_ID: calls, MISSING_GROUPS: "2000 3000"}))
    assert [reason for _, reason, _ in events.seen] == ["SingleUserID", "GroupsNotMapped"]
    assert "Container c0 called chown: answered with success without being done" in events.seen[0][2]
    assert "groups 2000, 3000" in events.seen[1][2]


def test_the_runtime_s_conditions_say_what_the_machine_has() -> None:
    machine = {"uids": 1, "gids": 1, "cgroups": "none", "cgroupsWhy": "not delegated"}
    poor = runtime_status({**machine, "ownersUnmapped": "Invalid argument"})
    limits = poor.find(LIMITS_ENFORCED)
    assert limits is not None
    assert (limits.status, limits.reason, limits.message) == (False, "NoCgroups", "not delegated")
    users = poor.find(USER_NAMESPACES)
    assert users is not None
    assert (users.status, users.message) == (False, "mounts of tmpfs cannot be idmapped: Invalid argument")
    rich = runtime_status({"uids": 65_537, "gids": 65_537, "cgroups": "v2", "cgroupsWhy": "", "ownersUnmapped": ""})
    assert all(condition.status for condition in rich.conditions)
