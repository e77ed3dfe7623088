"""Builds the story of each Pod's end from records. Pure: the same records give the same story.

Records may come in any order, and any of them may be missing (a process was killed before it could write): what is not
known is said so in `Ending.not_known`, never guessed.
"""

# check: pure

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from lastcall.endings.causes.decided import decide_decided_by
from lastcall.endings.causes.join import join_causes
from lastcall.endings.causes.twice import with_overlap_findings
from lastcall.endings.facts.budget import decide_budget, decide_overhead
from lastcall.endings.facts.containers import container_runs
from lastcall.endings.facts.pod import facts_from_records, pods_by_address
from lastcall.endings.findings.rules import find_causes
from lastcall.endings.outcome import PROBES, Runs, decide_outcome
from lastcall.endings.picture.spans import decide_spans
from lastcall.endings.story import (
    PAUSE_SECONDS,
    ContainerEnding,
    Ending,
    EndpointTransition,
    Entry,
    OutputLine,
    PodFacts,
    SentSignal,
    endpoint_of,
)
from lastcall.endings.verdict import is_deleted, is_ongoing
from lastcall.records import kinds
from lastcall.records.order import by_time
from lastcall.records.recalled import recalled
from lastcall.records.record import Record
from lastcall.records.said import tell
from lastcall.records.signal_names import signal_name

_ZERO_KINDS = (kinds.DELETE_ACCEPTED, kinds.DELETE_SENT, kinds.TERMINATION_OBSERVED)
"""What the times count from, best first."""


def build_endings(
    records: Iterable[Record],
    pods: Sequence[PodFacts],
    *,
    kubernetes_version: str,
    now_ns: int = 0,
    pause_seconds: int = PAUSE_SECONDS,
) -> list[Ending]:
    """Return one story for each of `pods`, in their order. `now_ns` of the monotonic clock, for what is still under
    way. `pause_seconds` is what advice to wait in a preStop hook says."""
    ordered = sorted(records, key=by_time)
    causes = join_causes(ordered)
    deaths = [record for record in ordered if record.kind in (kinds.PROCESS_DIED, kinds.PROCESS_RESTARTED)]
    by_id = {record.id: record for record in ordered}
    own: dict[str, list[Record]] = {pod.uid: [] for pod in pods}
    for record in ordered:
        if record.pod_uid in own:
            own[record.pod_uid].append(record)
    addresses = pods_by_address(ordered)
    endings = [
        build_ending(pod, own[pod.uid], deaths, causes, kubernetes_version, by_id, now_ns, addresses, pause_seconds)
        for pod in pods
    ]
    return with_overlap_findings(endings, ordered)


def build_ending(
    pod: PodFacts,
    records: Sequence[Record],
    deaths: Sequence[Record],
    causes: dict[str, str],
    kubernetes_version: str,
    by_id: Mapping[str, Record],
    now_ns: int = 0,
    addresses: Mapping[str, str] = MappingProxyType({}),
    pause_seconds: int = PAUSE_SECONDS,
) -> Ending:
    """Build the story of one Pod.

    `records` are the Pod's own, sorted by time; `deaths` report the cluster's processes, and of those that were started
    again; `by_id` has all records, those about its owners too; `addresses` are those of Pods.
    """
    if not pod.containers:
        pod = _merged(pod, facts_from_records(pod.uid, records))
    zero = next((r for kind in _ZERO_KINDS for r in records if r.kind == kind), None)
    zero_ns = zero.at_ns if zero else records[0].at_ns if records else 0
    accepted = zero if zero and zero.kind == kinds.DELETE_ACCEPTED else None

    def entry(record: Record) -> Entry:
        return Entry(record, (record.at_ns - zero_ns) / 1e9, causes.get(record.id))

    entries = [entry(record) for record in records]
    orphans = [entry(r) for r in deaths if r.facts_as(kinds.PROCESS_DIED).get("role") == "orphan"]
    containers, earlier = _containers(pod, entries, orphans, zero is not None)
    gone = _gone(entries)
    endpoints = tuple(_endpoint(e) for e in entries if e.record.kind in _ENDPOINT_KINDS and e.at >= 0)
    grace = accepted.facts_as(kinds.DELETE_ACCEPTED).get("gracePeriodSeconds") if accepted else None
    budget = decide_budget(_effective_grace(grace, entries), containers)
    in_story = [
        e
        for e in map(entry, deaths)
        if e.facts_as(kinds.PROCESS_DIED).get("role") != "orphan" and _is_within(e, entries)
    ]
    by_probe = [(c.name, c.exit.ended_by) for c in containers if c.exit.ended_by in PROBES]
    decided_by = decide_decided_by(records, causes, by_id, by_probe)
    above = [by_id[each] for each in decided_by.chain if not by_id[each].pod_uid] if decided_by is not None else []
    in_story += map(entry, above)
    ending = Ending(
        pod=pod,
        zero_ns=zero_ns,
        zero_kind=zero.kind if zero else "",
        deleted_at_ns=accepted.wall_ns if accepted else None,
        grace_seconds=grace,
        outcome=decide_outcome(Runs(containers, earlier, ends=zero is not None)),
        entries=tuple(sorted([*entries, *in_story], key=lambda e: by_time(e.record))),
        containers=containers,
        earlier=earlier,
        budget=budget,
        endpoints=endpoints,
        signals=tuple(_signal(e) for e in entries if e.record.kind == kinds.SIGNAL_SENT and e.at >= 0),
        output=tuple(_output(e) for e in entries if e.record.kind == kinds.OUTPUT and e.at >= 0),
        gone=gone,
        decided_by=decided_by,
        addresses=addresses,
        pause_seconds=pause_seconds,
        overhead=decide_overhead(gone, budget, containers) if accepted else None,
        until=max([(now_ns - zero_ns) / 1e9 if now_ns else 0.0, *(entry.at for entry in entries[-1:])]),
    )
    ending = replace(ending, spans=decide_spans(containers, endpoints, entries, gone), not_known=_not_known(ending))
    answer = find_causes(ending, kubernetes_version)
    return replace(ending, findings=answer.findings, not_known=(*ending.not_known, *answer.not_known))


_ENDPOINT_KINDS = (kinds.ENDPOINT_CHANGED, kinds.ENDPOINT_REMOVED)


def _merged(pod: PodFacts, recorded: PodFacts) -> PodFacts:
    return replace(
        pod,
        namespace=pod.namespace or recorded.namespace,
        name=pod.name or recorded.name,
        node=pod.node or recorded.node,
        phase=pod.phase or recorded.phase,
        containers=recorded.containers,
    )


def _containers(
    pod: PodFacts, entries: Sequence[Entry], orphans: Sequence[Entry], ends: bool
) -> tuple[tuple[ContainerEnding, ...], tuple[ContainerEnding, ...]]:
    """The last runs of all regular containers and sidecars, of init containers that failed or that the DELETE caught
    running, and of ephemeral ones that it caught; and every run before those. `ends`: the Pod's end has begun."""
    endings: list[ContainerEnding] = []
    earlier: list[ContainerEnding] = []
    elsewhere = _ran_elsewhere(entries)
    for facts in pod.containers:
        last, before = container_runs(facts, entries, orphans)
        earlier += before
        if elsewhere and last.kind in ("container", "sidecar") and not last.started:
            last = replace(last, started=True, exit=replace(last.exit, elsewhere=True))
        caught = last.started and (not last.exit.before_delete if ends else last.exit.at is None)
        failed = last.kind == "init" and last.exit.failed_by_itself
        if last.kind in ("container", "sidecar") or caught or failed:
            endings.append(last)
    return tuple(endings), tuple(sorted(earlier, key=lambda each: each.exit.at or 0.0))


_OF_A_NODE = (kinds.CONTAINER_STARTED, kinds.PROCESS_STARTED)


def _ran_elsewhere(entries: Sequence[Entry]) -> bool:
    """Return whether its status said that the Pod ran, and no node recorded anything here: it is on another machine, or
    of others."""
    if any(entry.record.actor == "kubelet" or entry.record.kind in _OF_A_NODE for entry in entries):
        return False
    statuses = [e.facts_as(kinds.POD_STATUS_WRITTEN) for e in entries if e.record.kind == kinds.POD_STATUS_WRITTEN]
    return any(each.get("phase") in ("Running", "Succeeded") for each in statuses)


def _effective_grace(accepted: int | None, entries: Sequence[Entry]) -> float | None:
    """What the kubelet worked with; what the API server accepted when the kubelet's decision was not seen."""
    decided = [
        e.facts_as(kinds.GRACE_DECIDED).get("gracePeriodSeconds")
        for e in entries
        if e.record.kind == kinds.GRACE_DECIDED
    ]
    # A shorter period that comes while the stop is under way does not interrupt it: the first one holds.
    first = next((value for value in decided if value is not None), None)
    return first if first is not None else accepted


def _gone(entries: Sequence[Entry]) -> float | None:
    """When a client saw it go; in a cluster where none looked on, when the API server removed the object."""
    for kind in (kinds.POD_GONE_SEEN, kinds.OBJECT_REMOVED):
        for entry in entries:
            if entry.record.kind == kind:
                return entry.at
    return None


def _is_within(entry: Entry, entries: Sequence[Entry]) -> bool:
    """Whether the death of a process falls into the end of this Pod."""
    gone = _gone(entries)
    return entry.at >= 0 and (gone is None or entry.at <= gone)


def _not_known(ending: Ending) -> tuple[str, ...]:
    """What the records do not tell, one sentence each."""
    said: list[str] = []
    ongoing = is_ongoing(ending)
    if ongoing and not ending.zero_kind:
        return (tell("It has not been deleted: times count from its first record."),)
    if not is_deleted(ending) and not ongoing:
        said.append(tell("Its object was not deleted: times count from the moment at which its end began."))
    elif not ending.zero_kind:
        said.append(tell("When the API server accepted the DELETE is not known; times count from the first record."))
    elif ending.zero_kind != kinds.DELETE_ACCEPTED:
        zero = ending.zero_kind
        said.append(tell("When the API server accepted the DELETE is not known; times count from $kind.", kind=zero))
    for container in ending.containers:
        if container.started and container.exit.at is None and not ongoing:
            if container.exit.code is None:
                why = _nobody_saw(ending)
                said.append(tell("How $container ended is not known: $why", container=container.name, why=why))
            else:
                text = tell(
                    "When $container ended is not known; its exit code is from the Pod's status.",
                    container=container.name,
                )
                said.append(text)
        if container.hook and container.hook.outcome == "unknown" and not ongoing:
            when = tell(", nor when its stop signal came") if container.exit.from_status else ""
            text = tell(
                "How the preStop hook of $container ended is not known$when.", container=container.name, when=when
            )
            said.append(text)
    if ongoing:
        said.append(tell("It had not ended yet when this report was made."))
    if ending.gone is None and (ongoing or is_deleted(ending)):
        said.append(tell("The removal of the object was not seen."))
    shown = [e.facts_as(kinds.NOT_SHOWN) for e in ending.entries if e.record.kind == kinds.NOT_SHOWN]
    said += [recalled(each.get("text")) for each in shown]
    return tuple(said)


def _nobody_saw(ending: Ending) -> str:
    if any(container.exit.elsewhere for container in ending.containers):
        return tell(
            "its node keeps no records here: run lastcall story on the node's machine, if the node is lastcall's."
        )
    if any(e.record.kind == kinds.NOT_SHOWN for e in ending.entries):
        return tell("its object was removed before its status showed it.")
    return tell("no process was left to record its exit.")


def _endpoint(entry: Entry) -> EndpointTransition:
    if entry.record.kind == kinds.ENDPOINT_REMOVED:
        return EndpointTransition(entry.at, *endpoint_of(entry.facts_as(kinds.ENDPOINT_REMOVED)))
    facts = entry.facts_as(kinds.ENDPOINT_CHANGED)
    where = (entry.at, *endpoint_of(facts))
    return EndpointTransition(
        *where,
        ready=bool(facts.get("ready")),
        serving=bool(facts.get("serving")),
        terminating=bool(facts.get("terminating")),
    )


def _signal(entry: Entry) -> SentSignal:
    facts = entry.facts_as(kinds.SIGNAL_SENT)
    pid = facts.get("pid")
    return SentSignal(
        at=entry.at,
        container=entry.record.container,
        signal=signal_name(facts.get("signal")) or "",
        pid=pid if isinstance(pid, int) else None,
        why=str(facts.get("why") or ""),
    )


def _output(entry: Entry) -> OutputLine:
    facts = entry.facts_as(kinds.OUTPUT)
    text = str(facts.get("text") or "").rstrip("\n")
    return OutputLine(entry.at, entry.record.container, str(facts.get("stream") or "stdout"), text)
