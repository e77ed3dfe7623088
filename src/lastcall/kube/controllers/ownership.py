"""Who owns an object: owner references, and which of the objects it finds a controller may claim.

Sources: apimachinery pkg/apis/meta/v1/controller_ref.go, pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Generic, cast

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import AnyObject, Object, T, is_terminating, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.selectors import LabelSelector
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH, Client
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.meta import OwnerReference


def controller_reference(owner: AnyObject, resource: Resource) -> OwnerReference:
    """Return the ownerReference of an object that `owner` manages. (`metav1.NewControllerRef`)"""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(obj: AnyObject) -> OwnerReference | None:
    """Return the one reference that is marked as the controller's. (`metav1.GetControllerOf`)"""
    references = obj["metadata"].get("ownerReferences")
    if references:
        reference: OwnerReference
        for reference in references:
            if reference.get("controller"):
                return reference
    return None


def owner_value(obj: AnyObject) -> str:
    """Return the value of an object in indexes by owner: its controller's uid, or the namespace if it has none."""
    reference = controller_of(obj)
    # Orphans are looked for in one namespace at a time.
    return str(reference["uid"]) if reference is not None else orphans_of(namespace_of(obj))


def orphans_of(namespace: str) -> str:
    """Return the `owner_value` of the objects in `namespace` that no controller owns."""
    return f"orphan/{namespace}"


def is_controlled_by(obj: AnyObject, owner: AnyObject) -> bool:
    reference = controller_of(obj)
    return reference is not None and reference["uid"] == uid_of(owner)


@dataclass(frozen=True, slots=True)
class Claim(Generic[T]):
    """What becomes of the objects a controller found: they are its own, it adopts them, or it lets them go."""

    owned: tuple[T, ...]
    adopt: tuple[T, ...]
    release: tuple[T, ...]


def decide_claim(
    owner: AnyObject,
    selector: LabelSelector,
    objects: Iterable[T],
    matches: Callable[[T], bool] | None = None,
) -> Claim[T]:
    """Sort `objects`; `matches` is a further condition beside the selector. (`BaseControllerRefManager.ClaimObject`)

    A terminating owner neither adopts nor releases; an orphan that is terminating itself is not adopted.
    """
    owner_uid = uid_of(owner)
    owned: list[T] = []
    adopt: list[T] = []
    release: list[T] = []
    for obj in objects:
        reference = controller_of(obj)
        selected = selector.matches(labels_of(obj)) and (matches is None or matches(obj))
        if reference is not None:
            if reference["uid"] != owner_uid:
                continue
            if selected:
                owned.append(obj)
            elif not is_terminating(owner):
                release.append(obj)
        elif selected and not is_terminating(owner) and not is_terminating(obj) and _may_own(owner, obj):
            adopt.append(obj)
    return Claim(tuple(owned), tuple(adopt), tuple(release))


def _may_own(owner: AnyObject, obj: AnyObject) -> bool:
    """A namespaced owner owns only in its own namespace."""
    return not namespace_of(owner) or namespace_of(owner) == namespace_of(obj)


class AdoptionRefused(Exception):
    """The owner that wanted to adopt is gone or terminating in the API, whatever the cache says."""


async def claim(
    client: Client,
    owner: AnyObject,
    owner_resource: Resource,
    resource: Resource,
    decision: Claim[T],
    finalizers: tuple[str, ...] = (),
) -> list[T]:
    """Perform a claim and return the owner's objects afterwards. Raises StatusError, AdoptionRefused.

    An object that vanished or changed hands meanwhile is left out. `finalizers` are added on adoption (Jobs). The owner
    is asked for again before the first adoption: a cache may not know yet that it was deleted.
    """
    claimed = list(decision.owned)
    if decision.adopt:
        fresh = await client.get(owner_resource, name_of(owner), namespace_of(owner))
        if uid_of(fresh) != uid_of(owner):
            raise AdoptionRefused(f"original {owner_resource.kind} {namespace_of(owner)}/{name_of(owner)} is gone")
        if is_terminating(fresh):
            raise AdoptionRefused(f"{namespace_of(owner)}/{name_of(owner)} has just been deleted")
    for obj in decision.adopt:
        meta: Object = {"ownerReferences": [controller_reference(owner, owner_resource)], "uid": uid_of(obj)}
        if finalizers:
            meta["finalizers"] = list(finalizers)
        adopted = await _unless_gone(_patch(client, resource, obj, {"metadata": meta}))
        if adopted is not None:
            claimed.append(cast("T", adopted))
    for obj in decision.release:
        references = [{"$patch": "delete", "uid": uid_of(owner)}]
        meta = {"ownerReferences": references, "uid": uid_of(obj)}
        if finalizers:
            meta["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
        await _unless_gone(_patch(client, resource, obj, {"metadata": meta}))
    return claimed


async def _patch(client: Client, resource: Resource, obj: AnyObject, patch: Object) -> Object:
    return await client.patch(resource, name_of(obj), patch, namespace_of(obj), content_type=STRATEGIC_MERGE_PATCH)


async def _unless_gone(write: Awaitable[Object]) -> Object | None:
    """None when the object is gone (404) or is another one by now (422: the uid does not fit)."""
    try:
        return await write
    except StatusError as error:
        if is_not_found(error) or error.code == 422:
            return None
        raise
