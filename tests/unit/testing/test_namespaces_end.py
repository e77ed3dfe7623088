"""The end of a namespace: in which order it asks for what."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.testing.cluster import AsyncCluster

OWNED = {"ownerReferences": [{"kind": "ReplicaSet", "name": "web"}]}


class Asked:
    """A client that only writes down what it is asked for. What it deleted it lists no longer."""

    def __init__(self, objects: dict[str, list[Object]]) -> None:
        self.objects = objects
        self.deleted: list[tuple[str, str, Any]] = []

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        grace_period_seconds: int | None = None,
        propagation_policy: str | None = None,
    ) -> None:
        self.deleted.append((resource.plural, name, propagation_policy or grace_period_seconds))
        left = [each for each in self.objects.get(resource.plural, []) if each["metadata"]["name"] != name]
        self.objects[resource.plural] = left

    async def list(self, resource: Resource, namespace: str) -> Any:
        return SimpleNamespace(items=self.objects.get(resource.plural, []))


def deleted(grace: int | None, **objects: list[Object]) -> list[tuple[str, str, Any]]:
    asked, cluster = Asked(objects), AsyncCluster("a")

    async def gone(*_: Any) -> None:
        pass

    cluster._connected = SimpleNamespace(objects=SimpleNamespace(client=asked, wait=gone))  # type: ignore[assignment]
    asyncio.run(cluster.delete_namespace("a", grace=grace))
    return asked.deleted


def named(name: str, **metadata: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "a", **metadata}}


@pytest.mark.parametrize(
    ("grace", "order"),
    [(None, [("namespaces", "a", None)]), (1, [("pods", "web", 1), ("namespaces", "a", None)])],
)
def test_pods_get_the_short_grace_period_before_the_namespace_gives_them_their_own(
    grace: int | None, order: list[tuple[str, str, Any]]
) -> None:
    assert deleted(grace, pods=[named("web")]) == order


def test_owners_are_deleted_before_their_pods_so_that_none_is_replaced() -> None:
    objects = {"deployments": [named("web")], "replicasets": [named("web-1")], "pods": [named("web-1-a", **OWNED)]}
    assert deleted(1, **objects) == [
        ("deployments", "web", "Orphan"),
        ("replicasets", "web-1", "Orphan"),
        ("pods", "web-1-a", 1),
        ("namespaces", "a", None),
    ]
