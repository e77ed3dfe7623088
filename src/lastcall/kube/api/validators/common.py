"""Checks that several kinds share."""

import json
import re
from collections.abc import Sequence
from typing import Any

from lastcall.kube.api.field import FieldError, duplicate, each, forbidden, invalid, not_supported, required, too_long
from lastcall.kube.api.names import (
    is_dns1123_subdomain,
    is_label_value,
    is_port_name,
    is_port_number,
    is_qualified_name,
)

NON_NEGATIVE = "must be greater than or equal to 0"
POSITIVE = "must be greater than 0"
_STATUSES = ("False", "True", "Unknown")
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


def non_negative(value: int | None, path: str) -> list[FieldError]:
    return [invalid(path, value, NON_NEGATIVE)] if value is not None and value < 0 else []


def one_of(value: Any, path: str, supported: Sequence[str]) -> list[FieldError]:
    """Check that a value is absent or supported; the supported values are shown in the order given."""
    return [] if value in (None, "") or value in supported else [not_supported(path, value, supported)]


def required_one_of(value: Any, path: str, supported: Sequence[str]) -> list[FieldError]:
    return [required(path)] if value in (None, "") else one_of(value, path, supported)


def port_number_or_name(value: Any, path: str) -> list[FieldError]:
    if isinstance(value, str):
        return each(path, value, is_port_name(value))
    return each(path, value or 0, is_port_number(value or 0))


def internal(name: str, value: Any) -> Any:
    """Return `value` of the type `name` (`core.v1.PodSpec`) as messages print the internal struct."""
    # late: for messages only
    from lastcall.kube.api.protobuf.internal import as_internal

    return as_internal(name, value)


def diff(new: Any, old: Any) -> str:
    """Return what changed, as a unified diff of the JSON with three lines of context, without a file header."""
    # late: for messages only
    from difflib import unified_diff

    before, after = (json.dumps(value, indent=1, ensure_ascii=False).split("\n") for value in (old, new))
    changes = list(unified_diff(before, after, lineterm="", n=3))[2:]
    return "".join(f"{line}\n" for line in changes)


def local_path(value: str, path: str, *, reserved: bool = False) -> list[FieldError]:
    """Check a path below a volume: relative, without `..`. (`validateLocalDescendingPath`,
    `validateLocalNonReservedPath`)"""
    errors: list[FieldError] = []
    if value.startswith("/"):
        errors.append(invalid(path, value, "must be a relative path"))
    errors += no_back_steps(value, path)
    if reserved and value.startswith("..") and not value.startswith("../"):
        errors.append(invalid(path, value, "must not start with '..'"))
    return errors


def no_back_steps(value: str, path: str) -> list[FieldError]:
    return [invalid(path, value, "must not contain '..'")] if ".." in value.split("/") else []


LONGEST_DRIVER_NAME = 63


def driver_name(name: str, path: str) -> list[FieldError]:
    """Check the name of a CSI driver. (`ValidateCSIDriverName`)"""
    if not name:
        return [required(path)]
    errors: list[FieldError] = []
    if len(name) > LONGEST_DRIVER_NAME:
        errors.append(too_long(path, LONGEST_DRIVER_NAME))
    return errors + each(path, name, is_dns1123_subdomain(name.lower()))


LONGEST_APP_ARMOR_PROFILE = 4095
"""Bytes of the name of a profile."""


def app_armor_profile(profile: Any, path: str) -> list[FieldError]:
    """Check an AppArmor profile. (pkg/apis/core/validation/validation.go:validateAppArmorProfileField)"""
    if not isinstance(profile, dict):
        return []
    kind, name, at = profile.get("type") or "", profile.get("localhostProfile"), f"{path}.localhostProfile"
    if not kind:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    if kind not in ("Localhost", "RuntimeDefault", "Unconfined"):
        return [not_supported(f"{path}.type", kind, ("Localhost", "RuntimeDefault", "Unconfined"))]
    if kind != "Localhost":
        why = "can only be set when AppArmor type is Localhost"
        return [] if name is None else [invalid(at, name, why)]
    if not name:
        return [required(at, "must be set when AppArmor type is Localhost")]
    if name != name.strip():
        return [invalid(at, name, "must not be padded with whitespace")]
    size = len(name.encode())
    return [too_long(at, LONGEST_APP_ARMOR_PROFILE)] if size > LONGEST_APP_ARMOR_PROFILE else []


def seccomp_profile(profile: Any, path: str) -> list[FieldError]:
    """Check a seccomp profile. (pkg/apis/core/validation/validation.go:validateSeccompProfileField)"""
    if not isinstance(profile, dict):
        return []
    kind, name = profile.get("type"), profile.get("localhostProfile")
    if not kind:
        errors = [required(f"{path}.type", "type is required when seccompProfile is set")]
    else:
        errors = one_of(kind, f"{path}.type", ("Localhost", "RuntimeDefault", "Unconfined"))
    if kind == "Localhost":
        if name is None:
            errors.append(required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            errors += local_path(name, f"{path}.localhostProfile")
    elif name is not None:
        shown = {"Type": kind or "", "LocalhostProfile": name}  # the internal type's names
        errors.append(invalid(f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost"))
    return errors


def in_order(selector: Any) -> Any:
    """Return a label selector as Go prints it: the keys of a map in order, without values that are empty."""
    if not isinstance(selector, dict):
        return selector
    labels, expressions = selector.get("matchLabels"), selector.get("matchExpressions")
    shown: dict[str, Any] = {"matchLabels": dict(sorted(labels.items()))} if labels else {}
    if expressions:
        keys = ("key", "operator", "values")
        shown["matchExpressions"] = [
            {key: item[key] for key in keys if key in item and (key != "values" or item[key])} for item in expressions
        ]
    return shown


SET_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def values_of_operator(operator: str, values: Sequence[Any], path: str) -> list[FieldError]:
    """Check that a requirement of a selector has values, where its operator compares with some; others may pass."""
    if operator in ("In", "NotIn") and not values:
        return [required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")]
    if operator in ("Exists", "DoesNotExist") and values:
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden(f"{path}.values", why)]
    return []


def label_selector(selector: Any, path: str) -> list[FieldError]:
    """Check a `metav1.LabelSelector`. (`metav1validation.ValidateLabelSelector`)"""
    if not isinstance(selector, dict):
        return []
    errors: list[FieldError] = []
    for key, value in sorted((selector.get("matchLabels") or {}).items()):
        errors += each(f"{path}.matchLabels", key, is_qualified_name(key))
        errors += each(f"{path}.matchLabels", value, is_label_value(value))
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        operator, values = expression.get("operator", ""), expression.get("values") or []
        if operator in SET_OPERATORS:
            errors += values_of_operator(operator, values, at)
        else:
            errors.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
        errors += each(f"{at}.key", expression.get("key", ""), is_qualified_name(expression.get("key", "")))
        for position, value in enumerate(values):
            errors += each(f"{at}.values[{position}]", value, is_label_value(value))
    return errors


def conditions(values: Sequence[Any], path: str) -> list[FieldError]:
    """Check `metav1.Condition`s. (`metav1validation.ValidateConditions`)"""
    errors: list[FieldError] = []
    for index, condition in enumerate(values):
        at, kind = f"{path}[{index}]", condition.get("type") or ""
        if any((earlier.get("type") or "") == kind for earlier in values[:index]):
            errors.append(duplicate(f"{at}.type", kind))
        errors += each(f"{at}.type", kind, is_qualified_name(kind))
        status = condition.get("status") or ""
        if status not in _STATUSES:
            errors.append(not_supported(f"{at}.status", status, _STATUSES))
        if (condition.get("observedGeneration") or 0) < 0:
            errors.append(
                invalid(
                    f"{at}.observedGeneration", condition["observedGeneration"], "must be greater than or equal to zero"
                )
            )
        if not condition.get("lastTransitionTime"):
            errors.append(required(f"{at}.lastTransitionTime"))
        reason = condition.get("reason") or ""
        if not reason:
            errors.append(required(f"{at}.reason"))
        elif not _REASON.fullmatch(reason):
            why = (
                "a condition reason must start with alphabetic character, optionally followed by a string of "
                "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
                f"'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for "
                f"validation is '{_REASON.pattern}')"
            )
            errors.append(invalid(f"{at}.reason", reason, why))
        for key, longest in (("reason", 1024), ("message", 32768)):
            if len(condition.get(key) or "") > longest:
                errors.append(too_long(f"{at}.{key}", longest))
    return errors
