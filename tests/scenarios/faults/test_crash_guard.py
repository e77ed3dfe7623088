"""Whatever fails unexpectedly at one object, the other objects of the cluster go on. With the guards installed."""

from collections.abc import Callable
from typing import Any

import pytest
from virtual_cluster import VirtualCluster, run_cluster
from workloads import events_about

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import name_of
from lastcall.kube.api.resources import PODS
from lastcall.kube.controllers.daemonset import controller as daemonset
from lastcall.kube.controllers.garbagecollector.pods import controller as podgc
from lastcall.kube.cri.simulated_program import Program
from lastcall.kube.node.prober import worker as prober
from lastcall.kube.node.prober.probe import Probed
from lastcall.kube.node.runtime import pleg
from lastcall.kube.node.status import manager as status_manager
from lastcall.kube.node.workers import syncer as pod_syncer
from lastcall.kube.node.workers import transitions
from lastcall.kube.scheduler import scheduler
from lastcall.world import crash_guard

PROGRAMS = {"app": Program(drain_seconds=1)}


def pod(name: str, **container: Any) -> dict[str, Any]:
    spec = {"terminationGracePeriodSeconds": 2, "containers": [{"name": "c", "image": "app", **container}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def failing_for(real: Callable[..., Any], is_bad: Callable[..., bool]) -> Callable[..., Any]:
    def fails(*arguments: Any, **more: Any) -> Any:
        if is_bad(*arguments, **more):
            raise OverflowError("date value out of range")
        return real(*arguments, **more)

    return fails


async def lives_and_ends(cluster: VirtualCluster, name: str, **container: Any) -> None:
    await cluster.create(pod(name, **container))
    await cluster.wait_ready(name)
    await cluster.delete(f"pod/{name}")
    await cluster.wait_gone(name)


async def get(cluster: VirtualCluster, name: str) -> Any:
    return await cluster.client.get(PODS, name, cluster.namespace)


def test_a_pod_that_the_scheduler_cannot_place_backs_off_is_told_and_others_get_their_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poisoned = {"bad"}
    real = scheduler.place
    monkeypatch.setattr(scheduler, "place", failing_for(real, lambda pod, *_: pod.name in poisoned))

    async def scenario(cluster: VirtualCluster) -> None:
        with crash_guard.installed() as faults:
            await cluster.create(pod("bad"))
            await cluster.sleep(30)
            await lives_and_ends(cluster, "good")
            (fault,) = faults.all()
            assert (fault.component, fault.key) == ("scheduler", "default/bad")
            assert 3 <= fault.count <= 10, "it backs off, up to 10 s"
            told = [each for each in events_about(cluster, "bad") if "InternalError" in str(each)]
            assert told, events_about(cluster, "bad")
            poisoned.clear()
            await cluster.wait_ready("bad")

    run_cluster(scenario, PROGRAMS)


def test_a_probe_that_fails_unexpectedly_is_tried_again_and_other_probes_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    poisoned = [True]

    async def run_probe(probe: Any, *arguments: Any, **more: Any) -> Any:
        if probe["exec"]["command"] == ["bad"] and poisoned:
            raise KeyError("a result that nobody thought of")
        return Probed("success", "")

    monkeypatch.setattr(prober, "run_probe", run_probe)

    async def scenario(cluster: VirtualCluster) -> None:
        with crash_guard.installed() as faults:
            await cluster.create(pod("bad", readinessProbe={"exec": {"command": ["bad"]}, "periodSeconds": 2}))
            await lives_and_ends(cluster, "good", readinessProbe={"exec": {"command": ["ok"]}, "periodSeconds": 2})
            (fault,) = faults.all()
            assert fault.component == "kubelet prober" and fault.key.endswith("/c/readiness")
            poisoned.clear()
            await cluster.wait_ready("bad")
            await cluster.delete("pod/bad")
            await cluster.wait_gone("bad")

    run_cluster(scenario, PROGRAMS)


def test_a_status_that_cannot_be_written_waits_and_other_statuses_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    poisoned = {"bad"}
    real = status_manager.PodStatusManager._patch

    async def patch(self: Any, uid: str, entry: Any, live: Any) -> Any:
        if name_of(live) in poisoned:
            raise RecursionError
        return await real(self, uid, entry, live)

    monkeypatch.setattr(status_manager.PodStatusManager, "_patch", patch)

    async def scenario(cluster: VirtualCluster) -> None:
        with crash_guard.installed() as faults:
            await cluster.create(pod("bad"))
            await lives_and_ends(cluster, "good")
            assert [each.key for each in faults.of("kubelet status manager")] == ["default/bad"]
            poisoned.clear()
            await cluster.wait_ready("bad")

    run_cluster(scenario, PROGRAMS)


def test_a_pod_that_the_kubelet_cannot_sync_is_told_and_others_live(monkeypatch: pytest.MonkeyPatch) -> None:
    poisoned = {"bad"}
    real = pod_syncer.KubeletPodSyncer.sync_pod

    async def sync(self: Any, context: Any, kind: Any, obj: Any, status: Any) -> Any:
        if name_of(obj) in poisoned:
            raise AttributeError("'NoneType' object has no attribute 'get'")
        return await real(self, context, kind, obj, status)

    monkeypatch.setattr(pod_syncer.KubeletPodSyncer, "sync_pod", sync)

    async def scenario(cluster: VirtualCluster) -> None:
        with crash_guard.installed() as faults:
            await cluster.create(pod("bad"))
            await lives_and_ends(cluster, "good")
            await cluster.sleep(60)
            (fault,) = faults.of("kubelet pod worker")
            assert fault.key == "default/bad" and fault.count < 70
            assert any("InternalError" in str(each) for each in events_about(cluster, "bad"))
            poisoned.clear()
            await cluster.wait_ready("bad")

    run_cluster(scenario, PROGRAMS)


def test_a_pod_that_the_pleg_cannot_read_keeps_no_other_from_being_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    poisoned: set[str] = set()
    real = pleg.make_pod_status
    monkeypatch.setattr(pleg, "make_pod_status", failing_for(real, lambda uid, *_: uid in poisoned))

    async def scenario(cluster: VirtualCluster) -> None:
        with crash_guard.installed() as faults:
            await cluster.create(pod("bad"))
            await cluster.wait_ready("bad")
            poisoned.add((await get(cluster, "bad"))["metadata"]["uid"])
            await cluster.sleep(400)
            await lives_and_ends(cluster, "good")
            assert {each.key for each in faults.of("kubelet PLEG")} == poisoned
            poisoned.clear()
            await cluster.delete("pod/bad")
            await cluster.wait_gone("bad")

    run_cluster(scenario, PROGRAMS)


@pytest.mark.parametrize("decision", ["complete_terminating", "complete_terminated"])
def test_an_edge_that_is_not_in_the_table_ends_one_turn_of_one_pod_and_the_next_turn_recovers(
    monkeypatch: pytest.MonkeyPatch, decision: str
) -> None:
    poisoned = {"bad_default"}
    real = getattr(transitions, decision)

    def decide(status: transitions.PodSyncStatus) -> Any:
        if status.full_name in poisoned:
            transitions.move(status, transitions.Cause.FIRST_UPDATE)
        return real(status)

    monkeypatch.setattr(transitions, decision, decide)

    async def scenario(cluster: VirtualCluster) -> None:
        with crash_guard.installed() as faults:
            await cluster.create(pod("bad"))
            await cluster.wait_ready("bad")
            await cluster.delete("pod/bad")
            await cluster.sleep(30)
            await lives_and_ends(cluster, "good")
            (fault,) = faults.all()
            assert (fault.component, fault.key) == ("kubelet pod worker", "default/bad")
            assert "cannot leave the state" in fault.error and fault.count < 25, "at most once a sweep, every 2 s"
            assert [each for each in events_about(cluster, "bad") if "InternalError" in str(each)]
            poisoned.clear()
            await cluster.wait_gone("bad")

    run_cluster(scenario, PROGRAMS)


def test_an_edge_that_the_sweep_cannot_go_keeps_no_other_worker_from_being_swept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poisoned = {"bad_default"}
    real = transitions.remove_terminated_worker
    swept: list[str] = []

    def remove(status: transitions.PodSyncStatus, *arguments: Any, **more: Any) -> Any:
        if status.full_name in poisoned:
            transitions.move(status, transitions.Cause.FIRST_UPDATE)
        swept.append(status.full_name)
        return real(status, *arguments, **more)

    monkeypatch.setattr(transitions, "remove_terminated_worker", remove)

    async def scenario(cluster: VirtualCluster) -> None:
        with crash_guard.installed() as faults:
            await lives_and_ends(cluster, "bad")
            await lives_and_ends(cluster, "good")
            await cluster.sleep(10)
            assert {each.key for each in faults.of("kubelet pod worker")} == {"default/bad"}
            assert swept == ["good_default"]
            poisoned.clear()
            await cluster.sleep(10)
            assert swept == ["good_default", "bad_default"]

    run_cluster(scenario, PROGRAMS)


def test_a_round_of_the_pod_garbage_collector_goes_past_a_part_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podgc, "excess_terminated", failing_for(lambda *_: [], lambda *_: True))

    async def scenario(cluster: VirtualCluster) -> None:
        orphan = pod("orphan")
        orphan["spec"]["nodeName"] = "gone"
        await cluster.create(orphan)

        async def collected() -> bool:
            try:
                await get(cluster, "orphan")
            except StatusError:
                return True
            return False

        await cluster.wait_until_async(collected, limit=300)

    with crash_guard.installed() as faults:
        run_cluster(scenario, PROGRAMS)
    assert [each.key for each in faults.of("pod-garbage-collector-controller")] == ["excess"]


def test_a_controller_that_fails_outside_of_any_key_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = ["once", "twice"]
    real = daemonset.DaemonSetController.run

    async def run(self: Any) -> None:
        if failures:
            raise RuntimeError(failures.pop())
        await real(self)

    monkeypatch.setattr(daemonset.DaemonSetController, "run", run)

    async def scenario(cluster: VirtualCluster) -> None:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
        template["spec"].pop("terminationGracePeriodSeconds")
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        await cluster.create({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": spec})
        await cluster.sleep(20)
        assert len((await cluster.client.list(PODS, "default")).items) == 1
        assert not failures

    with crash_guard.installed() as faults:
        run_cluster(scenario, PROGRAMS)
    assert faults.of("daemonset-controller", "")[0].count == 2


def test_without_walls_the_first_error_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "place", failing_for(scheduler.place, lambda *_: True))

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod("bad"))
        await cluster.sleep(30)

    with pytest.raises((OverflowError, ExceptionGroup)):
        run_cluster(scenario, PROGRAMS)
