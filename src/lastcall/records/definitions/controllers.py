"""What controllers, scheduler, API server (evictions) and kubelet decide about Pods and their owners."""

from typing import Annotated, TypedDict

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


SENTENCES = sentences(
    row(DeletionDecided, fixed("decides the end: $why", STEP, recall=("why",))),
    row(
        ClaimHeld,
        fixed("claim $claim was deleted and stays, held by finalizer $finalizer, because this Pod uses it", STEP),
    ),
    row(ScaleDecided, scale_decided),
    row(PodScheduled, fixed("scheduled to $node", STEP)),
)
"""The words for each kind."""
