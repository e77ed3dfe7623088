"""From a Pod's timeline to its story: the past, the decision, what is not known, and then the story builder. Pure."""

# check: pure

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from lastcall.endings import Ending, build_endings, pod_facts
from lastcall.kube.api import name_of, namespace_of
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace import pods
from lastcall.trace.decisions import DecisionContext, find_decision, find_eviction
from lastcall.trace.drafts import Draft, draft
from lastcall.trace.events import PodEvent
from lastcall.trace.ledger import LATER_NS, ClusterState
from lastcall.trace.owners import with_generations
from lastcall.trace.pod_timeline import Moment, PodTimeline
from lastcall.trace.rights import MissingRight
from lastcall.trace.stamps import SKEW_NOTICED_SECONDS
from lastcall.trace.unknown import unknown
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.client import NotShown
    from lastcall.records.definitions.kubelet_end import TerminationObserved
    from lastcall.trace.auditing.applying import AuditTrail

_ALWAYS = ("events", "endpointslices")
"""What is missed in every story where it may not be read; the others only where nobody knows who decided."""


@dataclass(frozen=True, slots=True)
class StoryContext:
    """What else is known. `events` are of the Pod and of its owner about it; `pod_name` names a Pod by its uid."""

    cluster: ClusterState
    events: Sequence[PodEvent]
    missing: Sequence[MissingRight]
    pod_name: Callable[[str], str]
    audit: "AuditTrail | None" = None


def build_story(timeline: PodTimeline, now: Moment, around: StoryContext, *, kubernetes_version: str) -> Ending:
    """Return the story so far."""
    pod, made = timeline.pod, [*timeline.past(now), *timeline.records]
    owner_uid = str(pods.controller_of(pod).get("uid") or "")
    above = with_generations(around.cluster.records(owner_uid, namespace_of(pod)))
    if around.audit is not None:
        made, above = around.audit.with_users(pod, made), around.audit.with_users(pod, above)
    zero = next((r.at_ns for r in made if r.kind == kinds.DELETE_ACCEPTED), None)

    def add(each: Draft) -> None:
        made.append(timeline.record_of(each, now.at_ns if each.at_ns is None else each.at_ns, now))

    natural = _natural(timeline, made, zero, now)
    if zero is not None and not any(r.kind == kinds.DELETION_DECIDED for r in made):
        state = DecisionContext(
            owner=around.cluster.state_at(owner_uid, zero + LATER_NS),
            owner_gone=around.cluster.is_gone(owner_uid, zero + LATER_NS),
            namespace_ends=around.cluster.namespace_ends(namespace_of(pod), zero + LATER_NS),
            phase=pods.phase_of(timeline.first),
            events=around.events,
            taints=around.cluster.taints(timeline.node, zero, zero + LATER_NS),
            pod_name=around.pod_name,
            budgets=around.cluster.budgets_of(namespace_of(pod), name_of(pod)),
            sent=next((r.facts_as(kinds.DELETE_ACCEPTED) for r in made if r.kind == kinds.DELETE_ACCEPTED), None),
        )
        if (decision := find_decision(pod, state, zero - 1)) is not None:
            add(decision)
    if natural is not None:
        if (eviction := find_eviction(timeline.first, (natural.at_ns or now.at_ns) - 1)) is not None:
            add(eviction)
        add(natural)
    made = seen_first(made)
    if around.audit is not None:
        for text in around.audit.ambiguous(above):
            uncertain: NotShown = {"text": text, "why": "api"}
            add(draft(kinds.NOT_SHOWN, uncertain, "client"))
    for text, why in _not_shown(timeline, made, around):
        facts: NotShown = {"text": text, "why": why}  # type: ignore[typeddict-item]  # one of the four
        add(draft(kinds.NOT_SHOWN, facts, "client"))
    made += above
    return build_endings(made, [pod_facts(pod)], kubernetes_version=kubernetes_version)[0]


def _natural(timeline: PodTimeline, records: Sequence[Record], zero: int | None, now: Moment) -> Draft | None:
    """Its containers ended without a DELETE: by themselves, or because the kubelet ended the Pod.

    A container that had ended and waits to be started again has not ended its Pod: only the phase says that.
    """
    pod = timeline.pod
    exits = [r.at_ns for r in records if r.kind == kinds.PROCESS_EXITED]
    if not pods.is_terminal(timeline.first) or (zero is not None and (not exits or max(exits) > zero)):
        return None
    killings = [r.at_ns for r in records if r.kind == kinds.KILLING and not r.facts_as(kinds.KILLING).get("reason")]
    reason = str((pod.get("status") or {}).get("reason") or "")
    by_kubelet = bool(reason) or pods.condition_of(pod, "DisruptionTarget").get("reason") == "TerminationByKubelet"
    at = min(killings) if killings else max(exits, default=now.at_ns) + (0 if by_kubelet else 1)
    if by_kubelet and exits:
        at = min(at, *exits) - 1
    facts: TerminationObserved = {
        "cause": "kill" if by_kubelet else "completed",
        "gracePeriodSeconds": None,
        "observedResourceVersion": "",
    }
    return draft(kinds.TERMINATION_OBSERVED, facts, "kubelet", evidence="inferred", at_ns=at)


def seen_first(records: Sequence[Record]) -> list[Record]:
    """Return the records without what was inferred of a step that was observed: a node's agent saw it."""
    seen = {(r.kind, r.container, _detail(r)) for r in records if r.evidence == "observed"}
    return [r for r in records if r.evidence == "observed" or (r.kind, r.container, _detail(r)) not in seen]


def _detail(record: Record) -> str:
    return str(record.facts_as(kinds.SIGNAL_SENT).get("signal") or "") if record.kind == kinds.SIGNAL_SENT else ""


def _not_shown(timeline: PodTimeline, records: Sequence[Record], around: StoryContext) -> Iterator[tuple[str, str]]:
    for sentence in unknown(timeline.pod, records, audited=around.audit is not None):
        yield sentence, "api"
    nobody = not any(r.kind == kinds.DELETION_DECIDED for r in records)
    for right in around.missing:
        if (
            right.resource in _ALWAYS
            or (nobody and right.resource != "pods/log")
            or (right.resource == "pods/log" and any(r.kind == kinds.CONTAINER_STARTED for r in records))
        ):
            yield right.sentence, "rights"
    if timeline.late and timeline.deleted_ns is not None:
        seconds = (timeline.began.at_ns - timeline.deleted_ns) / 1e9
        yield (
            f"It was followed from about {seconds:.0f} s after the DELETE on: what came before is concluded from its "
            "object and its Events.",
            "late",
        )
    yield from timeline.not_shown.items()
    if timeline.dropped:
        yield f"{timeline.dropped} of its records were too many to keep.", "api"
    behind = timeline.clocks.behind_seconds(timeline.node)
    if behind is not None and abs(behind) >= SKEW_NOTICED_SECONDS:
        clock = f"The clock of node {timeline.node} is about {abs(behind):.0f} s"
        where = "behind this machine's, or all its Events came so late" if behind > 0 else "ahead of this machine's"
        yield f"{clock} {where}: its times were moved by that.", "api"
