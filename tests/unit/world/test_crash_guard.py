"""The guard around a turn: what it catches, counts, tells and lets through."""

import asyncio
import itertools

import pytest

from lastcall.world import crash_guard
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


class Stamps:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic_ns(self) -> int:
        return int(self.seconds * 1e9)

    def wall_ns(self) -> int:
        return 1_000_000_000 + self.monotonic_ns()


def fail(text: str = "broken") -> None:
    raise ValueError(text)


def test_an_error_passes_where_no_wall_stands() -> None:
    with pytest.raises(ValueError, match="broken"), crash_guard.Turn("worker", "default/a"):
        fail()
    try:
        fail()
    except ValueError as error:
        with pytest.raises(ValueError, match="broken"):
            crash_guard.caught("worker", "default/a", error)


def test_a_wall_catches_counts_and_tells_the_object() -> None:
    said: list[str] = []
    told: list[tuple[str, str, int]] = []
    clock = Stamps()
    faults = crash_guard.Faults(
        lambda fault: told.append((fault.component, fault.key, fault.untold)), said.append, clock
    )
    with crash_guard.installed(faults):
        with crash_guard.Turn("worker", "default/a") as turn:
            fail()
        assert isinstance(turn.error, ValueError)
        with crash_guard.Turn("worker", "default/b") as turn:
            pass
        assert turn.error is None
    (fault,) = faults.all()
    assert (fault.count, fault.error, fault.at_ns) == (1, "ValueError: broken", 1_000_000_000)
    assert told == [("worker", "default/a", 1)]
    assert "worker: default/a" in said[0] and "Traceback" in said[0] and "in fail" in said[0]
    assert faults.total == 1 and faults.of("worker", "default/b") == []


def test_cancellation_passes_a_wall() -> None:
    async def main(world: World) -> None:
        with crash_guard.installed() as faults:
            task = asyncio.ensure_future(crash_guard.guarded("worker", "a", asyncio.sleep(10)))  # virtual time
            await asyncio.sleep(1)  # virtual time
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert faults.total == 0

    run_virtual(main)


def test_an_object_that_fails_for_ever_does_not_flood_the_log() -> None:
    said: list[str] = []
    times: list[int] = []
    clock = Stamps()
    faults = crash_guard.Faults(lambda fault: times.append(fault.untold), said.append, clock)
    for _ in range(3600):
        clock.seconds += 1
        faults.add("prober", "default/a", ValueError("x"))
    assert len(said) <= crash_guard.REPORTED_EACH_TIME + 3600 / crash_guard.QUIET_SECONDS
    assert faults.of("prober")[0].count == 3600
    assert sum(times) + faults.of("prober")[0].untold == 3600, "who adds up what is told loses nothing"


def test_many_bad_objects_do_not_flood_the_log_and_the_table_is_bounded() -> None:
    said: list[str] = []
    faults = crash_guard.Faults(say=said.append, clock=Stamps())
    for number in range(10_000):
        faults.add("informer pods", f"default/{number}", ValueError("x"))
    assert len(said) == crash_guard.MOST_REPORTED
    assert len(faults.all()) == crash_guard.MOST_FAULTS and faults.total == 10_000
    assert faults.all()[-1].key == "default/9999"


def test_a_text_that_cannot_be_made_or_is_endless_is_no_fault_of_its_own() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert crash_guard.text_of(Mute()) == "Mute: its text cannot be made"
    assert crash_guard.text_of(ValueError("a\nb " * 1000)).startswith("ValueError: a b a b")
    assert len(crash_guard.text_of(ValueError("a\nb " * 1000))) <= crash_guard.MOST_TEXT
    assert crash_guard.text_of(ExceptionGroup("group", [KeyError("a")])) == "KeyError: 'a'"

    def refuse(fault: crash_guard.Fault) -> None:
        raise OSError("the ring is gone")

    faults = crash_guard.Faults(refuse, clock=Stamps())
    faults.add("a", "b", ValueError())
    assert faults.total == 1


def test_every_turn_is_told_to_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[tuple[str, str]] = []
    monkeypatch.setattr(crash_guard, "on_turn", lambda component, key: turns.append((component, key)))
    with crash_guard.Turn("worker", "default/a"):
        assert turns == [("worker", "default/a")]
    with crash_guard.installed(), crash_guard.Turn("worker", "default/b"):
        fail()
    assert turns == [("worker", "default/a"), ("worker", "default/b")]


def test_a_loop_that_fails_runs_again_and_waits_longer_each_time() -> None:
    async def main(world: World) -> list[float]:
        started: list[float] = []

        async def run() -> None:
            started.append(world.clock.monotonic_ns() / 1e9)
            if len(started) == 5:
                await world.clock.sleep(2 * crash_guard.MAX_DELAY)
            if len(started) < 7:
                fail()

        with crash_guard.installed() as faults:
            await crash_guard.keep_running("loop", run, world.clock)
        assert faults.of("loop", "")[0].count == 6
        return [round(after - before, 3) for before, after in itertools.pairwise(started)]

    assert run_virtual(main) == [0.1, 0.2, 0.4, 0.8, 2 * crash_guard.MAX_DELAY + 0.1, 0.2]


def test_a_loop_that_fails_is_seen_where_no_wall_stands() -> None:
    async def main(world: World) -> None:
        async def run() -> None:
            fail()

        await crash_guard.keep_running("loop", run, world.clock)

    with pytest.raises(ValueError, match="broken"):
        run_virtual(main)
