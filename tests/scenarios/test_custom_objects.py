"""Objects of declared kinds on a virtual cluster: owners, owned, and part of a namespace's end."""

from typing import Any

from virtual_cluster import VirtualCluster, run_cluster

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CONFIGMAPS, CUSTOMRESOURCEDEFINITIONS, NAMESPACES, Resource

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", True)
DEFINITION: Object = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}


def widget(name: str, **meta: Any) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, **meta}}


def owned_by(owner: Object) -> list[Object]:
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }
    ]


async def exists(cluster: VirtualCluster, resource: Resource, name: str, namespace: str = "") -> bool:
    try:
        await cluster.client.get(resource, name, namespace or cluster.namespace)
    except StatusError:
        return False
    return True


def test_what_a_custom_object_owns_goes_with_it_and_it_goes_with_its_owner():
    async def scenario(cluster):
        client, namespace = cluster.client, cluster.namespace
        await client.create(CUSTOMRESOURCEDEFINITIONS, DEFINITION)
        top = await client.create(CONFIGMAPS, {"metadata": {"name": "top"}}, namespace)
        middle = widget("middle", ownerReferences=owned_by({"apiVersion": "v1", "kind": "ConfigMap", **top}))
        middle = await client.create(WIDGETS, middle, namespace)
        bottom = {"metadata": {"name": "bottom", "ownerReferences": owned_by(middle)}}
        await client.create(CONFIGMAPS, bottom, namespace)
        await client.create(WIDGETS, widget("apart"), namespace)
        await cluster.sleep(5)
        assert await exists(cluster, CONFIGMAPS, "bottom")
        await client.delete(CONFIGMAPS, "top", namespace)

        async def gone() -> bool:
            return not await exists(cluster, WIDGETS, "middle") and not await exists(cluster, CONFIGMAPS, "bottom")

        await cluster.wait_until_async(gone)
        assert await exists(cluster, WIDGETS, "apart")

    run_cluster(scenario)


def test_a_custom_owner_can_leave_its_dependents_behind():
    async def scenario(cluster):
        client, namespace = cluster.client, cluster.namespace
        await client.create(CUSTOMRESOURCEDEFINITIONS, DEFINITION)
        owner = await client.create(WIDGETS, widget("owner"), namespace)
        await client.create(WIDGETS, widget("left", ownerReferences=owned_by(owner)), namespace)
        await cluster.sleep(5)
        await client.delete(WIDGETS, "owner", namespace, propagation_policy="Orphan")

        async def gone() -> bool:
            return not await exists(cluster, WIDGETS, "owner")

        await cluster.wait_until_async(gone)
        left = await client.get(WIDGETS, "left", namespace)
        assert "ownerReferences" not in left["metadata"]
        await cluster.sleep(60)
        assert await exists(cluster, WIDGETS, "left")

    run_cluster(scenario)


def test_a_namespace_ends_with_its_custom_objects_and_waits_for_their_finalizers():
    async def scenario(cluster):
        client = cluster.client
        await client.create(CUSTOMRESOURCEDEFINITIONS, DEFINITION)
        await client.create(NAMESPACES, {"metadata": {"name": "team"}})
        await client.create(WIDGETS, widget("plain"), "team")
        await client.create(WIDGETS, widget("held", finalizers=["example.com/hold"]), "team")
        await client.delete(NAMESPACES, "team")
        await cluster.sleep(30)
        conditions = {each["type"]: each for each in (await client.get(NAMESPACES, "team"))["status"]["conditions"]}
        assert "widgets.example.com has 1 resource instances" in conditions["NamespaceContentRemaining"]["message"]
        assert "example.com/hold in 1 resource instances" in conditions["NamespaceFinalizersRemaining"]["message"]
        await client.patch(WIDGETS, "held", {"metadata": {"finalizers": None}}, "team")

        async def gone() -> bool:
            return not await exists(cluster, NAMESPACES, "team")

        await cluster.wait_until_async(gone)

    run_cluster(scenario)


def test_a_kind_that_is_declared_again_is_followed_again():
    async def scenario(cluster):
        client, namespace = cluster.client, cluster.namespace
        for _ in range(2):
            await client.create(CUSTOMRESOURCEDEFINITIONS, DEFINITION)
            owner = await client.create(WIDGETS, widget("owner"), namespace)
            owned = {"metadata": {"name": "owned", "ownerReferences": owned_by(owner)}}
            await client.create(CONFIGMAPS, owned, namespace)
            await cluster.sleep(5)
            assert await exists(cluster, CONFIGMAPS, "owned")
            await client.delete(CUSTOMRESOURCEDEFINITIONS, "widgets.example.com")

            async def gone() -> bool:
                return not await exists(cluster, CONFIGMAPS, "owned")

            await cluster.wait_until_async(gone)

    run_cluster(scenario)
