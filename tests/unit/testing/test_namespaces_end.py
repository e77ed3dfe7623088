"""The end of a namespace: in which order it asks for what."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from lastcall.api.meta import Object
from lastcall.api.resources import Resource
from lastcall.testing.cluster import AsyncCluster


class Asked:
    """A client that only writes down what it is asked for; the namespace has one Pod."""

    def __init__(self) -> None:
        self.deleted: list[tuple[str, str, int | None]] = []

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", grace_period_seconds: int | None = None
    ) -> None:
        self.deleted.append((resource.plural, name, grace_period_seconds))

    async def list(self, resource: Resource, namespace: str) -> Any:
        pod: Object = {"metadata": {"name": "web", "namespace": namespace}}
        return SimpleNamespace(items=[pod])


@pytest.mark.parametrize(
    ("grace", "deleted"),
    [(None, [("namespaces", "a", None)]), (1, [("namespaces", "a", None), ("pods", "web", 1)])],
)
def test_pods_are_ended_sooner_when_controllers_cannot_replace_them_any_more(
    grace: int | None, deleted: list[tuple[str, str, int | None]]
) -> None:
    asked, cluster = Asked(), AsyncCluster("a")

    async def gone(*_: Any) -> None:
        pass

    cluster._connected = SimpleNamespace(objects=SimpleNamespace(client=asked, wait=gone))  # type: ignore[assignment]
    asyncio.run(cluster.delete_namespace("a", grace=grace))
    assert asked.deleted == deleted
