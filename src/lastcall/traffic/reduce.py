"""The lives of Pods from the timeline's records. Pure."""

# check: pure

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.traffic.container_runs import ContainerRuns, Run, outages
from lastcall.traffic.lives import PodLife, seconds
from lastcall.traffic.moments import Moment, exactly

if TYPE_CHECKING:
    from lastcall.records.definitions.kube_proxy import EndpointRulesWritten
    from lastcall.records.definitions.kubelet_start import ProbeChanged


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
        behind = runs[uid].stopped_behind(port, declared)
        life.behind = {name: Moment.at(at) for name, at in behind.items()}
    return list(lives.values())


def _note(life: PodLife, record: Record, at: float, port: int | None) -> None:
    match record.kind:
        case kinds.POD_CREATED:
            life.name, life.created = str(record.told(kinds.POD_CREATED).get("name")), Moment.at(at)
        case kinds.NETWORK_ATTACHED:
            life.ip = str(record.told(kinds.NETWORK_ATTACHED).get("ip"))
        case kinds.POD_STATUS_WRITTEN if record.told(kinds.POD_STATUS_WRITTEN).get("ready") and life.ready is None:
            life.ready = Moment.at(at)
        case kinds.DELETE_ACCEPTED if life.deleted is None:
            life.deleted = Moment.at(at)
        case kinds.PROBE_CHANGED if _proves_listening(record.told(kinds.PROBE_CHANGED), port):
            life.probed = life.probed or Moment.at(at)
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
    life.hook = _earliest(run.hook for run in last)
    life.stop = _earliest(run.stop for run in last)
    life.term = _earliest(run.term for run in last)
    life.listener_closed = _earliest(run.stopped_listening(port) for run in last)
    life.killed = any(run.killed for run in last)
    life.never_accepted = _sum(run.never_accepted for run in last)
    life.unread = _sum(run.unread for run in last)
    exits = [run.exited for run in last if run.exited is not None]
    life.exited = Moment.at(max(exits)) if exits and len(exits) == len(last) else None
    deleted = life.deleted.latest if life.deleted is not None else None
    found = [each for runs in serving for each in outages(runs, deleted)]
    life.outages = sorted(found, key=lambda each: each.exited.latest)


def _earliest(moments: Iterable[float | None]) -> Moment | None:
    return exactly(min((each for each in moments if each is not None), default=None))


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [each for each in counts if each is not None]
    return sum(known) if known else None


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
