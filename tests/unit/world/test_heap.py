"""When freed memory goes back to the kernel."""

import pytest

from lastcall.world import heap, memory
from lastcall.world.heap import give_back_free_heap
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

MB = 1 << 20


def trims(monkeypatch: pytest.MonkeyPatch, moments: list[tuple[int | None, int]], given_back: int = 0) -> list[int]:
    """Return the numbers of the moments at which the heap is trimmed.

    A moment is (MB that malloc calls free, resident MB); None ends it. A trim gives `given_back` MB back.
    """
    trimmed: list[int] = []
    now = [-1]

    class Clock:
        async def sleep(self, seconds: float) -> None:
            assert seconds == heap.LOOK_SECONDS
            now[0] += 1

    def free() -> int | None:
        size = moments[now[0]][0]
        return None if size is None else size * MB

    def resident() -> int:
        back = given_back if trimmed and trimmed[-1] == now[0] else 0
        return (moments[now[0]][1] - back) * MB

    async def main(world: World) -> None:
        now[0] = 0
        await give_back_free_heap(World(clock=Clock(), random=world.random))

    monkeypatch.setattr(memory, "free_heap_bytes", free)
    monkeypatch.setattr(heap, "resident_bytes", resident)
    monkeypatch.setattr(memory, "malloc_trim", lambda: trimmed.append(now[0]))
    run_virtual(main)
    return trimmed


def test_memory_goes_back_when_much_was_freed_and_not_again_for_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [(1, 60), (2, 150), (80, 150), (80, 72), (80, 79), (None, 0)]
    assert trims(monkeypatch, moments, given_back=78) == [2]


def test_memory_that_was_used_and_freed_once_more_goes_back_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [(80, 150), (1, 150), (80, 150), (None, 0)]
    assert trims(monkeypatch, moments, given_back=78) == [0, 2]


def test_memory_goes_back_that_came_and_went_between_two_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [(100, 250), (100, 160), (100, 175), (100, 240), (None, 0)]
    assert trims(monkeypatch, moments, given_back=95) == [0, 2, 3], "as much is free as before, and more is resident"


def test_a_process_that_grows_without_free_memory_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert trims(monkeypatch, [(1, 60), (2, 200), (24, 400), (None, 0)]) == []


def test_what_is_worth_a_walk_grows_with_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert trims(monkeypatch, [(8, 120), (8, 128), (8, 800), (50, 800), (None, 0)]) == [0, 1, 3]


def test_nothing_is_done_where_libc_does_not_say_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    assert trims(monkeypatch, [(None, 0)]) == []


def test_libc_s_calls_answer() -> None:
    free = memory.free_heap_bytes()
    assert free is None or free >= 0
    memory.malloc_trim()
