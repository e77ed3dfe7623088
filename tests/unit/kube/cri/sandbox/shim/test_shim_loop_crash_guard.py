"""The shim's loop: a callback that raises does not take the containers along."""

import os
import time

import pytest

from lastcall.kube.cri.sandbox.shim.loop import Loop
from lastcall.world import crash_guard


def run_for(loop: Loop, seconds: float) -> int:
    """How often the loop turned."""
    over: list[bool] = []
    loop.call_later(seconds, lambda: over.append(True))
    turns = 0
    while not over:
        loop.run_once()
        turns += 1
    return turns


def test_a_callback_that_raises_rests_longer_each_time_and_the_others_go_on() -> None:
    loop = Loop()
    bad, bad_end = os.pipe()
    good, good_end = os.pipe()
    os.write(bad_end, b"x")  # ready forever, for nobody reads it
    os.write(good_end, b"x")
    calls: list[float] = []
    read: list[bytes] = []

    def fail(events: int) -> None:
        calls.append(time.monotonic())
        raise KeyError("a spec that nobody thought of")

    loop.watch(bad, fail)
    loop.watch(good, lambda events: read.append(os.read(good, 1)))
    with crash_guard.installed() as faults:
        turns = run_for(loop, 0.4)
        os.write(good_end, b"y")
        run_for(loop, 0.01)
    assert read == [b"x", b"y"]
    assert 2 <= len(calls) <= 8 and turns < 30, "no busy loop"
    assert faults.total == len(calls)
    loop.unwatch(bad)  # also while it rests
    loop.watch(bad, lambda events: read.append(os.read(bad, 1)))
    run_for(loop, 0.01)
    assert read[-1] == b"x", "who watches it anew is called at once"
    for fd in (bad, bad_end, good, good_end):
        os.close(fd)


def test_a_timer_that_raises_ends_only_itself() -> None:
    loop = Loop()
    rung: list[int] = []

    def fail() -> None:
        raise ZeroDivisionError

    with crash_guard.installed() as faults:
        loop.call_later(0.0, fail)
        loop.call_later(0.0, lambda: rung.append(1))
        run_for(loop, 0.01)
    assert rung == [1] and faults.of("shim timer")[0].error == "ZeroDivisionError"


def test_without_walls_it_is_seen() -> None:
    loop = Loop()

    def fail() -> None:
        raise ZeroDivisionError

    loop.call_later(0.0, fail)
    with pytest.raises(ZeroDivisionError):
        loop.run_once()
