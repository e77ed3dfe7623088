"""The kinds of the group apps, and ReplicationController: what owns Pods forever.

Source: pkg/apis/apps/validation/validation.go, pkg/apis/core/validation (ValidateReplicationController).
"""

from collections.abc import Iterable
from typing import Any

from lastcall.kube.api.field import FieldError, each, forbidden, invalid, not_supported, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import for_prefix, is_dns1123_label, is_dns1123_subdomain
from lastcall.kube.api.selectors import selector_of_expressions, selector_of_labels
from lastcall.kube.api.text.numbers import is_percent, percent_of
from lastcall.kube.api.validators.common import in_order, internal, label_selector, non_negative, one_of
from lastcall.kube.api.validators.metadata import validate_annotations, validate_labels
from lastcall.kube.api.validators.pod_spec import validate_pod_spec
from lastcall.kube.api.validators.storage.kinds import validate_claim_spec

IMMUTABLE = "field is immutable"
_PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_NO_MATCH = "`selector` does not match template `labels`"

is_pod_name_prefix = for_prefix(is_dns1123_subdomain)


def int_or_percent(value: Any, path: str) -> list[FieldError]:
    """Check a count that is not negative, or `N%`. (`ValidatePositiveIntOrPercent`)"""
    if isinstance(value, str):
        return [] if is_percent(value) else [invalid(path, value, _PERCENT_TEXT)]
    return non_negative(value, path)


def at_most_hundred_percent(value: Any, path: str) -> list[FieldError]:
    """Check that a percentage is not above 100. (`IsNotMoreThan100Percent`)"""
    if isinstance(value, str) and percent_of(value) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def _is_zero(value: Any) -> bool:
    """A text without `%` is the number that it shows, though it is refused besides. (`getIntOrPercentValue`)"""
    if isinstance(value, str) and value.lstrip("+-").isdecimal():
        return int(value) == 0
    return value in (0, None) or (isinstance(value, str) and percent_of(value) == 0)


def template_spec(template: Object, path: str) -> list[FieldError]:
    """Check a PodTemplateSpec: labels, annotations and the Pod's spec with their paths below `path`."""
    errors = _labels_and_annotations(template, path)
    below = path.removesuffix(".spec")
    for problem in validate_pod_spec(template.get("spec") or {}):
        errors.append(FieldError(problem.type, f"{below}.{problem.field}", problem.bad_value, problem.detail))
    if (template.get("spec") or {}).get("ephemeralContainers"):
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))
    return errors


def _labels_and_annotations(template: Object, path: str) -> list[FieldError]:
    meta = template.get("metadata") or {}
    errors = validate_labels(meta.get("labels"), f"{path}.labels")
    return errors + validate_annotations(meta.get("annotations"), f"{path}.annotations")


def _in_order(labels: dict[str, str] | None) -> dict[str, str] | None:
    return None if labels is None else dict(sorted(labels.items()))


def _selector(spec: Object, kind: str) -> list[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    errors = label_selector(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid("spec.selector", {}, f"empty selector is invalid for {kind}"))
    return errors


def _mismatch(spec: Object) -> list[FieldError]:
    """A selector without requirements matches whatever there is, and a missing one nothing."""
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    selector = spec.get("selector")
    if selector is not None:
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            return []
        if selector_of_expressions(selector).matches(labels or {}):
            return []
    return [invalid("spec.template.metadata.labels", _in_order(labels), _NO_MATCH)]


def _template_of_selected(spec: Object, kind: str, problem: str) -> list[FieldError]:
    """The template, unless the selector cannot be read, which is `problem`. (`LabelSelectorAsSelector`)"""
    if label_selector(spec.get("selector"), ""):
        return [invalid("spec.selector", in_order(spec["selector"]), problem)]
    template = spec.get("template") or {}
    again = _labels_and_annotations(template, "spec.template") if kind == "StatefulSet" else []
    return _mismatch(spec) + _template_for(spec, kind, again)


def _template_for(spec: Object, kind: str, again: Iterable[FieldError] = ()) -> list[FieldError]:
    """`again` is what one kind finds twice. (`ValidatePodTemplateSpecForReplicaSet` and its likes)"""
    template = spec.get("template") or {}
    errors = [*template_spec(template, "spec.template"), *again]
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy in ("OnFailure", "Never"):
        errors.append(not_supported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if (template.get("spec") or {}).get("activeDeadlineSeconds") is not None:
        path = "spec.template.spec.activeDeadlineSeconds"
        errors.append(forbidden(path, f"activeDeadlineSeconds in {kind} is not Supported"))
    return errors


def validate_deployment(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = non_negative(spec.get("replicas"), "spec.replicas")
    errors += _selector(spec, "deployment")
    errors += _template_of_selected(spec, "ReplicaSet", "invalid label selector")
    errors += _deployment_strategy(spec.get("strategy") or {})
    ready = spec.get("minReadySeconds") or 0
    errors += non_negative(ready, "spec.minReadySeconds")
    errors += non_negative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        errors += non_negative(deadline, "spec.progressDeadlineSeconds")
        if deadline <= ready:
            errors.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def _deployment_strategy(strategy: Object) -> list[FieldError]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    path = "spec.strategy.rollingUpdate"
    if kind == "Recreate":
        why = "may not be specified when strategy `type` is 'Recreate'"
        return [forbidden(path, why)] if rolling is not None else []
    if kind != "RollingUpdate":
        shown = {"Type": kind or "", "RollingUpdate": None}
        if rolling is not None:
            shown["RollingUpdate"] = {
                key: rolling.get(key[0].lower() + key[1:], 0) for key in ("MaxUnavailable", "MaxSurge")
            }
        return [not_supported("spec.strategy", shown, ("Recreate", "RollingUpdate"))]
    if rolling is None:
        return [required(path, "this should be defaulted and never be nil")]
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    errors = int_or_percent(unavailable, f"{path}.maxUnavailable")
    errors += int_or_percent(surge, f"{path}.maxSurge")
    if _is_zero(unavailable) and _is_zero(surge):
        errors.append(invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + at_most_hundred_percent(unavailable, f"{path}.maxUnavailable")


def update_selector_immutable(new: Object, old: Object) -> list[FieldError]:
    selector, stored = (new.get("spec") or {}).get("selector"), (old.get("spec") or {}).get("selector")
    return [] if selector == stored else [invalid("spec.selector", in_order(selector), IMMUTABLE)]


def validate_replica_set(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = non_negative(spec.get("replicas"), "spec.replicas")
    errors += non_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    errors += _selector(spec, "deployment")
    return errors + _template_of_selected(spec, "ReplicaSet", "invalid label selector")


def validate_replication_controller(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = non_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    selector, template = spec.get("selector"), spec.get("template")
    if not selector:
        errors.append(required("spec.selector"))
    errors += non_negative(spec.get("replicas"), "spec.replicas")
    if template is None:
        return [*errors, required("spec.template")]
    labels = (template.get("metadata") or {}).get("labels")
    if selector and not selector_of_labels(selector).matches(labels or {}):
        errors.append(invalid("spec.template.metadata.labels", _in_order(labels), _NO_MATCH))
    return errors + _template_for(spec, "ReplicationController")


def _before_template(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    update = spec.get("updateStrategy") or {}
    rolling, path = update.get("rollingUpdate"), "spec.updateStrategy"
    if update.get("type") == "OnDelete":
        if rolling is not None:
            shown = internal("apps.v1.RollingUpdateStatefulSetStrategy", rolling)
            errors.append(invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'"))
    elif update.get("type") != "RollingUpdate":
        shown = internal("apps.v1.StatefulSetUpdateStrategy", update)
        errors.append(invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'"))
    elif rolling is not None:
        errors += non_negative(rolling.get("partition"), f"{path}.rollingUpdate.partition")
        if (most := rolling.get("maxUnavailable")) is not None:
            errors += int_or_percent(most, f"{path}.rollingUpdate.maxUnavailable")
            if _is_zero(most):
                errors.append(invalid(f"{path}.rollingUpdate.maxUnavailable", most, "cannot be 0"))
            errors += at_most_hundred_percent(most, f"{path}.rollingUpdate.maxUnavailable")
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for key in ("whenDeleted", "whenScaled"):
        at = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
        errors += one_of(retention.get(key), at, ("Retain", "Delete"))
    errors += non_negative(spec.get("replicas"), "spec.replicas")
    errors += non_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    return errors + non_negative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")


def new_stateful_set(obj: Object) -> list[FieldError]:
    """Check what only a new one must have, in the place of its errors: around the selector. (`ValidateStatefulSet`)"""
    spec = obj.get("spec") or {}
    errors = _before_template(spec)
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        errors += validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    if name := spec.get("serviceName"):
        errors += each("spec.serviceName", name, is_dns1123_label(name))
    errors += _selector(spec, "statefulset")
    return errors + _template_of_selected(_with_claims(spec), "StatefulSet", "")


def validate_stateful_set(obj: Object) -> list[FieldError]:
    """Check the spec of a StatefulSet. (`ValidateStatefulSetSpec`)"""
    spec = obj.get("spec") or {}
    errors = _before_template(spec) + _selector(spec, "statefulset")
    return errors + _template_of_selected(_with_claims(spec), "StatefulSet", "")


def _with_claims(spec: Object) -> Object:
    """The spec with the volumes that every Pod gets for the volumeClaimTemplates: containers may mount them.

    They take the place of volumes of the same name. (`volumesToAddForTemplates`)
    """
    claims = spec.get("volumeClaimTemplates") or ()
    names = dict.fromkeys((claim.get("metadata") or {}).get("name") or "" for claim in claims)
    made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    if not made:
        return spec
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    others = [volume for volume in pod.get("volumes") or () if volume.get("name") not in names]
    return {**spec, "template": {**template, "spec": {**pod, "volumes": [*others, *made]}}}


_STATEFUL_MUTABLE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_STATEFUL_TEXT = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def update_stateful_set(new: Object, old: Object) -> list[FieldError]:
    def fixed(obj: Object) -> Object:
        return {key: value for key, value in (obj.get("spec") or {}).items() if key not in _STATEFUL_MUTABLE}

    return [] if fixed(new) == fixed(old) else [forbidden("spec", _STATEFUL_TEXT)]


def validate_daemon_set(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    selector = spec.get("selector")
    errors = label_selector(selector, "spec.selector")
    if not errors:
        errors += _mismatch(spec)
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid("spec.selector", {}, "empty selector is invalid for daemonset"))
    errors += _template_for(spec, "DaemonSet")
    errors += non_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    errors += _daemon_update(spec.get("updateStrategy") or {})
    return errors + non_negative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")


def _daemon_update(update: Object) -> list[FieldError]:
    path = "spec.updateStrategy"
    rolling, supported = update.get("rollingUpdate"), ("RollingUpdate", "OnDelete")
    if update.get("type") not in supported:
        return [not_supported(path, internal("apps.v1.DaemonSetUpdateStrategy", update), supported)]
    if update.get("type") == "OnDelete":
        return []
    if rolling is None:
        return [required(f"{path}.rollingUpdate")]
    at = f"{path}.rollingUpdate"
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    errors = int_or_percent(unavailable, f"{at}.maxUnavailable") + int_or_percent(surge, f"{at}.maxSurge")
    errors += at_most_hundred_percent(unavailable, f"{at}.maxUnavailable")
    errors += at_most_hundred_percent(surge, f"{at}.maxSurge")
    if _is_zero(unavailable) and _is_zero(surge):
        errors.append(required(f"{at}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    elif not _is_zero(unavailable) and not _is_zero(surge):
        why = "may not be set when maxUnavailable is non-zero"
        errors.append(invalid(f"{at}.maxSurge", surge, why))
    return errors


def validate_pod_template(obj: Object) -> list[FieldError]:
    return template_spec(obj.get("template") or {}, "template")


def new_controller_revision(obj: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    data = obj.get("data")
    if not isinstance(data, dict):
        errors = [required("data", "data is mandatory" if data is None else "data must be a valid JSON object")]
    return errors + validate_controller_revision(obj)


def validate_controller_revision(obj: Object) -> list[FieldError]:
    return non_negative(obj.get("revision") or 0, "revision")


def update_controller_revision(new: Object, old: Object) -> list[FieldError]:
    return [] if new.get("data") == old.get("data") else [invalid("data", new.get("data"), IMMUTABLE)]
