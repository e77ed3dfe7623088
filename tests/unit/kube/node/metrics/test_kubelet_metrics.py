"""`/metrics`, `/metrics/cadvisor`, `/metrics/probes` and `/statusz` of the kubelet's endpoint."""

from typing import Any

import aiohttp
import pytest
from scenario.metrics import unlike_kubernetes, value

from lastcall.kube.cri.api import ContainerMetadata, ContainerState, ContainerStats, ContainerStatus
from lastcall.kube.node.server import KubeletServer
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

POD = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"containers": [{"name": "app"}]}}


class Node:
    """One Pod with one container, which runs."""

    def get_pod_by_name(self, namespace: str, name: str) -> dict[str, Any]:
        return POD

    def get_pods(self) -> list[dict[str, Any]]:
        return [POD]

    async def list_containers(self, pod_uid: str = "") -> list[ContainerStatus]:
        running = ContainerState.CONTAINER_RUNNING
        return [ContainerStatus("c1", ContainerMetadata("app"), "s", running, "i:1", "r", 1, started_at=2 * 10**9)]

    async def container_stats(self, container_id: str) -> ContainerStats:
        return ContainerStats(3 * 10**9, 4096, 2048)


async def told(*paths: str) -> list[tuple[str, str]]:
    """Content type and text of each path."""
    node = Node()
    server = KubeletServer(world=World(), runtime=node, pods=node, names=("node-1",), version="1.36.2")  # type: ignore[arg-type]
    runner = await server.start_unauthenticated("127.0.0.1", 0)
    found = []
    try:
        async with aiohttp.ClientSession() as session:
            for path in paths:
                async with session.get(f"http://127.0.0.1:{runner.addresses[0][1]}{path}") as response:
                    assert response.status == 200, path
                    found.append((response.headers["Content-Type"], await response.text()))
    finally:
        await runner.cleanup()
    return found


async def test_containers_are_told_as_cadvisor_tells_them() -> None:
    ((content_type, text),) = await told("/metrics/cadvisor")
    assert content_type == "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
    wrong = [each for each in unlike_kubernetes(text) if not each.startswith("machine_")]
    assert wrong == []
    about = {"container": "app", "pod": "p", "namespace": "n", "image": "i:1", "name": "c1"}
    assert value(text, "container_cpu_usage_seconds_total", **about, cpu="total") == 3
    assert value(text, "container_memory_usage_bytes", **about) == 4096
    assert value(text, "container_memory_working_set_bytes", **about, id="/kubepods/podu/c1") == 2048
    assert value(text, "container_start_time_seconds", **about) == 2
    assert value(text, "container_memory_usage_bytes", container="", pod="p", id="/kubepods/podu") == 4096
    assert value(text, "machine_cpu_cores") >= 1


async def test_the_summary_has_no_more_than_kubernetes_tells() -> None:
    ((_, text),) = await told("/stats/summary")
    assert '"image"' not in text
    assert '"c1"' not in text


async def test_the_process_is_told_and_what_it_is() -> None:
    (_, text), (_, probes), (_, status) = await told("/metrics", "/metrics/probes", "/statusz")
    assert unlike_kubernetes(text) == []
    assert value(text, "kubernetes_build_info", git_version="v1.36.2", major="1", minor="36") == 1
    assert value(text, "process_open_fds") > 3
    assert value(probes, "process_start_time_seconds") > 1e9
    assert "kubelet statusz" in status
