"""Taints, tolerations and node affinity: what the scheduler and several controllers ask of a Pod and a Node. Pure.

Sources: component-helpers scheduling/corev1/helpers.go, nodeaffinity/nodeaffinity.go.
"""

# check: pure

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from lastcall.kube.api.meta import AnyObject, labels_of, name_of
from lastcall.kube.api.text.numbers import int_of

if TYPE_CHECKING:
    from lastcall.kube.api.types.scheduling import NodeSelectorRequirement, NodeSelectorTerm, Taint

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
KEEPS_AWAY = (NO_SCHEDULE, NO_EXECUTE)
"""The effects that keep a new Pod away from a node."""


def tolerates(toleration: AnyObject, taint: AnyObject) -> bool:
    """Match a toleration with a taint: no key means every key, no effect every effect. (`ToleratesTaint`)"""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return bool(operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or ""))


def untolerated(
    taints: Iterable[AnyObject], tolerations: Collection[AnyObject], effects: Collection[str] = KEEPS_AWAY
) -> AnyObject | None:
    """Return the first taint with one of `effects` that no toleration matches. (`FindMatchingUntoleratedTaint`)"""
    for taint in taints:
        if taint.get("effect") in effects and not any(tolerates(each, taint) for each in tolerations):
            return taint
    return None


def taints_of(node: AnyObject) -> list[Taint]:
    """Return `spec.taints`."""
    taints: list[Taint] = (node.get("spec") or {}).get("taints") or []
    return taints


def required_node_terms(pod_spec: AnyObject) -> list[NodeSelectorTerm] | None:
    """Return the terms of the required node affinity, one of which must match; None when there is no such affinity."""
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else list(required.get("nodeSelectorTerms") or ())


def matches_node(pod_spec: AnyObject, node: AnyObject) -> bool:
    """Match `spec.nodeSelector` and the required node affinity. (`GetRequiredNodeAffinity(pod).Match(node)`)"""
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (pod_spec.get("nodeSelector") or {}).items()):
        return False
    terms = required_node_terms(pod_spec)
    return terms is None or any(matches_term(term, labels, name_of(node)) for term in terms)


def matches_term(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    """Match all requirements of a node selector term; a term without any matches nothing."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_matches(each, labels) for each in expressions) and all(
        _matches(each, {"metadata.name": name}) for each in fields
    )


def _matches(requirement: NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    rule = _OPERATORS.get(requirement["operator"])
    return rule is not None and rule(values.get(requirement["key"]), requirement.get("values") or [])


def _compare(value: str | None, wanted: list[Any], sign: int) -> bool:
    one, other = int_of(value), int_of(wanted[0]) if wanted else None
    return one is not None and other is not None and (one - other) * sign > 0


_OPERATORS: dict[str, Callable[[str | None, list[Any]], bool]] = {
    "In": lambda value, wanted: value in wanted,
    "NotIn": lambda value, wanted: value not in wanted,
    "Exists": lambda value, wanted: value is not None,
    "DoesNotExist": lambda value, wanted: value is None,
    "Gt": lambda value, wanted: _compare(value, wanted, 1),
    "Lt": lambda value, wanted: _compare(value, wanted, -1),
}
