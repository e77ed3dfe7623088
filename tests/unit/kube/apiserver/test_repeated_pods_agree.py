"""Whatever changes between Pods of one body: what the server remembers of the first is what it would make anew."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from api_server import ADMIN, ListRecorder
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import (
    LIMITRANGES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITYCLASSES,
    RESOURCEQUOTAS,
    RUNTIMECLASSES,
    SERVICEACCOUNTS,
    Resource,
)
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.client.api import Client
from lastcall.kube.store.memory import MemoryStore
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

CONTAINER = {"name": "app", "image": "app:1"}
BODIES: tuple[Object, ...] = tuple(
    {"metadata": {"generateName": f"p{number}-"}, "spec": {"containers": [CONTAINER], **spec}}
    for number, spec in enumerate(
        (
            {},
            {"priorityClassName": "chosen"},
            {"runtimeClassName": "sandboxed"},
            {"nodeName": "n", "serviceAccountName": "other"},
            {"containers": [{**CONTAINER, "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "3"}}}]},
        )
    )
)


def limit_range(cpu: int) -> Object:
    limits = {"type": "Container", "default": {"cpu": str(cpu)}, "max": {"cpu": str(cpu)}}
    return {"metadata": {"name": "limits"}, "spec": {"limits": [limits]}}


def account(name: str) -> Callable[[int], Object]:
    return lambda value: {
        "metadata": {"name": name},
        "imagePullSecrets": [{"name": f"pull-{value}"}],
        "automountServiceAccountToken": value != 2,
    }


def priority_class(name: str, default: bool) -> Callable[[int], Object]:
    return lambda value: {"metadata": {"name": name}, "value": value, "globalDefault": default}


def runtime_class(value: int) -> Object:
    return {"metadata": {"name": "sandboxed"}, "handler": "h", "overhead": {"podFixed": {"cpu": f"{value}m"}}}


def node(value: int) -> Object:
    return {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": f"z{value}"}}}


def quota(value: int) -> Object:
    return {"metadata": {"name": "quota"}, "spec": {"hard": {"pods": str(4 * value)}}}


THINGS: tuple[tuple[Resource, str, Callable[[int], Object]], ...] = (
    (LIMITRANGES, "default", limit_range),
    (SERVICEACCOUNTS, "default", account("default")),
    (SERVICEACCOUNTS, "default", account("other")),
    (PRIORITYCLASSES, "", priority_class("chosen", False)),
    (PRIORITYCLASSES, "", priority_class("everybody", True)),
    (RUNTIMECLASSES, "", runtime_class),
    (NODES, "", node),
    (RESOURCEQUOTAS, "default", quota),
)
"""What admission reads for Pods, by a number in three versions."""
LEVELS = ("privileged", "baseline", "restricted")

Step = tuple[str, int, int]
pods = st.tuples(st.just("pod"), st.integers(0, len(BODIES) - 1), st.just(0))
changes = st.one_of(
    st.tuples(st.sampled_from(("replace", "remove")), st.integers(0, len(THINGS) - 1), st.integers(1, 3)),
    st.tuples(st.just("level"), st.just(0), st.integers(0, 2)),
)
stories = st.lists(st.one_of(st.tuples(pods), st.tuples(changes), st.tuples(pods, changes, pods)), max_size=12)
"""What happens one after the other, and in each element at once."""


class SlowStore(MemoryStore):
    """A create takes a while, in which others get their turn."""

    world: World

    async def create(self, *arguments: Any) -> Any:
        await self.world.clock.sleep(0.001)
        return await super().create(*arguments)


async def changed(client: Client, step: Step) -> object:
    verb, index, value = step
    if verb == "pod":
        return await client.create(PODS, copy_object(BODIES[index]), "default")
    if verb == "level":
        labels = {"pod-security.kubernetes.io/enforce": LEVELS[value]}
        return await client.patch(NAMESPACES, "default", {"metadata": {"labels": labels}})
    resource, namespace, make = THINGS[index]
    obj = make(value)
    with suppress(StatusError):
        await client.delete(resource, obj["metadata"]["name"], namespace)
    return await client.create(resource, obj, namespace) if verb == "replace" else None


def answers(story: list[tuple[Step, ...]], remembers: bool) -> tuple[list[object], int]:
    """What each step of a story is answered by a new server, and how many Pods it did not look at anew."""
    found: list[object] = []
    known = 0

    async def told(work: Awaitable[object]) -> object:
        try:
            return await work
        except StatusError as error:
            return error.message

    async def main(world: World) -> None:
        nonlocal known
        store = SlowStore()
        store.world = world
        server = APIServer(world=world, store=store, recorder=ListRecorder(), config=APIServerConfig())
        await server.bootstrap()
        repeated = server.operations.repeated
        if not remembers:
            repeated.key = lambda *_: None  # type: ignore[method-assign]
        another = repeated.another

        async def noted(key: Any) -> Any:
            nonlocal known
            pod = await another(key)
            known += pod is not None
            return pod

        repeated.another = noted  # type: ignore[method-assign]
        client = server.client(ADMIN)
        for at_once in story:
            found.extend(await asyncio.gather(*(told(changed(client, step)) for step in at_once)))

    run_virtual(main)
    return found, known


ALL = [(("replace", number, 3),) for number in range(len(THINGS) - 1)]


@settings(max_examples=60, deadline=None)
@given(story=stories)
def test_what_is_remembered_is_what_would_be_made(story: list[tuple[Step, ...]]) -> None:
    assert answers([*ALL, *story], True)[0] == answers([*ALL, *story], False)[0]


def test_the_stories_have_pods_that_are_remembered() -> None:
    twice = [(("pod", index, 0),) for index in range(len(BODIES))] * 2
    assert answers([*ALL, *twice], True)[1] == len(BODIES)
