"""v1 Endpoints and mirrored EndpointSlices on a virtual cluster."""

from virtual_cluster import VirtualCluster, run_cluster
from workloads import listed, workload

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import labels_of
from lastcall.kube.api.resources import ENDPOINTS, ENDPOINTSLICES, PODS, SERVICES
from lastcall.kube.controllers.services.mirroring import MIRRORED_BY

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}


async def addresses(cluster: VirtualCluster) -> list[str]:
    try:
        endpoints = await cluster.client.get(ENDPOINTS, "web", cluster.namespace)
    except StatusError:
        return ["none"]
    return sorted(a["ip"] for subset in endpoints.get("subsets") or () for a in subset.get("addresses") or ())


async def mirrored(cluster: VirtualCluster) -> list[list[str]]:
    slices = await listed(cluster, ENDPOINTSLICES)
    return [
        [address for endpoint in slice_["endpoints"] or () for address in endpoint["addresses"]]
        for slice_ in slices
        if labels_of(slice_).get("endpointslice.kubernetes.io/managed-by") == MIRRORED_BY
    ]


def test_endpoints_follow_the_pods_of_a_service_and_go_with_it():
    async def scenario(cluster):
        await cluster.create(SERVICE, workload("Deployment", replicas=3))

        async def full() -> bool:
            pods = await cluster.client.list(PODS, cluster.namespace)
            ready = sorted(pod["status"].get("podIP", "") for pod in pods.items)
            return len(ready) == 3 and all(ready) and await addresses(cluster) == ready

        await cluster.wait_until_async(full)
        before = await cluster.client.get(ENDPOINTS, "web", cluster.namespace)
        await cluster.sleep(60)
        after = await cluster.client.get(ENDPOINTS, "web", cluster.namespace)
        assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"], "nothing to write"
        await cluster.delete("deployment/web")

        async def empty() -> bool:
            return await addresses(cluster) == []

        await cluster.wait_until_async(empty)
        await cluster.client.delete(SERVICES, "web", cluster.namespace)

        async def gone() -> bool:
            return await addresses(cluster) == ["none"]

        await cluster.wait_until_async(gone)

    run_cluster(scenario)


def test_endpoints_written_for_a_service_without_selector_are_mirrored_until_it_goes():
    async def scenario(cluster):
        service = {**SERVICE, "spec": {"ports": [{"port": 80}]}}
        endpoints = {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {"name": "web"},
            "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}],
        }
        await cluster.create(endpoints)
        await cluster.sleep(1)
        assert await mirrored(cluster) == [], "Endpoints without a Service are nobody's"
        await cluster.create(service)

        async def shows(wanted: list[list[str]]) -> bool:
            return await mirrored(cluster) == wanted

        await cluster.wait_until_async(lambda: shows([["192.0.2.1"]]))
        subsets = [{"addresses": [{"ip": "192.0.2.2"}, {"ip": "192.0.2.3"}], "ports": [{"port": 80}]}]
        await cluster.client.patch(ENDPOINTS, "web", {"subsets": subsets}, cluster.namespace)
        await cluster.wait_until_async(lambda: shows([["192.0.2.2", "192.0.2.3"]]))
        patch = {"spec": {"selector": {"app": "web"}}}
        await cluster.client.patch(SERVICES, "web", patch, cluster.namespace)
        await cluster.wait_until_async(lambda: shows([]))
        await cluster.client.patch(SERVICES, "web", {"spec": {"selector": None}}, cluster.namespace)
        await cluster.client.patch(ENDPOINTS, "web", {"subsets": subsets}, cluster.namespace)
        await cluster.wait_until_async(lambda: shows([["192.0.2.2", "192.0.2.3"]]))
        await cluster.client.delete(SERVICES, "web", cluster.namespace)
        await cluster.wait_until_async(lambda: shows([]))

    run_cluster(scenario)


def test_slices_that_somebody_deletes_are_made_again():
    async def scenario(cluster):
        await cluster.create(SERVICE, workload("Deployment", replicas=1))

        async def slices() -> list[str]:
            found = await listed(cluster, ENDPOINTSLICES)
            return [slice_["metadata"]["uid"] for slice_ in found if slice_["endpoints"]]

        async def one() -> bool:
            return len(await slices()) == 1

        await cluster.wait_until_async(one)
        for pause in (0, 0.5, 60):
            await cluster.sleep(pause)
            (before,) = await slices()
            for slice_ in await listed(cluster, ENDPOINTSLICES):
                await cluster.client.delete(ENDPOINTSLICES, slice_["metadata"]["name"], cluster.namespace)

            async def another(before: str = before) -> bool:
                return await one() and await slices() != [before]

            await cluster.wait_until_async(another)

    run_cluster(scenario)
