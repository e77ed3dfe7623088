"""The scopes of a ResourceQuota: which Pods it is about. Pure.

Source: pkg/quota/v1/evaluator/core/pods.go:podMatchesScopeFunc.
"""

# check: pure

from collections.abc import Iterator

from lastcall.kube.api.meta import Object
from lastcall.kube.api.pods.spec import qos_class

TERMINATING, NOT_TERMINATING = "Terminating", "NotTerminating"
BEST_EFFORT, NOT_BEST_EFFORT = "BestEffort", "NotBestEffort"
PRIORITY_CLASS = "PriorityClass"
CROSS_NAMESPACE_POD_AFFINITY = "CrossNamespacePodAffinity"
SCOPES = (TERMINATING, NOT_TERMINATING, BEST_EFFORT, NOT_BEST_EFFORT, PRIORITY_CLASS, CROSS_NAMESPACE_POD_AFFINITY)


def matches_scopes(quota_spec: Object, pod: Object) -> bool:
    """Return whether a Pod is of every scope."""
    return all(matches_scope(selector, pod) for selector in selectors(quota_spec))


def selectors(quota_spec: Object) -> Iterator[Object]:
    """Yield `scopes` and `scopeSelector` in the form of the latter. (`getScopeSelectorsFromQuota`)"""
    for scope in quota_spec.get("scopes") or ():
        yield {"scopeName": scope, "operator": "Exists"}
    yield from (quota_spec.get("scopeSelector") or {}).get("matchExpressions") or ()


def matches_scope(selector: Object, pod: Object) -> bool:
    scope = selector.get("scopeName")
    if scope in (TERMINATING, NOT_TERMINATING):
        return bool(is_terminating_scope(pod) == (scope == TERMINATING))
    if scope in (BEST_EFFORT, NOT_BEST_EFFORT):
        return bool((qos_class(pod) == "BestEffort") == (scope == BEST_EFFORT))
    if scope == PRIORITY_CLASS:
        return _matches_priority_class(selector, (pod.get("spec") or {}).get("priorityClassName") or "")
    return scope == CROSS_NAMESPACE_POD_AFFINITY and uses_cross_namespace_affinity(pod)


def is_terminating_scope(pod: Object) -> bool:
    """Return whether a Pod has to end by itself, which is not one that is being deleted. (`IsTerminating`)"""
    seconds = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return seconds is not None and seconds >= 0


def _matches_priority_class(selector: Object, name: str) -> bool:
    operator, values = selector.get("operator"), selector.get("values") or ()
    if operator == "Exists":
        return bool(name)
    if operator == "DoesNotExist":
        return not name
    if operator == "In":
        return bool(name) and name in values
    return operator == "NotIn" and name not in values


def uses_cross_namespace_affinity(pod: Object) -> bool:
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms = [
            *(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()),
            *(
                each.get("podAffinityTerm") or {}
                for each in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
            ),
        ]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
