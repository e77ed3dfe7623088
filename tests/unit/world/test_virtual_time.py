"""The clock of the virtual world moves on, whatever waits for it."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lastcall.world.clock import wait_for_event
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import moment, run_virtual
from lastcall.world.world import World


def test_waiters_that_ask_for_less_than_a_nanosecond_do_not_keep_each_other_busy_for_ever() -> None:
    async def main(world: World) -> int:
        rounds = 0

        async def wait_until(moment: float) -> None:
            nonlocal rounds
            while (rest := moment - asyncio.get_running_loop().time()) > 0:
                rounds += 1
                assert rounds < 100, "time stands still"
                try:
                    async with asyncio.timeout(rest):
                        await asyncio.Event().wait()
                except TimeoutError:
                    pass

        async def out_of_step() -> None:
            await world.clock.sleep(1.0)
            await world.clock.sleep(0)
            await wait_until(1.0000000007)

        async with Tasks() as tasks:
            tasks.spawn(out_of_step(), name="out of step")
            for number in range(3):
                tasks.spawn(wait_until(1.0000000005 + number * 1e-10), name=f"waiter {number}")
        return rounds

    assert run_virtual(main) < 10


@given(some.floats(min_value=0, max_value=1e9), some.floats(min_value=0, max_value=1e-6))
def test_a_moment_on_the_grid_is_never_before_the_time_that_was_asked_for(seconds: float, more: float) -> None:
    assert moment(seconds) / 1e9 >= seconds
    assert moment(seconds) / 1e9 - seconds <= max(4e-9, seconds * 2e-15)
    assert moment(seconds + more) >= moment(seconds)
    assert moment(moment(seconds) / 1e9) == moment(seconds), "what lies on the grid stays there"


@pytest.mark.parametrize("start", [0.0, 1.0, 12.345678902, 86_400.0, 3e6, 1.6e7, 1e8, 3e9])
def test_each_timer_runs_at_its_moment_however_late_it_is_in_the_world(start: float) -> None:
    async def main(world: World) -> list[tuple[int, int]]:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(start)  # virtual time
        first = loop.time()
        delays = [0.0, 1e-9, 3e-9, 1e-6, 0.1, 1 / 3, 30.0, 100_000.0]
        ran: list[tuple[int, int]] = []
        done = asyncio.Event()

        def tell(due: int) -> None:
            ran.append((due, world.clock.monotonic_ns()))

        for delay in delays:
            loop.call_at(first + delay, tell, moment(first + delay))
        loop.call_at(first + 100_001.0, done.set)
        await done.wait()
        return ran

    ran = run_virtual(main)
    assert len(ran) == 8
    assert [at for _, at in ran] == [due for due, _ in ran]


def test_a_wait_shorter_than_a_nanosecond_takes_one() -> None:
    async def main(world: World) -> int:
        before = world.clock.monotonic_ns()
        assert not await wait_for_event(world.clock, asyncio.Event(), 4e-10)
        return world.clock.monotonic_ns() - before

    assert run_virtual(main) > 0
