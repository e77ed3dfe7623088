"""The two helpers by which tests wait (tests/support/waiting.py)."""

import pytest
import waiting
from waiting import eventually, until

from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def test_the_first_true_answer_is_returned() -> None:
    answers = iter(["", 0, "yes", "later"])
    assert eventually(lambda: next(answers), pause=0) == "yes"


def test_what_never_comes_fails_with_what_was_said() -> None:
    with pytest.raises(AssertionError, match="timed out after 0 s: the Pod is Ready: it is Pending"):
        eventually(lambda: False, "the Pod is Ready", 0, said=lambda: "it is Pending")


def test_in_virtual_time_a_condition_may_be_asynchronous_and_hours_cost_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 1.0)

    async def main(world: World) -> float:
        async def an_hour_later() -> bool:
            return world.clock.monotonic_ns() >= 3600 * 10**9

        await until(an_hour_later, seconds=4000, pause=10)
        with pytest.raises(AssertionError, match="timed out after 60 s: never"):
            await until(lambda: False, "never", 60, pause=10)
        return world.clock.monotonic_ns() / 1e9

    assert run_virtual(main) == pytest.approx(3660)
