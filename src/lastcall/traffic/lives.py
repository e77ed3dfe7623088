"""When what happened to each Pod, from the timeline's records, in seconds of the monotonic clock. Pure."""

# check: pure

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.traffic.container_runs import SKEW_SECONDS, ContainerRuns, Outage, Run, outages

if TYPE_CHECKING:
    from lastcall.records.definitions.kube_proxy import EndpointRulesWritten
    from lastcall.records.definitions.kubelet_start import ProbeChanged

Phase = Literal["before it was ready", "ready", "preStop hook", "draining", "restarting", "after its exit"]


@dataclass(slots=True)
class PodLife:
    """Of one Pod; None for what did not happen, or was not seen.

    Ends are those of the containers that serve: neither init containers, which end before anything is served, nor
    ephemeral ones. Of a container that was started again the last run counts; `outages` are the ends before it.

    `routed` and `unrouted` are when a node's kernel began, and the last one stopped, to send it new connections.
    `stop` is when the runtime was asked to stop a container, a moment before `term`: the record of the signal is
    written when it has been sent, and an application may have acted on it by then. `killed`: one was ended by SIGKILL.
    `never_accepted` and `unread` are connections that the kernel had taken for it when it exited, as last seen: those
    that it never accepted, and those with data that it had not read; None where nobody looked.
    `pauses`: from when to when between `routed` and `unrouted` no rule named it, because it was not ready. `probed`:
    when a readiness probe that connects to the port of the requests first succeeded, so it listened.
    """

    uid: str
    name: str = ""
    ip: str = ""
    ready: float | None = None
    deleted: float | None = None
    hook: float | None = None
    stop: float | None = None
    term: float | None = None
    listener_closed: float | None = None
    exited: float | None = None
    routed: float | None = None
    unrouted: float | None = None
    killed: bool = False
    never_accepted: int | None = None
    unread: int | None = None
    probed: float | None = None
    pauses: list[tuple[float, float]] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    named_by: dict[str, None] = field(default_factory=dict)
    """Nodes whose rules name it, by the records read so far."""
    nodes: set[str] = field(default_factory=set)
    """Nodes whose rules have named it."""
    behind: dict[str, float] = field(default_factory=dict)
    """Containers that requests do not go to, and that listened: when each closed its port, or exited."""
    records: list[Record] = field(default_factory=list)

    def phase(self, at: float) -> Phase:
        """What it was doing at a moment."""
        if self.exited is not None and at >= self.exited:
            return "after its exit"
        if self.signalled is not None and at >= self.signalled:
            return "draining"
        if self.deleted is not None and at >= self.deleted:
            return "preStop hook" if self.hook is not None else "draining"
        if self.ready is None or at < self.ready:
            return "before it was ready"
        return "restarting" if self.outage(at, at) is not None else "ready"

    def outage(self, sent: float, finished: float) -> Outage | None:
        """The outage that a request fell into, the last one of several."""
        return next((each for each in reversed(self.outages) if each.covers(sent, finished)), None)

    @property
    def signalled(self) -> float | None:
        """From when on it may have had its stop signal."""
        if self.term is None or self.stop is None:
            return self.term
        return min(self.stop, self.term)

    def is_named(self, at: float) -> bool:
        """Whether the rules named it at a moment."""
        if self.routed is None or at < self.routed:
            return False
        if any(begin + SKEW_SECONDS < at < end for begin, end in self.pauses):
            return False
        return self.unrouted is None or at <= self.unrouted + SKEW_SECONDS

    def is_named_all_along(self, sent: float, finished: float) -> bool:
        """Whether the rules named it from before one moment until after another, whatever their clocks differ by."""
        begin, end = sent - SKEW_SECONDS, finished + SKEW_SECONDS
        if self.routed is None or begin < self.routed or (self.unrouted is not None and self.unrouted < end):
            return False
        return not any(begin < until and since < end for since, until in self.pauses)

    def is_published_unready(self, at: float) -> bool:
        """Whether the rules named it at a moment at which it was not Ready yet: publishNotReadyAddresses."""
        if self.routed is None or at < self.routed:
            return False
        return self.ready is None or at < self.ready

    @property
    def unready(self) -> bool:
        """Whether it stopped being ready although nothing ended it."""
        left_alone = self.deleted is None or (self.unrouted is not None and self.unrouted < self.deleted)
        return bool(self.pauses) or (self.unrouted is not None and left_alone)

    def listens(self, at: float) -> bool:
        """Whether it was ready before a moment, and nothing had told it to stop, nor closed its listener."""
        if self.ready is None or at < self.ready:
            return False
        ends = [each for each in (self.signalled, self.listener_closed, self.exited) if each is not None]
        return self.outage(at, at) is None and (not ends or at < min(ends))

    def refuses(self, sent: float, finished: float) -> bool:
        """Whether the rules named it between two moments when it did not listen, or may not have listened any more.

        A refusal is answered at some moment between the two: the generator may be late with either.
        """
        if not (self.is_named(sent) or self.is_named(finished)):
            return False
        ends = [each for each in (self.term, self.listener_closed, self.exited) if each is not None]
        ended = bool(ends) and finished + SKEW_SECONDS >= min(ends)
        return ended or self.outage(sent, finished) is not None

    @property
    def routing_lag(self) -> float | None:
        """From the DELETE to the moment from which no new connection came, in seconds."""
        if self.deleted is None or self.unrouted is None:
            return None
        return self.unrouted - self.deleted

    def between(self, at: float) -> tuple[str, str]:
        """The kinds of the records before and after a moment, "" where there is none."""
        before = [each.kind for each in self.records if seconds(each) <= at]
        after = [each.kind for each in self.records if seconds(each) > at]
        return (before[-1] if before else "", after[0] if after else "")


def seconds(record: Record) -> float:
    return record.at_ns / 1e9


def pod_lives(records: Iterable[Record], port: int | None = None, declared: Collection[str] = ()) -> list[PodLife]:
    """Of every Pod that the records report, in order of appearance.

    Requests go to the containers that were `declared` to have the port, else to those seen to listen on `port`; else
    to any of them."""
    lives: dict[str, PodLife] = {}
    runs: dict[str, ContainerRuns] = {}
    for record in sorted(records, key=lambda each: (each.at_ns, each.id)):
        if not record.pod_uid:
            continue
        life = lives.setdefault(record.pod_uid, PodLife(record.pod_uid))
        if record.kind != kinds.OUTPUT:
            life.records.append(record)
        _note(life, record, seconds(record), port)
        runs.setdefault(record.pod_uid, ContainerRuns()).note(record, seconds(record))
    for uid, life in lives.items():
        _tell_ends(life, runs[uid].serving(port, declared), port)
        life.behind = runs[uid].stopped_behind(port, declared)
    return list(lives.values())


def _note(life: PodLife, record: Record, at: float, port: int | None) -> None:
    match record.kind:
        case kinds.POD_CREATED:
            life.name = str(record.told(kinds.POD_CREATED).get("name"))
        case kinds.NETWORK_ATTACHED:
            life.ip = str(record.told(kinds.NETWORK_ATTACHED).get("ip"))
        case kinds.POD_STATUS_WRITTEN if record.told(kinds.POD_STATUS_WRITTEN).get("ready") and life.ready is None:
            life.ready = at
        case kinds.DELETE_ACCEPTED if life.deleted is None:
            life.deleted = at
        case kinds.PROBE_CHANGED if _proves_listening(record.told(kinds.PROBE_CHANGED), port):
            life.probed = at if life.probed is None else life.probed
        case kinds.ENDPOINT_RULES_WRITTEN:
            rules = record.told(kinds.ENDPOINT_RULES_WRITTEN)
            _note_rules(life, str(rules.get("node")), at, rules)


def _proves_listening(facts: "ProbeChanged", port: int | None) -> bool:
    """Whether a readiness probe got an answer where requests go: a command, or another port, says nothing of that."""
    if (facts.get("probe"), facts.get("result")) != ("readiness", "success"):
        return False
    asked = facts.get("port")
    return asked is not None and port in (None, asked)


def _tell_ends(life: PodLife, serving: Sequence[Sequence[Run]], port: int | None) -> None:
    """What became of the containers that serve; their last runs are those that end with the Pod."""
    last = [runs[-1] for runs in serving]
    life.hook = _first(run.hook for run in last)
    life.stop = _first(run.stop for run in last)
    life.term = _first(run.term for run in last)
    life.listener_closed = _first(run.stopped_listening(port) for run in last)
    life.killed = any(run.killed for run in last)
    life.never_accepted = _sum(run.never_accepted for run in last)
    life.unread = _sum(run.unread for run in last)
    exits = [run.exited for run in last if run.exited is not None]
    life.exited = max(exits) if exits and len(exits) == len(last) else None
    found = [each for runs in serving for each in outages(runs, life.deleted)]
    life.outages = sorted(found, key=lambda each: each.exited)


def _first(moments: Iterable[float | None]) -> float | None:
    return min((each for each in moments if each is not None), default=None)


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [each for each in counts if each is not None]
    return sum(known) if known else None


def _note_rules(life: PodLife, node: str, at: float, facts: "EndpointRulesWritten") -> None:
    if facts.get("receives"):
        if life.unrouted is not None and not life.named_by:
            life.pauses.append((life.unrouted, at))
        life.named_by[node] = None
        life.nodes.add(node)
        life.routed = at if life.routed is None else life.routed
        life.unrouted = None
    elif facts.get("received"):
        life.named_by.pop(node, None)
        life.unrouted = at if not life.named_by else None


def by_address(lives: Sequence[PodLife]) -> dict[str, list[PodLife]]:
    """Address → the Pods that had it, one after the other."""
    found: dict[str, list[PodLife]] = {}
    for life in lives:
        found.setdefault(life.ip, []).append(life)
    return found
