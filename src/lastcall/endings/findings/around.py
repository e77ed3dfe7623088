"""Findings about what surrounds a Pod's containers: its node, its Job, a hook's command, a reload. Pure."""

# check: pure

import posixpath
import re
from collections.abc import Iterator

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.story import ContainerEnding, Ending, Finding, PreStop
from lastcall.records import kinds
from lastcall.records.hook_text import hook_failure
from lastcall.records.said import Said, fact_of, tell

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit codes of a shell for a program that is not there, and for one that may not be executed."""

_EVICTED = "the kubelet evicted it: "

UNSEEN_SECONDS = 5.0
"""A kubelet that lives sees a DELETE at once."""

_SLEEP = re.compile(r"(?:\A|[ /;&])sleep +(?P<seconds>\d+)")


def around(ending: Ending) -> Iterator[Finding]:
    """What is told of the Pod as a whole."""
    yield from _node_pressure(ending)
    yield from _node_shutdown(ending)
    yield from _node_unreachable(ending)
    yield from _sidecar_holds_job(ending)


def _node_pressure(ending: Ending) -> Iterator[Finding]:
    by = ending.decided_by
    if by is None or by.reason not in ("nodePressure", "localStorage"):
        return
    why = _without_its_beginning(by.why)
    what = "ephemeral-storage" if "ephemeral-storage" in why or by.reason == "localStorage" else "memory"
    yield Finding("nodePressure", "problem", said("nodePressure", why=why), advice=fix("nodePressure", what=what))


def _without_its_beginning(why: str) -> str:
    """Of an eviction, as `causes/decided.py` tells it."""
    if not why.startswith(_EVICTED):
        return why
    return fact_of(why, "why") if isinstance(why, Said) else why.removeprefix(_EVICTED).rstrip(".")


def _node_shutdown(ending: Ending) -> Iterator[Finding]:
    """Only where the time that the node gave was what killed it."""
    by = ending.decided_by
    if by is None or by.reason != "nodeShutdown":
        return
    chain = [e for e in ending.entries if e.record.id in by.chain and e.record.kind == kinds.DELETION_DECIDED]
    facts = next((told for told in (e.told(kinds.DELETION_DECIDED) for e in chain) if "priority" in told), None)
    given = facts.get("gracePeriodSeconds") if facts is not None else None
    wanted = facts.get("ownGracePeriodSeconds") if facts is not None else None
    killed = [c.name for c in ending.containers if c.exit.sigkilled and c.stop.kill_at is not None]
    if not killed or not isinstance(given, int) or not isinstance(wanted, int) or given >= wanted:
        return
    text = said("nodeShutdown", given=given, wanted=wanted, names=", ".join(killed))
    yield Finding("nodeShutdown", "problem", text, advice=fix("nodeShutdown", given=given, wanted=wanted))


def _node_unreachable(ending: Ending) -> Iterator[Finding]:
    """Deleted, and no kubelet has looked at it.

    Through the API alone nobody sees that a kubelet looks: there it takes a node that is not Ready, or gone.
    """
    seen = (kinds.TERMINATION_OBSERVED, kinds.OBJECT_REMOVED, kinds.PROCESS_EXITED, kinds.NOT_SHOWN)
    accepted = any(e.record.kind == kinds.DELETE_ACCEPTED for e in ending.entries)
    bound = any(e.record.kind in (kinds.POD_BOUND, kinds.POD_ADMITTED) for e in ending.entries)
    if not accepted or not bound or ending.gone is not None:
        return
    if any(e.record.kind in seen for e in ending.entries) and not _node_is_lost(ending):
        return
    by, pod = ending.decided_by, ending.pod
    last = max((e.at for e in ending.entries), default=0.0)
    if by is None or (by.reason != "tainted" and last < UNSEEN_SECONDS):
        return
    node = pod.node or tell("that it runs on")
    text = said("nodeUnreachable", pod=pod.name, seconds=f"{last:.0f}", why=by.why, node=node)
    yield Finding("nodeUnreachable", "problem", text, advice=fix("nodeUnreachable", node=node))


def _node_is_lost(ending: Ending) -> bool:
    """By the last look at its node, and nothing had ended before that."""
    states = [e for e in ending.entries if e.record.kind == kinds.NODE_STATE_SEEN]
    if not states or any(e.record.kind == kinds.PROCESS_EXITED and e.at >= 0 for e in ending.entries):
        return False
    state = states[-1].told(kinds.NODE_STATE_SEEN)
    return bool(state.get("gone")) or state.get("ready") is not True


def _sidecar_holds_job(ending: Ending) -> Iterator[Finding]:
    by = ending.decided_by
    if by is None or by.owner_kind != "Job":
        return
    started = [c for c in ending.containers if c.kind == "container" and c.started]
    done = [c for c in started if c.exit.before_delete]
    left = [c for c in started if not c.exit.before_delete]
    if not done or not left or any(c.exit.code != 0 for c in done):
        return
    before = min(-(c.exit.at or 0.0) for c in done)
    names = {"done": ", ".join(c.name for c in done), "left": ", ".join(c.name for c in left)}
    text = said("sidecarHoldsJob", **names, before=tell("$seconds s", seconds=f"{before:.1f}"))
    yield Finding("sidecarHoldsJob", "warning", text, advice=fix("sidecarHoldsJob", left=names["left"]))


def reloads_on_signal(c: ContainerEnding, ending: Ending, version: str) -> Iterator[Finding]:
    """It handles the signal, and at SIGKILL it still listened and all of its children were younger than the signal."""
    left, sockets = c.seen.processes_left, c.seen.sockets
    if (
        not c.exit.sigkilled
        or c.process.disposition != "handled"
        or left is None
        or left.when != "SIGKILL"
        or left.more
    ):
        return
    if not left.processes or not all(each.after_signal for each in left.processes):
        return
    if sockets is None or sockets.at_exit is None or not sockets.at_exit.listeners or sockets.closed:
        return
    name = c.process.command or posixpath.basename(c.process.argv[0] if c.process.argv else c.process.exe)
    names = ", ".join(f"{each.name} (pid {each.container_pid})" for each in left.processes[:4])
    by_name = f" ({name})" if name else ""
    text = said("reloadsOnSignal", container=c.name, by_name=by_name, signal=c.stop.signal, names=names)
    variant = "uwsgi" if "uwsgi" in name else ""
    yield Finding("reloadsOnSignal", "problem", text, c.name, fix("reloadsOnSignal", variant, signal=c.stop.signal))


def failed_hook_advice(c: ContainerEnding, hook: PreStop, ending: Ending) -> str:
    """By how it failed, and what it was to do."""
    started = [e.record for e in ending.entries if e.record.kind == kinds.PRE_STOP_STARTED]
    command = next(
        (str(r.told(kinds.PRE_STOP_STARTED).get("detail") or "") for r in reversed(started) if r.container == c.name),
        "",
    )
    missing = hook.exit_code == NOT_FOUND or "executable file not found" in hook_failure(hook.detail)
    missing = missing or "no such file or directory" in hook_failure(hook.detail)
    if hook.handler != "exec":
        return ""
    if missing and (match := _SLEEP.search(command)):
        return fix("hookFailed", "sleep", seconds=match["seconds"])
    if missing:
        return fix("hookFailed", "notFound")
    return fix("hookFailed", "notExecutable" if hook.exit_code == NOT_EXECUTABLE else "")
