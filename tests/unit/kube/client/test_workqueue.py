"""The work queue: client-go's semantics, and its rate limits in virtual time."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lastcall.kube.client.workqueue import QueueShutDown, RateLimit, TokenBucket, WorkQueue
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


async def taken(queue: WorkQueue) -> list:
    """What can be had right now, marked done."""
    items = []
    while len(queue):
        item = await queue.get()
        items.append(item)
        queue.done(item)
    return items


def test_an_item_added_twice_is_handed_out_once():
    async def main(world: World):
        queue: WorkQueue[str] = WorkQueue(world)
        for item in ("a", "b", "a"):
            queue.add(item)
        return await taken(queue)

    assert run_virtual(main) == ["a", "b"]


def test_an_item_added_while_it_is_worked_on_is_handed_out_again_but_only_after_done():
    async def main(world: World):
        queue: WorkQueue[str] = WorkQueue(world)
        queue.add("a")
        item = await queue.get()
        queue.add("a")
        queue.add("a")
        waiting_before_done = len(queue)
        queue.done(item)
        return waiting_before_done, await taken(queue)

    assert run_virtual(main) == (0, ["a"])


def test_an_item_added_after_a_delay_comes_exactly_then_and_the_earliest_of_two_delays_wins():
    async def main(world: World):
        queue: WorkQueue[str] = WorkQueue(world)
        queue.add_after("late", 30.0)
        queue.add_after("late", 2.0)
        queue.add_after("late", 10.0)
        item = await queue.get()
        first = world.clock.monotonic_ns() / 1e9
        queue.done(item)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(100):
                await queue.get()
        return item, first

    assert run_virtual(main) == ("late", 2.0)


def test_failures_double_the_delay_until_forget():
    async def main(world: World):
        queue: WorkQueue[str] = WorkQueue(world, RateLimit(base_delay=1.0, max_delay=5.0, per_second=0))
        moments = []
        for _ in range(5):
            queue.add_rate_limited("a")
            queue.done(await queue.get())
            moments.append(world.clock.monotonic_ns() / 1e9)
        assert queue.num_requeues("a") == 5
        queue.forget("a")
        queue.add_rate_limited("a")
        queue.done(await queue.get())
        moments.append(world.clock.monotonic_ns() / 1e9)
        return moments

    assert run_virtual(main) == [1.0, 3.0, 7.0, 12.0, 17.0, 18.0]


def test_many_items_failing_at_once_are_spread_by_the_token_bucket():
    async def main(world: World):
        queue: WorkQueue[int] = WorkQueue(world, RateLimit(base_delay=0.001, max_delay=1, per_second=10, burst=5))
        for item in range(15):
            queue.add_rate_limited(item)
        for _ in range(15):
            queue.done(await queue.get())
        return world.clock.monotonic_ns() / 1e9

    assert run_virtual(main) == pytest.approx(1.0)


def test_every_waiting_worker_gets_work_and_no_item_is_in_two_hands():
    async def main(world: World):
        queue: WorkQueue[int] = WorkQueue(world)
        in_hands: set[int] = set()
        done: list[int] = []

        async def work():
            while True:
                try:
                    item = await queue.get()
                except QueueShutDown:
                    return
                assert item not in in_hands
                in_hands.add(item)
                await world.clock.sleep(1.0)
                in_hands.discard(item)
                done.append(item)
                queue.done(item)

        async with Tasks() as tasks:
            for number in range(4):
                tasks.spawn(work(), name=f"worker {number}")
            await world.clock.sleep(1.0)
            for item in range(8):
                queue.add(item)
                queue.add(item)
            queue.shut_down()
        return sorted(done), world.clock.monotonic_ns() / 1e9

    assert run_virtual(main) == (list(range(8)), 3.0)


def test_a_worker_that_is_cancelled_while_waiting_loses_nothing():
    async def main(world: World):
        queue: WorkQueue[str] = WorkQueue(world)
        async with Tasks() as tasks:
            first = tasks.spawn(queue.get(), name="first")
            second = tasks.spawn(queue.get(), name="second")
            await world.clock.sleep(1)
            queue.add("a")
            first.cancel()
            async with asyncio.timeout(5):
                return await second

    assert run_virtual(main) == "a"


def test_nothing_is_accepted_after_shut_down_and_get_raises_when_drained():
    async def main(world: World):
        queue: WorkQueue[str] = WorkQueue(world)
        queue.add("a")
        queue.shut_down()
        queue.add("b")
        queue.add_after("c", 1.0)
        queue.done(await queue.get())
        with pytest.raises(QueueShutDown):
            await queue.get()
        return True

    assert run_virtual(main)


def test_a_token_bucket_lends_and_refills():
    bucket = TokenBucket(per_second=2.0, burst=2, now=0.0)
    assert [bucket.reserve(0.0) for _ in range(4)] == [0.0, 0.0, 0.5, 1.0]
    assert not bucket.try_take(1.4)
    assert bucket.try_take(1.5)


class WorkQueueMachine(RuleBasedStateMachine):
    """Against a model: a change that was added is always followed by a hand-out that starts after it."""

    items = st.integers(min_value=0, max_value=3)

    @initialize()
    def start(self):
        self.loop = asyncio.new_event_loop()
        self.queue: WorkQueue[int] = WorkQueue(World())
        self.pending: set[int] = set()
        self.working: list[int] = []

    @rule(item=items)
    def add(self, item):
        self.queue.add(item)
        self.pending.add(item)

    @precondition(lambda self: len(self.queue) > 0)
    @rule()
    def get(self):
        item = self.loop.run_until_complete(self.queue.get())
        assert item in self.pending
        assert item not in self.working
        self.pending.discard(item)
        self.working.append(item)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data):
        item = data.draw(st.sampled_from(self.working))
        self.working.remove(item)
        self.queue.done(item)

    @invariant()
    def what_waits_is_exactly_what_is_pending_and_in_nobodys_hands(self):
        if hasattr(self, "queue"):
            assert len(self.queue) == len(self.pending - set(self.working))

    def teardown(self):
        if hasattr(self, "loop"):
            self.loop.close()


TestWorkQueueMachine = WorkQueueMachine.TestCase
TestWorkQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
