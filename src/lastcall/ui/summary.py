"""What a story comes to, beside its picture: the grace budget, how each container ended, a line of facts. Pure."""

# check: pure

from typing import Any

from lastcall.endings import CONTAINER_KINDS, OVERRUN_SECONDS, Budget, ContainerEnding, Ending, is_ongoing, lives_on
from lastcall.endings.render import budget_parts
from lastcall.records.said import joined, tell
from lastcall.records.text import seconds

_BUDGET_WORDS = {
    "preStop": tell("preStop hook"),
    "waiting": tell("waiting for its turn"),
    "drain": tell("drain"),
    "unused": tell("unused"),
    "overrun": tell("over the grace period"),
}
_HOOKS = {
    "succeeded": tell("succeeded"),
    "failed": tell("failed"),
    "outlived": tell("outlived"),
    "interrupted": tell("cut off by the end of its container"),
    "unknown": tell("unknown"),
}
_DISPOSITIONS: dict[str, str] = {
    "handled": tell("handled"),
    "ignored": tell("ignored"),
    "blocked": tell("blocked"),
    "default": tell("default"),
}


def about(ending: Ending) -> str:
    """Return the line of facts: node, grace period, phase, how long it took, uid."""
    said: list[str] = [tell("on $node", node=ending.pod.node)] if ending.pod.node else []
    if ending.grace_seconds is not None:
        said.append(tell("grace period $grace s", grace=ending.grace_seconds))
    if ending.pod.phase:
        said.append(tell("phase $phase", phase=ending.pod.phase))
    if ending.gone is not None:
        said.append(tell("gone $time after the DELETE", time=seconds(ending.gone)))
    if ending.overhead is not None:
        said.append(tell("$time of that neither hook nor drain", time=seconds(ending.overhead)))
    return joined([*said, f"uid {ending.pod.uid}"], " · ")


def budget(found: Budget | None, containers: int) -> dict[str, Any] | None:
    """Return the parts of the grace period; `over` is the share of them that came after it."""
    if found is None:
        return None
    parts = budget_parts(found)
    total = sum(value for _, value in parts) or 1.0
    over = found.overrun / total if found.overrun >= OVERRUN_SECONDS else 0.0
    return {
        "title": tell("Grace period $grace s", grace=f"{found.grace:g}"),
        "of": tell(" of $container, which ended last", container=found.container) if containers > 1 else "",
        "container": found.container,
        "over": round(over, 4),
        "parts": [
            {"kind": name, "words": _BUDGET_WORDS[name], "share": round(value / total, 4), "time": seconds(value)}
            for name, value in parts
        ],
    }


def containers(ending: Ending) -> list[dict[str, Any]]:
    """Return a row for each container: how it ended, after what, its hook, its PID 1."""
    ongoing, lives = is_ongoing(ending), lives_on(ending)
    return [
        {
            "name": each.name,
            "kind": CONTAINER_KINDS.get(each.kind, each.kind),
            "cells": [_ended(each, ongoing, lives), *(_course(each) if each.started else ("", "", ""))],
        }
        for each in ending.containers
    ]


def _ended(c: ContainerEnding, ongoing: bool, lives: bool) -> str:
    if not c.started:
        return tell("not started yet") if lives else tell("never started")
    if c.exit.code is None:
        ended = tell("still runs") if ongoing and not c.exit.elsewhere else tell("not known")
    else:
        ended = tell("exit code $code", code=c.exit.code)
        if c.exit.reason:
            ended = joined([ended, f"({c.exit.reason})"])
    if not c.exit.signal:
        return ended
    by = f": {c.exit.killed_by}" if c.exit.killed_by else ""
    return tell("$end, by $signal$by", end=ended, signal=c.exit.signal, by=by)


def _course(c: ContainerEnding) -> tuple[str, str, str]:
    """After its stop signal, its hook, its PID 1."""
    after = hook = state = ""
    if c.stop.signal_at is not None and c.exit.at is not None and c.exit.at >= c.stop.signal_at:
        after = tell("$time after $signal", time=seconds(c.drain_seconds), signal=c.stop.signal)
    elif c.exit.at is not None and c.exit.at < 0:
        after = tell("$time before the DELETE", time=seconds(-c.exit.at))
    if c.hook is not None and c.hook.outcome == "skipped":
        hook = tell("not run")
    elif c.hook is not None:
        outcome, time = _HOOKS[c.hook.outcome], seconds(c.hook.seconds)
        hook = tell("$handler $outcome, $time", handler=c.hook.handler, outcome=outcome, time=time)
    if c.process.disposition:
        state = joined([c.stop.signal, _DISPOSITIONS.get(c.process.disposition, c.process.disposition)])
    return after, hook, joined([c.process.exe or "", state], ", ")
