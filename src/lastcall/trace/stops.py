"""How a node stops a container, concluded from what the API shows of it. Pure.

The kubelet's Event Killing is written when it begins to stop a container: right after it come the preStop hook, and the
stop signal when the hook is over, at once without one. A hook's end is known when it failed (an Event says so) and for
`sleep`, whose length is in the spec, or when a node's agent saw its process end. Of any other hook neither its end
nor the stop signal's time is known.

Source: kuberuntime_container.go:killContainer, executePreStopHook; pod_termination_order.go (sidecars).
"""

# check: pure

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lastcall.records import kinds, rules
from lastcall.trace.drafts import Draft, draft
from lastcall.trace.stamps import SECOND
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.kubelet_end import Killing, PreStopFinished, PreStopStarted, StopRequested
    from lastcall.records.definitions.runtime import SignalSent


MINIMUM_GRACE = 2
"""`minimumGracePeriodInSeconds`."""
SLACK_NS = 1_300_000_000
"""Ends of containers are known to a second, and a kubelet's status comes a moment later."""
WITH_IT_NS = 60_000_000
"""Processes that a kernel ends with PID 1 end within this time before or after it."""


HOOK_SLACK_NS = 300_000_000
"""Killing and FailedPreStopHook come by the same way, one about as late as the other."""


END_REPORTED_NS = 3 * SECOND
"""A container's end is in the Pod's status so soon."""
SAME_NS = 600_000_000
"""An exit is placed in the middle of its second, and an Event comes a moment late."""


@dataclass(frozen=True, slots=True)
class Stop:
    """What is known of one container's stop. Times are of our monotonic clock, None for what is not known.

    `killing` is when the Event came; `grace` the seconds for hook and stop signal together; `handler`, `detail` and
    `sleep` (seconds, None for another handler) are the preStop hook's, `hook_ended` and `hook_code` when a node saw its
    process end, and with which exit code; `turn` is when the containers that a sidecar
    waits for had ended. `signal` is the stop signal, where the API has it.
    """

    container: str
    killing: int | None = None
    message: str = ""
    reason: str = ""
    grace: int = 0
    handler: str = ""
    detail: str = ""
    sleep: int | None = None
    hook_failed: int | None = None
    hook_message: str = ""
    hook_ended: int | None = None
    hook_code: int = 0
    waits_for_turn: bool = False
    turn: int | None = None
    signal: str = "SIGTERM"
    exited: int | None = None
    exit_code: int | None = None
    oom: bool = False


def stop_steps(stop: Stop, now: int) -> Iterator[Draft]:
    """Yield the steps so far, in order, each with its time. The same question later gives the same steps and more."""
    if stop.killing is None:
        return
    name = stop.container
    killing: Killing = {"message": stop.message, "gracePeriodSeconds": stop.grace}
    if stop.reason:
        killing["reason"] = stop.reason
    yield _step(kinds.KILLING, killing, name, stop.killing, rules.KILL_CONTAINER)
    if stop.handler and stop.grace > 0:
        begun: PreStopStarted = {"handler": stop.handler, "detail": stop.detail, "budgetSeconds": stop.grace}
        yield _step(kinds.PRE_STOP_STARTED, begun, name, stop.killing, rules.EXECUTE_PRE_STOP_HOOK)
        if (end := hook_end(stop, now)) is not None:
            at, finished = end
            step = _step(kinds.PRE_STOP_FINISHED, finished, name, at, rules.EXECUTE_PRE_STOP_HOOK)
            yield replace(step, evidence="observed") if "exitCode" in finished else step
    asked = stop_at(stop, now)
    if asked is None:
        if ended_by_grace(stop, now):
            assert stop.exited is not None
            yield _signal("SIGKILL", "grace over", name, stop.exited)
        return
    requested, timeout = asked
    spent = (requested - stop.killing) // SECOND
    facts: StopRequested = {
        "timeoutSeconds": timeout,
        "floor": stop.grace - spent < MINIMUM_GRACE,
        "deductedSeconds": spent if stop.handler else 0,
    }
    if stop.waits_for_turn and spent:
        facts["waitedForTurnSeconds"] = spent
    yield _step(kinds.STOP_REQUESTED, facts, name, requested, rules.KILL_CONTAINER)
    yield _signal(stop.signal, "StopContainer", name, requested)
    if ended_by_grace(stop, now):
        assert stop.exited is not None
        yield _signal("SIGKILL", "grace over", name, max(requested, min(stop.exited, requested + timeout * SECOND)))


def hook_end(stop: Stop, now: int) -> "tuple[int, PreStopFinished] | None":
    """Return when the hook was over and how; None while that is not known."""
    if stop.killing is None or not stop.handler:
        return None
    if stop.hook_failed is not None and stop.hook_failed >= over(stop) - HOOK_SLACK_NS:
        # Nobody waits for it any more; the Event comes when it ends, with its container.
        return over(stop), {"handler": stop.handler, "outcome": "outlived", "seconds": float(stop.grace)}
    if stop.hook_failed is not None:
        at = stop.hook_failed
        if _may_have_died(stop, now):
            if stop.exited is None:
                return None
            at = max(at, stop.exited + 1)
        seconds = max(0, at - stop.killing) / SECOND
        return at, {
            "handler": stop.handler,
            "outcome": "failed",
            "seconds": seconds,
            "message": stop.hook_message,
        }
    if stop.hook_ended is not None:
        return _seen_end(stop, stop.killing, stop.hook_ended)
    if stop.sleep is None:
        return None
    length = min(stop.sleep, stop.grace)
    end = stop.killing + length * SECOND
    until = stop.exited if stop.exited is not None else now
    if until < end - SLACK_NS or now < end:
        return None  # it was cut short when the container ended, or still sleeps
    outlived = stop.sleep > stop.grace
    return end, {
        "handler": stop.handler,
        "outcome": "outlived" if outlived else "succeeded",
        "seconds": float(length),
    }


def waits_for_time(stop: Stop) -> bool:
    """Return whether a later moment may tell more of it, without any news."""
    return stop.exited is None and (stop.sleep is not None or stop.hook_failed is not None)


def _waits_for_its_end(stop: Stop, now: int) -> bool:
    """Whether it is not known yet how its hook's failure and its own end go together."""
    failed, killing = stop.hook_failed, stop.killing
    late = failed is not None and killing is not None and failed - killing > SECOND
    return late and failed is not None and stop.exited is None and now < failed + END_REPORTED_NS


def over(stop: Stop) -> int:
    """Return when its grace period is over."""
    assert stop.killing is not None
    return stop.killing + stop.grace * SECOND


def _may_have_died(stop: Stop, now: int) -> bool:
    """Whether a hook that failed a while after its start may have failed because its container had ended.

    Its exit is known to a second: what came in the same second may be cause or effect.
    """
    assert stop.killing is not None
    assert stop.hook_failed is not None
    if stop.hook_failed - stop.killing <= SECOND:
        return False
    if stop.exited is None:
        return _waits_for_its_end(stop, now)
    return stop.exited < stop.hook_failed + SAME_NS


def _seen_end(stop: Stop, killing: int, at: int) -> "tuple[int, PreStopFinished] | None":
    """The end of a hook whose process a node saw: a kubelet waits for it no longer than the grace period.

    One that ended with its container did not end by itself: an Event says what became of it.
    """
    over = killing + stop.grace * SECOND
    if at > over:
        return over, {"handler": stop.handler, "outcome": "outlived", "seconds": float(stop.grace)}
    if stop.hook_code and stop.exited is not None and at > stop.exited - WITH_IT_NS:
        return None
    return at, {
        "handler": stop.handler,
        "outcome": "failed" if stop.hook_code else "succeeded",
        "seconds": max(0, at - killing) / SECOND,
        "exitCode": stop.hook_code,
    }


def is_hook(command: Sequence[str], seen: Sequence[str]) -> bool:
    """Return whether a process that began in a container, from outside of it, is its hook, by their arguments.

    `sh -c SCRIPT` may have become the last command of the script when it is seen: shells do without a process for it.
    """
    if not command or not seen:
        return False
    last = len(command) > 2 and command[-2].startswith("-") and command[-2].endswith("c")
    return list(seen) == list(command) or (last and command[-1].rstrip().endswith(" ".join(seen)))


def stop_at(stop: Stop, now: int) -> tuple[int, int] | None:
    """Return (when StopContainer was called, its timeout in seconds); None while that is not known, or never was."""
    if stop.killing is None:
        return None
    at = stop.killing
    if stop.handler and stop.grace > 0:
        end = hook_end(stop, now)
        if end is None or (stop.hook_failed is not None and end[0] < over(stop) and _may_have_died(stop, now)):
            return None
        at = end[0]
    if stop.waits_for_turn:
        if stop.turn is None:
            return None
        at = max(at, stop.turn)
    if stop.exited is not None and stop.exited < at - SLACK_NS:
        return None  # it had ended before its turn came
    return at, max(stop.grace - (at - stop.killing) // SECOND, MINIMUM_GRACE)


def ended_by_grace(stop: Stop, now: int) -> bool:
    """Return whether its exit is that of a SIGKILL at the end of the time that it had."""
    if stop.killing is None or stop.exited is None or stop.exit_code != 137 or stop.oom:
        return False
    asked = stop_at(stop, now)
    over = asked[0] + asked[1] * SECOND if asked is not None else stop.killing + stop.grace * SECOND
    return stop.exited >= over - SLACK_NS


def exit_signal(stop: Stop, now: int) -> str | None:
    """Return the signal that ended it, by its exit code: runtimes report 128 plus the number.

    A process that exits with such a code by itself looks the same. 137 is taken for SIGKILL, and the code of its own
    stop signal for that signal once it was sent.
    """
    if stop.exit_code == 137:
        return "SIGKILL"
    if stop.signal == "SIGTERM" and stop.exit_code == 143 and stop_at(stop, now) is not None:
        return "SIGTERM"
    return None


def ended(stop: Stop, at: int, facts: dict[str, object]) -> Stop:
    """Return the stop with its end, as the facts of ProcessExited tell it."""
    code = facts.get("exitCode")
    return replace(stop, exited=at, exit_code=code if isinstance(code, int) else None, oom=bool(facts.get("oomKilled")))


def _step(kind: str, facts: object, container: str, at: int, rule: rules.Rule) -> Draft:
    return Draft(kind, facts, "kubelet", container, rule, "inferred", at_ns=at)  # type: ignore[arg-type]


def _signal(signal: str, why: str, container: str, at: int) -> Draft:
    facts: SignalSent = {"signal": signal, "why": why}
    return draft(kinds.SIGNAL_SENT, facts, "runtime", container=container, evidence="inferred", at_ns=at)
