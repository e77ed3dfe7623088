"""The Priority admission plugin: spec.priority comes from a PriorityClass, and one class at most is the default.

Source: plugin/pkg/admission/priority/admission.go, pkg/registry/scheduling/rest/storage_scheduling.go.
"""

# check: pure

from collections.abc import Iterable
from typing import Any

from lastcall.kube.api.errors import forbidden
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.resources import PODS, PRIORITYCLASSES

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"

SYSTEM_CLASSES: tuple[Object, ...] = (
    {
        "metadata": {"name": "system-node-critical"},
        "value": 2_000_001_000,
        "description": "Used for system critical pods that must not be moved from their current node.",
        "preemptionPolicy": PREEMPT_LOWER_PRIORITY,
    },
    {
        "metadata": {"name": "system-cluster-critical"},
        "value": 2_000_000_000,
        "description": "Used for system critical pods that must run in the cluster, but can be moved to another node "
        "if necessary.",
        "preemptionPolicy": PREEMPT_LOWER_PRIORITY,
    },
)
"""The two that every cluster has from the start."""


def default_class(classes: Iterable[Object]) -> Object | None:
    """Return the class with globalDefault; of several, which a race can make, the one with the lowest value."""
    marked = [each for each in classes if each.get("globalDefault")]
    return min(marked, key=lambda each: (each.get("value") or 0, name_of(each)), default=None)


def set_priority(pod: Object, priority_class: Object | None) -> None:
    """Fill in what the Pod's class says; None is a Pod without a class. Raises the 403 StatusError. (`admitPod`)"""
    spec = pod["spec"]
    if priority_class is not None:
        spec["priorityClassName"] = name_of(priority_class)
    found = priority_class or {"value": 0, "preemptionPolicy": PREEMPT_LOWER_PRIORITY}
    _computed(pod, "priority", "the integer value of priority", found.get("value") or 0)
    if found.get("preemptionPolicy"):
        _computed(pod, "preemptionPolicy", "the string value of PreemptionPolicy", found["preemptionPolicy"])


def keep_priority(new: Object, old: Object) -> None:
    """Keep the Pod's priority and preemptionPolicy in an update that leaves them out. Changes `new`. (`admitPod`)"""
    for field in ("priority", "preemptionPolicy"):
        if new["spec"].get(field) is None and old["spec"].get(field) is not None:
            new["spec"][field] = old["spec"][field]


def _computed(pod: Object, field: str, words: str, value: Any) -> None:
    given = pod["spec"].get(field)
    if given is not None and given != value:
        why = (
            f"{words} ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise forbidden(PODS, name_of(pod), why)
    pod["spec"][field] = value


def check_default(new: Object, classes: Iterable[Object]) -> None:
    """Raise the 403 StatusError when another class is the default already. (`validatePriorityClass`)"""
    if not new.get("globalDefault"):
        return
    other = default_class(classes)
    if other is not None and name_of(other) != name_of(new):
        why = f"PriorityClass {name_of(other)} is already marked as default. Only one default can exist"
        raise forbidden(PRIORITYCLASSES, name_of(new), why)
