"""The clock of the virtual world moves on, whatever waits for it."""

import asyncio

from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
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
