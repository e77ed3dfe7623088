"""The lives of Pods that get requests, from the timeline's records. Pure.

How each container ended is what its story says (`endings/facts/containers.py`): a rollout and a story agree.
"""

# check: pure

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lastcall.endings import (
    ContainerEnding,
    ContainerFacts,
    Entry,
    OutputLine,
    container_runs,
    facts_from_records,
    missed_container,
    pods_by_address,
    without_probes,
)
from lastcall.records import kinds
from lastcall.records.order import by_time
from lastcall.records.record import Record
from lastcall.traffic.lives import Outage, PodLife, seconds
from lastcall.traffic.moments import Moment, exactly

if TYPE_CHECKING:
    from lastcall.records.definitions.kube_proxy import EndpointRulesWritten
    from lastcall.records.definitions.kubelet_start import ProbeChanged

Runs = Sequence[ContainerEnding]
"""Of one container; the last one is the newest."""

_SERVE = ("container", "sidecar")
_OF_A_RUN = frozenset(
    {
        kinds.CONTAINER_STARTED,
        kinds.PROCESS_STARTED,
        kinds.PRE_STOP_STARTED,
        kinds.PRE_STOP_FINISHED,
        kinds.STOP_REQUESTED,
        kinds.SIGNAL_SENT,
        kinds.LISTENER_CLOSED,
        kinds.LISTENER_CLOSED_IN_HOOK,
        kinds.SOCKETS_AT_STOP,
        kinds.SOCKETS_AT_EXIT,
        kinds.PROCESS_EXITED,
    }
)
"""What a life is made of, of all that a story has of a container."""
_OF_CONTAINERS = frozenset({kinds.POD_CREATED, kinds.EPHEMERAL_CONTAINERS_ADDED})
_OF_A_POD = frozenset(
    {
        kinds.POD_CREATED,
        kinds.NETWORK_ATTACHED,
        kinds.POD_STATUS_WRITTEN,
        kinds.DELETE_ACCEPTED,
        kinds.PROBE_CHANGED,
        kinds.ENDPOINT_RULES_WRITTEN,
    }
)


def pod_lives(records: Iterable[Record], port: int | None = None, declared: Collection[str] = ()) -> list[PodLife]:
    """Return the life of every Pod that the records report, in order of appearance.

    Requests go to the containers that were seen to listen on `port`, else to those that were `declared` to have it;
    else to any of them."""
    ordered = sorted(records, key=by_time)
    own: dict[str, list[Record]] = {}
    orphans: list[Entry] = []
    for record in ordered:
        if record.pod_uid:
            own.setdefault(record.pod_uid, []).append(record)
        elif _is_orphan(record):
            orphans.append(Entry(record, seconds(record)))
    pods = pods_by_address(ordered)
    return [_life(uid, those, orphans, port, declared, pods) for uid, those in own.items()]


def _is_orphan(record: Record) -> bool:
    return record.kind == kinds.PROCESS_DIED and record.facts_as(kinds.PROCESS_DIED).get("role") == "orphan"


def _life(
    uid: str,
    records: Sequence[Record],
    orphans: Sequence[Entry],
    port: int | None,
    declared: Collection[str],
    pods: Collection[str],
) -> PodLife:
    life = PodLife(uid, records=[each for each in records if each.kind != kinds.OUTPUT])
    for record in life.records:
        if record.kind in _OF_A_POD:
            _note(life, record, seconds(record), port)
    found = list(_runs(uid, life.records, orphans))
    runs = {facts.name: those for facts, those in found}
    names = _serving(runs, port, declared)
    _note_ends(life, [runs[name] for name in names], port)
    _note_left(life, [(facts, those[-1]) for facts, those in found if facts.name in names], pods)
    life.container = names[0] if len(names) == 1 < len(runs) else ""
    others = {name: those[-1] for name, those in runs.items() if name not in names}
    life.behind = _missed_behind(records, names, others) | _stopped_behind(others)
    return life


def _runs(uid: str, records: Sequence[Record], orphans: Sequence[Entry]) -> Iterator[tuple[ContainerFacts, Runs]]:
    """The containers that may serve, each with its runs."""
    entries: dict[str, list[Entry]] = {}
    for record in records:
        if record.kind in _OF_A_RUN:
            entries.setdefault(record.container, []).append(Entry(record, seconds(record)))
    chosen = [each for each in records if each.kind in _OF_CONTAINERS]
    chosen += [those[0].record for those in entries.values()]
    for facts in facts_from_records(uid, chosen).containers:
        if facts.kind in _SERVE and facts.name in entries:
            last, earlier = container_runs(facts, entries[facts.name], orphans)
            yield facts, (*earlier, last)


def _serving(runs: Mapping[str, Runs], port: int | None, declared: Collection[str]) -> list[str]:
    """The containers that were seen to listen on the port, else those `declared` to have it, else all."""
    listened = [name for name, those in runs.items() if any(port in _ports(run) for run in those)]
    return listened or [name for name in runs if name in declared] or list(runs)


def _ports(run: ContainerEnding) -> set[int]:
    """The ports on which it was seen to listen."""
    sockets = run.seen.sockets
    in_hook = {each.port for each in run.hook.closed} if run.hook is not None else set()
    if sockets is None:
        return in_hook
    last = sockets.at_exit.listeners if sockets.at_exit is not None else ()
    own = {each.port for each in (*sockets.listeners, *last)}
    return in_hook | own | {each.port for each in sockets.closed}


def _stopped_listening(run: ContainerEnding, port: int | None) -> float | None:
    """When it closed `port`; any, where it was not seen to listen on that.

    What closed while its preStop hook ran may have done so at the look before: what was refused since then says so.
    """
    known = _ports(run)
    in_hook = [(each.port, each.not_before) for each in run.hook.closed] if run.hook is not None else []
    closed = [(each.port, each.at) for each in run.seen.sockets.closed] if run.seen.sockets is not None else []
    return min((at for each, at in (*in_hook, *closed) if each == port or port not in known), default=None)


def _open_until(run: ContainerEnding, port: int | None) -> float | None:
    """Until when it was seen to listen on `port`, on any where it was not seen to listen on that, after its stop
    signal; None where nobody saw it."""
    sockets, known = run.seen.sockets, _ports(run)
    if sockets is None or run.stop.signal_at is None:
        return None
    closed = [each.not_before for each in sockets.closed if each.port == port or port not in known]
    if closed:
        return min(closed)
    last, exited = sockets.at_exit, run.exit.at
    listeners = sockets.listeners if last is None else last.listeners
    if (last is None and exited is not None) or not any(each.port == port or port not in known for each in listeners):
        return None
    return math.inf if last is None or exited is None else max(run.stop.signal_at, exited - last.seconds_before)


def _stopped_behind(last: Mapping[str, ContainerEnding]) -> dict[str, Moment]:
    """The containers that listened and do not serve → when each stopped that, or exited."""
    ends = {name: (_stopped_listening(run, None), run.exit.at) for name, run in last.items() if _ports(run)}
    found = {name: _earliest(moments) for name, moments in ends.items()}
    return {name: moment for name, moment in found.items() if moment is not None}


def _missed_behind(
    records: Iterable[Record], serving: Sequence[str], others: Mapping[str, ContainerEnding]
) -> dict[str, Moment]:
    """The containers that do not serve, and that one that does missed when they had ended → when each exited.

    One that leaves at once has no record of its sockets.
    """
    lines: dict[str, list[OutputLine]] = {name: [] for name in serving} if others else {}
    for record in records if lines else ():
        if record.kind == kinds.OUTPUT and record.container in lines:
            text = str(record.facts_as(kinds.OUTPUT).get("text"))
            lines[record.container].append(OutputLine(seconds(record), record.container, "", text))
    own = [each for each in others.values() if each.kind == "container"]
    found = [missed_container(those, own) for those in lines.values()]
    return {each[0].name: Moment.at(each[0].exit.at) for each in found if each and each[0].exit.at is not None}


def _note_ends(life: PodLife, serving: Sequence[Runs], port: int | None) -> None:
    """What became of the containers that serve; their last runs are those that end with the Pod."""
    last = [runs[-1] for runs in serving]
    life.hook = _earliest(run.hook.started_at for run in last if run.hook is not None)
    life.stop = _earliest(run.stop.requested_at for run in last)
    life.term = _earliest(run.stop.signal_at for run in last)
    life.open_until = _first_of_all(_open_until(run, port) for run in last)
    life.listener_closed = _earliest(_stopped_listening(run, port) for run in last)
    life.killed = any(run.exit.killed_by_grace for run in last)
    exits = [run.exit.at for run in last if run.exit.at is not None]
    life.exited = Moment.at(max(exits)) if exits and len(exits) == len(last) else None
    found = [each for runs in serving for each in _outages(runs, life.deleted)]
    life.outages = sorted(found, key=lambda each: each.exited.latest)


def _note_left(life: PodLife, last: Iterable[tuple[ContainerFacts, ContainerEnding]], pods: Collection[str]) -> None:
    """What the kernel held for the containers that serve when they exited, without connections of their probes."""
    at_exit = [(facts, run.seen.sockets.at_exit) for facts, run in last if run.seen.sockets is not None]
    left = [without_probes(end, facts.tcp_probes, pods) for facts, end in at_exit if end is not None]
    life.never_accepted = sum(each.backlog for each in left) if left else None
    life.unread = sum(each.unread for each in left) if left else None
    peers = (peer for each in left for peer in each.peers)
    life.unread_ports = frozenset(each.port for each in peers if not each.accepted or each.unread_bytes)


def _outages(runs: Runs, deleted: Moment | None) -> Iterator[Outage]:
    """The ends of a container before the Pod's own, which began with its DELETE."""
    for run, after in zip(runs, [*runs[1:], None], strict=True):
        at = run.exit.at
        if at is not None and (after is not None or deleted is None or at < deleted.latest):
            stop = run.stop.signal_at if run.stop.requested_at is None else run.stop.requested_at
            restarted = after.started_at if after is not None else None
            yield Outage(Moment.at(at), exactly(restarted), exactly(stop))


def _first_of_all(moments: Iterable[float | None]) -> Moment | None:
    """The earliest; None where one is not known."""
    found = list(moments)
    return None if None in found else _earliest(found)


def _earliest(moments: Iterable[float | None]) -> Moment | None:
    return exactly(min((each for each in moments if each is not None), default=None))


def _note(life: PodLife, record: Record, at: float, port: int | None) -> None:
    match record.kind:
        case kinds.POD_CREATED:
            life.name, life.created = str(record.facts_as(kinds.POD_CREATED).get("name")), Moment.at(at)
        case kinds.NETWORK_ATTACHED:
            life.ip = str(record.facts_as(kinds.NETWORK_ATTACHED).get("ip"))
        case kinds.POD_STATUS_WRITTEN if record.facts_as(kinds.POD_STATUS_WRITTEN).get("ready") and life.ready is None:
            life.ready = Moment.at(at)
        case kinds.DELETE_ACCEPTED if life.deleted is None:
            life.deleted = Moment.at(at)
        case kinds.PROBE_CHANGED if _proves_listening(record.facts_as(kinds.PROBE_CHANGED), port):
            life.probed = life.probed or Moment.at(at)
        case kinds.ENDPOINT_RULES_WRITTEN:
            rules = record.facts_as(kinds.ENDPOINT_RULES_WRITTEN)
            _note_rules(life, str(rules.get("node")), at, rules)


def _proves_listening(facts: "ProbeChanged", port: int | None) -> bool:
    """Whether a readiness probe got an answer where requests go: a command, or another port, says nothing of that."""
    if (facts.get("probe"), facts.get("result")) != ("readiness", "success"):
        return False
    asked = facts.get("port")
    return asked is not None and port in (None, asked)


def _note_rules(life: PodLife, node: str, at: float, facts: "EndpointRulesWritten") -> None:
    if facts.get("receives"):
        if life.unrouted is not None and not life.named_by:
            life.pauses.append((life.unrouted, Moment.at(at)))
        life.named_by[node] = None
        life.nodes.add(node)
        life.routed = life.routed or Moment.at(at)
        life.unrouted = None
    elif facts.get("received"):
        life.named_by.pop(node, None)
        life.unrouted = Moment.at(at) if not life.named_by else None
