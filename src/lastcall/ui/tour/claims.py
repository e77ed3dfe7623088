"""What the tour's texts claim, compared with what happened: one function for each claim. Pure.

A claim answers None for as long as what it needs has not been seen, else whether it held, and the values that the page
shows beside the text. Seconds count from the DELETE.
"""

# check: pure

from collections.abc import Callable, Mapping
from typing import Any

from lastcall.endings import Ending, is_ongoing
from lastcall.records import kinds
from lastcall.ui.tour.seen import Seen
from lastcall.world.dataclass import dataclass

NEAR = 0.9
"""Seconds by which a time may differ from what a rule says, on a machine that is busy."""


@dataclass(frozen=True, slots=True)
class Found:
    held: bool
    values: Mapping[str, Any]


Claim = Callable[[Seen], Found | None]


def near(value: float, wanted: float) -> bool:
    """Return whether it is not earlier than a rule says, and not much later."""
    return wanted - 0.1 <= value <= wanted + NEAR


# -- the DELETE -----------------------------------------------------------------------------------------------------


def accepted(seen: Seen) -> Found | None:
    """Check that the answer comes long before the Pod is gone."""
    gone, answer = seen.ending.gone, seen.answers[0] if seen.answers else None
    if gone is None or answer is None:
        return None
    return Found(answer.code < 300 and answer.seconds < gone, {"answer": answer.seconds, "gone": gone})


def marked(seen: Seen) -> Found | None:
    """Check that the object has deletionTimestamp and deletionGracePeriodSeconds, its own grace period."""
    answer = seen.answers[0] if seen.answers else None
    if answer is None or answer.marked is None:
        return None
    at, grace = answer.marked
    own = _own_grace(seen)
    return Found(grace == own, {"at": at, "grace": grace, "own": own})


def asked_for(seen: Seen) -> Found | None:
    """Check that the DELETE's grace period counts, not the Pod's."""
    answer, main = seen.answers[0] if seen.answers else None, seen.main
    if answer is None or answer.marked is None or main is None or main.stop.kill_at is None:
        return None
    used = answer.marked[1]
    held = used != _own_grace(seen) and near(main.stop.kill_at, used)
    return Found(held, {"own": _own_grace(seen), "used": used, "kill": main.stop.kill_at})


def shortened(seen: Seen) -> Found | None:
    """Check that a later DELETE with less time counts, and one with more changes nothing."""
    graces = [each.marked[1] for each in seen.answers if each.marked is not None]
    if len(graces) < 3 or seen.at(kinds.GRACE_SHORTENED) is None:
        return None
    values = dict(zip(("first", "second", "third"), graces, strict=False))
    return Found(graces[1] < graces[0] and graces[2] == graces[1], values)


def not_interrupted(seen: Seen) -> Found | None:
    """Check that a stop under way keeps the time with which it began."""
    answer, main = seen.answers[0] if seen.answers else None, seen.main
    if answer is None or answer.marked is None or main is None or main.stop.kill_at is None:
        return None
    return Found(near(main.stop.kill_at, answer.marked[1]), {"kill": main.stop.kill_at})


def removed_at_once(seen: Seen) -> Found | None:
    """Check that nothing has to be stopped: no grace period, gone with the answer."""
    removed = seen.at(kinds.OBJECT_REMOVED)
    if removed is None:
        return None
    signalled = bool(seen.ending.signals)
    values = {"gone": removed, "node": seen.ending.pod.node or "-", "phase": seen.ending.pod.phase or "-"}
    return Found(removed < 0.5 and not signalled, values)


# -- two branches ---------------------------------------------------------------------------------------------------


def branches(seen: Seen) -> Found | None:
    """Check that kubelet and endpoint controller begin at the same time, from the same object."""
    kubelet, slice_ = seen.at(kinds.TERMINATION_OBSERVED), seen.at(kinds.ENDPOINT_CHANGED)
    if kubelet is None or slice_ is None:
        return None
    exited = seen.exited
    held = abs(kubelet - slice_) < NEAR and (exited is None or slice_ < exited)
    return Found(held, {"kubelet": kubelet, "slice": slice_})


def not_ready(seen: Seen) -> Found | None:
    """Check that the endpoint is not ready as soon as it is terminating."""
    change = next((each for each in seen.ending.endpoints if each.at >= 0), None)
    if change is None:
        return None
    words = {True: "true", False: "false", None: "-"}
    return Found(
        change.ready is False and change.terminating is not False,
        {
            "ready": words[change.ready],
            "serving": words[change.serving],
            "terminating": words[change.terminating],
            "at": change.at,
        },
    )


def proxies(seen: Seen) -> Found | None:
    """Check that the proxy of each node writes its rules by itself, after the slice has changed."""
    slice_, rules = seen.at(kinds.ENDPOINT_CHANGED), seen.rules
    if slice_ is None or rules is None:
        return None
    nodes = {
        str(each.facts_as(kinds.ENDPOINT_RULES_WRITTEN).get("node"))
        for each in seen.ending.entries
        if each.record.kind == kinds.ENDPOINT_RULES_WRITTEN and each.at >= 0
    }
    return Found(rules >= slice_, {"slice": slice_, "rules": rules, "nodes": ", ".join(sorted(nodes))})


def race(seen: Seen) -> Found | None:
    """Check that the stop signal does not wait for the proxies.

    Which of exit and rules comes first is chance, and not claimed.
    """
    main, rules = seen.main, seen.rules
    if main is None or main.exit.at is None or main.stop.signal_at is None or rules is None:
        return None
    return Found(
        main.stop.signal_at < rules + NEAR, {"term": main.stop.signal_at, "exit": main.exit.at, "rules": rules}
    )


def head_start(seen: Seen) -> Found | None:
    """Check that with a hook that waits, the rules are written before the stop signal."""
    main, rules = seen.main, seen.rules
    if main is None or main.stop.signal_at is None or rules is None:
        return None
    return Found(rules < main.stop.signal_at, {"rules": rules, "term": main.stop.signal_at})


def replaced(seen: Seen) -> Found | None:
    """Check that the owner makes another Pod while the old one still ends."""
    if seen.replaced is None or seen.ending.gone is None:
        return None
    return Found(seen.replaced < seen.ending.gone, {"made": seen.replaced, "gone": seen.ending.gone})


# -- the kubelet ----------------------------------------------------------------------------------------------------


def worker(seen: Seen) -> Found | None:
    """Check that the kubelet's worker sees the mark, and works with the grace period that it has decided on."""
    observed, decided = seen.at(kinds.TERMINATION_OBSERVED), seen.entry(kinds.GRACE_DECIDED)
    if observed is None or decided is None:
        return None
    grace = decided.facts_as(kinds.GRACE_DECIDED).get("gracePeriodSeconds")
    return Found(observed <= decided.at and grace == _own_grace(seen), {"at": observed, "grace": grace})


def order(seen: Seen) -> Found | None:
    """Check the order: hook, then stop signal, then the exit."""
    main, hook = seen.main, seen.hook
    if main is None or hook is None or hook.started_at is None or hook.finished_at is None:
        return None
    if main.stop.signal_at is None or main.exit.at is None:
        return None
    times = [hook.started_at, hook.finished_at, main.stop.signal_at, main.exit.at]
    return Found(times == sorted(times), dict(zip(("start", "end", "term", "exit"), times, strict=True)))


def parallel(seen: Seen) -> Found | None:
    """Check that every container gets its signal at the same time, and the slowest decides."""
    both = [each for each in seen.ending.containers if each.kind == "container"]
    terms = [each.stop.signal_at for each in both if each.stop.signal_at is not None]
    exits = [each.exit.at for each in both if each.exit.at is not None]
    if len(terms) < 2 or len(exits) < 2:
        return None
    held = max(terms) - min(terms) < NEAR and max(terms) < min(exits)
    return Found(held, {"a": terms[0], "b": terms[1], "exitA": exits[0], "exitB": exits[1]})


def sidecar_last(seen: Seen) -> Found | None:
    """Check that a sidecar's signal comes when the regular containers have ended."""
    main, side = seen.main, next((each for each in seen.ending.containers if each.kind == "sidecar"), None)
    if main is None or side is None or main.exit.at is None or side.stop.signal_at is None:
        return None
    return Found(side.stop.signal_at >= main.exit.at, {"exit": main.exit.at, "term": side.stop.signal_at})


# -- hooks and arithmetic -------------------------------------------------------------------------------------------


def hook_succeeded(seen: Seen) -> Found | None:
    """Check that the hook ran to its end before the signal."""
    main, hook = seen.main, seen.hook
    if main is None or hook is None or hook.finished_at is None or main.stop.signal_at is None:
        return None
    held = hook.outcome == "succeeded" and hook.finished_at <= main.stop.signal_at
    return Found(
        held, {"handler": hook.handler, "took": hook.seconds, "outcome": hook.outcome, "term": main.stop.signal_at}
    )


def hook_failed(seen: Seen) -> Found | None:
    """Check that a hook that fails delays nothing and prevents nothing."""
    main, hook = seen.main, seen.hook
    if (
        main is None
        or hook is None
        or hook.finished_at is None
        or main.stop.signal_at is None
        or main.exit.code is None
    ):
        return None
    held = hook.outcome == "failed" and main.stop.signal_at - hook.finished_at < NEAR and main.exit.code == 0
    return Found(
        held, {"outcome": hook.outcome, "end": hook.finished_at, "term": main.stop.signal_at, "code": main.exit.code}
    )


def hook_counts(seen: Seen) -> Found | None:
    """Check that the hook's time is taken off the grace period.

    SIGKILL comes when that is over, counted from the beginning.
    """
    main, hook, grace = seen.main, seen.hook, seen.ending.grace_seconds
    if main is None or hook is None or main.stop.kill_at is None or main.stop.timeout is None or grace is None:
        return None
    values = {"grace": grace, "hook": hook.seconds, "left": main.stop.timeout, "kill": main.stop.kill_at}
    return Found(near(main.stop.kill_at, grace), values)


def floor(seen: Seen) -> Found | None:
    """Check that the kubelet does not wait for a hook that takes all of the grace period.

    Two seconds are left for the signal.
    """
    main, grace = seen.main, seen.ending.grace_seconds
    if main is None or main.stop.signal_at is None or main.stop.kill_at is None or grace is None:
        return None
    values = {"grace": grace, "term": main.stop.signal_at, "kill": main.stop.kill_at, "left": main.stop.timeout}
    return Found(near(main.stop.signal_at, grace) and near(main.stop.kill_at, grace + 2), values)


def budget(seen: Seen) -> Found | None:
    """Check that hook, drain and what is left are the grace period."""
    parts = seen.ending.budget
    if parts is None or seen.ending.gone is None:
        return None
    held = parts.overrun == 0 and abs(parts.pre_stop + parts.waiting + parts.drain + parts.unused - parts.grace) < 0.01
    return Found(
        held, {"grace": parts.grace, "hook": parts.pre_stop, "drain": parts.drain, "unused": max(0.0, parts.unused)}
    )


def least_second(seen: Seen) -> Found | None:
    """Check that grace period 0 is at least one second for the kubelet."""
    decided = seen.entry(kinds.GRACE_DECIDED)
    main = seen.main
    if decided is None or main is None or main.stop.timeout is None:
        return None
    grace = decided.facts_as(kinds.GRACE_DECIDED).get("gracePeriodSeconds")
    return Found(grace == 1, {"grace": grace, "term": main.stop.signal_at, "exit": main.exit.at})


# -- signals and exit codes -----------------------------------------------------------------------------------------


def signalled_once(seen: Seen) -> Found | None:
    """Check that PID 1 gets one stop signal."""
    sent, entry = [each for each in seen.ending.signals if each.signal == "SIGTERM"], seen.entry(kinds.SIGNAL_SENT)
    if not sent or seen.exited is None or entry is None:
        return None
    pid = entry.facts_as(kinds.SIGNAL_SENT).get("containerPid")
    return Found(len(sent) == 1 and pid == 1, {"count": len(sent), "pid": pid or "-", "at": sent[0].at})


def not_noticed(seen: Seen) -> Found | None:
    """Check that PID 1 without a handler goes on as if nothing had been sent."""
    main = seen.main
    if main is None or main.stop.signal_at is None or main.exit.at is None:
        return None
    held = main.exit.sigkilled and main.process.disposition != "handled"
    return Found(held, {"how": main.process.disposition or "?", "more": main.exit.at - main.stop.signal_at})


def killed(seen: Seen) -> Found | None:
    """Check that SIGKILL comes when the grace period is over."""
    main, grace = seen.main, seen.ending.grace_seconds
    if main is None or main.stop.kill_at is None or grace is None or main.exit.code is None:
        return None
    return Found(near(main.stop.kill_at, grace), {"kill": main.stop.kill_at, "grace": grace, "code": main.exit.code})


def ended_with(code: int) -> Claim:
    """Return the claim that its exit code is this one."""

    def claim(seen: Seen) -> Found | None:
        main = seen.main
        if main is None or main.exit.code is None:
            return None
        return Found(main.exit.code == code, {"code": main.exit.code, "reason": main.exit.reason or "-"})

    return claim


def not_restarted(seen: Seen) -> Found | None:
    """Check that, whatever it exits with, it is not started again, though its restartPolicy is Always."""
    main = seen.main
    if main is None or main.exit.code is None or seen.ending.gone is None:
        return None
    started = seen.at(kinds.CONTAINER_STARTED)
    return Found(started is None and main.exit.code == 3, {"code": main.exit.code, "policy": _policy(seen)})


def phase(seen: Seen) -> Found | None:
    """Check that the last phase is Succeeded or Failed."""
    removed = seen.at(kinds.OBJECT_REMOVED)
    written = [
        str(each.facts_as(kinds.POD_STATUS_WRITTEN).get("phase"))
        for each in seen.ending.entries
        if each.record.kind == kinds.POD_STATUS_WRITTEN
    ]
    if removed is None or not written:
        return None
    return Found(written[-1] in ("Succeeded", "Failed"), {"phase": written[-1]})


# -- the object -----------------------------------------------------------------------------------------------------


def final_delete(seen: Seen) -> Found | None:
    """Check that the kubelet's own DELETE comes after the last exit, and removes the object."""
    exited, sent, removed = seen.exited, seen.at(kinds.FINAL_DELETE_SENT), seen.at(kinds.OBJECT_REMOVED)
    if exited is None or sent is None or removed is None:
        return None
    return Found(exited <= sent <= removed, {"exit": exited, "sent": sent, "removed": removed})


def held(seen: Seen) -> Found | None:
    """Check that with a finalizer the object stays when all has ended, until the finalizer is removed."""
    exited, began, removed = seen.exited, seen.at(kinds.HELD_BY_FINALIZERS), seen.at(kinds.OBJECT_REMOVED)
    if exited is None or began is None or removed is None:
        return None
    return Found(exited <= began < removed, {"exit": exited, "held": began, "removed": removed})


def forced(seen: Seen) -> Found | None:
    """Check that the object is gone before the process."""
    removed, exited = seen.at(kinds.OBJECT_REMOVED), seen.exited
    if removed is None or exited is None:
        return None
    return Found(removed < exited, {"removed": removed, "exit": exited})


def refused(seen: Seen) -> Found | None:
    """Check that the budget refuses the first eviction with 429, and that without it the next one is taken."""
    codes = [each.code for each in seen.answers if each.what == "evict"]
    if len(codes) < 2:
        return None
    return Found(codes[0] == 429 and codes[1] < 300, {"first": codes[0], "second": codes[1]})


def as_deleted(seen: Seen) -> Found | None:
    """Check that from there on it is the same end: signal, drain, exit 0."""
    main = seen.main
    if main is None or main.stop.signal_at is None or main.exit.at is None or main.exit.code is None:
        return None
    return Found(main.exit.code == 0, {"term": main.stop.signal_at, "exit": main.exit.at, "code": main.exit.code})


CLAIMS: Mapping[str, Claim] = {
    "accepted": accepted,
    "marked": marked,
    "askedFor": asked_for,
    "shortened": shortened,
    "notInterrupted": not_interrupted,
    "removedAtOnce": removed_at_once,
    "branches": branches,
    "notReady": not_ready,
    "proxies": proxies,
    "race": race,
    "headStart": head_start,
    "replaced": replaced,
    "worker": worker,
    "order": order,
    "parallel": parallel,
    "sidecarLast": sidecar_last,
    "hookSucceeded": hook_succeeded,
    "hookFailed": hook_failed,
    "hookCounts": hook_counts,
    "floor": floor,
    "budget": budget,
    "leastSecond": least_second,
    "signalledOnce": signalled_once,
    "notNoticed": not_noticed,
    "killed": killed,
    "code0": ended_with(0),
    "code137": ended_with(137),
    "code143": ended_with(143),
    "notRestarted": not_restarted,
    "phase": phase,
    "finalDelete": final_delete,
    "held": held,
    "forced": forced,
    "refused": refused,
    "asDeleted": as_deleted,
}
"""The steps of the lesson name them (`ui/src/tour.json`)."""


def checked(seen: Seen | None, whole: bool) -> dict[str, dict[str, Any]]:
    """Return claim → whether it holds (None: not seen yet) and its values. `whole`: no more records will come."""
    found: dict[str, dict[str, Any]] = {}
    for name, claim in CLAIMS.items():
        checked_claim = claim(seen) if seen is not None else None
        if checked_claim is not None:
            found[name] = {"held": checked_claim.held, "values": dict(checked_claim.values)}
        elif whole:
            found[name] = {"held": None, "values": {}}
    return found


def is_over(ending: Ending) -> bool:
    """Return whether the object is gone and the node has nothing left to do."""
    finished = any(each.record.kind == kinds.WORKER_FINISHED for each in ending.entries)
    on_node = any(each.started for each in ending.containers)
    return ending.gone is not None and (finished or not on_node) and not is_ongoing(ending)


def _own_grace(seen: Seen) -> int:
    return int((seen.pod.get("spec") or {}).get("terminationGracePeriodSeconds") or 0)


def _policy(seen: Seen) -> str:
    return str((seen.pod.get("spec") or {}).get("restartPolicy") or "Always")
