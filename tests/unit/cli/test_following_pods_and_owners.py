"""How an experiment follows a kind of objects: what a client may not do, and what it does in its place."""

import asyncio
from collections.abc import Sequence

import pytest
from fake_api import FakeAPI

from lastcall.experiment.reasons.pod_watch import follow_kind
from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.resources import PODS, Resource
from lastcall.world.clock import Clock, RealClock
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

FORBIDDEN = status_failure(403, "Forbidden", "pods is forbidden")


async def follow(api: FakeAPI, found: asyncio.Queue[str], clock: Clock) -> None:
    async def saw(obj: Object, gone: bool) -> None:
        found.put_nowait(name_of(obj))

    async def listed(resource: Resource, items: Sequence[Object], version: str) -> None:
        for each in items:
            await saw(each, False)

    await follow_kind(api, clock, PODS, "shop", "", saw, listed)


async def test_who_may_neither_list_nor_watch_is_told_so() -> None:
    api = FakeAPI(World())
    api.fail_next("list", "pods", FORBIDDEN)
    with pytest.raises(StatusError, match="pods is forbidden"):
        await asyncio.wait_for(follow(api, asyncio.Queue(), RealClock()), 5)


def test_where_a_watch_is_not_allowed_a_list_takes_its_place() -> None:
    async def main(world: World) -> list[str]:
        api, found = FakeAPI(world), asyncio.Queue[str]()
        api.fail_next("watch", "pods", FORBIDDEN, times=1000)
        pod: Object = {"metadata": {"name": "early"}, "spec": {}}
        await api.create(PODS, pod, "shop")
        seen = []
        async with Tasks() as tasks:
            tasks.spawn(follow(api, found, world.clock), name="follow")
            seen.append(await found.get())
            await api.create(PODS, {**pod, "metadata": {"name": "late"}}, "shop")
            await world.clock.sleep(1.0)
            tasks.cancel()
        while not found.empty():
            seen.append(found.get_nowait())
        return seen

    assert set(run_virtual(main)) == {"early", "late"}
