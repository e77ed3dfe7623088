"""Deadlines in a world where time passes only when nothing runs."""

import asyncio

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lastcall.world.clock import monotonic
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


@settings(max_examples=200, deadline=None)
@example([4_950_224_909, 1_000_000])
@given(st.lists(st.integers(min_value=0, max_value=10**13), min_size=1, max_size=20))
def test_a_wait_that_re_arms_until_its_deadline_in_float_seconds_always_ends(waits):
    async def main(world: World):
        for nanoseconds in waits:
            deadline = monotonic(world.clock) + nanoseconds / 1e9
            for _ in range(10):
                left = deadline - monotonic(world.clock)
                if left <= 0:
                    break
                await asyncio.sleep(left)  # virtual time
            assert monotonic(world.clock) >= deadline
            assert monotonic(world.clock) - deadline < 1e-6

    run_virtual(main)
