"""Selectors of nodes: of Pods, volumes and devices.

Source: pkg/apis/core/validation/validation.go (ValidateNodeSelector, ValidateNodeSelectorTerm).
"""

from collections.abc import Sequence

from lastcall.kube.api.field import FieldError, each, invalid, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_subdomain, is_label_value, is_qualified_name
from lastcall.kube.api.validators.common import SET_OPERATORS, values_of_operator


def node_selector(selector: Object, path: str, *, values: bool = True) -> list[FieldError]:
    """Check a node selector; `values`: what its expressions compare with has to be values of labels."""
    terms: Sequence[Object] = selector.get("nodeSelectorTerms") or ()
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    return [
        error
        for index, term in enumerate(terms)
        for error in node_selector_term(term, f"{path}.nodeSelectorTerms[{index}]", values=values)
    ]


def node_selector_term(term: Object, path: str, *, values: bool) -> list[FieldError]:
    """Check one of the terms of `node_selector`."""
    errors: list[FieldError] = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        errors += _expression(expression, f"{path}.matchExpressions[{index}]", with_values=values)
    for index, expression in enumerate(term.get("matchFields") or ()):
        errors += _field(expression, f"{path}.matchFields[{index}]")
    return errors


def _expression(expression: Object, at: str, *, with_values: bool) -> list[FieldError]:
    """(`ValidateNodeSelectorRequirement`)"""
    errors: list[FieldError] = []
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if operator in SET_OPERATORS:
        errors += values_of_operator(operator, values, at)
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(f"{at}.values", why))
    else:
        errors.append(invalid(f"{at}.operator", operator, "not a valid selector operator"))
    errors += each(f"{at}.key", expression.get("key", ""), is_qualified_name(expression.get("key", "")))
    for position, value in enumerate(values if with_values else ()):
        errors += each(f"{at}.values[{position}]", value, is_label_value(value))
    return errors


def _field(expression: Object, path: str) -> list[FieldError]:
    """(`ValidateNodeFieldSelectorRequirement`)"""
    errors: list[FieldError] = []
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", why))
    if expression.get("key") != "metadata.name":
        return [*errors, invalid(f"{path}.key", expression.get("key", ""), "not a valid field selector key")]
    for position, value in enumerate(values):
        errors += each(f"{path}.values[{position}]", value, is_dns1123_subdomain(value))
    return errors
