"""Whether the rules in a definition's schemas can be evaluated: asked when it is written.

Source: apiextensions-apiserver pkg/apis/apiextensions/validation/{validation,cel_validation}.go.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from lastcall.api.field import FieldError, invalid
from lastcall.api.meta import Object
from lastcall.api.validators.definitions.openapi import LIST_TYPE, openapi_errors
from lastcall.api.validators.definitions.shown import shown_rule
from lastcall.api.validators.definitions.structure import cannot_be_structural, structure_errors
from lastcall.api.validators.definitions.versions import schemas_of
from lastcall.apiserver.expressions.rules import RULES, compile_rules
from lastcall.apiserver.expressions.shapes import EMBEDDED, Shape, Shapes, shape_of


class _Place(NamedTuple):
    shape: Shape | None
    path: str
    no_old: str = ""
    """Path of the list in which an item cannot be told from another one of before."""


def rule_errors(definition: Object) -> list[FieldError]:
    """Rules of schemas that are wrong by themselves are not looked at."""
    found: list[FieldError] = []
    for path, schema in schemas_of((definition.get("spec") or {}).get("versions") or []):
        if cannot_be_structural(schema) or structure_errors(schema, path):
            continue
        shapes = Shapes()
        wrong = [each.field for each in openapi_errors(schema, path)]
        place = _Place(shape_of(schema, shapes, "selfType", root=True), path)
        found += _errors(schema, place, shapes, wrong)
    return found


def _errors(schema: Any, place: _Place, shapes: Shapes, wrong: list[str]) -> Iterator[FieldError]:
    if not isinstance(schema, dict):
        return
    shape, path = place.shape, place.path
    if shape is None and schema.get(RULES):
        shape = shape_of(schema, shapes, "selfType", root=bool(schema.get(EMBEDDED)))
    if schema.get(RULES) and shape is not None and not any(each.startswith(path) for each in wrong):
        yield from _of_rules(schema, shape, shapes, place)
    element = None if shape is None else shape.element
    below = _Place(element, f"{path}.additionalProperties", place.no_old)
    yield from _errors(schema.get("additionalProperties"), below, shapes, wrong)
    for name, inner in (schema.get("properties") or {}).items():
        at = f"{path}.properties[{name}]"
        made = shape_of(inner, shapes, f"{shape.type.name if shape else 'selfType'}.{name}")
        yield from _errors(inner, _Place(made, at, place.no_old), shapes, wrong)
    no_old = place.no_old or ("" if schema.get(LIST_TYPE) == "map" else path)
    yield from _errors(schema.get("items"), _Place(element, f"{path}.items", no_old), shapes, wrong)


def _of_rules(schema: Object, shape: Shape, shapes: Shapes, place: _Place) -> Iterator[FieldError]:
    for index, rule in enumerate(compile_rules(schema, shape, shapes)):
        at = f"{place.path}.{RULES}[{index}]"
        if rule.error:
            yield invalid(f"{at}.rule", shown_rule(rule.given), rule.error)
        if rule.message_error:
            yield invalid(f"{at}.messageExpression", shown_rule(rule.given), rule.message_error)
        if rule.uses_old and place.no_old:
            words = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.no_old}"
            yield invalid(f"{at}.rule", rule.given.get("rule") or "", words)
        elif not rule.uses_old and rule.given.get("optionalOldSelf") is not None:
            given = rule.given["optionalOldSelf"]
            yield invalid(f"{at}.optionalOldSelf", given, "may not be set if oldSelf is not used in rule")
