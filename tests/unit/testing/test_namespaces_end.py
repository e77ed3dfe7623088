"""The end of a namespace: in which order it asks for what."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from lastcall.errors import StillThere
from lastcall.experiment.ready.objects import Seen
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
        **_: Any,
    ) -> None:
        self.deleted.append((resource.plural, name, propagation_policy or grace_period_seconds))
        left = [each for each in self.objects.get(resource.plural, []) if each["metadata"]["name"] != name]
        self.objects[resource.plural] = left

    async def list(self, resource: Resource, namespace: str) -> Any:
        return SimpleNamespace(items=self.objects.get(resource.plural, []))


def link(objects: Any) -> Any:
    return SimpleNamespace(objects=objects, check_own=lambda method: None)


def deleted(grace: int | None, **objects: list[Object]) -> list[tuple[str, str, Any]]:
    asked, cluster = Asked(objects), AsyncCluster("a")

    async def gone(*_: Any) -> None:
        pass

    cluster._connected = link(SimpleNamespace(client=asked, wait=gone))
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


LAMPS = Resource("example.com", "v1", "lamps", "Lamp", namespaced=True)
REMAINING = "Some resources are remaining: lamps.example.com has 2 resource instances"
FINALIZERS = "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"


def terminating(**messages: str) -> Object:
    conditions = [{"type": each, "status": "True", "message": message} for each, message in messages.items()]
    fine = {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "All content deleted"}
    return {
        "metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"conditions": [*conditions, fine]},
    }


class Held:
    """A namespace that stays as it is: whoever waits for more than that waits for ever."""

    def __init__(self, namespace: Object, **objects: list[Object]) -> None:
        self.namespace, self.client = namespace, Asked(objects)

    async def wait(self, _: object, seen: Seen) -> None:
        if not seen(self.namespace):
            await asyncio.Event().wait()

    async def get(self, _: object) -> Object:
        return self.namespace

    async def kind(self, word: str) -> Resource:
        assert word == "lamps.example.com"
        return LAMPS


def what_holds(objects: Held, **options: Any) -> list[str]:
    cluster = AsyncCluster("a")
    cluster._connected = link(objects)
    with pytest.raises(StillThere) as error:
        asyncio.run(cluster.delete_namespace("a", **options))
    return str(error.value).splitlines()


@pytest.mark.parametrize("options", [{"held": 0.0}, {"timeout": 0.0}])
def test_objects_with_finalizers_are_named_as_what_holds_a_namespace(options: dict[str, float]) -> None:
    lamps = [named("red", finalizers=["example.com/hold"], deletionTimestamp="2026-01-01T00:00:00Z"), named("blue")]
    left = terminating(NamespaceContentRemaining=REMAINING, NamespaceFinalizersRemaining=FINALIZERS)
    assert what_holds(Held(left, lamps=lamps), **options) == [
        "namespace a is not gone after 0 s:",
        "Lamp a/red is ending, and finalizers hold it (example.com/hold). Usually removed by: example.com/hold: the "
        "controller of example.com that added it.",
        "  fix: Delete these objects while the operator that removes their finalizers still runs.",
    ]


def test_an_api_that_does_not_answer_is_named_as_what_holds_a_namespace() -> None:
    failed = "Discovery failed for some groups, 1 failing: custom.metrics.k8s.io/v1beta1"
    assert what_holds(Held(terminating(NamespaceDeletionDiscoveryFailure=failed)), held=0.0)[1:] == [
        f"Namespace a is ending: {failed}",
        "  fix: Make the API that does not answer available again, or delete its APIService if nobody needs it "
        "(`kubectl get apiservices`).",
    ]


def test_pods_that_end_are_waited_for_until_the_limit() -> None:
    remaining = "Some resources are remaining: pods. has 1 resource instances"
    left = terminating(NamespaceContentRemaining=remaining)
    held = Held(left)
    held.kind = lambda word: Held.kind(held, "lamps.example.com")  # type: ignore[method-assign]
    assert what_holds(held, held=0.0, timeout=0.01)[1:] == [f"Namespace a is ending: {remaining}"]
