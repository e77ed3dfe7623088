"""Objects of operators in the Python API, on an API server alone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from api_server import running_server

import lastcall
from lastcall.errors import HeldObject
from lastcall.experiment.ready import Objects
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import EVENTS
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "shortNames": ["bt"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"sails": {"type": "integer"}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def boat(**more: object) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "one"}, **more}


@asynccontextmanager
async def following(pods: Sequence[Object]) -> AsyncIterator[None]:
    yield


async def no_endings(uids: Sequence[str]) -> lastcall.Ending:
    assert not uids
    return lastcall.Ending((), "1.36")


def on_a_cluster(test: Callable[[lastcall.AsyncNamespace], Awaitable[None]]) -> None:
    async def work() -> None:
        async with running_server() as running:
            client = running.http()
            objects = Objects(client, World().clock)
            link = SimpleNamespace(
                objects=objects, allow=lambda method, namespace: None, following=following, endings=no_endings
            )
            namespace = lastcall.AsyncNamespace(link, "default")  # type: ignore[arg-type]
            try:
                await namespace.apply(DEFINITION)
                await test(namespace)
            finally:
                await client.close()

    asyncio.run(work())


def test_a_typing_error_is_an_invalid_manifest_that_names_the_field() -> None:
    async def test(cluster: lastcall.AsyncNamespace) -> None:
        with pytest.raises(lastcall.InvalidManifest, match=r"Boat default/one: .*\.spec\.sial: field not declared"):
            await cluster.apply(boat(spec={"sial": 1}))
        with pytest.raises(lastcall.InvalidManifest, match=r"spec\.sails"):
            await cluster.apply(boat(spec={"sails": "two"}))

    on_a_cluster(test)


def test_an_object_that_is_not_ready_by_its_conditions_says_why() -> None:
    status = {"pod": "w", "conditions": [{"type": "Stalled", "status": "True", "reason": "NoWater"}]}

    async def test(cluster: lastcall.AsyncNamespace) -> None:
        with pytest.raises(lastcall.NotReady, match=r"it is stalled \(NoWater\)(?s:.*)status\.pod: w"):
            await cluster.apply(boat(status=status), {**boat(), "metadata": {"name": "two"}}, wait=True)
        await cluster.wait_ready("bt/two")

    on_a_cluster(test)


def test_waiting_for_a_condition_ends_with_it_or_tells_status_and_events() -> None:
    async def test(cluster: lastcall.AsyncNamespace) -> None:
        words = "jsonpath={.status.pod}=w"
        waiting = asyncio.create_task(cluster.wait_for("boat/one", words))
        made = await cluster.apply(boat(status={"pod": "v"}))
        about = {"kind": "Boat", "name": "one", "namespace": "default", "uid": made[0]["metadata"]["uid"]}
        event = {"metadata": {"name": "e", "namespace": "default"}, "involvedObject": about, "type": "Warning"}
        await cluster._objects.client.create(EVENTS, {**event, "reason": "Leaks", "message": "a hole"}, "default")
        with pytest.raises(lastcall.NotReady) as error:
            await cluster.wait_for("boat/one", words, timeout=0.1)
        assert str(error.value).splitlines() == [
            f"timed out after 0.1 s (timeout) waiting for Boat default/one, {words}: .status.pod is 'v'",
            "Boat default/one:",
            "  status.pod: v",
            "Events:",
            "  Warning Leaks Boat one: a hole",
        ]
        await cluster.apply(boat(status={"pod": "w"}))
        await waiting

    on_a_cluster(test)


def test_what_is_still_there_says_which_finalizers_hold_it() -> None:
    async def test(cluster: lastcall.AsyncNamespace) -> None:
        await cluster.apply({**boat(), "metadata": {"name": "one", "finalizers": ["example.com/hold"]}})
        with pytest.raises(lastcall.StillThere) as error:
            await cluster.delete("boat/one", timeout=0.1)
        (cause,) = error.value.causes
        assert isinstance(cause, HeldObject)
        assert (cause.object, cause.finalizers) == ("Boat default/one", ("example.com/hold",))
        assert cause.text in str(error.value) and cause.advice in str(error.value)

    on_a_cluster(test)


def test_an_object_that_does_not_exist_is_not_found_and_may_be_missing() -> None:
    async def test(cluster: lastcall.AsyncNamespace) -> None:
        for work in (cluster.get("bt/nobody"), cluster.delete("bt/nobody")):
            with pytest.raises(lastcall.NotFound, match="Boat default/nobody does not exist"):
                await work
        assert not (await cluster.delete("bt/nobody", missing_ok=True)).pods

    on_a_cluster(test)
