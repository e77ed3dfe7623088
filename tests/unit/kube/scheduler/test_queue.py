"""Whose turn it is."""

import pytest
from scheduling import cache_of, pod, pod_info

from lastcall.kube.scheduler.queue import SchedulingQueue
from lastcall.world.virtual import run_virtual

FIT = ("NodeResourcesFit",)


def queued(test):
    async def main(world):
        cache, queue = cache_of(), SchedulingQueue(world.clock)

        def add(name, priority=0, **more):
            queue.add(pod_info(cache, pod(name, priority=priority)), gated=more.get("gated", False))

        return await test(world, queue, add)

    return run_virtual(main)


async def names(queue, count):
    return [(await queue.pop()).pod.name for _ in range(count)]


def seconds(world):
    return world.clock.monotonic_ns() / 1e9


def test_the_higher_priority_is_first_and_then_who_came_first():
    async def test(world, queue, add):
        for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
            add(name, priority)
        assert await names(queue, 4) == ["b", "d", "a", "c"]

    queued(test)


def test_an_event_wakes_only_those_whom_that_plugin_refused():
    async def test(world, queue, add):
        add("room"), add("taint")
        for plugins in (FIT, ("TaintToleration",)):
            queue.unschedulable(await queue.pop(), plugins)
        await world.clock.sleep(30)
        queue.move(("TaintToleration", "NodePorts"))
        assert await names(queue, 1) == ["taint"]
        queue.move(FIT, lambda plugin, info: False)
        queue.move(FIT, lambda plugin, info: info.name == "room")
        assert await names(queue, 1) == ["room"]

    queued(test)


def test_who_was_looked_at_a_moment_ago_comes_after_the_others_but_is_not_kept_waiting_for_nothing():
    async def test(world, queue, add):
        add("again", 100)
        queue.unschedulable(await queue.pop(), FIT)
        queue.move(FIT)
        add("new")
        assert await names(queue, 2) == ["new", "again"]
        assert seconds(world) == 0.0

    queued(test)


@pytest.mark.parametrize(("failures", "wait"), [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (9, 10.0)])
def test_what_went_wrong_is_tried_again_after_a_back_off_that_grows(failures, wait):
    async def test(world, queue, add):
        add("p")
        for _ in range(failures):
            started = seconds(world)
            queue.failed(await queue.pop())
            started = seconds(world)
        entry = await queue.pop()
        assert (entry.pod.name, round(seconds(world) - started, 3)) == ("p", wait)

    queued(test)


def test_nobody_waits_for_an_event_for_more_than_five_and_a_half_minutes():
    async def test(world, queue, add):
        add("p")
        queue.unschedulable(await queue.pop(), FIT)
        await queue.pop()
        assert 300 < seconds(world) <= 330

    queued(test)


def test_a_gated_pod_has_no_turn():
    async def test(world, queue, add):
        add("gated", 100, gated=True), add("p")
        assert await names(queue, 1) == ["p"]
        entry = queue.get("gated")
        queue.update(entry.pod, gated=True, matters=True)
        queue.move(FIT)
        add("q")
        assert await names(queue, 1) == ["q"]
        queue.update(entry.pod, gated=False, matters=True)
        assert await names(queue, 1) == ["gated"]

    queued(test)


def test_a_deleted_pod_leaves_every_place():
    async def test(world, queue, add):
        for name in ("active", "waiting", "woken", "wrong"):
            add(name, 1)
        entries = {entry.pod.name: entry for entry in [await queue.pop() for _ in range(4)]}
        queue.unschedulable(entries["waiting"], FIT)
        queue.unschedulable(entries["woken"], ("NodePorts",))
        queue.failed(entries["wrong"])
        queue.move(("NodePorts",))
        for name in entries:
            queue.delete(name)
        queue.failed(entries["active"])
        queue.unschedulable(entries["active"], FIT)
        assert len(queue) == 0
        queue.move(FIT)
        add("last")
        assert await names(queue, 1) == ["last"]

    queued(test)
