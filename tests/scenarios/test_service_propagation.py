"""The race of every rolling update: a Pod is told to stop while nodes still send it new connections."""

from typing import Any

import pytest
from virtual_cluster import VirtualCluster, container, pre_stop, run_cluster, service
from virtual_proxy import proxies

from lastcall.endings.causes.join import join_causes
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import PODS, SERVICES
from lastcall.kube.cri.simulated_program import Program
from lastcall.kube.proxy.propagation import Propagation
from lastcall.kube.proxy.rules import Target
from lastcall.kube.proxy.sink import RecordingSink
from lastcall.records import kinds

LAG = {"node-1": 0.4, "node-2": 1.0}
"""Seconds, half of them for each hop."""


def deployment(replicas: int, *, sleep: int = 0) -> Object:
    app = container(**(pre_stop(sleep=sleep) if sleep else {}))
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [app]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


async def target(cluster: VirtualCluster, sink: RecordingSink) -> Target | None:
    address = (await cluster.client.get(SERVICES, "svc", "default"))["spec"]["clusterIP"]
    return sink.target(address, "TCP", 80)


def addresses(found: Target | None) -> list[str]:
    return [address for address, _ in found.backends] if found else []


async def one_pod_deleted(cluster: VirtualCluster, sleep: int) -> dict[str, Any]:
    """What every node's rules say before the deletion, right after it and when all is over."""
    await cluster.create(service(app="web"), deployment(2, sleep=sleep))
    seen: dict[str, Any] = {}
    async with proxies(cluster, lambda node: Propagation(LAG[node] / 2, LAG[node] / 2)) as sinks:

        async def all_nodes() -> dict[str, list[str]]:
            return {name: addresses(await target(cluster, sink)) for name, sink in sinks.items()}

        async def both_routed() -> bool:
            return all(len(found) == 2 for found in (await all_nodes()).values())

        await cluster.wait_until_async(both_routed)
        pods = (await cluster.client.list(PODS, "default")).items
        seen["pod"], seen["address"] = pods[0]["metadata"]["name"], pods[0]["status"]["podIP"]
        await cluster.delete(f"pod/{seen['pod']}")
        seen["deleted"] = cluster.now
        for moment in (0.2, 0.7, 1.2):
            await cluster.sleep(seen["deleted"] + moment - cluster.now)
            seen[moment] = {name for name, found in (await all_nodes()).items() if seen["address"] in found}
        await cluster.wait_gone(seen["pod"])
        await cluster.sleep(3.0)
    return seen


@pytest.mark.parametrize(
    ("sleep", "outcome"), [(0, "loses connections"), (2, "loses none")], ids=["no preStop", "preStop sleep 2"]
)
def test_each_node_stops_sending_when_its_own_lag_is_over(sleep: int, outcome: str) -> None:
    seen: dict[str, Any] = {}

    async def scenario(cluster: VirtualCluster) -> None:
        seen.update(await one_pod_deleted(cluster, sleep))
        pod = seen["pod"]
        stopped = {
            record.facts["node"]: record.at_ns / 1e9
            for record in cluster.records(kinds.ENDPOINT_RULES_WRITTEN, pod=pod)
            if record.facts["received"] and not record.facts["receives"]
        }
        told = cluster.records(kinds.SIGNAL_SENT, pod=pod)[0].at_ns / 1e9
        start = cluster.records(kinds.ENDPOINT_CHANGED, pod=pod)[-1].at_ns / 1e9
        assert {node: round(at - start, 1) for node, at in stopped.items()} == LAG
        assert ("loses none" if told > max(stopped.values()) else "loses connections") == outcome

    run_cluster(scenario, {"app": Program()}, nodes=2)
    assert (seen[0.2], seen[0.7], seen[1.2]) == ({"node-1", "node-2"}, {"node-2"}, set())


def test_the_story_leads_from_the_kernels_rules_back_to_the_deletion() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        seen = await one_pod_deleted(cluster, 0)
        causes = join_causes(cluster.all_records)
        by_id = {record.id: record for record in cluster.all_records}
        written = [
            record
            for record in cluster.records(kinds.ENDPOINT_RULES_WRITTEN, pod=seen["pod"])
            if record.facts["received"] and not record.facts["receives"]
        ]
        for record in written:
            way = [record.kind]
            while (cause := causes.get(record.id)) is not None:
                record = by_id[cause]
                way.append(record.kind)
            assert way[:4] == [
                kinds.ENDPOINT_RULES_WRITTEN,
                kinds.ENDPOINT_CHANGE_SEEN,
                kinds.ENDPOINT_CHANGED,
                kinds.DELETE_ACCEPTED,
            ]
        assert len(written) == 2

    run_cluster(scenario, {"app": Program()}, nodes=2)
