"""What is concluded of a container's stop."""

from collections.abc import Iterable

import pytest

from lastcall.trace.drafts import Draft
from lastcall.trace.stamps import SECOND
from lastcall.trace.stops import SLACK_NS, Stop, exit_signal, stop_steps, waits_for_time

LATER = 1000 * SECOND


def told(steps: Iterable[Draft]) -> list[str]:
    return [f"{each.kind} {(each.at_ns or 0) / SECOND:g}" for each in steps]


def stop(**known: object) -> Stop:
    known = {"killing": 0, "message": "Stopping container app", "grace": 10, **known}
    return Stop("app", **known)  # type: ignore[arg-type]


def test_without_an_event_nothing_is_concluded() -> None:
    assert told(stop_steps(stop(killing=None, exited=5 * SECOND, exit_code=137), LATER)) == []


def test_without_a_hook_the_signal_follows_at_once() -> None:
    assert told(stop_steps(stop(), LATER)) == ["Killing 0", "StopRequested 0", "SignalSent 0"]


@pytest.mark.parametrize(
    ("known", "steps"),
    [
        ({"handler": "exec"}, ["Killing 0", "PreStopStarted 0"]),
        ({"handler": "exec", "exited": 4 * SECOND, "exit_code": 0}, ["Killing 0", "PreStopStarted 0"]),
        (
            {"handler": "exec", "hook_failed": 2 * SECOND},
            ["Killing 0", "PreStopStarted 0", "PreStopFinished 2", "StopRequested 2", "SignalSent 2"],
        ),
        (
            {"handler": "sleep", "sleep": 3},
            ["Killing 0", "PreStopStarted 0", "PreStopFinished 3", "StopRequested 3", "SignalSent 3"],
        ),
        ({"handler": "sleep", "sleep": 8, "exited": 1 * SECOND, "exit_code": 0}, ["Killing 0", "PreStopStarted 0"]),
        (
            {"handler": "sleep", "sleep": 30},
            ["Killing 0", "PreStopStarted 0", "PreStopFinished 10", "StopRequested 10", "SignalSent 10"],
        ),
        ({"waits_for_turn": True}, ["Killing 0"]),
        ({"waits_for_turn": True, "turn": 4 * SECOND}, ["Killing 0", "StopRequested 4", "SignalSent 4"]),
    ],
)
def test_a_hook_and_a_turn_are_waited_for(known: dict[str, object], steps: list[str]) -> None:
    assert told(stop_steps(stop(**known), LATER)) == steps


def test_a_hook_that_took_all_leaves_two_seconds() -> None:
    requested = next(s for s in stop_steps(stop(handler="sleep", sleep=30), LATER) if s.kind == "StopRequested")
    assert requested.facts == {"timeoutSeconds": 2, "floor": True, "deductedSeconds": 10}


@pytest.mark.parametrize(
    ("known", "killed"),
    [
        ({"exited": 10 * SECOND, "exit_code": 137}, True),
        ({"exited": 9 * SECOND, "exit_code": 137}, True),  # known to a second
        ({"exited": 10 * SECOND - SLACK_NS, "exit_code": 137}, True),
        ({"exited": 10 * SECOND - SLACK_NS - 1, "exit_code": 137}, False),
        ({"exited": 5 * SECOND, "exit_code": 137}, False),
        ({"exited": 10 * SECOND, "exit_code": 137, "oom": True}, False),
        ({"exited": 10 * SECOND, "exit_code": 1}, False),
        ({"handler": "exec", "exited": 10 * SECOND, "exit_code": 137}, True),
    ],
)
def test_sigkill_is_concluded_only_at_the_end_of_the_grace_period(known: dict[str, object], killed: bool) -> None:
    signals = [step.facts.get("signal") for step in stop_steps(stop(**known), LATER)]
    assert ("SIGKILL" in signals) is killed


def test_an_exit_code_tells_a_signal_only_after_it_was_sent() -> None:
    assert exit_signal(stop(exited=SECOND, exit_code=143), LATER) == "SIGTERM"
    assert exit_signal(stop(handler="exec", exited=SECOND, exit_code=143), LATER) is None
    assert exit_signal(stop(exited=SECOND, exit_code=0), LATER) is None


@pytest.mark.parametrize(
    ("known", "steps"),
    [
        (  # it hangs: its Event comes when its container is dead
            {"handler": "exec", "hook_failed": 12 * SECOND, "exited": 12 * SECOND, "exit_code": 137},
            [
                "Killing 0",
                "PreStopStarted 0",
                "PreStopFinished 10",
                "StopRequested 10",
                "SignalSent 10",
                "SignalSent 12",
            ],
        ),
        (  # it fails at once: that its container ends in the same second is because of its stop signal
            {"handler": "exec", "hook_failed": SECOND // 2, "exited": SECOND // 2, "exit_code": 0},
            ["Killing 0", "PreStopStarted 0", "PreStopFinished 0.5", "StopRequested 0.5", "SignalSent 0.5"],
        ),
        (  # its container ended in the second in which it failed: no stop signal is claimed
            {"handler": "exec", "hook_failed": 4 * SECOND, "exited": 4 * SECOND + 1, "exit_code": 7},
            ["Killing 0", "PreStopStarted 0", "PreStopFinished 4"],
        ),
        (  # its container went on for seconds
            {"handler": "exec", "hook_failed": 4 * SECOND, "exited": 6 * SECOND, "exit_code": 0},
            ["Killing 0", "PreStopStarted 0", "PreStopFinished 4", "StopRequested 4", "SignalSent 4"],
        ),
    ],
)
def test_a_hook_that_failed_may_have_hung_or_died_with_its_container(
    known: dict[str, object], steps: list[str]
) -> None:
    assert told(stop_steps(stop(**known), LATER)) == steps


def test_how_a_late_failure_of_a_hook_and_an_end_go_together_is_waited_for() -> None:
    failed = stop(handler="exec", hook_failed=4 * SECOND)
    assert told(stop_steps(failed, 5 * SECOND)) == ["Killing 0", "PreStopStarted 0"]
    assert waits_for_time(failed)
    assert "StopRequested 4" in told(stop_steps(failed, 8 * SECOND))
