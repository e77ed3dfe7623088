"""Which Pods are an object's, and which end with it."""

from typing import Any

import pytest
from fake_api import FakeAPI

from lastcall.experiment.ready import Objects, pods_below, pods_that_go
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    CUSTOMRESOURCEDEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    REPLICASETS,
    Resource,
)
from lastcall.manifests.applying import Named
from lastcall.world.world import World

BOATS = Resource("example.com", "v1", "boats", "Boat", namespaced=True)
DEFINITION: Object = {
    "metadata": {"name": "boats.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "kind": "Boat"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
}


class Cluster:
    def __init__(self) -> None:
        world = World()
        self.api = FakeAPI(world)
        self.api.put(CUSTOMRESOURCEDEFINITIONS, DEFINITION)
        self.objects = Objects(self.api, world.clock)  # type: ignore[arg-type]

    def put(self, resource: Resource, name: str, *owners: Object, **metadata: Any) -> Object:
        references = [
            {"apiVersion": o["apiVersion"], "kind": o["kind"], "name": o["metadata"]["name"], "uid": uid}
            for o in owners
            if (uid := o["metadata"]["uid"])
        ]
        return self.api.put(
            resource, {"metadata": {"name": name, "namespace": "a", "ownerReferences": references, **metadata}}
        )

    def found(self, resource: Resource, obj: Object) -> list[tuple[Named, Object]]:
        return [(Named(resource, "a", obj["metadata"]["name"]), obj)]


def names(pods: list[Object]) -> list[str]:
    return [each["metadata"]["name"] for each in pods]


async def test_pods_of_a_custom_object_go_with_it_also_those_of_its_deployment() -> None:
    there = Cluster()
    boat = there.put(BOATS, "one")
    there.put(PODS, "own", boat)
    deployment = there.put(DEPLOYMENTS, "sails", boat)
    there.put(PODS, "below", there.put(REPLICASETS, "sails-1", deployment))
    there.put(PODS, "alone")
    there.put(PODS, "of-another", there.put(BOATS, "two"))
    for asked in (pods_that_go, pods_below):
        assert names(await asked(there.objects, there.found(BOATS, boat))) == ["own", "below"]
    assert names(await pods_that_go(there.objects, there.found(DEPLOYMENTS, deployment))) == ["below"]


async def test_a_pod_with_two_owners_goes_with_both_only() -> None:
    there = Cluster()
    one, two = there.put(BOATS, "one"), there.put(BOATS, "two")
    there.put(PODS, "both", one, two)
    assert await pods_that_go(there.objects, there.found(BOATS, one)) == []
    assert names(await pods_that_go(there.objects, there.found(BOATS, one) + there.found(BOATS, two))) == ["both"]
    assert names(await pods_below(there.objects, there.found(BOATS, two))) == ["both"]


async def test_the_pods_of_a_namespace_go_with_it() -> None:
    there = Cluster()
    there.put(PODS, "own")
    there.put(PODS, "other", namespace="b")
    namespace = there.api.put(NAMESPACES, {"metadata": {"name": "a"}})
    assert names(await pods_that_go(there.objects, [(Named(NAMESPACES, "", "a"), namespace)])) == ["own"]


@pytest.mark.parametrize("kind", ["Boat", "Unknown"])
async def test_an_owner_that_is_gone_or_of_an_unknown_kind_is_nobodys(kind: str) -> None:
    there = Cluster()
    reference = {"apiVersion": "example.com/v1", "kind": kind, "name": "gone", "uid": "1"}
    there.put(PODS, "orphan", ownerReferences=[reference])
    settings = there.put(CONFIGMAPS, "settings")
    assert await pods_that_go(there.objects, there.found(CONFIGMAPS, settings)) == []
