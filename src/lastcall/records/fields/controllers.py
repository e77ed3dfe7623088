"""What controllers, scheduler, API server (evictions) and kubelet decide about Pods and their owners."""

from typing import Annotated, TypedDict

from lastcall.records.fields.parts import (
    GroundsOfDecision,
    Observed,
    OwnerOfDecision,
    ResourceVersion,
)

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
    """The Deployment controller has changed the size of a ReplicaSet. The record is of no Pod."""

    step: Annotated[str, "rollout or scaling"]
    revision: str
    ofKind: str
    name: str
    uid: str
    generation: Annotated[int, "as written"]
    resourceVersion: ResourceVersion


class PodScheduled(TypedDict):
    """The scheduler has bound the Pod to a node."""

    node: str
