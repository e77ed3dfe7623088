"""Namespaces end and garbage is collected on a server whose kinds are not ours: by its own word."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from waiting import until

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    CUSTOMRESOURCEDEFINITIONS,
    NAMESPACES,
    SERVICEACCOUNTS,
    PartialResource,
    Resource,
)
from lastcall.kube.client.api import Client
from lastcall.kube.client.discovery import Discovered, ServedKind, discover
from lastcall.kube.client.http import HTTPClient
from lastcall.kube.controllers.kinds.discovered import DiscoveredKinds
from lastcall.kube.controllers.manager import run_controllers
from lastcall.records.memory import NoRecorder
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

SUPPORT = str(Path(__file__).parents[4] / "support")
if SUPPORT not in sys.path:
    sys.path.insert(0, SUPPORT)

from api_server import running_server  # noqa: E402

CAPACITIES = PartialResource("capacity.example.com", "v1", "capacities", "Capacity", True)
"""Stands for what a server serves and we have no table for, as CSIStorageCapacity."""
VERBS = frozenset({"get", "list", "watch", "delete", "patch"})


class Kinds:
    """What discovery finds, with groups that can be made to fail."""

    def __init__(self, request: Callable) -> None:
        self._discover = partial(discover, request)
        self.failing: set[str] = set()
        self.asked = 0

    async def __call__(self) -> Discovered:
        self.asked += 1
        found = await self._discover()
        kinds = tuple(each for each in found.kinds if each.resource.api_version not in self.failing)
        failed = {each: f"stale GroupVersion discovery: {each}" for each in self.failing}
        return replace(found, kinds=kinds, failed={**found.failed, **failed})


def definition(resource: Resource) -> dict:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"plural": resource.plural, "kind": resource.kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


@asynccontextmanager
async def cluster() -> AsyncIterator[tuple[Client, Kinds]]:
    """A client that may everything, and the controllers beside the server."""
    async with running_server() as running:
        client: HTTPClient = running.http()
        await client.create(CUSTOMRESOURCEDEFINITIONS, definition(CAPACITIES))
        await client.create(NAMESPACES, {"metadata": {"name": "a"}})
        await client.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "a")
        kinds = Kinds(client.request)
        async with Tasks() as tasks:
            work = run_controllers(
                gates=FeatureGates(),
                world=World(),
                client=client,
                recorder_for=lambda name: NoRecorder(),
                root_ca_pem=b"",
                names=("namespace-controller", "garbage-collector-controller"),
                discover=kinds,
            )
            tasks.spawn(work, name="controllers")
            try:
                yield client, kinds
            finally:
                tasks.cancel()
        await client.close()


async def is_gone(client: Client, resource: Resource, name: str, namespace: str = "") -> bool:
    try:
        await client.get(resource, name, namespace)
    except StatusError as error:
        return error.code == 404
    return False


def capacity(name: str, **meta: object) -> dict:
    return {"apiVersion": "capacity.example.com/v1", "kind": "Capacity", "metadata": {"name": name, **meta}, "size": 7}


async def test_a_namespace_goes_when_the_objects_of_kinds_that_we_do_not_know_are_gone() -> None:
    async with cluster() as (client, _):
        await client.create(CAPACITIES, capacity("free"), "a")
        await client.create(CAPACITIES, capacity("held", finalizers=["example.com/hold"]), "a")
        await client.delete(NAMESPACES, "a")

        async def told() -> bool:
            conditions = (await client.get(NAMESPACES, "a"))["status"].get("conditions") or []
            return any(
                each["type"] == "NamespaceFinalizersRemaining" and "example.com/hold in 1" in each["message"]
                for each in conditions
            )

        await until(told)
        assert await is_gone(client, CAPACITIES, "free", "a")
        assert not await is_gone(client, CAPACITIES, "held", "a")
        await client.patch(CAPACITIES, "held", {"metadata": {"finalizers": None}}, "a")
        await until(lambda: is_gone(client, NAMESPACES, "a"))
        assert (await client.list(CAPACITIES)).items == []


async def test_a_namespace_waits_for_a_group_whose_kinds_are_not_known() -> None:
    async with cluster() as (client, kinds):
        await client.create(CAPACITIES, capacity("c"), "a")
        await client.create(CONFIGMAPS, {"metadata": {"name": "m"}}, "a")
        kinds.failing = {"capacity.example.com/v1"}
        await client.delete(NAMESPACES, "a")

        async def told() -> bool:
            conditions = (await client.get(NAMESPACES, "a"))["status"].get("conditions") or []
            return any(
                (each["type"], each["status"], each["reason"], each["message"])
                == (
                    "NamespaceDeletionDiscoveryFailure",
                    "True",
                    "DiscoveryFailed",
                    "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server "
                    "APIs: capacity.example.com/v1: stale GroupVersion discovery: capacity.example.com/v1",
                )
                for each in conditions
            )

        await until(told)
        assert await is_gone(client, CONFIGMAPS, "m", "a"), "what is known goes"
        assert not await is_gone(client, CAPACITIES, "c", "a")
        kinds.failing = set()
        await until(lambda: is_gone(client, NAMESPACES, "a"))
        assert (await client.list(CAPACITIES)).items == []


async def test_garbage_of_kinds_that_we_do_not_know_is_collected_also_while_their_group_fails() -> None:
    async with cluster() as (client, kinds):
        await owned_by_a_configmap(client, "first")
        await client.delete(CONFIGMAPS, "first", "a")
        await until(lambda: is_gone(client, CAPACITIES, "first", "a"))
        made = await owned_by_a_configmap(client, "second")
        uid = made["metadata"]["uid"]
        below = {"apiVersion": "capacity.example.com/v1", "kind": "Capacity", "name": "second", "uid": uid}
        await client.create(CONFIGMAPS, {"metadata": {"name": "below", "ownerReferences": [below]}}, "a")
        await client.create(CAPACITIES, capacity("other"), "a")
        kinds.failing = {"capacity.example.com/v1"}
        asked = kinds.asked
        # The end of a definition makes the collector look at once: what it follows stays so.
        other = replace(CAPACITIES, plural="others", kind="Other")
        await client.create(CUSTOMRESOURCEDEFINITIONS, definition(other))
        await client.delete(CUSTOMRESOURCEDEFINITIONS, "others.capacity.example.com")

        async def looked() -> bool:
            return kinds.asked > asked

        await until(looked)
        await client.delete(CONFIGMAPS, "second", "a")
        await until(lambda: is_gone(client, CAPACITIES, "second", "a"))
        await until(lambda: is_gone(client, CONFIGMAPS, "below", "a"))
        assert not await is_gone(client, CAPACITIES, "other", "a")


async def owned_by_a_configmap(client: Client, name: str) -> dict:
    owner = await client.create(CONFIGMAPS, {"metadata": {"name": name}}, "a")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["metadata"]["uid"]}
    return await client.create(CAPACITIES, capacity(name, ownerReferences=[reference]), "a")


async def test_of_a_kind_that_we_do_not_know_only_the_metadata_comes() -> None:
    async with cluster() as (client, _):
        await client.create(CAPACITIES, capacity("c"), "a")
        (listed,) = (await client.list(CAPACITIES)).items
        got = await client.get(CAPACITIES, "c", "a")
        async with client.watch(CAPACITIES) as events:
            event = await anext(aiter(events))
        for obj in (listed, got, event.object):
            assert (obj["kind"], obj["apiVersion"]) == ("Capacity", "capacity.example.com/v1")
            assert set(obj) == {"kind", "apiVersion", "metadata"}


class Followed:
    """A cache that is filled."""

    async def synced(self) -> None:
        return None


def test_kinds_of_a_failing_group_stay_and_others_go() -> None:
    other = PartialResource("other.example.com", "v1", "others", "Other", True)
    reader = PartialResource("metrics.example.com", "v1", "readings", "Reading", True)
    log: list[tuple[str, str]] = []
    answers = [
        Discovered((ServedKind(CAPACITIES, VERBS), ServedKind(other, VERBS), ServedKind(reader, frozenset({"list"})))),
        Discovered((ServedKind(reader, frozenset({"list"})),), {"capacity.example.com/v1": "stale"}),
        Discovered((ServedKind(CAPACITIES, VERBS), ServedKind(CAPACITIES, VERBS, False))),
        Discovered(),
        StatusError({"kind": "Status", "code": 503, "message": "no", "reason": ""}),
    ]

    async def scenario(world: World) -> None:
        async def found() -> Discovered:
            answer = answers.pop(0) if answers else Discovered()
            if isinstance(answer, Exception):
                raise answer
            return answer

        def added(resource: Resource) -> Followed:
            log.append(("followed", resource.plural))
            return Followed()

        kinds = DiscoveredKinds(
            found,
            lambda resource: log.append(("served", resource.plural)),
            lambda resource: log.append(("unserved", resource.plural)),
            added,  # type: ignore[arg-type]
        )
        async with Tasks() as tasks:
            tasks.spawn(kinds.run(), name="discovery")
            await kinds.synced()
            assert log == [
                ("served", "capacities"),
                ("served", "others"),
                ("served", "readings"),
                ("followed", "capacities"),
                ("followed", "others"),
            ]
            log.clear()
            await world.clock.sleep(31)
            assert log == [("unserved", "others")]
            await world.clock.sleep(30)
            assert log == [("unserved", "others"), ("unserved", "readings")]
            await world.clock.sleep(300)
            assert len(log) == 2, "an answer that says nothing changes nothing"
            tasks.cancel()

    run_virtual(scenario)
