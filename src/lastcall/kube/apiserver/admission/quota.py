"""The ResourceQuota admission plugin: what a write uses is taken from the quotas of its namespace, or it is refused.

`check` decides on quotas as they are now (pure). `charge` takes: for each quota a compare-and-swap on what is stored,
so that no two writes use the same allowance; what was taken is given back when the write itself fails. Usage that ends
is given back by the resourcequota controller, which counts.

Source: apiserver pkg/admission/plugin/resourcequota/controller.go. No resource is limited without a quota, as by
default there.
"""

# check: asks for kinds because it counts what a Pod asks for otherwise than other objects

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import NamedTuple, Protocol

from lastcall.kube.api.errors import StatusError, forbidden, is_not_found
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.quota.counting import concerned, handles, matches, unspecified, usage
from lastcall.kube.api.resource_lists import (
    Resources,
    add,
    exceeded,
    mask,
    names,
    parse,
    shown,
    subtract_not_below_zero,
    without_zeros,
    written,
)
from lastcall.kube.api.resources import PODS, RESOURCEQUOTAS, Resource
from lastcall.kube.apiserver.admission.attributes import Attributes
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.fieldmanager.requests import Tracking, manager_of, scope_of
from lastcall.kube.apiserver.updated_object import UpdatedObject
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.world.clock import Clock, now, rfc3339_now

Release = Callable[[], Awaitable[None]]
"""Gives back what was taken."""


class QuotaStore(Protocol):
    """Where ResourceQuotas are written."""

    async def update(
        self, context: RequestContext, namespace: str, name: str, change: UpdatedObject, subresource: str = ""
    ) -> object:
        """Replace the object by what `change` makes of it. Raises StatusError."""


_API_SERVER = UserInfo("system:apiserver", ("system:masters",))


class Taken(NamedTuple):
    """What a write takes from the quota of this name."""

    quota: str
    amounts: Resources


# -- rules -----------------------------------------------------------------------------------------------------------


def check(
    resource: Resource, new: Object, old: Object | None, quotas: Iterable[Object], moment: datetime
) -> list[Taken]:
    """Return what a write takes from each quota; `old` is None at a creation. Raises the 403 StatusError.

    (`CheckRequest`)
    """
    name = name_of(new)
    found = [quota for quota in quotas if matches(quota, resource, new)]
    for quota in found:
        _check_known(resource, new, quota)
    if not found:
        return []
    wanted = usage(resource, new, moment)
    if negative := [each for each, amount in wanted.items() if amount.value < 0]:
        raise forbidden(resource, name, f"quota usage is negative for resource(s): {names(negative)}")
    more = wanted if old is None else subtract_not_below_zero(wanted, usage(resource, old, moment))
    taken = []
    for quota in found:
        # An update that brings the object into a scope brings all of it.
        amounts = more if old is None or matches(quota, resource, old) else wanted
        amounts = mask(without_zeros(amounts), quota["status"]["hard"])
        if amounts:
            with_amounts(resource, name, quota, amounts)
            taken.append(Taken(name_of(quota), amounts))
    return taken


def _check_known(resource: Resource, obj: Object, quota: Object) -> None:
    status = quota["status"]
    limited = concerned(resource, status["hard"])
    if resource == PODS and (why := unspecified(obj, limited)):
        raise forbidden(resource, name_of(obj), f"failed quota: {name_of(quota)}: {why}")
    if not all(name in (status.get("used") or {}) for name in limited):
        why = f"status unknown for quota: {name_of(quota)}, resources: {names(limited)}"
        raise forbidden(resource, name_of(obj), why)


def with_amounts(resource: Resource, name: str, quota: Object, amounts: Resources) -> Resources:
    """Return the quota's new `used`. Raises the 403 StatusError when that is beyond its `hard`."""
    status = quota.get("status") or {}
    hard, used = parse(status.get("hard")), parse(status.get("used"))
    after = add(used, mask(amounts, hard))
    if beyond := exceeded(mask(after, amounts), hard):
        why = (
            f"exceeded quota: {name_of(quota)}, requested: {shown(mask(amounts, beyond))}, "
            f"used: {shown(mask(used, beyond))}, limited: {shown(mask(hard, beyond))}"
        )
        raise forbidden(resource, name, why)
    return after


def without_amounts(quota: Object, amounts: Resources) -> Resources:
    """Return the quota's `used` when a write that took `amounts` has failed."""
    used = parse((quota.get("status") or {}).get("used"))
    return {**used, **subtract_not_below_zero(mask(used, amounts), mask(amounts, used))}


# -- writes ----------------------------------------------------------------------------------------------------------


async def charge(store: QuotaStore, clock: Clock, a: Attributes, quotas: Iterable[Object]) -> Release | None:
    """Take what a write uses; None when that is nothing, and for a dry run. Raises the 403 StatusError."""
    resource, new = a.resource, a.new
    if not handles(resource, new, a.old, a.subresource):
        return None
    wanted = check(resource, new, a.old, quotas, now(clock))
    if not wanted or a.context.dry_run:
        return None
    namespace, taken = new["metadata"]["namespace"], list[Taken]()

    async def release() -> None:
        for each in taken:
            await _write(store, clock, namespace, each.quota, _giving_back(each.amounts))

    try:
        for each in wanted:
            change = _taking(resource, name_of(new), each.amounts)
            if await _write(store, clock, namespace, each.quota, change):
                taken.append(each)
    except BaseException:
        await release()
        raise
    return release


def _taking(resource: Resource, name: str, amounts: Resources) -> Callable[[Object], Resources]:
    return lambda quota: with_amounts(resource, name, quota, amounts)


def _giving_back(amounts: Resources) -> Callable[[Object], Resources]:
    return lambda quota: without_amounts(quota, amounts)


async def _write(
    store: QuotaStore, clock: Clock, namespace: str, name: str, change: Callable[[Object], Resources]
) -> bool:
    """Write a quota's `used` as `change` makes it of what is stored; False when the quota is gone."""

    def transform(stored: Object) -> Object:
        status = {**(stored.get("status") or {}), "used": written(change(stored))}
        return {**stored, "metadata": dict(stored["metadata"]), "status": status}

    context = RequestContext(_API_SERVER, "kube-apiserver")
    tracking = Tracking(scope_of(RESOURCEQUOTAS, "status"), manager_of(context), lambda: rfc3339_now(clock))
    try:
        await store.update(context, namespace, name, UpdatedObject(transform, tracking.track), "status")
    except StatusError as error:
        if not is_not_found(error):
            raise
        return False
    return True
