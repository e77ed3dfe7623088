"""Changes of the records on a `Tape`, each as small as a fact of the table of causes allows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lastcall.endings.story import ContainerFacts
from lastcall.records import kinds as k
from lastcall.records.record import Record

Change = Callable[[Any], None]


@dataclass(frozen=True)
class Along:
    """A change after which other facts of the row cannot be as they were."""

    change: Change

    def __call__(self, tape: Any) -> None:
        self.change(tape)


def along(change: Change) -> Change:
    """Return the change, marked as one that other facts of the row follow."""
    return Along(change)


def both(*changes: Change) -> Change:
    """Return a change that does several things."""

    def change(tape: Any) -> None:
        for each in changes:
            each(tape)

    return change


def without(*those: str) -> Change:
    """Return a change that takes all records of these kinds away."""

    def change(tape: Any) -> None:
        tape.records[:] = [record for record in tape.records if record.kind not in those]

    return change


def edit(kind: str, at: float | None = None, **facts: Any) -> Change:
    """Return a change of the facts of the records of a kind, and of their time if one is given."""

    def change(tape: Any) -> None:
        zero = next(r for r in tape.records if r.kind == k.DELETE_ACCEPTED).at_ns if at is not None else 0
        assert any(record.kind == kind for record in tape.records)
        for index, record in enumerate(tape.records):
            if record.kind == kind:
                when = record.at_ns if at is None else zero + round(at * 1e9)
                tape.records[index] = replace(record, at_ns=when, facts={**record.facts, **facts})

    return change


def add(at: float, actor: str, kind: str, container: str = "app", **facts: Any) -> Change:
    """Return a change that adds a record."""
    return lambda tape: tape.add(at, actor, kind, container, **facts)


def ruled(kind: str, rule: str) -> Change:
    """Return a change of the rule of the records of a kind."""

    def change(tape: Any) -> None:
        tape.records[:] = [replace(r, rule=rule) if r.kind == kind else r for r in tape.records]

    return change


def processes(only: str = "", **facts: Any) -> Change:
    """Return a change of the processes that were left, or of the one with a name."""

    def changed(each: Mapping[str, Any]) -> dict[str, Any]:
        return {**each, **facts} if only in ("", each["name"]) else dict(each)

    def change(tape: Any) -> None:
        (left,) = [record for record in tape.records if record.kind == k.PROCESSES_LEFT]
        edit(k.PROCESSES_LEFT, processes=[changed(each) for each in left.facts["processes"]])(tape)

    return change


def unsent(signal: str) -> Change:
    """Return a change after which nobody has sent this signal."""

    def kept(record: Record) -> bool:
        return record.kind != k.SIGNAL_SENT or record.facts["signal"] != signal

    def change(tape: Any) -> None:
        tape.records[:] = [record for record in tape.records if kept(record)]

    return change


def program(exe: str, *argv: str) -> Change:
    """Return a change of what PID 1 is."""

    def change(tape: Any) -> None:
        edit(k.PROCESS_STARTED, exe=exe)(tape)
        if argv:
            edit(k.PROCESS_STARTED, argv=list(argv))(tape)
        edit(k.PROCESS_SIGNAL_STATE, exe=exe)(tape)

    return change


def known_by_its_object(**facts: Any) -> Change:
    """Return a change after which only the Pod's object tells how the container ended."""

    def change(tape: Any) -> None:
        without(k.PROCESS_EXITED)(tape)
        tape.pod = replace(tape.pod, containers=(ContainerFacts("app", **facts),))

    return change


def of_kind(kind: Any) -> Change:
    """Return a change of the kind of the container."""

    def change(tape: Any) -> None:
        tape.pod = replace(tape.pod, containers=(ContainerFacts("app", kind),))

    return change


def shown(disposition: str) -> Change:
    """Return a change of what PID 1 does with its stop signal."""
    return edit(k.PROCESS_SIGNAL_STATE, disposition=disposition)


NO_SIGTERM = unsent("SIGTERM")
TINI = program("/usr/bin/tini")
NEWER = processes(afterSignal=True)
BY_PROBE = both(
    without(k.STOP_REQUESTED),
    add(-1.0, "kubelet", k.KILLING, gracePeriodSeconds=2, reason="LivenessProbe", message="will be restarted"),
    add(-0.9, "kubelet", k.STOP_REQUESTED, timeoutSeconds=2),
    edit(k.PROCESS_EXITED, at=-0.5),
)
OUT_OF_MEMORY = edit(k.PROCESS_EXITED, oomKilled=True)


ONLY_ITS_NODE_SEES = (
    k.PROCESS_SIGNAL_STATE,
    k.PROCESSES_AT_STOP,
    k.WAITS_AT_KILL,
    k.PROCESSES_LEFT,
    k.CHILD_ENDED,
    k.SOCKETS_AT_STOP,
    k.SOCKETS_AT_EXIT,
    k.LISTENER_CLOSED,
    k.LISTENER_CLOSED_IN_HOOK,
    k.CONNECTIONS_CLOSED,
)


def seen_through_the_api(tape: Any) -> None:
    """Keep what `trace` concludes of a Pod from its status and its Events."""
    without(*ONLY_ITS_NODE_SEES)(tape)
    for index, record in enumerate(tape.records):
        if record.kind == k.PROCESS_STARTED:
            tape.records[index] = replace(record, kind=k.CONTAINER_STARTED, facts={})
        elif record.kind == k.PROCESS_EXITED:
            facts = {name: record.facts.get(name) for name in ("exitCode", "signal", "oomKilled")}
            finished = {"finishedAt": "2026-01-01T00:00:00Z"}
            tape.records[index] = replace(record, facts={**facts, **finished}, evidence="inferred")


def met(disposition: str) -> Change:
    """Return a change after which a node's agent has seen what PID 1 does with its stop signal."""
    facts: dict[str, Any] = {"pid": 7, "name": "web", "exe": "/bin/web", "signal": "SIGTERM", "caught": []}
    facts |= {"disposition": disposition, "ignored": [], "blocked": []}
    return lambda tape: tape.add(0.006, "node-agent", k.PROCESS_SIGNAL_STATE, "app", **facts)
