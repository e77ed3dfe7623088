"""PodDisruptionBudget, PriorityClass.

Sources: pkg/apis/policy/validation, pkg/apis/scheduling/validation.
"""

from lastcall.kube.api.field import FieldError, forbidden, invalid, not_supported
from lastcall.kube.api.meta import Object
from lastcall.kube.api.validators.common import conditions, internal, label_selector, non_negative, one_of
from lastcall.kube.api.validators.workloads import IMMUTABLE, at_most_hundred_percent, int_or_percent

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITY_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def validate_pod_disruption_budget(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    errors: list[FieldError] = []
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": internal("meta.v1.LabelSelector", spec.get("selector")),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        errors.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for key, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is not None:
            errors += int_or_percent(value, f"spec.{key}")
            errors += at_most_hundred_percent(value, f"spec.{key}")
    errors += label_selector(spec.get("selector"), "spec.selector")
    policies = ("AlwaysAllow", "IfHealthyBudget")
    return errors + one_of(spec.get("unhealthyPodEvictionPolicy"), "spec.unhealthyPodEvictionPolicy", policies)


def update_budget_status(new: Object, old: Object) -> list[FieldError]:
    """Check an update of a PodDisruptionBudget's status. (`ValidatePodDisruptionBudgetStatusUpdate`)"""
    status = new.get("status") or {}
    errors = conditions(status.get("conditions") or (), "status.conditions")
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        errors += non_negative(status.get(name), f"status.{name}")
    return errors


def validate_priority_class(obj: Object) -> list[FieldError]:
    name = (obj.get("metadata") or {}).get("name") or ""
    value = obj.get("value") or 0
    errors: list[FieldError] = []
    if name.startswith("system-"):
        if SYSTEM_PRIORITY_CLASSES.get(name) != value:
            why = "priority class names with 'system-' prefix are reserved for system use only. error: "
            why += f"{name} is not a known system priority class"
            errors.append(forbidden("metadata.name", why))
    elif value > HIGHEST_USER_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        errors.append(forbidden("value", why))
    policy = obj.get("preemptionPolicy")
    if policy not in (None, "Never", "PreemptLowerPriority"):
        errors.append(not_supported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never")))
    return errors


def update_priority_class(new: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if (new.get("value") or 0) != (old.get("value") or 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        errors.append(invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE))
    return errors
