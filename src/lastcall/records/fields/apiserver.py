"""What the API server has written."""

from typing import Annotated, NotRequired, TypedDict

from lastcall.records.fields.parts import (
    ContainerOfPod,
    EphemeralContainer,
    Owner,
    ResourceVersion,
    SpecChange,
    StartProblems,
    WholeSeconds,
)

ACTOR = "apiserver"


class PodCreated(TypedDict):
    """The Pod's object is stored."""

    namespace: str
    name: str
    user: str
    containers: list[ContainerOfPod]
    owner: NotRequired[Annotated[Owner, "its controller"]]
    resourceVersion: ResourceVersion


class EphemeralContainersAdded(TypedDict):
    """Somebody adds ephemeral containers (`kubectl debug`)."""

    containers: list[EphemeralContainer]
    user: str
    resourceVersion: ResourceVersion


class PodBound(TypedDict):
    """The Pod is assigned to a node."""

    node: str
    resourceVersion: ResourceVersion


class DeleteAccepted(TypedDict):
    """The API server accepts the DELETE: the zero of a Pod's end."""

    user: str
    userAgent: str
    gracePeriodSeconds: WholeSeconds
    deletionTimestamp: Annotated[str, "wall-clock time at which the grace period ends"]
    resourceVersion: ResourceVersion


_Shortened = TypedDict(
    "_Shortened",
    {
        "from": Annotated[WholeSeconds, "grace period before"],
        "to": Annotated[WholeSeconds, "grace period from now on"],
    },
)


class GraceShortened(_Shortened):
    """Another DELETE makes the grace period shorter."""

    user: str
    resourceVersion: ResourceVersion


class PodStatusWritten(StartProblems):
    """The Pod's status is written."""

    phase: str
    ready: Annotated[bool, "the condition Ready"]
    reason: str
    resourceVersion: ResourceVersion


class HeldByFinalizers(TypedDict):
    """The last DELETE (grace period 0) leaves the object there, because it has finalizers."""

    finalizers: list[str]
    user: str
    resourceVersion: ResourceVersion


class ObjectRemoved(TypedDict):
    """The Pod's object is removed from the store."""

    user: str
    resourceVersion: ResourceVersion


class OwnerDeleted(TypedDict):
    """Somebody deletes an owner of Pods, or a namespace. The record is of no Pod."""

    ofKind: str
    namespace: str
    name: str
    uid: str
    ownerUid: Annotated[str, "its controller's, or empty"]
    generation: int
    resourceVersion: ResourceVersion
    user: str
    userAgent: str


class OwnerWritten(OwnerDeleted, SpecChange):
    """Somebody creates an owner of Pods or changes its spec. The record is of no Pod."""
