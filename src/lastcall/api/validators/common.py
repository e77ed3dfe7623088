"""Checks that several kinds share."""

import json
from collections.abc import Sequence
from typing import Any

from lastcall.api.field import FieldError, each, invalid, not_supported, required
from lastcall.api.names import is_label_value, is_port_name, is_port_number, is_qualified_name

NON_NEGATIVE = "must be greater than or equal to 0"
POSITIVE = "must be greater than 0"


def non_negative(value: int | None, path: str) -> list[FieldError]:
    return [invalid(path, value, NON_NEGATIVE)] if value is not None and value < 0 else []


def one_of(value: Any, path: str, supported: Sequence[str]) -> list[FieldError]:
    """Nothing when absent; the supported values are shown in the order given."""
    return [] if value in (None, "") or value in supported else [not_supported(path, value, supported)]


def required_one_of(value: Any, path: str, supported: Sequence[str]) -> list[FieldError]:
    return [required(path)] if value in (None, "") else one_of(value, path, supported)


def port_number_or_name(value: Any, path: str) -> list[FieldError]:
    if isinstance(value, str):
        return each(path, value, is_port_name(value))
    return each(path, value or 0, is_port_number(value or 0))


def internal(name: str, value: Any) -> Any:
    """`value` of the type `name` (`core.v1.PodSpec`) as messages print the internal struct."""
    # late: for messages only
    from lastcall.api.protobuf.internal import as_internal

    return as_internal(name, value)


def diff(new: Any, old: Any) -> str:
    """What changed, as a unified diff of the JSON with three lines of context, without a file header."""
    # late: 1.7 ms of `lint --help`
    import difflib

    before, after = (json.dumps(value, indent=1).split("\n") for value in (old, new))
    changes = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    return "".join(f"{line}\n" for line in changes)


def local_path(value: str, path: str, *, reserved: bool = False) -> list[FieldError]:
    """A path below a volume: relative, without `..`. (`validateLocalDescendingPath`, `validateLocalNonReservedPath`)"""
    errors: list[FieldError] = []
    if value.startswith("/"):
        errors.append(invalid(path, value, "must be a relative path"))
    errors += no_back_steps(value, path)
    if reserved and value.startswith("..") and not value.startswith("../"):
        errors.append(invalid(path, value, "must not start with '..'"))
    return errors


def no_back_steps(value: str, path: str) -> list[FieldError]:
    return [invalid(path, value, "must not contain '..'")] if ".." in value.split("/") else []


def seccomp_profile(profile: Any, path: str) -> list[FieldError]:
    """pkg/apis/core/validation/validation.go:validateSeccompProfileField."""
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


def label_selector(selector: Any, path: str) -> list[FieldError]:
    """A `metav1.LabelSelector`. (`metav1validation.ValidateLabelSelector`)"""
    if not isinstance(selector, dict):
        return []
    errors: list[FieldError] = []
    for key, value in sorted((selector.get("matchLabels") or {}).items()):
        errors += each(f"{path}.matchLabels", key, is_qualified_name(key))
        errors += each(f"{path}.matchLabels", value, is_label_value(value))
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        operator, values = expression.get("operator", ""), expression.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(FieldError("FieldValueForbidden", f"{at}.values", "", why))
        else:
            errors.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
        errors += each(f"{at}.key", expression.get("key", ""), is_qualified_name(expression.get("key", "")))
        for position, value in enumerate(values):
            errors += each(f"{at}.values[{position}]", value, is_label_value(value))
    return errors
