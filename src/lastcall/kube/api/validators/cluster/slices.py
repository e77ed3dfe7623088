"""ResourceSlices. Source: pkg/apis/resource/validation/validation.go."""

import re
from collections.abc import Sequence
from typing import Any

from lastcall.kube.api.field import FieldError, duplicate, each, invalid, not_supported, required, too_long, too_many
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_subdomain, is_label_value, is_qualified_name
from lastcall.kube.api.validators.cluster.device_parts import MOST, label, list_of, pool_name, qualified_name, repeated
from lastcall.kube.api.validators.common import driver_name, internal
from lastcall.kube.api.validators.kind_rules import KindRules
from lastcall.kube.api.validators.metadata import ONLY_ONE_SET
from lastcall.kube.api.validators.node_selectors import node_selector

IMMUTABLE = "field is immutable"
_PART = r"(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_NUMBER = "(0|[1-9][0-9]*)"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PART}(\.{_PART})*)?(\+{_BUILD}(\.{_BUILD})*)?")

_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_DEVICE_PLACES = ("nodeName", "nodeSelector", "allNodes")
_PER_DEVICE = "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
_NOT_HERE = f"`nodeName`, `nodeSelector` and `allNodes` can only be set if {_PER_DEVICE}"
_ONE_OF_DEVICE = f"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when {_PER_DEVICE}"
_NO_FALSE = "must be either unset or set to true"
_TYPES = ("int", "bool", "string", "version")
_VALUES = {f"{kind}{many}": f"{kind.capitalize()}Value{many}" for many in ("", "s") for kind in _TYPES}
_EFFECTS = ("NoExecute", "NoSchedule", "None")
MOST_SETS = 8
"""Sets of shared counters."""
MOST_CONSUMED = 2
"""Sets that a device consumes from."""
MOST_CONDITIONS = 4
MOST_TAINTS = 16
_ONE_PLACE = f"exactly one of {', '.join(f'`{place}`' for place in _PLACES)} is required"


def validate_slice(resource_slice: Object, old: Object | None = None) -> list[FieldError]:
    """Check a ResourceSlice (`validateResourceSliceSpec`). With `old`, fixed fields are checked after the pool."""
    spec = resource_slice.get("spec") or {}
    pool = spec.get("pool") or {}
    errors = driver_name(spec.get("driver") or "", "spec.driver")
    errors += pool_name(pool.get("name") or "", "spec.pool.name")
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if count <= 0:
        errors.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        errors.append(invalid("spec.pool.generation", generation, "must be greater than or equal to zero"))
    if old is not None:
        errors += _fixed(spec, old.get("spec") or {})
    errors += _place(spec)
    devices, sets = spec.get("devices") or [], spec.get("sharedCounters") or []
    if spec.get("devices") is not None and spec.get("sharedCounters") is not None:
        errors.append(invalid("spec", "", ONLY_ONE_SET))
    most = 64 if any(device.get("taints") or device.get("consumesCounters") for device in devices) else 128
    per_device = bool(spec.get("perDeviceNodeSelection"))
    errors += list_of(devices, "spec.devices", lambda device, at: _device(device, at, per_device=per_device), most)
    errors += repeated((device.get("name") or "" for device in devices), "spec.devices")
    errors += list_of(sets, "spec.sharedCounters", _counter_set, MOST_SETS)
    return errors + list(repeated((each_one.get("name") or "" for each_one in sets), "spec.sharedCounters"))


def _terms_shown(selector: Object) -> list[Any] | None:
    terms = selector.get("nodeSelectorTerms")
    return None if terms is None else [internal("core.v1.NodeSelectorTerm", term) for term in terms]


def _place(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.get("nodeName") is not None:
        name = spec["nodeName"]
        if not name:
            errors.append(invalid("spec.nodeName", name, "must be either unset or set to a non-empty string"))
        errors += [] if not name else each("spec.nodeName", name, is_dns1123_subdomain(name))
    if (selector := spec.get("nodeSelector")) is not None:
        errors += node_selector(selector, "spec.nodeSelector")
        terms = selector.get("nodeSelectorTerms") or []
        if len(terms) != 1:
            shown = _terms_shown(selector)
            path = "spec.nodeSelector.nodeSelectorTerms"
            errors.append(invalid(path, shown, "must have exactly one node selector term"))
    for key in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(key) is False:
            errors.append(invalid(f"spec.{key}", False, _NO_FALSE))
    given = [
        f"`{place}`" for place in _PLACES if spec.get(place) or (spec.get(place) == {} and place == "nodeSelector")
    ]
    if not given:
        errors.append(required("spec", _ONE_PLACE))
    elif len(given) > 1:
        errors.append(invalid("spec", f"{{{', '.join(given)}}}", f"{_ONE_PLACE}, but multiple fields are set"))
    return errors


def _set_name(name: str, path: str) -> list[FieldError]:
    return label(name, path) if name else [required(path)]


def _counters(counters: Object | None, path: str) -> list[FieldError]:
    if not counters:
        return [required(path)]
    if len(counters) > MOST:
        return [too_many(path, len(counters), MOST)]
    return [error for key in counters for error in label(key, path)]


def _counter_set(counters: Object, path: str) -> list[FieldError]:
    errors = _set_name(counters.get("name") or "", f"{path}.name")
    return errors + _counters(counters.get("counters"), f"{path}.counters")


def _consumption(consumed: Object, path: str) -> list[FieldError]:
    errors = _set_name(consumed.get("counterSet") or "", f"{path}.counterSet")
    return errors + _counters(consumed.get("counters"), f"{path}.counters")


def _device(device: Object, path: str, *, per_device: bool) -> list[FieldError]:
    """(`validateDevice`)"""
    errors = label(device.get("name") or "", f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > MOST:
        why = f"the total number of attributes and capacities must not exceed {MOST}"
        errors.append(invalid(path, len(attributes) + len(capacity), why))
    for key, value in attributes.items():
        errors += qualified_name(key, f"{path}.attributes")
        errors += _attribute(value, f"{path}.attributes[{key}]")
    for key in capacity:
        errors += qualified_name(key, f"{path}.capacity")
    errors += list_of(device.get("taints"), f"{path}.taints", _taint, MOST_TAINTS)
    consumed, at = device.get("consumesCounters") or [], f"{path}.consumesCounters"
    errors += list_of(consumed, at, _consumption, MOST_CONSUMED)
    errors += _repeated_sets(consumed, at)
    errors += _place_of_device(device, path, per_device=per_device)
    return errors + _conditions(device, path)


def _repeated_sets(consumed: Sequence[Object], path: str) -> list[FieldError]:
    if len(consumed) > MOST_CONSUMED:
        return []
    return list(repeated((each_one.get("counterSet") or "" for each_one in consumed), path))


def _attribute(value: Object, path: str) -> list[FieldError]:
    """(`validateDeviceAttribute`: how many values there are is looked at last)"""
    errors: list[FieldError] = []
    version = value.get("version")
    if version is not None and not _VERSION.fullmatch(version):
        why = "must be a string compatible with semver.org spec 2.0.0"
        errors.append(invalid(f"{path}.version", version, why))
    errors += [
        too_long(f"{path}.{kind}", 64) for kind in ("string", "version") if len((value.get(kind) or "").encode()) > 64
    ]
    given = [each_one for each_one in value.values() if each_one is not None]
    if len(given) != 1:
        shown: object = {field: value.get(kind) for kind, field in _VALUES.items()} if given else ""
        errors.append(invalid(path, shown, "exactly one value must be specified"))
    return errors


def _taint(taint: Object, path: str) -> list[FieldError]:
    key, value, effect = (taint.get(part) or "" for part in ("key", "value", "effect"))
    errors = each(f"{path}.key", key, is_qualified_name(key))
    errors += each(f"{path}.value", value, is_label_value(value)) if value else []
    if not effect:
        return [*errors, required(f"{path}.effect")]
    return errors if effect in _EFFECTS else [*errors, not_supported(f"{path}.effect", effect, _EFFECTS)]


def _place_of_device(device: Object, path: str, *, per_device: bool) -> list[FieldError]:
    there = [place for place in _DEVICE_PLACES if device.get(place) is not None]
    if not per_device:
        return [invalid(path, None, _NOT_HERE)] if there else []
    errors: list[FieldError] = []
    name, selector = device.get("nodeName"), device.get("nodeSelector")
    if name is not None:
        problems = each(f"{path}.nodeName", name, is_dns1123_subdomain(name)) if name else []
        errors += problems if name else [invalid(f"{path}.nodeName", name, "must not be empty")]
    if selector is not None:
        errors += node_selector(selector, f"{path}.nodeSelector")
        terms = selector.get("nodeSelectorTerms") or []
        if len(terms) > 1:
            shown = _terms_shown(selector)
            at = f"{path}.nodeSelector.nodeSelectorTerms"
            errors.append(invalid(at, shown, "must have exactly one node selector term"))
    if device.get("allNodes") is False:
        errors.append(invalid(f"{path}.allNodes", False, _NO_FALSE))
    given = [f"`{place}`" for place in there if device[place] not in ("", False)]
    if not given:
        return [*errors, required(path, _ONE_OF_DEVICE)]
    return errors if len(given) == 1 else [*errors, invalid(path, f"{{{', '.join(given)}}}", _ONE_OF_DEVICE)]


def _conditions(device: Object, path: str) -> list[FieldError]:
    """What has to be so before a device is bound, and what ends the attempt."""
    binding, failure = device.get("bindingConditions") or [], device.get("bindingFailureConditions") or []
    errors: list[FieldError] = []
    for key, values in (("bindingConditions", binding), ("bindingFailureConditions", failure)):
        at = f"{path}.{key}"
        errors += list_of(
            values, at, lambda value, where: each(where, value, is_qualified_name(value)), MOST_CONDITIONS
        )
        if len(values) <= MOST_CONDITIONS:
            errors += [duplicate(f"{at}[{n}]", value) for n, value in enumerate(values) if value in values[:n]]
    if len(failure) <= MOST_CONDITIONS:
        at, why = f"{path}.bindingFailureConditions", "bindingFailureConditions must not overlap with bindingConditions"
        errors += [invalid(f"{at}[{n}]", value, why) for n, value in enumerate(failure) if value in binding]
    for key, values, other, there in (
        ("bindingFailureConditions", failure, "bindingConditions", binding),
        ("bindingConditions", binding, "bindingFailureConditions", failure),
    ):
        if there and not values:
            errors.append(invalid(f"{path}.{key}", None, f"{key} are required to use {other}"))
    return errors


def _fixed(spec: Object, stored: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    name, had = ((each_spec.get("pool") or {}).get("name") for each_spec in (spec, stored))
    if name != had:
        errors.append(invalid("spec.pool.name", name or "", IMMUTABLE))
    if spec.get("driver") != stored.get("driver"):
        errors.append(invalid("spec.driver", spec.get("driver") or "", IMMUTABLE))
    if spec.get("nodeName") != stored.get("nodeName"):
        errors.append(invalid("spec.nodeName", spec.get("nodeName"), IMMUTABLE))
    return errors


RULES = {"resourceslices": KindRules(obj=validate_slice, change=validate_slice)}
"""By plural."""
