"""When Pods are due."""

import asyncio

import pytest

from lastcall.kube.node.workers.queue import WorkQueue
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


@pytest.mark.parametrize("short", [0, 1, 3, 7])
def test_who_asks_for_the_rest_of_a_time_is_told_when_it_is_over(short: int) -> None:
    """A part of a nanosecond is one: rounded down it would be due at once, again and again."""

    async def scenario(world: World) -> None:
        began, told = world.clock.monotonic_ns(), asyncio.Event()
        times = 0

        def due(uid: str) -> None:
            nonlocal times
            times += 1
            assert times < 100, "it spins"
            left = 0.3 - (world.clock.monotonic_ns() - began) / 1e9
            if left <= 0:
                told.set()
            else:
                queue.enqueue(uid, left)

        queue = WorkQueue(world, due)
        async with Tasks() as tasks:
            tasks.spawn(queue.run(), name="queue")
            queue.enqueue("u", 0.3 - short * 0.9e-9)
            await told.wait()
            assert world.clock.monotonic_ns() - began <= 300_000_100
            tasks.cancel()

    run_virtual(scenario)
