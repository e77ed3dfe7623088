"""Whether the rules in a definition's schemas can be evaluated: asked when it is written.

Source: apiextensions-apiserver pkg/apis/apiextensions/validation/{validation,cel_validation}.go.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import Any, NamedTuple

from lastcall.kube.api.field import FieldError, forbidden, invalid
from lastcall.kube.api.meta import Object
from lastcall.kube.api.validators.definitions.openapi import LIST_TYPE, openapi_errors
from lastcall.kube.api.validators.definitions.shown import shown_rule
from lastcall.kube.api.validators.definitions.structure import cannot_be_structural, structure_errors
from lastcall.kube.api.validators.definitions.versions import schemas_of
from lastcall.kube.apiserver.expressions.rules import RULES, Rule, compile_rules
from lastcall.kube.cel.bounds import UNBOUNDED, Bounds
from lastcall.kube.cel.checking.estimate import Sizes
from lastcall.kube.cel.shapes import EMBEDDED, MAX_REQUEST, Shape, Shapes, shape_of
from lastcall.kube.cel.types import Type
from lastcall.world.dataclass import dataclass

RULE_LIMIT = 10_000_000
"""What a rule may cost by the estimate, for all places where it holds."""
SCHEMA_LIMIT = 100_000_000
"""What all rules of a schema may cost together."""
_MOST_NAMED = 4
_HINT = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


class _Place(NamedTuple):
    shape: Shape | None
    path: str
    no_old: str = ""
    """Path of the list in which an item cannot be distinguished from another one of before."""
    times: int | None = 1
    """How many values may stand here in one object; None: no limit says so."""


@dataclass(slots=True)
class _Costs:
    """What the rules of one schema are estimated to cost. `lenient`: the schema is as it was."""

    lenient: bool
    total: int = 0
    dearest: list[tuple[int, str]] = field(default_factory=list)

    def observe(self, path: str, cost: int) -> None:
        self.total = min(self.total + cost, UNBOUNDED)
        if cost >= SCHEMA_LIMIT // 100:
            self.dearest = sorted([*self.dearest, (cost, path)], key=lambda each: -each[0])[:_MOST_NAMED]

    def errors(self, path: str) -> Iterator[FieldError]:
        if self.total > SCHEMA_LIMIT:
            words = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            for _, dear in self.dearest:
                yield forbidden(dear, words)
            what = f"{RULES} estimated rule cost total for entire OpenAPIv3 schema"
            yield forbidden(path, _too_dear(what, self.total, SCHEMA_LIMIT))


def _too_dear(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    by = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {by} {_HINT}"


def _sizes(shape: Shape) -> Sizes:
    """How big the values below `self` and `oldSelf` may be. (`sizeEstimator`)"""

    def size(path: tuple[str, ...], type_: Type) -> Bounds | None:
        if not path:
            return None
        found: Shape | None = shape
        for name in path[1:]:
            if found is None:
                return None
            if name == "@keys":
                return Bounds(0, 0) if found.type.kind == "map" else None
            found = found.element if name in ("@items", "@values") else found.fields.get(name)
        return None if found is None else Bounds(0, found.most)

    return size


def _more_times(schema: Object, times: int | None) -> int | None:
    """How many values may stand inside of each of so many. (`extractMaxElements`)"""
    most: int | None = 1
    if schema.get("type") == "array":
        most = schema.get("maxItems")
    elif schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        most = schema.get("maxProperties")
    return None if times is None or most is None else min(times * max(0, most), UNBOUNDED)


def rule_errors(definition: Object, old: Object | None = None) -> list[FieldError]:
    """Check the rules of schemas, except schemas that are wrong by themselves."""
    found: list[FieldError] = []
    known = [(each.get("schema") or {}).get("openAPIV3Schema") for each in _versions(old)]
    for path, schema in schemas_of(_versions(definition)):
        if cannot_be_structural(schema) or structure_errors(schema, path):
            continue
        shapes = Shapes()
        wrong = [each.field for each in openapi_errors(schema, path)]
        place = _Place(shape_of(schema, shapes, "selfType", root=True), path)
        costs = _Costs(lenient=schema in known)
        found += [*_errors(schema, place, shapes, wrong, costs), *costs.errors(path)]
    return found


def _versions(definition: Object | None) -> list[Object]:
    return ((definition or {}).get("spec") or {}).get("versions") or []


def _errors(schema: Any, place: _Place, shapes: Shapes, wrong: list[str], costs: _Costs) -> Iterator[FieldError]:
    if not isinstance(schema, dict):
        return
    shape, path = place.shape, place.path
    if shape is None and schema.get(RULES):
        shape = shape_of(schema, shapes, "selfType", root=bool(schema.get(EMBEDDED)))
    if schema.get(RULES) and shape is not None and not any(each.startswith(path) for each in wrong):
        yield from _of_rules(schema, shape, shapes, place, costs)
    element = None if shape is None else shape.element
    times = _more_times(schema, place.times)
    below = _Place(element, f"{path}.additionalProperties", place.no_old, times)
    yield from _errors(schema.get("additionalProperties"), below, shapes, wrong, costs)
    for name, inner in (schema.get("properties") or {}).items():
        at = f"{path}.properties[{name}]"
        made = shape_of(inner, shapes, f"{shape.type.name if shape else 'selfType'}.{name}")
        yield from _errors(inner, _Place(made, at, place.no_old, times), shapes, wrong, costs)
    no_old = place.no_old or ("" if schema.get(LIST_TYPE) == "map" else path)
    yield from _errors(schema.get("items"), _Place(element, f"{path}.items", no_old, times), shapes, wrong, costs)


def _of_rules(schema: Object, shape: Shape, shapes: Shapes, place: _Place, costs: _Costs) -> Iterator[FieldError]:
    sizes = _sizes(shape)
    times = MAX_REQUEST // (shape.least + 1) if place.times is None else place.times
    for index, rule in enumerate(compile_rules(schema, shape, shapes)):
        at = f"{place.path}.{RULES}[{index}]"
        for program, name, factor in ((rule.program, "rule", times), (rule.message, "messageExpression", 1)):
            if program is None:
                continue
            cost = min(program.estimate(sizes).max * factor, UNBOUNDED)
            if cost > RULE_LIMIT and not costs.lenient:
                yield forbidden(f"{at}.{name}", _too_dear(f"estimated {name} cost", cost, RULE_LIMIT))
            costs.observe(f"{at}.{name}", cost)
        yield from _of_rule(rule, place, at)


def _of_rule(rule: Rule, place: _Place, at: str) -> Iterator[FieldError]:
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
