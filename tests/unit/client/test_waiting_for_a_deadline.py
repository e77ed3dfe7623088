"""Deadlines in a world where time passes only when nothing runs."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.world.clock import monotonic
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(min_value=0.0, max_value=1e4), min_size=1, max_size=20))
def test_a_wait_that_re_arms_until_its_deadline_in_float_seconds_always_ends(waits):
    async def main(world: World):
        for seconds in waits:
            deadline = monotonic(world.clock) + seconds
            for _ in range(10):
                left = deadline - monotonic(world.clock)
                if left <= 0:
                    break
                await asyncio.sleep(left)
            assert monotonic(world.clock) >= deadline
            assert monotonic(world.clock) - deadline < 1e-6

    run_virtual(main)
