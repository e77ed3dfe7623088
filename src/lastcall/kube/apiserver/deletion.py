"""What a DELETE does to an object: pure decisions, no store, no clock of their own.

A DELETE is at most two writes. The first marks the object (deletionTimestamp, deletionGracePeriodSeconds, finalizers),
the second removes it. `decide_delete` says which of them to do for the object as it is now; the registry performs them
and asks again when the object has changed meanwhile. Updates can complete a deletion too:
`should_delete_during_update`.

Sources: apiserver registry/rest/delete.go:BeforeDelete, registry/generic/registry/store.go:Delete,
pkg/registry/core/pod/strategy.go:CheckGracefulDelete, pkg/registry/core/namespace/storage/storage.go:Delete.
"""

# check: pure

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from lastcall.kube.api.errors import StatusError, conflict
from lastcall.kube.api.meta import AnyObject, Object, copy_object, with_own_metadata
from lastcall.kube.api.resources import CUSTOMRESOURCEDEFINITIONS
from lastcall.kube.api.text.times import later, parse_rfc3339
from lastcall.records.rules import BEFORE_DELETE, DELETE, DELETE_NAMESPACE, MARK_AS_DELETING, Rule
from lastcall.world.clock import rfc3339
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.cluster import Namespace
    from lastcall.kube.api.types.meta import ObjectMeta
    from lastcall.kube.api.types.pod import Pod

ORPHAN_DEPENDENTS = "orphan"
FOREGROUND_DELETION = "foregroundDeletion"

PropagationPolicy = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """`metav1.DeleteOptions`, decoded and validated. `uid` and `resource_version` are the preconditions.

    `dry_run` is what the client wrote; the verb enters it in the context of the request, which is asked afterwards.
    """

    grace_period_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation_policy: PropagationPolicy | None = None
    orphan_dependents: bool | None = None
    dry_run: bool = False


class GarbageCollectionPolicy(Enum):
    """What a kind does with its dependents when the caller gives no policy (rest.GarbageCollectionPolicy)."""

    DELETE_DEPENDENTS = "DeleteDependents"
    ORPHAN_DEPENDENTS = "OrphanDependents"
    UNSUPPORTED = "Unsupported"


CheckGracefulDelete = Callable[[Any, int | None], int]
"""Given the object of its kind and the asked grace period, the grace period to use in seconds."""


@dataclass(frozen=True, slots=True)
class DeleteRules:
    """What differs between kinds. `check_graceful_delete` is None for kinds without graceful deletion: all but Pods."""

    kind: str = ""
    group: str = ""
    check_graceful_delete: CheckGracefulDelete | None = None
    default_policy: GarbageCollectionPolicy = GarbageCollectionPolicy.DELETE_DEPENDENTS


Action = Literal["pending", "remove", "mark", "mark and remove"]
"""
pending: nothing changes, answer the object as it is. remove: one write, DELETED. mark: one write, MODIFIED, the object
stays. mark and remove: two writes, MODIFIED and DELETED.
"""


class Decision(NamedTuple):
    """`object` is what to write first; None when the first write is not needed. `rule` names the deciding function."""

    action: Action
    object: Object | None
    rule: Rule


def check_graceful_delete_pod(pod: Pod, asked: int | None) -> int:
    """Return the grace period of a Pod that is not yet terminating, in seconds (CheckGracefulDelete)."""
    spec = pod.get("spec", {})
    if not spec.get("nodeName") or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    period = asked if asked is not None else (spec.get("terminationGracePeriodSeconds") or 0)
    return 1 if period < 0 else period


class BeforeDelete(NamedTuple):
    """graceful: `object` carries a new deletion mark. pending: a grace period runs and stays as it is."""

    graceful: bool
    pending: bool
    object: Object


def before_delete(rules: DeleteRules, obj: Object, options: DeleteOptions, now: datetime) -> BeforeDelete:
    """Decide the grace period of `obj` (never changed; the answer may be a changed copy).

    Raises the 409 StatusError of a failed precondition. `now` is aware UTC time.
    """
    check_preconditions(rules, obj, options)
    asked = options.grace_period_seconds
    if asked is not None and asked < 0:
        asked = 1
    meta: ObjectMeta = obj["metadata"]
    if (meta.get("deletionGracePeriodSeconds") or 0) < 0:
        obj = with_own_metadata(obj)
        meta = obj["metadata"]
        meta["deletionGracePeriodSeconds"] = 1
    if rules.check_graceful_delete is None:
        return BeforeDelete(False, False, obj)
    if meta.get("deletionTimestamp") is not None:
        return _shorten(obj, asked, now)
    period = rules.check_graceful_delete(obj, asked)
    obj = with_own_metadata(obj)
    meta = obj["metadata"]
    meta["deletionTimestamp"] = rfc3339(later(now, period))
    meta["deletionGracePeriodSeconds"] = period
    if meta.get("generation", 0) > 0:
        meta["generation"] += 1
    return BeforeDelete(True, False, obj)


def _shorten(obj: Object, asked: int | None, now: datetime) -> BeforeDelete:
    """A DELETE of an object that is already terminating: the grace period can only become shorter."""
    meta: ObjectMeta = obj["metadata"]
    stored = meta.get("deletionGracePeriodSeconds") or 0
    if stored == 0:
        # The mark was written and the removal was not (or waits for finalizers): continue with the removal.
        return BeforeDelete(False, False, obj)
    if asked is None or asked >= stored:
        return BeforeDelete(False, True, obj)
    deadline = later(parse_rfc3339(meta["deletionTimestamp"]), asked - stored)
    if deadline < now:
        deadline = now
        asked = 1 if asked else 0
    obj = with_own_metadata(obj)
    meta = obj["metadata"]
    meta["deletionTimestamp"] = rfc3339(deadline)
    meta["deletionGracePeriodSeconds"] = asked
    return BeforeDelete(True, False, obj)


def decide_delete(rules: DeleteRules, obj: Object, options: DeleteOptions, now: datetime) -> Decision:
    """Decide what a DELETE with `options` does to `obj` as stored now (store.go:Delete).

    Raises the 409 StatusError of a failed precondition.
    """
    before = before_delete(rules, obj, options, now)
    if before.pending:
        return Decision("pending", None, BEFORE_DELETE)
    had = finalizers_of(obj)
    finalizers = deletion_finalizers(rules.default_policy, had, options)
    if not (before.graceful or had or finalizers != had):
        return Decision("remove", None, DELETE)
    marked = before.object if before.graceful else with_own_metadata(before.object)  # which is a copy already
    _set_finalizers(marked["metadata"], finalizers)
    if before.graceful:
        stays = bool(finalizers) or marked["metadata"]["deletionGracePeriodSeconds"] > 0
        return Decision("mark" if stays else "mark and remove", marked, BEFORE_DELETE)
    if finalizers:
        mark_as_deleting(marked, now)
        return Decision("mark", None if marked == obj else marked, MARK_AS_DELETING)
    return Decision("mark and remove", marked, DELETE)


def mark_as_deleting(obj: Object, now: datetime) -> None:
    """Set the mark of an object that finalizers hold: deletionTimestamp at most `now`, grace 0 (changes `obj`)."""
    meta: ObjectMeta = obj.setdefault("metadata", {})
    marked = meta.get("deletionTimestamp")
    if marked is None and meta.get("generation", 0) > 0:
        meta["generation"] += 1
    if marked is None or parse_rfc3339(marked) > now:
        meta["deletionTimestamp"] = rfc3339(now)
    meta["deletionGracePeriodSeconds"] = 0


def deletion_finalizers(policy: GarbageCollectionPolicy, had: list[str], options: DeleteOptions) -> list[str]:
    """Return the finalizers with the garbage collector's two as asked (deletionFinalizersForGarbageCollection)."""
    wanted = [name for name in had if name not in (ORPHAN_DEPENDENTS, FOREGROUND_DELETION)]
    if should_orphan_dependents(policy, had, options):
        wanted.append(ORPHAN_DEPENDENTS)
    if should_delete_dependents(policy, had, options):
        wanted.append(FOREGROUND_DELETION)
    return had if sorted(wanted) == sorted(had) else wanted


def should_orphan_dependents(policy: GarbageCollectionPolicy, had: list[str], options: DeleteOptions) -> bool:
    """Decide by orphanDependents, then propagationPolicy, then the object's own finalizer, then the kind's default."""
    if policy is GarbageCollectionPolicy.UNSUPPORTED:
        return False
    if options.orphan_dependents is not None:
        return options.orphan_dependents
    if options.propagation_policy is not None:
        return options.propagation_policy == "Orphan"
    for name in had:
        if name in (ORPHAN_DEPENDENTS, FOREGROUND_DELETION):
            return name == ORPHAN_DEPENDENTS
    return policy is GarbageCollectionPolicy.ORPHAN_DEPENDENTS


def should_delete_dependents(policy: GarbageCollectionPolicy, had: list[str], options: DeleteOptions) -> bool:
    """Return whether the object waits for its dependents (Foreground)."""
    if policy is GarbageCollectionPolicy.UNSUPPORTED or options.orphan_dependents is not None:
        return False
    if options.propagation_policy is not None:
        return options.propagation_policy == "Foreground"
    for name in had:
        if name in (ORPHAN_DEPENDENTS, FOREGROUND_DELETION):
            return name == FOREGROUND_DELETION
    return False


def should_delete_during_update(new: AnyObject, old: AnyObject) -> bool:
    """Return whether an update of `old` to `new` removes the object (ShouldDeleteDuringUpdate)."""
    meta: ObjectMeta = old["metadata"]
    return (
        not finalizers_of(new)
        and meta.get("deletionTimestamp") is not None
        and not (meta.get("deletionGracePeriodSeconds") or 0)
    )


def decide_namespace_delete(namespace: Namespace, options: DeleteOptions, now: datetime) -> Decision:
    """Decide about a DELETE of a Namespace: the first turns the phase, the last (spec.finalizers empty) removes.

    Raises the 409 StatusError of a failed precondition.
    """
    meta = namespace["metadata"]
    for field, wanted, found in (
        ("UID", options.uid, meta.get("uid", "")),
        ("ResourceVersion", options.resource_version, meta.get("resourceVersion", "")),
    ):
        if wanted is not None and wanted != found:
            why = f"Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}"
            raise conflict("namespaces", meta.get("name", ""), why)
    if meta.get("deletionTimestamp") is None:
        marked = copy_object(namespace)
        marked["metadata"]["deletionTimestamp"] = rfc3339(now)
        marked.setdefault("status", {})["phase"] = "Terminating"
        _set_finalizers(marked["metadata"], _namespace_finalizers(finalizers_of(namespace), options))
        return Decision("mark", cast(Object, marked), DELETE_NAMESPACE)
    if namespace.get("spec", {}).get("finalizers"):
        return Decision("pending", None, DELETE_NAMESPACE)
    return decide_delete(DeleteRules("Namespace"), cast(Object, namespace), options, now)


def _namespace_finalizers(had: list[str], options: DeleteOptions) -> list[str]:
    """The Namespace's own variant of the finalizer rule: orphanDependents=false means Foreground here."""
    policy = options.propagation_policy
    orphan = foreground = None
    if options.orphan_dependents is not None:
        orphan, foreground = options.orphan_dependents, not options.orphan_dependents
    elif policy is not None:
        orphan, foreground = policy == "Orphan", policy == "Foreground"
    wanted = list(had)
    for name, want in ((ORPHAN_DEPENDENTS, orphan), (FOREGROUND_DELETION, foreground)):
        if want and name not in wanted:
            wanted.append(name)
        elif want is False and name in wanted:
            wanted.remove(name)
    return wanted


def should_delete_namespace_during_update(new: Namespace, old: Namespace) -> bool:
    """Return what `should_delete_during_update` does, but spec.finalizers must be empty too."""
    return not new.get("spec", {}).get("finalizers") and should_delete_during_update(new, old)


def check_preconditions(rules: DeleteRules, obj: AnyObject, options: DeleteOptions) -> None:
    """Raise 409 Conflict; the message names the Kind where other conflicts name the resource."""
    meta: ObjectMeta = obj["metadata"]
    uid, version = meta.get("uid", ""), meta.get("resourceVersion", "")
    name = meta.get("name", "")
    if rules.group == CUSTOMRESOURCEDEFINITIONS.group:  # its finalizer goes on by the store's own check
        if options.uid is not None and options.uid != uid:
            raise _precondition(name, f"UID in precondition: {options.uid}, UID in object meta: {uid}")
        if options.resource_version is not None and options.resource_version != version:
            asked = f"ResourceVersion in precondition: {options.resource_version}"
            raise _precondition(name, f"{asked}, ResourceVersion in object meta: {version}")
    if options.uid is not None and options.uid != uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated"
        )
        raise _precondition_failed(rules, meta.get("name", ""), why)
    if options.resource_version is not None and options.resource_version != version:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({version}). The object might have been modified"
        )
        raise _precondition_failed(rules, meta.get("name", ""), why)


def _precondition(name: str, why: str) -> StatusError:
    """(pkg/registry/customresourcedefinition/etcd.go:Delete)"""
    return conflict(CUSTOMRESOURCEDEFINITIONS, name, f"Precondition failed: {why}")


def _precondition_failed(rules: DeleteRules, name: str, why: str) -> StatusError:
    error = conflict(f"{rules.kind}.{rules.group}" if rules.group else rules.kind, name, why)
    details = {"name": name, "group": rules.group, "kind": rules.kind}
    error.status["details"] = {key: value for key, value in details.items() if value}
    return error


def finalizers_of(obj: AnyObject) -> list[str]:
    meta: ObjectMeta = obj["metadata"]
    return meta.get("finalizers") or []


def _set_finalizers(meta: ObjectMeta, finalizers: list[str]) -> None:
    if finalizers:
        meta["finalizers"] = list(finalizers)
    else:
        meta.pop("finalizers", None)
