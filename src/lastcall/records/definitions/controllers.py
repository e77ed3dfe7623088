"""What controllers, scheduler, API server (evictions) and kubelet decide about Pods and their owners."""

from typing import Annotated, TypedDict

from lastcall.records import rules
from lastcall.records.definitions.parts import (
    GroundsOfDecision,
    Observed,
    OwnerOfDecision,
    ResourceVersion,
)
from lastcall.records.said import str_of, tell
from lastcall.records.sentences import STEP, Words, fixed, row, sentences

ACTOR = "the component that decides"


class DeletionDecided(GroundsOfDecision):
    """A component decides that a Pod (or the Job that owns it) has to end. Written just before the DELETE."""

    why: Annotated[str, "one sentence"]
    observedResourceVersion: Observed


class ClaimHeld(TypedDict):
    """A claim that was deleted stays, because this Pod uses it."""

    claim: str
    finalizer: str
    pod: str


_Resized = TypedDict("_Resized", {"from": int, "to": int})


class ScaleDecided(OwnerOfDecision, _Resized):
    """A Deployment has changed the size of a ReplicaSet, or an autoscaler that of its target. The record is of no
    Pod."""

    step: Annotated[str, "rollout or scaling"]
    revision: str
    ofKind: str
    name: str
    uid: str
    generation: Annotated[int, "as written; 0 for an autoscaler, which writes the scale alone"]
    resourceVersion: ResourceVersion
    why: Annotated[str, "the autoscaler's reason; empty for a Deployment, or where it is not known"]


def scale_decided(facts: ScaleDecided) -> Words:
    step: str = str_of(facts.get("step", "?"))
    if step == "rollout":
        step = tell("rollout")
    elif step == "scaling":
        step = tell("scaling")
    text = tell(
        "scales $kind $name from $before to $after ($step)",
        kind=facts.get("ofKind", "?"),
        name=facts.get("name", "?"),
        before=facts.get("from", "?"),
        after=facts.get("to", "?"),
        step=facts.get("why") or step,
    )
    return Words(text)


class PodScheduled(TypedDict):
    """The scheduler has bound the Pod to a node."""

    node: str


_DELETIONS = (
    rules.PREEMPT_POD,
    rules.CREATE_EVICTION,
    rules.GET_PODS_TO_DELETE,
    rules.PODS_SHOULD_BE_ON_NODE,
    rules.UPDATE_STATEFUL_SET,
    rules.MANAGE_JOB,
    rules.DELETE_ACTIVE_PODS,
    rules.DELETE_FINISHED_JOB,
    rules.DELETE_JOB_OF_CRON_JOB,
    rules.ATTEMPT_TO_DELETE_ITEM,
    rules.DELETE_ALL_CONTENT,
    rules.GC_TERMINATED,
    rules.GC_TERMINATING,
    rules.GC_ORPHANED,
    rules.GC_UNSCHEDULED_TERMINATING,
    rules.PROCESS_POD_ON_NODE,
    rules.DELETE_POD_OF_TAINTED_DEVICE,
    rules.LIST_CONFIG,
    rules.EVICT_PODS_TO_FREE_REQUESTS,
    rules.EVICT_UNDER_PRESSURE,
    rules.LOCAL_STORAGE_EVICTION,
    rules.KILL_PODS_AT_SHUTDOWN,
)

SENTENCES = sentences(
    row(DeletionDecided, fixed("decides the end: $why", STEP, recall=("why",)), *_DELETIONS),
    row(
        ClaimHeld,
        fixed("claim $claim was deleted and stays, held by finalizer $finalizer, because this Pod uses it", STEP),
        rules.PROCESS_PVC,
    ),
    row(
        ScaleDecided,
        scale_decided,
        rules.RECONCILE_OLD_REPLICA_SETS,
        rules.SCALE_DEPLOYMENT,
        rules.RECONCILE_AUTOSCALER,
    ),
    row(PodScheduled, fixed("scheduled to $node", STEP), rules.BIND),
)
"""The words for each kind."""
