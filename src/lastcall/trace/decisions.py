"""Who decided that a Pod has to end, concluded from what the API shows. Pure.

The API never says who sent a DELETE. It shows what was written just before it (the condition DisruptionTarget), what a
controller said afterwards (its Event SuccessfulDelete), and that an owner or the namespace is gone. Without any of them
nobody is named.

Source: the condition's reasons in pkg/apis/core/types.go (`PodReason…`); pod_control, controller_utils.go
(`SuccessfulDeletePodReason`).
"""

# check: pure

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lastcall.endings import is_loopback
from lastcall.kube.api import AnyObject, Object, labels_of, name_of, seconds_tolerated, why_evicted
from lastcall.records import kinds, rules
from lastcall.trace.drafts import Draft, draft
from lastcall.trace.events import PodEvent, names_pod, preemptor_of
from lastcall.trace.owners import OwnerState
from lastcall.trace.pods import TERMINAL, condition_of, controller_of
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.apiserver import DeleteAccepted
    from lastcall.records.definitions.controllers import DeletionDecided
    from lastcall.records.definitions.parts import Audited, GroundsOfDecision

_TARGETS: Mapping[str, tuple[str, rules.Rule, str]] = {
    "EvictionByEvictionAPI": ("apiserver", rules.CREATE_EVICTION, "evicted"),
    "DeletionByTaintManager": (
        "taint-eviction-controller",
        rules.PROCESS_POD_ON_NODE,
        "",
    ),
    "DeletionByDeviceTaintManager": (
        "device-taint-eviction-controller",
        rules.DELETE_POD_OF_TAINTED_DEVICE,
        "evicted because a device that it uses has a NoExecute taint",
    ),
    "PreemptionByScheduler": (
        "kube-scheduler",
        rules.PREEMPT_POD,
        "preempted by a Pod of higher priority",
    ),
    "DeletionByPodGC": (
        "pod-garbage-collector-controller",
        rules.GC_ORPHANED,
        "{message}",
    ),
}
"""Reason of the condition → actor, rule, why."""

_BY_EVENT = {
    "ReplicaSet": rules.GET_PODS_TO_DELETE,
    "StatefulSet": rules.UPDATE_STATEFUL_SET,
    "DaemonSet": rules.PODS_SHOULD_BE_ON_NODE,
    "Job": rules.MANAGE_JOB,
}


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What was known around a Pod when its end began.

    `owner` is its controller's last state, None where that is not known; `owner_gone`: it was deleted, or is being
    deleted. `events` are about the Pod or its owner. `budgets` are the PodDisruptionBudgets that name the Pod in
    status.disruptedPods. `phase` is the Pod's when its end began: at the end of it every Pod has ended. `taints` are
    the NoExecute taints of its node, one list for each state that the node had then. `sent` is the DELETE; it has a
    user only where an audit log names one. `pod_name` names a Pod by its uid, as `namespace/name`; "" for one that is
    not followed.
    """

    owner: OwnerState | None = None
    owner_gone: bool = False
    namespace_ends: bool = False
    events: Sequence[PodEvent] = ()
    taints: Sequence[Sequence[AnyObject]] = ()
    budgets: Sequence[str] = ()
    phase: str = ""
    sent: "DeleteAccepted | None" = None
    pod_name: Callable[[str], str] = lambda uid: ""


def find_decision(pod: Object, around: DecisionContext, at_ns: int) -> Draft | None:
    """Return the decision that the DELETE goes back to, placed at `at_ns`; None if it is not known."""
    return _by_condition(pod, around, at_ns) or _by_event(pod, around, at_ns) or _by_absence(pod, around, at_ns)


def find_eviction(pod: Object, at_ns: int) -> Draft | None:
    """Find the kubelet's decision to evict a Pod, by the status that it wrote. None for another end.

    Its node was short of something, or the Pod was over a limit of its own. (`eviction_manager.go:synchronize`,
    `localStorageEviction`)
    """
    status = pod.get("status") or {}
    message = str(status.get("message") or "").strip()
    if status.get("reason") != "Evicted" or not message:
        return None
    rule = rules.EVICT_UNDER_PRESSURE if message.startswith("The node ") else rules.LOCAL_STORAGE_EVICTION
    return _decision("kubelet", rule, message, at_ns, {})


def _decision(actor: str, rule: rules.Rule, why: str, at_ns: int, facts: "GroundsOfDecision") -> Draft:
    decision: DeletionDecided = {"why": why, "observedResourceVersion": "", **facts}
    return draft(kinds.DELETION_DECIDED, decision, actor, rule=rule, evidence="inferred", at_ns=at_ns)


def _by_condition(pod: Object, around: DecisionContext, at_ns: int) -> Draft | None:
    target = condition_of(pod, "DisruptionTarget")
    found = _TARGETS.get(str(target.get("reason"))) if target.get("status") == "True" else None
    if found is None:
        return None
    actor, rule, words = found
    message = str(target.get("message") or "").removeprefix("PodGC: ")
    if "out-of-service" in message:
        rule = rules.GC_TERMINATING
    facts: GroundsOfDecision = {}
    if rule == rules.CREATE_EVICTION:
        words, facts = _evicted(around)
    elif actor == "kube-scheduler":
        words, facts = _preempted(words, around)
    elif actor == "taint-eviction-controller":
        words, facts = _tainted(pod, around)
    return _decision(actor, rule, words.replace("{message}", message), at_ns, facts)


def _evicted(around: DecisionContext) -> "tuple[str, GroundsOfDecision]":
    """Name who asked for the eviction, if an audit log says so, and the budget that allowed it."""
    facts: GroundsOfDecision = {}
    allowed = f"PodDisruptionBudget {around.budgets[0]} allowed it" if around.budgets else ""
    if around.budgets:
        facts["podDisruptionBudget"] = around.budgets[0]
    if around.sent is None or not (user := around.sent.get("user")):
        words = "evicted through the Eviction API; the API does not say by whom"
        return f"{words}; {allowed}" if allowed else words, facts
    client = around.sent.get("userAgent", "").partition("/")[0]
    by = f"{client} (user {user})" if client else user
    if (addresses := around.sent.get("sourceIPs")) and not all(map(is_loopback, addresses)):
        by += f" from {', '.join(addresses)}"
    facts["user"], facts["userAgent"] = user, around.sent.get("userAgent", "")
    facts |= _request(around.sent)
    return f"evicted by {by}: {allowed or 'through the Eviction API'}", facts


def _preempted(words: str, around: DecisionContext) -> "tuple[str, GroundsOfDecision]":
    """Name the Pod for which room was made, by the scheduler's Event."""
    event = next((each for each in around.events if each.reason == "Preempted"), None)
    if event is None:
        return words, {}
    who = preemptor_of(event)
    name = who if "/" in who else around.pod_name(who)
    if not name:
        return f"{words} ({event.message})", {}
    return f"preempted by {name}, a Pod of higher priority", {"preemptor": name}


def _tainted(pod: Object, around: DecisionContext) -> "tuple[str, GroundsOfDecision]":
    """Name the taint. Of several states of the node, the one counts that leaves the Pod the least time."""
    spec = pod.get("spec") or {}
    tolerations = spec.get("tolerations") or []
    states = [
        (seconds, each) for each in around.taints if (seconds := seconds_tolerated(tolerations, each)) is not None
    ]
    _, taints = min(states, key=lambda state: state[0], default=(0.0, ()))
    return why_evicted(str(spec.get("nodeName") or "its node"), tolerations, taints)


def _request(sent: "Audited") -> "GroundsOfDecision":
    """Return what an audit log has of the request."""
    facts: GroundsOfDecision = {"auditId": sent.get("auditId", ""), "sourceIPs": sent.get("sourceIPs", [])}
    if impersonator := sent.get("impersonator"):
        facts["impersonator"] = impersonator
    return facts


def _by_event(pod: Object, around: DecisionContext, at_ns: int) -> Draft | None:
    owner, reference = around.owner, controller_of(pod)
    event = next(
        (
            each
            for each in around.events
            if each.of_uid == reference.get("uid") and names_pod(each) == name_of(pod) and each.of_kind in _BY_EVENT
        ),
        None,
    )
    if event is None:
        return None
    facts: GroundsOfDecision = {"ownerKind": event.of_kind, "owner": event.name, "ownerUid": event.of_uid}
    step, why, rule = _step(pod, event, owner, around.phase)
    if step:
        facts["step"] = step
    if owner is not None:
        facts["ownerGeneration"] = owner.generation
    return _decision(event.reporter or f"{event.of_kind.lower()}-controller", rule, why, at_ns, facts)


def _step(pod: Object, event: PodEvent, owner: OwnerState | None, phase: str) -> tuple[str, str, rules.Rule]:
    """(step, why, rule): what the controller was about, by its owner's state."""
    named, rule = f"{event.of_kind} {event.name}", _BY_EVENT[event.of_kind]
    deleted_it = f"{named} deleted it, as its Event says"
    if event.of_kind == "ReplicaSet":
        return "scaling", f"{named} had too many Pods, and chose this one", rule
    if owner is None:
        return "", deleted_it, rule
    if event.of_kind == "StatefulSet":
        if phase in TERMINAL:
            return "ended", f"it has ended ({phase}), and {named} creates it again", rule
        ordinal = name_of(pod).rpartition("-")[2]
        if owner.replicas is not None and ordinal.isdigit() and int(ordinal) >= owner.replicas:
            return "scaling", f"{named} scales to {owner.replicas}, the highest ordinal goes first", rule
        if owner.update_revision and owner.update_revision != labels_of(pod).get("controller-revision-hash"):
            return "rollout", f"{named} rolls out revision {owner.update_revision}, from the highest ordinal down", rule
    if event.of_kind == "DaemonSet":
        was = labels_of(pod).get("pod-template-generation", "")
        if was and owner.template_generation and was != owner.template_generation:
            return "rollout", f"{named} rolls out a new template", rule
    if event.of_kind == "Job":
        finished = rules.DELETE_ACTIVE_PODS
        if owner.finished:
            because = f" ({owner.finished_reason})" if owner.finished_reason else ""
            return "finished", f"{named} has finished: {owner.finished}{because}", finished
        if owner.suspended:
            return "suspended", f"{named} was suspended", finished
    return "", deleted_it, rule


def _by_absence(pod: Object, around: DecisionContext, at_ns: int) -> Draft | None:
    """The namespace ends, or the owner is gone."""
    if around.namespace_ends:
        namespace = str(pod["metadata"].get("namespace") or "")
        ground: GroundsOfDecision = {"namespace": namespace}
        return _decision(
            "namespace-controller", rules.DELETE_ALL_CONTENT, f"its namespace {namespace} is deleted", at_ns, ground
        )
    owner = controller_of(pod)
    if not owner or not around.owner_gone:
        return None
    facts: GroundsOfDecision = {
        "ownerKind": str(owner.get("kind")),
        "owner": str(owner.get("name")),
        "ownerUid": str(owner.get("uid")),
    }
    why = f"its owner is gone: {facts['ownerKind']} {facts['owner']}"
    return _decision("garbage-collector", rules.ATTEMPT_TO_DELETE_ITEM, why, at_ns, facts)
