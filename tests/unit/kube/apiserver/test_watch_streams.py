"""How a watch spends its time: silent changes, its end, bookmarks."""

import asyncio
from collections.abc import Callable

import orjson

from lastcall.kube.api.resources import CONFIGMAPS
from lastcall.kube.apiserver.registry.listing import SLICE
from lastcall.kube.apiserver.wire.options import ListOptions
from lastcall.kube.store.watchers import MOST_UNREAD


async def create(api, name: str, **labels: str) -> None:
    await api.admin.create(CONFIGMAPS, {"metadata": {"name": name, "labels": labels}}, "default")


def test_others_get_their_turn_while_a_watch_passes_over_what_it_does_not_select(virtual: Callable) -> None:
    async def scenario(api) -> None:
        start = await api.server.operations.shared.store.revision()
        for index in range(5 * SLICE):
            await create(api, f"cm-{index:04}", app="other")
        await create(api, "wanted", app="web")
        options = ListOptions(watch=True, label_selector="app=web", resource_version=str(start))
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.ensure_future(count_turns())
        async with api.server.operations.watch(CONFIGMAPS, "default", options, endless=True) as events:
            event = await anext(events)
        assert orjson.loads(event.value.encoded())["metadata"]["name"] == "wanted"
        assert turns >= 5
        other.cancel()

    virtual(scenario)


def test_a_watch_ends_in_time_although_changes_keep_coming(virtual: Callable) -> None:
    async def scenario(api) -> None:
        async def write() -> None:
            for index in range(1000):
                await create(api, f"cm-{index}")
                await api.world.clock.sleep(0.01)

        writing = asyncio.ensure_future(write())
        began = api.world.clock.monotonic_ns()
        options = ListOptions(watch=True, timeout_seconds=2)
        async with api.server.operations.watch(CONFIGMAPS, "default", options) as events:
            count = len([event async for event in events])
        assert 2.0 <= (api.world.clock.monotonic_ns() - began) / 1e9 <= 2.02
        assert 198 <= count <= 203
        writing.cancel()

    virtual(scenario)


def test_a_quiet_watch_sends_a_bookmark_at_once_each_minute_and_before_its_end(virtual: Callable) -> None:
    async def scenario(api) -> None:
        options = ListOptions(watch=True, allow_watch_bookmarks=True, timeout_seconds=150)
        began = api.world.clock.monotonic_ns()
        seen = []
        async with api.server.operations.watch(CONFIGMAPS, "default", options) as events:
            async for event in events:
                seen.append((event.type, round((api.world.clock.monotonic_ns() - began) / 1e9)))
        assert seen == [("BOOKMARK", 0), ("BOOKMARK", 60), ("BOOKMARK", 120), ("BOOKMARK", 148)]
        assert round((api.world.clock.monotonic_ns() - began) / 1e9) == 150

    virtual(scenario)


def test_events_that_have_come_can_be_taken_at_once(virtual: Callable) -> None:
    async def scenario(api) -> None:
        await create(api, "a")
        await create(api, "b")
        async with api.server.operations.watch(CONFIGMAPS, "default", ListOptions(watch=True)) as events:
            assert events.take() is None, "it has not begun"
            types = [(await anext(events)).type]
            while (event := events.take()) is not None:
                types.append(event.type)
            assert types == ["ADDED", "ADDED"]
            await create(api, "c")
            await create(api, "d")
            taken = [events.take(), events.take(), events.take()]
            assert [event and event.type for event in taken] == ["ADDED", "ADDED", None]

    virtual(scenario)


def test_a_watch_that_reads_too_slowly_ends_without_an_error_and_the_next_one_goes_on(virtual: Callable) -> None:
    async def scenario(api) -> None:
        await create(api, "a")
        operations = api.server.operations
        async with operations.watch(CONFIGMAPS, "default", ListOptions(watch=True)) as events:
            first = await anext(events)
            read = orjson.loads(first.value.encoded())["metadata"]["resourceVersion"]
            for index in range(MOST_UNREAD + 1):
                await create(api, f"b-{index}")
            assert [event.type async for event in events] == []
        options = ListOptions(watch=True, resource_version=read)
        async with operations.watch(CONFIGMAPS, "default", options) as events:
            assert (await anext(events)).type == "ADDED"

    virtual(scenario)
