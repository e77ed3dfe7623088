"""What the API server has written."""

from typing import Annotated, NotRequired, TypedDict

from lastcall.records import rules
from lastcall.records.definitions.parts import (
    Audited,
    ContainerOfPod,
    EphemeralContainer,
    Owner,
    ResourceVersion,
    SpecChange,
    StartProblems,
    WholeSeconds,
)
from lastcall.records.said import joined, tell
from lastcall.records.sentences import DETAIL, STEP, Words, fixed, row, sentences, yes

ACTOR = "apiserver"


class PodCreated(TypedDict):
    """The Pod's object is stored."""

    namespace: str
    name: str
    user: str
    containers: list[ContainerOfPod]
    owner: NotRequired[Annotated[Owner, "its controller"]]
    subdomain: NotRequired[Annotated[str, "the Service below which DNS names it"]]
    resourceVersion: ResourceVersion


class EphemeralContainersAdded(TypedDict):
    """A client adds ephemeral containers (`kubectl debug`)."""

    containers: list[EphemeralContainer]
    user: str
    resourceVersion: ResourceVersion


def ephemeral_added(facts: EphemeralContainersAdded) -> Words:
    each = [
        tell("$name beside $target", name=one.get("name"), target=one["target"])
        if one.get("target")
        else str(one.get("name"))
        for one in facts.get("containers") or []
    ]
    names = joined(each, ", ")
    return Words(tell("ephemeral container $names added by $user", names=names, user=facts.get("user")), STEP, "api")


class PodBound(TypedDict):
    """The Pod is assigned to a node."""

    node: str
    resourceVersion: ResourceVersion


class DeleteAccepted(Audited):
    """The API server accepts the DELETE: the zero of a Pod's end."""

    user: str
    userAgent: str
    gracePeriodSeconds: WholeSeconds
    deletionTimestamp: Annotated[str, "wall-clock time at which the grace period ends"]
    resourceVersion: ResourceVersion


def delete_accepted(facts: DeleteAccepted) -> Words:
    by = tell(", by $user", user=facts["user"]) if facts.get("user") else ""
    grace = facts.get("gracePeriodSeconds")
    return Words(tell("DELETE accepted: deletionTimestamp set, grace $grace s$by", grace=grace, by=by), STEP, "api")


_Shortened = TypedDict(
    "_Shortened",
    {
        "from": Annotated[WholeSeconds, "grace period before"],
        "to": Annotated[WholeSeconds, "grace period from now on"],
    },
)


class DeleteRefused(TypedDict):
    """Admission refuses the DELETE: a webhook, a policy, or a webhook that cannot be asked."""

    user: str
    userAgent: str
    message: str
    resourceVersion: ResourceVersion


def delete_refused(facts: DeleteRefused) -> Words:
    user, message = facts.get("user"), facts.get("message")
    return Words(tell("DELETE by $user refused: $message", user=user, message=message), STEP, "signal")


class GraceShortened(_Shortened):
    """Another DELETE makes the grace period shorter."""

    user: str
    resourceVersion: ResourceVersion


def grace_shortened(facts: GraceShortened) -> Words:
    before, after = facts.get("from"), facts.get("to")
    text = tell("grace period shortened from $before s to $after s", before=before, after=after)
    return Words(text, STEP, "api")


class PodStatusWritten(StartProblems):
    """The Pod's status is written."""

    phase: str
    ready: Annotated[bool, "the condition Ready"]
    reason: str
    resourceVersion: ResourceVersion


def status_written(facts: PodStatusWritten) -> Words:
    phase = facts.get("phase")
    level = STEP if phase in ("Succeeded", "Failed") else DETAIL
    reason = f" ({facts['reason']})" if facts.get("reason") else ""
    ready = yes(facts.get("ready"))
    text = tell("status written: phase $phase$reason, Ready $ready", phase=phase, reason=reason, ready=ready)
    return Words(text, level, "api")


class HeldByFinalizers(TypedDict):
    """The last DELETE (grace period 0) leaves the object there, because it has finalizers."""

    finalizers: list[str]
    user: str
    resourceVersion: ResourceVersion


def held_by_finalizers(facts: HeldByFinalizers) -> Words:
    finalizers = ", ".join(map(str, facts.get("finalizers") or ()))
    return Words(tell("the object stays: held by finalizers $finalizers", finalizers=finalizers), STEP, "signal")


class ObjectRemoved(TypedDict):
    """The Pod's object is removed from the store."""

    user: str
    resourceVersion: ResourceVersion


class OwnerDeleted(Audited):
    """A client deletes an owner of Pods, or a namespace. The record is of no Pod."""

    ofKind: str
    namespace: str
    name: str
    uid: str
    ownerUid: Annotated[str, "its controller's, or empty"]
    generation: int
    resourceVersion: ResourceVersion
    user: str
    userAgent: str


def owner_deleted(facts: OwnerDeleted) -> Words:
    kind, name, user = facts.get("ofKind"), facts.get("name"), facts.get("user")
    return Words(tell("$kind $name deleted by $user", kind=kind, name=name, user=user), STEP, "api")


class OwnerWritten(OwnerDeleted, SpecChange):
    """A client creates an owner of Pods or changes its spec. The record is of no Pod."""


def owner_written(facts: OwnerWritten) -> Words:
    changed = facts.get("changed")
    owner = {"kind": facts.get("ofKind"), "name": facts.get("name"), "user": facts.get("user")}
    if not changed:
        return Words(tell("$kind $name: created by $user", **owner), STEP, "api")
    fields = ", ".join(map(str, changed))
    return Words(tell("$kind $name: $fields written by $user", fields=fields, **owner), STEP, "api")


_MARKS = (rules.BEFORE_DELETE, rules.MARK_AS_DELETING, rules.DELETE)

SENTENCES = sentences(
    row(PodCreated, fixed("$namespace/$name created", STEP, "api"), rules.CREATE),
    row(EphemeralContainersAdded, ephemeral_added, rules.UPDATE_EPHEMERAL_CONTAINERS),
    row(PodBound, fixed("bound to $node", DETAIL, "api"), rules.ASSIGN_POD),
    row(DeleteAccepted, delete_accepted, *_MARKS),
    row(DeleteRefused, delete_refused, rules.DELETE),
    row(GraceShortened, grace_shortened, *_MARKS),
    row(PodStatusWritten, status_written, rules.UPDATE_POD_STATUS),
    row(HeldByFinalizers, held_by_finalizers, rules.MARK_AS_DELETING),
    row(ObjectRemoved, fixed("object removed from the store", STEP, "api"), rules.DELETE),
    row(OwnerDeleted, owner_deleted, *_MARKS, rules.DELETE_NAMESPACE),
    row(OwnerWritten, owner_written),
)
"""The words for each kind."""
