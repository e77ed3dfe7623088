"""When freed memory goes back to the kernel."""

import pytest

from lastcall.world import heap, linux
from lastcall.world.heap import WORTH_BYTES, give_back_free_heap
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def trims(monkeypatch: pytest.MonkeyPatch, free: list[int | None]) -> list[int]:
    """At which of the moments, each with so many free bytes, the heap is trimmed; None ends it."""
    trimmed: list[int] = []
    moments = iter(enumerate(free))
    now = [0, free[0]]

    def look() -> int | None:
        return now[1]

    class Clock:
        async def sleep(self, seconds: float) -> None:
            assert seconds == heap.LOOK_SECONDS
            now[:] = next(moments)

    async def main(world: World) -> None:
        now[:] = next(moments)
        await give_back_free_heap(World(clock=Clock(), random=world.random))

    monkeypatch.setattr(linux, "free_heap_bytes", look)
    monkeypatch.setattr(linux, "malloc_trim", lambda: trimmed.append(now[0]))
    run_virtual(main)
    return trimmed


def test_memory_goes_back_when_much_was_freed_and_not_again_for_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    much = 4 * WORTH_BYTES
    assert trims(monkeypatch, [0, WORTH_BYTES - 1, much, much, much + WORTH_BYTES - 1, None]) == [2]


def test_memory_that_was_used_and_freed_once_more_goes_back_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    much = 4 * WORTH_BYTES
    assert trims(monkeypatch, [much, 0, much, None]) == [0, 2]


def test_nothing_is_done_where_libc_does_not_say_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    assert trims(monkeypatch, [None]) == []


def test_libc_s_calls_answer() -> None:
    free = linux.free_heap_bytes()
    assert free is None or free >= 0
    linux.malloc_trim()
