"""ResourceQuota and LimitRange.

Source: pkg/apis/core/validation/validation.go (ValidateResourceQuotaSpec, ValidateLimitRange), pkg/apis/core/helper.
Go goes through resources in no order; here by name.
"""

from collections.abc import Iterable

from lastcall.kube.api.field import FieldError, duplicate, each, forbidden, invalid, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_qualified_name
from lastcall.kube.api.quantity import six_decimals
from lastcall.kube.api.quota.counting import is_extended
from lastcall.kube.api.quota.scopes import (
    BEST_EFFORT,
    CROSS_NAMESPACE_POD_AFFINITY,
    NOT_BEST_EFFORT,
    NOT_TERMINATING,
    SCOPES,
    TERMINATING,
)
from lastcall.kube.api.resource_lists import ONE, Resources, parse
from lastcall.kube.api.validators.common import NON_NEGATIVE, internal
from lastcall.kube.api.validators.kind_rules import KindRules
from lastcall.kube.api.validators.workloads import IMMUTABLE

_COUNTED = (
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
)  # fmt: skip
"""What there are whole ones of."""
_COMPUTE = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_OF_QUOTAS = (
    *_COUNTED, *_COMPUTE, "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage",
    "requests.storage",
)  # fmt: skip
_STANDARD = (*_OF_QUOTAS, "storage")
_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_CONFLICTING = ((BEST_EFFORT, NOT_BEST_EFFORT), (TERMINATING, NOT_TERMINATING))
_OF_CLAIMS = "VolumeAttributesClass"
_KNOWN_SCOPES = (*SCOPES, _OF_CLAIMS)
"""That of claims matches no Pod: a quota of it counts nothing here."""
_ONLY_EXISTS = (BEST_EFFORT, NOT_BEST_EFFORT, TERMINATING, NOT_TERMINATING, CROSS_NAMESPACE_POD_AFFINITY)
_EXISTS_WHY = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


# -- ResourceQuota ---------------------------------------------------------------------------------------------------


def validate_resource_quota(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    return _amounts(spec.get("hard"), "spec.hard") + _scopes(spec) + _scope_selector(spec)


def update_resource_quota(new: Object, old: Object) -> list[FieldError]:
    """Check that the scopes stay as they are."""
    now, before = ((obj.get("spec") or {}).get("scopes") or [] for obj in (new, old))
    return [] if set(now) == set(before) else [invalid("spec.scopes", now, IMMUTABLE)]


def update_resource_quota_status(new: Object, old: Object) -> list[FieldError]:
    status = new.get("status") or {}
    return _amounts(status.get("hard"), "status.hard") + _amounts(status.get("used"), "status.used")


def _amounts(resources: Object | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, amount in sorted(parse(resources).items()):
        at = f"{path}[{name}]"
        errors += _resource_name(name, at)
        if "/" not in name and not (name in _OF_QUOTAS or _is_huge_page(name)):
            errors.append(invalid(at, name, "must be a standard resource for quota"))
        if amount.value < 0:
            errors.append(invalid(at, str(amount), NON_NEGATIVE))
        if (name in _COUNTED or is_extended(name)) and amount.value.denominator != 1:
            errors.append(invalid(at, str(amount), "must be an integer"))
    return errors


def _resource_name(name: str, path: str) -> list[FieldError]:
    """(`validateResourceName`)"""
    errors = each(path, name, is_qualified_name(name))
    if not errors and "/" not in name and not (name in _STANDARD or _is_huge_page(name)):
        errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    return errors


def _is_huge_page(name: str) -> bool:
    return name.startswith(("hugepages-", "requests.hugepages-"))


def _fits(scope: str, names: Iterable[str]) -> bool:
    """Whether a quota of this scope can limit these: only what Pods use. (`IsResourceQuotaScopeValidForResource`)"""
    if scope not in _KNOWN_SCOPES:
        return True
    if scope == _OF_CLAIMS:
        return all(name in ("persistentvolumeclaims", "requests.storage") for name in names)
    allowed = ("pods",) if scope == BEST_EFFORT else ("pods", *_COMPUTE)
    return all(name in allowed for name in names)


def _limited(spec: Object) -> list[str]:
    return sorted(name for name in spec.get("hard") or () if name in _OF_QUOTAS or _is_huge_page(name))


def _scopes(spec: Object) -> list[FieldError]:
    """(`validateResourceQuotaScopes`)"""
    scopes, errors = spec.get("scopes") or [], list[FieldError]()
    for scope in scopes:
        if scope not in _KNOWN_SCOPES:
            errors.append(invalid("spec.scopes", scopes, "unsupported scope"))
        errors += [
            invalid("spec.scopes", scopes, "unsupported scope applied to resource")
            for name in _limited(spec)
            if not _fits(scope, [name])
        ]
    return errors + _conflicts("spec.scopes", scopes, scopes)


def _conflicts(path: str, scopes: list[str], shown: list[str]) -> list[FieldError]:
    pairs = [pair for pair in _CONFLICTING if all(scope in scopes for scope in pair)]
    return [invalid(path, shown, "conflicting scopes") for _ in pairs]


def _scope_selector(spec: Object) -> list[FieldError]:
    """(`validateScopedResourceSelectorRequirement`)"""
    selector = spec.get("scopeSelector")
    if selector is None:
        return []
    path, errors, seen = "spec.scopeSelector.matchExpressions", list[FieldError](), list[str]()
    for requirement in selector.get("matchExpressions") or ():
        scope, operator = requirement.get("scopeName", ""), requirement.get("operator", "")
        values = requirement.get("values") or []
        seen.append(scope)
        if scope not in _KNOWN_SCOPES:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        errors += [
            invalid(path, internal("core.v1.ScopeSelector", selector), "unsupported scope applied to resource")
            for name in _limited(spec)
            if not _fits(scope, [name])
        ]
        if scope in _ONLY_EXISTS and operator != "Exists":
            errors.append(invalid(f"{path}.operator", operator, _EXISTS_WHY))
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.append(required(f"{path}.values", why))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.append(invalid(f"{path}.values", values, why))
        else:
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    return errors + _conflicts(path, seen, spec.get("scopes") or [])


# -- LimitRange ------------------------------------------------------------------------------------------------------


def validate_limit_range(obj: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for number, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, type_ = f"spec.limits[{number}]", item.get("type", "")
        errors += each(f"{path}.type", type_, is_qualified_name(type_))
        if "/" not in type_ and type_ not in _TYPES and is_qualified_name(type_) == []:
            why = "must be a standard limit type or fully qualified"
            errors.append(invalid(f"{path}.type", type_, why))
        if type_ in seen:
            errors.append(duplicate(f"{path}.type", type_))
        seen.add(type_)
        errors += _limit(item, type_, path)
    return errors


def _limit(item: Object, type_: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    given: dict[str, Resources] = {}
    for kind in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        resources = item.get(kind)
        if type_ == "Pod" and kind.startswith("default"):
            if resources:
                errors.append(forbidden(f"{path}.{kind}", "may not be specified when `type` is 'Pod'"))
            resources = None
        given[kind] = parse(resources)
        for name in sorted(given[kind]):
            errors += _name_in_limit(type_, name, f"{path}.{kind}[{name}]")
    if type_ == "PersistentVolumeClaim" and not any("storage" in given[kind] for kind in ("min", "max")):
        why = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", why))
    for name in sorted({name for resources in given.values() for name in resources}):
        errors += _together(name, {kind: its for kind, its in given.items() if name in its}, path)
    return errors


def _name_in_limit(type_: str, name: str, path: str) -> list[FieldError]:
    if type_ not in ("Pod", "Container"):
        return _resource_name(name, path)
    errors = _resource_name(name, path)
    if "/" not in name and name not in _OF_CONTAINERS and not name.startswith("hugepages-"):
        errors.append(invalid(path, name, "must be a standard resource for containers"))
    return errors


_ORDERED = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest",
     "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest",
     "default request value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest",
     "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)  # fmt: skip
"""(which, not above which, the field that is wrong, whose value is shown, why)."""


def _together(name: str, given: dict[str, Resources], path: str) -> list[FieldError]:
    """What the amounts of one resource say of one another."""
    errors: list[FieldError] = []
    amounts = {kind: resources[name] for kind, resources in given.items()}
    for least, most, field, shown, why in _ORDERED:
        if least in amounts and most in amounts and amounts[most] < amounts[least]:
            detail = why.format(amounts[least], amounts[most])
            errors.append(invalid(f"{path}.{field}[{name}]", str(amounts[shown]), detail))
    if (ratio := amounts.get("maxLimitRequestRatio")) is not None:
        at = f"{path}.maxLimitRequestRatio[{name}]"
        if ratio < ONE:
            errors.append(invalid(at, str(ratio), f"ratio {ratio} is less than 1"))
        if "min" in amounts and "max" in amounts and amounts["min"].value:
            largest = amounts["max"].value / amounts["min"].value
            if ratio.value > largest:
                why = f"ratio {ratio} is greater than max/min = {six_decimals(largest)}"
                errors.append(invalid(at, str(ratio), why))
    overcommit = "/" not in name and not name.startswith("hugepages-")
    default, request = amounts.get("default"), amounts.get("defaultRequest")
    if not overcommit and default is not None and request is not None and default != request:
        why = f"default value {default} must equal to defaultRequest value {request} in {name}"
        errors.append(invalid(f"{path}.defaultRequest[{name}]", str(request), why))
    return errors


RULES = {
    "limitranges": KindRules(obj=validate_limit_range),
    "resourcequotas": KindRules(
        obj=validate_resource_quota,
        then=update_resource_quota,
        subresources=(("status", update_resource_quota_status),),
    ),
}
"""By plural."""
