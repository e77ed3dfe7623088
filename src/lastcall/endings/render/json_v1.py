"""The story as data: the schema `lastcall/ending/v1` (docs/ending-v1.md)."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, overload

from lastcall.endings.node_facts import FirstReaction, Listener, ProcessesLeft, Sockets
from lastcall.endings.render.json_text import quoted_json
from lastcall.endings.story import Budget, ContainerEnding, DecidedBy, Ending, Entry, FailedProbe, PreStop
from lastcall.endings.verdict import is_ongoing
from lastcall.records.record import Record

if TYPE_CHECKING:
    from lastcall.endings.render import document

SCHEMA: Literal["lastcall/ending/v1"] = "lastcall/ending/v1"
RECORD_SCHEMA = "lastcall/record/v1"


def endings_document(
    endings: Sequence[Ending],
    *,
    kubernetes_version: str,
    lastcall_version: str,
    exit_status: int,
    error: str = "",
    not_simulated: "Sequence[document.NotSimulated] | None" = None,
) -> "document.Ending":
    """The whole document. `error` is the world's error that cut the story short, "" when there was none.
    `not_simulated` are objects of the manifests that nobody acts on; None where no manifests were run."""
    made: document.Ending = {
        "schema": SCHEMA,
        "lastcallVersion": lastcall_version,
        "kubernetesVersion": kubernetes_version,
        "exitStatus": exit_status,
        "error": error or None,
        "notSimulated": list(not_simulated or ()),
        "pods": [ending_document(ending) for ending in endings],
    }
    if not_simulated is None:
        del made["notSimulated"]
    return made


def ending_document(ending: Ending) -> "document.Pod":
    """One Pod."""
    return {
        "namespace": ending.pod.namespace,
        "name": ending.pod.name,
        "uid": ending.pod.uid,
        "node": ending.pod.node or None,
        "phase": ending.pod.phase or None,
        "graceSeconds": ending.grace_seconds,
        "deletedAt": _wall(ending.deleted_at_ns),
        "outcome": ending.outcome,
        "ongoing": is_ongoing(ending),
        "decidedBy": _decided_by(ending.decided_by),
        "records": [_record(entry) for entry in ending.entries],
        "containers": [_container(container) for container in ending.containers],
        "earlierEnds": [_container(run) for run in ending.earlier],
        "budget": _budget(ending.budget),
        "endpoints": [
            {
                "at": _seconds(each.at),
                "service": each.service,
                "slice": each.slice,
                "address": each.address,
                "ready": each.ready,
                "serving": each.serving,
                "terminating": each.terminating,
                "removed": each.removed,
            }
            for each in ending.endpoints
        ],
        "signals": [
            {
                "at": _seconds(each.at),
                "container": each.container or None,
                "signal": each.signal,
                "pid": each.pid,
                "why": each.why,
            }
            for each in ending.signals
        ],
        "output": [
            {"at": _seconds(each.at), "container": each.container, "stream": each.stream, "text": each.text}
            for each in ending.output
        ],
        "gone": _seconds(ending.gone),
        "overhead": _seconds(ending.overhead),
        "findings": [
            {
                "id": each.id,
                "severity": each.severity,
                "container": each.container or None,
                "text": each.text,
                "advice": each.advice or None,
            }
            for each in ending.findings
        ],
        "notKnown": list(ending.not_known),
    }


def _decided_by(decided: DecidedBy | None) -> "document.DecidedBy | None":
    if decided is None:
        return None
    return {
        "actor": decided.actor,
        "reason": decided.reason,
        "why": decided.why,
        "user": decided.user or None,
        "client": decided.client or None,
        "ownerKind": decided.owner_kind or None,
        "owner": decided.owner or None,
        "chain": list(decided.chain),
    }


def record_line(record: Record) -> str:
    """A record on a line of its own, while its story is not known: without `at`, and with the cause that it names."""
    fields = {key: value for key, value in _record(Entry(record, 0.0, record.cause_id or None)).items() if key != "at"}
    return quoted_json({"schema": RECORD_SCHEMA, "podUid": record.pod_uid, **fields})


def _record(entry: Entry) -> "document.Record":
    record = entry.record
    return {
        "id": record.id,
        "at": _seconds(entry.at),
        "wall": _wall(record.wall_ns),
        "actor": record.actor,
        "kind": record.kind,
        "rule": record.rule or None,
        "container": record.container or None,
        "facts": record.facts,
        "causeId": entry.cause_id,
        "evidence": record.evidence,
    }


def _container(container: ContainerEnding) -> "document.Container":
    return {
        "name": container.name,
        "kind": container.kind,
        "started": container.started,
        "exitCode": container.exit.code,
        "reason": container.exit.reason,
        "signal": container.exit.signal,
        "preStop": _pre_stop(container.hook),
        "stopSeconds": _seconds(container.stop.seconds),
        "killedBy": container.exit.killed_by,
        "stopSignal": container.stop.signal,
        "stopSignalAt": _seconds(container.stop.signal_at),
        "killAt": _seconds(container.stop.kill_at),
        "exitedAt": _seconds(container.exit.at),
        "disposition": container.process.disposition or None,
        "executable": container.process.exe or None,
        "oomKills": container.seen.oom_kills,
        "firstReaction": _first_reaction(container.seen.first_reaction),
        "processesLeft": _processes_left(container.seen.processes_left),
        "sockets": _sockets(container.seen.sockets),
        "startedAt": _seconds(container.started_at),
        "endedBy": container.exit.ended_by or None,
        "failedProbe": _failed_probe(container.seen.probe),
        "lastLines": list(container.seen.last_lines),
    }


def _failed_probe(probe: FailedProbe | None) -> "document.FailedProbe | None":
    return {"output": probe.output, "succeededBefore": probe.succeeded_before} if probe else None


def _first_reaction(reaction: FirstReaction | None) -> "document.FirstReaction | None":
    return {"what": reaction.what, "seconds": _seconds(reaction.seconds)} if reaction else None


def _processes_left(left: ProcessesLeft | None) -> "document.ProcessesLeft | None":
    if left is None:
        return None
    return {
        "when": left.when,
        "evidence": left.evidence,
        "processes": [
            {"pid": each.pid, "containerPid": each.container_pid, "name": each.name, "disposition": each.disposition}
            for each in left.processes
        ],
        "more": left.more,
        "zombies": left.zombies,
    }


def _sockets(sockets: Sockets | None) -> "document.Sockets | None":
    if sockets is None:
        return None
    end = sockets.at_exit
    return {
        "listeners": [_listener(each) for each in sockets.listeners],
        "connections": sockets.connections,
        "scope": sockets.scope,
        "listenersClosed": [
            {"address": c.address, "port": c.port, "at": _seconds(c.at), "notBefore": _seconds(c.not_before)}
            for c in sockets.closed
        ],
        "connectionsClosedAt": _seconds(sockets.connections_closed_at),
        "atExit": None
        if end is None
        else {
            "listeners": [_listener(each) for each in end.listeners],
            "connections": end.connections,
            "unread": end.unread,
            "unreadBytes": end.unread_bytes,
            "backlog": end.backlog,
            "resets": end.resets,
            "closedUnread": end.closed_unread,
            "secondsBefore": _seconds(end.seconds_before),
        },
    }


def _listener(listener: Listener) -> "document.Listener":
    return {"address": listener.address, "port": listener.port, "backlog": listener.backlog}


def _pre_stop(hook: PreStop | None) -> "document.PreStop | None":
    if hook is None:
        return None
    return {
        "handler": hook.handler or None,
        "seconds": _seconds(hook.seconds),
        "outcome": hook.outcome,
        "exitCode": hook.exit_code,
        "detail": hook.detail or None,
        "output": hook.output or None,
    }


def _budget(budget: Budget | None) -> "document.Budget | None":
    if budget is None:
        return None
    return {
        "container": budget.container,
        "grace": _seconds(budget.grace),
        "preStop": _seconds(budget.pre_stop),
        "waiting": _seconds(budget.waiting),
        "drain": _seconds(budget.drain),
        "unused": _seconds(budget.unused),
        "overrun": _seconds(budget.overrun),
    }


@overload
def _seconds(value: float) -> float: ...
@overload
def _seconds(value: None) -> None: ...
@overload
def _seconds(value: float | None) -> float | None: ...
def _seconds(value: float | None) -> float | None:
    """Microseconds are the last digit."""
    return None if value is None else round(value, 6)


def _wall(wall_ns: int | None) -> str | None:
    """RFC 3339 in UTC with microseconds."""
    if wall_ns is None:
        return None
    return datetime.fromtimestamp(wall_ns / 1e9, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
