"""Which limits are set, in which order, and when not."""

import asyncio
import re
from dataclasses import replace

import pytest

from lastcall.kube.cri.api import (
    ContainerMetadata,
    ContainerState,
    ContainerStats,
    ContainerStatus,
    LinuxContainerResources,
    PodSandboxMetadata,
    PodSandboxState,
    PodSandboxStatus,
)
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.pods.cgroups import resource_config_for_pod
from lastcall.kube.node.runtime.container_config import linux_resources
from lastcall.kube.node.runtime.resize import (
    ContainerUpdate,
    ResizeError,
    Resizer,
    larger,
    plan_resize,
    shrinks,
    too_small,
)
from lastcall.kube.node.status.resources import container_resources
from lastcall.records.memory import MemoryRecorder
from lastcall.world.clock import RealClock

MI = 1 << 20


def container(name, cpu, memory, most_cpu, most_memory, **more):
    limits = {"cpu": most_cpu, "memory": most_memory}
    return {
        "name": name,
        "image": "x",
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": limits},
    } | more


def pod(*containers):
    meta = {"name": "p", "namespace": "n", "uid": "u"}
    return {"metadata": meta, "spec": {"containers": list(containers)}}


def status_of(given, state=ContainerState.CONTAINER_RUNNING):
    """What the runtime says of a Pod that was started as `given`."""
    statuses = tuple(
        ContainerStatus(
            id=f"id-{each['name']}", metadata=ContainerMetadata(each["name"]), pod_sandbox_id="s", state=state,
            image="x", image_ref="x", created_at=1, resources=linux_resources(given, each),
        )
        for each in given["spec"]["containers"]
    )  # fmt: skip
    sandbox = PodSandboxStatus(
        "s", PodSandboxMetadata("p", "n", "u"), PodSandboxState.SANDBOX_READY, 1,
        resources=resource_config_for_pod(given),
    )  # fmt: skip
    return PodStatus("u", "p", "n", (), statuses, (sandbox,))


class Runtime:
    def __init__(self, used=0):
        self.used, self.calls = used, []

    async def update_container_resources(self, identity, resources):
        self.calls.append((identity, resources.memory_limit_in_bytes // MI, resources.cpu_quota))

    async def update_pod_sandbox_resources(self, identity, resources):
        self.calls.append((identity, resources.memory_limit_in_bytes // MI, resources.cpu_quota))

    async def container_stats(self, identity):
        return ContainerStats(memory_usage_bytes=self.used)


def perform(now, then, used=0):
    runtime, status = Runtime(used), status_of(now)
    asyncio.run(
        Resizer(runtime, MemoryRecorder("kubelet", RealClock())).resize(then, status, plan_resize(then, status))
    )
    return runtime.calls


def test_the_pod_s_group_grows_before_its_containers():
    now, then = pod(container("a", "1", "50Mi", "1", "100Mi")), pod(container("a", "1", "50Mi", "2", "200Mi"))
    assert perform(now, then) == [
        ("s", 200, 100_000), ("id-a", 200, 100_000), ("s", 200, 200_000), ("id-a", 200, 200_000)
    ]  # fmt: skip


def test_the_pod_s_group_shrinks_after_its_containers():
    now, then = pod(container("a", "1", "50Mi", "2", "200Mi")), pod(container("a", "1", "50Mi", "1", "100Mi"))
    assert perform(now, then) == [
        ("id-a", 100, 200_000), ("s", 100, 200_000), ("id-a", 100, 100_000), ("s", 100, 100_000)
    ]  # fmt: skip


def test_who_takes_less_goes_before_who_takes_more():
    now = pod(container("a", "1", "50Mi", "1", "100Mi"), container("b", "1", "50Mi", "1", "100Mi"))
    then = pod(container("a", "1", "50Mi", "1", "120Mi"), container("b", "1", "50Mi", "1", "80Mi"))
    assert perform(now, then) == [("id-b", 80, 100_000), ("id-a", 120, 100_000)]


def test_a_memory_limit_is_not_set_below_what_is_used():
    now, then = pod(container("a", "1", "50Mi", "1", "100Mi")), pod(container("a", "1", "20Mi", "1", "30Mi"))
    with pytest.raises(
        ResizeError, match=re.escape('container "a" memory limit (31457280) below current usage (62914560)')
    ):
        perform(now, then, used=60 * MI)
    assert perform(now, then, used=10 * MI)


def test_a_policy_makes_the_container_start_anew_only_for_its_own_resource():
    policy = {"resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]}
    now = status_of(pod(container("a", "1", "50Mi", "1", "100Mi", **policy)))
    assert plan_resize(pod(container("a", "1", "50Mi", "2", "100Mi", **policy)), now).restarts == frozenset()
    plan = plan_resize(pod(container("a", "1", "50Mi", "2", "200Mi", **policy)), now)
    assert (plan.restarts, plan.updates) == (frozenset({"a"}), ())


def test_nothing_is_planned_for_what_is_as_it_should_be_or_does_not_run():
    given = pod(container("a", "1", "50Mi", "1", "100Mi"))
    assert plan_resize(given, status_of(given)).empty
    ended = status_of(pod(container("a", "1", "50Mi", "2", "200Mi")), ContainerState.CONTAINER_EXITED)
    assert plan_resize(given, ended).updates == ()


def test_the_status_shows_what_a_container_has_in_a_person_s_words():
    now, then = container("a", "1", "50Mi", "1", "100Mi"), container("a", "1.5", "60Mi", "2", "200Mi")
    (instance,) = status_of(pod(now)).container_statuses
    assert container_resources(then, instance, now["resources"]) == now["resources"], "not yet"
    resized = replace(instance, resources=linux_resources(pod(then), then))
    assert container_resources(then, resized, now["resources"]) == then["resources"]
    assert container_resources(then, replace(instance, resources=LinuxContainerResources()), None) == then["resources"]


def resources(quota=0, period=100_000, shares=2, memory=0):
    return LinuxContainerResources(
        cpu_quota=quota, cpu_period=period if quota else 0, cpu_shares=shares, memory_limit_in_bytes=memory
    )


@pytest.mark.parametrize(
    ("now", "wanted", "expected"),
    [
        (resources(10, memory=5), resources(20, memory=7), resources(20, memory=7)),
        (resources(20, memory=7), resources(10, memory=5), resources(20, memory=7)),
        (resources(20, memory=7), resources(), resources()),
        (resources(), resources(20, memory=7), resources()),
        (resources(shares=3), resources(shares=5), resources(shares=5)),
        (resources(shares=5), resources(shares=3), resources(shares=5)),
        (resources(10, period=0), resources(20, period=50_000), resources(20, period=50_000)),
    ],
)
def test_the_larger_of_two_limits_is_the_one_that_allows_more_and_none_allows_all(now, wanted, expected):
    assert larger(now, wanted) == expected


@pytest.mark.parametrize(
    ("now", "wanted", "cpu", "memory"),
    [
        (resources(10, shares=5, memory=5), resources(10, shares=5, memory=5), False, False),
        (resources(10, memory=5), resources(9, memory=4), True, True),
        (resources(9, memory=4), resources(10, memory=5), False, False),
        (resources(10, memory=5), resources(), False, False),
        (resources(), resources(10, memory=5), True, True),
        (resources(shares=5), resources(shares=4), True, False),
    ],
)
def test_who_takes_less_of_what(now, wanted, cpu, memory):
    status = ContainerStatus(
        "i", ContainerMetadata("a"), "s", ContainerState.CONTAINER_RUNNING, "x", "x", 1, resources=now
    )
    update = ContainerUpdate(status, wanted)
    assert (shrinks(update, "cpu"), shrinks(update, "memory")) == (cpu, memory)


@pytest.mark.parametrize(("used", "refused"), [(49, []), (50, ["pod", "container"]), (70, ["pod", "container"])])
def test_memory_is_not_lowered_to_what_is_used_or_below(used, refused):
    now, then = pod(container("a", "1", "10", "1", "100")), pod(container("a", "1", "10", "1", "50"))
    found = too_small(plan_resize(then, status_of(now)), {"a": used})
    assert [text.split()[3] for text in found] == refused
    assert all(text.endswith(f"memory limit (50) below current usage ({used})") for text in found)


def test_growing_is_never_too_small():
    now, then = pod(container("a", "1", "10", "1", "50")), pod(container("a", "1", "10", "1", "100"))
    assert too_small(plan_resize(then, status_of(now)), {"a": 5000}) == []


def test_a_restart_is_for_regular_containers_and_sidecars_alone():
    policy = {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
    for more, restarts in (({}, frozenset()), ({"restartPolicy": "Always"}, frozenset({"i"}))):
        before, after = (pod() for _ in range(2))
        before["spec"]["initContainers"] = [container("i", "1", "50Mi", "1", "100Mi", **policy, **more)]
        after["spec"]["initContainers"] = [container("i", "1", "50Mi", "2", "100Mi", **policy, **more)]
        running = status_of({**before, "spec": {**before["spec"], "containers": before["spec"]["initContainers"]}})
        assert plan_resize(after, running).restarts == restarts


def test_the_group_of_a_pod_keeps_its_room_until_its_containers_have_started_anew():
    policy = {"resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]}
    now = pod(container("a", "1", "50Mi", "1", "100Mi", **policy), container("b", "1", "50Mi", "1", "100Mi"))
    then = pod(container("a", "1", "50Mi", "1", "60Mi", **policy), container("b", "1", "50Mi", "1", "80Mi"))
    assert perform(now, then) == [("id-b", 80, 100_000)]


def test_what_was_resized_is_recorded_with_the_limits_before_and_after():
    now, then = pod(container("a", "1", "50Mi", "1", "100Mi")), pod(container("a", "2", "50Mi", "2500m", "200Mi"))
    recorder, status = MemoryRecorder("kubelet", RealClock()), status_of(now)
    asyncio.run(Resizer(Runtime(), recorder).resize(then, status, plan_resize(then, status)))
    (record,) = recorder.records
    assert (record.pod_uid, record.container) == ("u", "a")
    assert record.facts == {
        "before": {"cpuShares": 1024, "cpuLimit": 1.0, "memoryLimit": 100 * MI},
        "after": {"cpuShares": 2048, "cpuLimit": 2.5, "memoryLimit": 200 * MI},
    }
