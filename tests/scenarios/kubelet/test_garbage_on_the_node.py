"""What is left on a node: ended containers, sandboxes, logs and images, with the kubelet's periods in virtual time."""

from pathlib import Path
from typing import Any

import pytest
from node_stats import MI, Stats, node_events, using
from virtual_cluster import VirtualCluster, container, pod_manifest, run_cluster

from lastcall.kube.cri.simulated import SimulatedImage
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds


async def instances(cluster: VirtualCluster, pod: str = "p") -> list[int]:
    """The attempts that the runtime still has of a Pod's container, the newest first."""
    return [each.metadata.attempt for each in await cluster.runtime.list_containers(cluster.uid(pod))]


@pytest.mark.rule("node-semantics 17.1/containers, 17.1/kept")
def test_of_a_container_that_restarts_one_dead_instance_is_left_within_a_minute() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_until(lambda: len(cluster.records(kinds.PROCESS_STARTED)) >= 4)
        # Beside the running one: the one that just ended, and the one that was kept when it did.
        assert await instances(cluster) == [3, 2, 1]
        await cluster.sleep(60)
        assert await instances(cluster) == [3, 2]

    run_cluster(scenario, _crashing_three_times)


def _crashing_three_times(config: Any, sandbox: Any) -> Program:
    return Program(exits_after=1, natural_exit_code=1) if config.metadata.attempt < 3 else Program()


@pytest.mark.rule("node-semantics 17.1/sandboxes")
def test_a_sandbox_that_was_replaced_goes_when_its_containers_have() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        (first,) = await cluster.runtime.list_pod_sandbox()
        await cluster.runtime.stop_pod_sandbox(first.id)
        await cluster.wait_until(lambda: len(cluster.records(kinds.PROCESS_STARTED)) == 2)
        await cluster.sleep(1)
        assert len(await cluster.runtime.list_pod_sandbox()) == 2
        for dead in await cluster.runtime.list_containers():
            if dead.pod_sandbox_id == first.id:
                await cluster.runtime.remove_container(dead.id)
        await cluster.sleep(61)
        assert first.id not in [each.id for each in await cluster.runtime.list_pod_sandbox()]

    run_cluster(scenario, {"app": Program()})


@pytest.mark.rule("node-semantics 17.1/logs")
def test_logs_of_pods_that_are_gone_go_also_those_that_a_dead_kubelet_left(tmp_path: Path) -> None:
    def make_log(cluster: VirtualCluster, pod: str) -> Path:
        directory = tmp_path / f"default_{pod}_{cluster.uid(pod)}" / "app"
        directory.mkdir(parents=True)
        (directory / "0.log").touch()
        return directory.parent

    async def scenario(cluster: VirtualCluster) -> None:
        cluster.first.log_root = str(tmp_path)
        await cluster.kill_kubelet()
        cluster.start_kubelet()
        await cluster.create(pod_manifest("stays"), pod_manifest("goes"))
        await cluster.wait_ready("stays", "goes")
        stays, goes = make_log(cluster, "stays"), make_log(cluster, "goes")
        nobody = tmp_path / "default_nobody_00000000-0000-0000-0000-000000000000"
        nobody.mkdir()
        await cluster.delete("pod/goes")
        await cluster.wait_gone("goes")
        await cluster.sleep(61)
        assert (stays.exists(), goes.exists(), nobody.exists()) == (True, False, False)

    run_cluster(scenario, {"app": Program()})


@pytest.mark.rule("node-semantics 18/reclaim")
def test_disk_pressure_takes_dead_containers_and_unused_images_before_any_pod() -> None:
    stats = Stats()

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest("done", restartPolicy="Never", containers=[container(image="short:1")]), pod_manifest("runs")
        )
        await cluster.wait_ready("runs")
        await cluster.wait_phase("done", "Succeeded")
        await cluster.runtime.pull_image("unused:1")
        await cluster.sleep(500)  # the images are known and old enough
        assert await instances(cluster, "done") == [0]
        stats.pods["runs"] = using(rootfs=1)
        stats.free["imagefs.available"] = (1 * MI, 1000 * MI)
        removed = cluster.runtime.remove_image

        async def relieved(image: str) -> None:
            await removed(image)
            stats.free["imagefs.available"] = (900 * MI, 1000 * MI)

        cluster.runtime.remove_image = relieved
        await cluster.sleep(30)
        assert await instances(cluster, "done") == []
        assert [each.repo_tags for each in await cluster.runtime.list_images()] == [("busybox:1.36",)]

    cluster = run_cluster(
        scenario,
        {"short": Program(exits_after=1), "app": Program()},
        images={"busybox:1.36": SimulatedImage(), "short:1": SimulatedImage()},
        kubelet={"stats": stats},
    )
    assert "Warning EvictionThresholdMet: Attempting to reclaim ephemeral-storage" in node_events(cluster)
    assert not any("Evicted" in each for pod in ("done", "runs") for each in cluster.events(pod))
    assert cluster.status("done")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


@pytest.mark.rule("node-semantics 18/reclaim")
def test_what_reclaiming_does_not_give_is_taken_from_a_pod_in_the_same_pass() -> None:
    stats = Stats()

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        stats.pods["p"] = using(rootfs=9)
        stats.free["nodefs.available"] = (1 * MI, 1000 * MI)
        await cluster.wait_phase("p", "Failed", 30)

    cluster = run_cluster(scenario, {"app": Program(on_term="ignore")}, kubelet={"stats": stats})
    assert cluster.status()["reason"] == "Evicted"
