"""The LimitRanger admission plugin: what a namespace's LimitRanges fill in and refuse. Pure.

Source: plugin/pkg/admission/limitranger/admission.go. Go goes through a limit's resources in no order; here by name.
"""

# check: asks for kinds because LimitRanges have limits for Pods and for claims
# check: pure

from collections.abc import Callable, Iterable, Iterator

from lastcall.kube.api.errors import forbidden
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.quantity import Quantity, six_decimals
from lastcall.kube.api.resource_lists import Resources, parse, pod_limits, pod_requests
from lastcall.kube.api.resources import PODS, Resource

ANNOTATION = "kubernetes.io/limit-ranger"

Constraint = Callable[[str, str, Quantity, Resources, Resources], str]
"""(type, resource, limit, requests, limits) → what is wrong, "" for nothing."""


def set_defaults(pod: Object, limit_ranges: Iterable[Object]) -> None:
    """Give containers what they do not say themselves, and say so in an annotation. (`PodMutateLimitFunc`)"""
    for limit_range in limit_ranges:
        requests: dict[str, str] = {}
        limits: dict[str, str] = {}
        for item in _items(limit_range, "Container"):
            requests |= item.get("defaultRequest") or {}
            limits |= item.get("default") or {}
        said: list[str] = []
        for group, words in (("containers", "container"), ("initContainers", "init container")):
            for container in pod["spec"].get(group) or ():
                for kind, defaults in (("request", requests), ("limit", limits)):
                    if given := _fill(container, f"{kind}s", defaults):
                        said.append(f"{', '.join(given)} {kind} for {words} {container['name']}")
        if said:
            meta = pod["metadata"]
            text = f"LimitRanger plugin set: {'; '.join(said)}"
            meta["annotations"] = {**(meta.get("annotations") or {}), ANNOTATION: text}


def _fill(container: Object, kind: str, defaults: dict[str, str]) -> list[str]:
    resources = container.get("resources") or {}
    given = resources.get(kind) or {}
    missing = sorted(name for name in defaults if name not in given)
    if missing:
        # A dict of its own: a template's resources may be another's as well.
        container["resources"] = {**resources, kind: {**given, **{name: defaults[name] for name in missing}}}
    return missing


def check(resource: Resource, obj: Object, limit_ranges: Iterable[Object]) -> None:
    """Raise the 403 StatusError of a Pod or claim that is beyond a limit: those of the first range it fails."""
    problems = pod_problems if resource == PODS else claim_problems
    for limit_range in limit_ranges:
        if found := list(dict.fromkeys(problems(limit_range, obj))):
            raise forbidden(resource, name_of(obj), found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def pod_problems(limit_range: Object, pod: Object) -> Iterator[str]:
    """Yield what breaks the limits. (`PodValidateLimitFunc`)"""
    spec = pod["spec"]
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                resources = container.get("resources") or {}
                yield from _broken(item, parse(resources.get("requests")), parse(resources.get("limits")))
        elif item.get("type") == "Pod":
            yield from _broken(item, pod_requests(spec, overhead=False), pod_limits(spec, overhead=False))


def claim_problems(limit_range: Object, claim: Object) -> Iterator[str]:
    """Yield what in a claim breaks the limits. (`PersistentVolumeClaimValidateLimitFunc`)"""
    requests = parse((claim["spec"].get("resources") or {}).get("requests"))
    for item in _items(limit_range, "PersistentVolumeClaim"):
        for kind, constraint in (("min", at_least), ("max", at_most_requested)):
            yield from _against(constraint, item, kind, requests, {})


def _items(limit_range: Object, type_: str) -> Iterator[Object]:
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == type_:
            yield item


def _broken(item: Object, requests: Resources, limits: Resources) -> Iterator[str]:
    for kind, constraint in (("min", at_least), ("max", at_most), ("maxLimitRequestRatio", at_most_times)):
        yield from _against(constraint, item, kind, requests, limits)


def _against(constraint: Constraint, item: Object, kind: str, requests: Resources, limits: Resources) -> Iterator[str]:
    enforced = parse(item.get(kind))
    for name in sorted(enforced):
        if why := constraint(item["type"], name, enforced[name], requests, limits):
            yield why


def at_least(type_: str, name: str, enforced: Quantity, requests: Resources, limits: Resources) -> str:
    """Return why a minimum is not reached, or "". (`minConstraint`)"""
    beginning = f"minimum {name} usage per {type_} is {enforced}"
    if name not in requests:
        return f"{beginning}.  No request is specified"
    for word, given in (("request", requests), ("limit", limits)):
        if name in given and given[name] < enforced:
            return f"{beginning}, but {word} is {given[name]}"
    return ""


def at_most(type_: str, name: str, enforced: Quantity, requests: Resources, limits: Resources) -> str:
    """Return why a maximum is exceeded, or "". (`maxConstraint`)"""
    beginning = f"maximum {name} usage per {type_} is {enforced}"
    if name not in limits:
        return f"{beginning}.  No limit is specified"
    for word, given in (("limit", limits), ("request", requests)):
        if name in given and enforced < given[name]:
            return f"{beginning}, but {word} is {given[name]}"
    return ""


def at_most_requested(type_: str, name: str, enforced: Quantity, requests: Resources, limits: Resources) -> str:
    """Return why the request exceeds a maximum, or "". (`maxRequestConstraint`)"""
    beginning = f"maximum {name} usage per {type_} is {enforced}"
    if name not in requests:
        return f"{beginning}.  No request is specified"
    return f"{beginning}, but request is {requests[name]}" if enforced < requests[name] else ""


def at_most_times(type_: str, name: str, enforced: Quantity, requests: Resources, limits: Resources) -> str:
    """Return why the limit is too many times the request, or "". (`limitRequestRatioConstraint`)"""
    beginning = f"{name} max limit to request ratio per {type_} is {enforced}"
    for word, given in (("request", requests), ("limit", limits)):
        if name not in given or not given[name].value:
            return f"{beginning}, but no {word} is specified or {word} is 0"
    ratio = limits[name].value / requests[name].value
    return f"{beginning}, but provided ratio is {six_decimals(ratio)}" if ratio > enforced.value else ""
