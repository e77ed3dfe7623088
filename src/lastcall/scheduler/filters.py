"""Which Nodes can take a Pod, and the words for those that cannot. Pure.

Source: pkg/scheduler/framework/plugins (one row of `FILTERS` per plugin, in the default order; the first that refuses a
Node is the reason that counts) and pkg/scheduler/framework/types.go:FitError. Resources, ports and preemption are not
looked at yet.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from lastcall.api.meta import Object, labels_of, name_of

NO_NODES = "no nodes available to schedule pods"

Filter = Callable[[Object, Object], bool]
"""(Pod, Node) -> True when the Node may take the Pod."""

_UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def find_nodes(pod: Object, nodes: Sequence[Object]) -> tuple[list[Object], str]:
    """The Nodes that fit, and when none does the message of FailedScheduling (else "")."""
    if not nodes:
        return [], NO_NODES
    fitting: list[Object] = []
    reasons: Counter[str] = Counter()
    for node in nodes:
        reason = refusal(pod, node)
        if reason:
            reasons[reason] += 1
        else:
            fitting.append(node)
    return (fitting, "") if fitting else ([], fit_error(len(nodes), reasons))


def refusal(pod: Object, node: Object) -> str:
    """Why `node` cannot take `pod`, "" when it can."""
    return next((reason for reason, fits in FILTERS if not fits(pod, node)), "")


def fit_error(node_count: int, reasons: Counter[str]) -> str:
    """`FitError.Error`, with what the preemption plugin adds: evicting Pods helps against none of these reasons."""
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return (
        f"0/{node_count} nodes are available: {listed}. no new claims to deallocate, "
        f"preemption: 0/{node_count} nodes are available: {node_count} Preemption is not helpful for scheduling."
    )


def taints_of(node: Object) -> list[Object]:
    """The Node's taints, and those the node lifecycle controller puts on a Node that is not Ready.

    Source: pkg/controller/nodelifecycle: Ready False is not-ready, Unknown is unreachable, both NoSchedule.
    """
    taints: list[Object] = list(node.get("spec", {}).get("taints") or ())
    ready = next((c for c in node.get("status", {}).get("conditions") or () if c.get("type") == "Ready"), None)
    status = ready.get("status") if ready is not None else "False"
    if status != "True":
        key = "node.kubernetes.io/unreachable" if status == "Unknown" else "node.kubernetes.io/not-ready"
        taints.append({"key": key, "effect": "NoSchedule"})
    return taints


def tolerates(pod: Object, taint: Object) -> bool:
    """Some toleration of the Pod matches the taint (component-helpers scheduling/corev1: ToleratesTaint)."""
    return any(_toleration_matches(entry, taint) for entry in pod["spec"].get("tolerations") or ())


def _toleration_matches(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return bool(operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or ""))


def _is_schedulable(pod: Object, node: Object) -> bool:
    return not node.get("spec", {}).get("unschedulable") or tolerates(pod, _UNSCHEDULABLE_TAINT)


def _has_the_name(pod: Object, node: Object) -> bool:
    wanted = pod["spec"].get("nodeName")
    return not wanted or wanted == name_of(node)


def _tolerates_all(pod: Object, node: Object) -> bool:
    return all(tolerates(pod, t) for t in taints_of(node) if t.get("effect") in ("NoSchedule", "NoExecute"))


def _matches_affinity(pod: Object, node: Object) -> bool:
    """spec.nodeSelector and the required node affinity (component-helpers nodeaffinity)."""
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_matches_term(term, node) for term in required.get("nodeSelectorTerms") or ())


def _matches_term(term: Object, node: Object) -> bool:
    """All requirements of a term; a term without any matches nothing."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_matches_requirement(r, labels_of(node)) for r in expressions) and all(
        _matches_requirement(r, {"metadata.name": name_of(node)}) for r in fields
    )


def _matches_requirement(requirement: Object, values: dict[str, str]) -> bool:
    value = values.get(requirement["key"])
    wanted: list[Any] = requirement.get("values") or []
    match requirement["operator"]:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            try:
                number, limit = int(value or ""), int(wanted[0])
            except (ValueError, IndexError):
                return False
            return number > limit if operator == "Gt" else number < limit
        case _:
            return False


FILTERS: tuple[tuple[str, Filter], ...] = (
    ("node(s) were unschedulable", _is_schedulable),
    ("node(s) didn't match the requested node name", _has_the_name),
    ("node(s) had untolerated taint(s)", _tolerates_all),
    ("node(s) didn't match Pod's node affinity/selector", _matches_affinity),
)
"""Reason and rule: NodeUnschedulable, NodeName, TaintToleration, NodeAffinity."""
