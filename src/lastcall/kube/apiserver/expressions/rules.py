"""The rules of a structural schema (x-kubernetes-validations), compiled, and what they say of an object.

Source: apiextensions-apiserver pkg/apiserver/schema/cel/{compilation,validation}.go.
"""

# check: allow asyncio.to_thread because rules may cost much

import asyncio
from collections.abc import Callable, Generator
from dataclasses import field
from typing import Any, NamedTuple

from lastcall.kube.api.custom.correlation import Correlated, OldItems
from lastcall.kube.api.field import OMITTED, FieldError, duplicate, forbidden, invalid, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.validators.definitions.paths import field_path
from lastcall.kube.apiserver.expressions.views import view
from lastcall.kube.cel.environment import Environment, Program
from lastcall.kube.cel.errors import CompileError, ProgramError
from lastcall.kube.cel.shapes import EMBEDDED, Shape, Shapes, escaped, shape_of, with_metadata
from lastcall.kube.cel.types import BOOL, STRING, optional_of
from lastcall.kube.cel.values import NONE, CostExceeded, EvaluationError, Optional
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

RULES = "x-kubernetes-validations"
PER_CALL = 1_000_000
"""What one expression may cost."""
BUDGET = 10_000_000
"""What all rules of an object may cost."""
LONGEST_MESSAGE = 5 << 10
QUICK = 20_000
"""What may be spent at once where requests are answered (some milliseconds)."""
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


@dataclass(slots=True)
class Rule:
    """A rule as it was given, and its programs; `error` says why it cannot be evaluated, `message_error` why its
    messageExpression cannot."""

    given: Object
    program: Program | None = None
    message: Program | None = None
    error: str = ""
    message_error: str = ""
    uses_old: bool = False
    field: str = ""
    """Where an error is reported, below the place of the rule."""

    @property
    def words(self) -> str:
        """Return the name of the rule in errors."""
        return (self.given.get("message") or self.given.get("rule") or "").strip()


def compile_rules(schema: Object, shape: Shape, shapes: Shapes) -> list[Rule]:
    """Compile the rules of one schema, not of those inside."""
    return [_compile(given, schema, shape, shapes) for given in schema.get(RULES) or ()]


def _compile(given: Object, schema: Object, shape: Shape, shapes: Shapes) -> Rule:
    rule = Rule(given)
    text = given.get("rule") or ""
    if not text.strip():
        return rule
    old = optional_of(shape.type) if given.get("optionalOldSelf") else shape.type
    environment = Environment({"self": shape.type, "oldSelf": old}, provider=shapes)
    try:
        program = environment.compile(text)
    except CompileError as error:
        rule.error = f"compilation failed: {error}"
        return rule
    except ProgramError as error:
        rule.error = str(error)
        return rule
    if program.result != BOOL:
        rule.error = "cel expression must evaluate to a bool"
        return rule
    rule.program = program
    rule.uses_old = any(each.name == "oldSelf" for each in program.checked.references.values())
    if given.get("messageExpression"):
        _compile_message(rule, environment)
    if given.get("fieldPath"):
        try:
            rule.field = field_path(given["fieldPath"], schema).text
        except ValueError:
            rule.field = ""
    return rule


def _compile_message(rule: Rule, environment: Environment) -> None:
    try:
        program = environment.compile(rule.given["messageExpression"])
    except CompileError as error:
        rule.message_error = f"messageExpression compilation failed: {error}"
    except ProgramError as error:
        rule.message_error = f"messageExpression instantiation failed: {str(error).rpartition('failed: ')[2]}"
    else:
        if program.result == STRING:
            rule.message = program
        else:
            rule.message_error = "messageExpression must evaluate to a string"


# -- evaluation --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Rules:
    """The rules of a schema and of all inside of it that has some."""

    schema: Object
    own: list[Rule]
    items: "Rules | None" = None
    values: "Rules | None" = None
    properties: dict[str, "Rules"] = field(default_factory=dict)


def rules_of(schema: Object) -> Rules | None:
    """Return the rules of the schema of a declared kind; None without any."""
    shapes = Shapes()
    return _rules(schema, shape_of(schema, shapes, "selfType", root=True), shapes, root=True)


def _rules(schema: Any, shape: Shape | None, shapes: Shapes, *, root: bool = False) -> Rules | None:
    if not isinstance(schema, dict) or shape is None:
        return None
    seen = with_metadata(schema) if root or schema.get(EMBEDDED) else schema
    made = Rules(seen, compile_rules(schema, shape, shapes))
    made.items = _rules(schema.get("items"), shape.element, shapes)
    more = schema.get("additionalProperties")
    made.values = _rules(more, shape.element, shapes) if isinstance(more, dict) else None
    for name, inner in (schema.get("properties") or {}).items():
        written = escaped(name)
        within = shape.fields.get(written) if written else shape_of(inner, shapes, f"{shape.type.name}.{name}")
        if (found := _rules(inner, within, shapes)) is not None:
            made.properties[name] = found
    return made if made.own or made.items or made.values or made.properties else None


class _Ratchet(NamedTuple):
    """`here` is what is at the place, `above` the nearest ancestor that can be distinguished from before."""

    here: Correlated | None
    above: Correlated | None = None

    def key(self, name: str) -> "_Ratchet":
        if self.here is None:
            return self
        if self.above is None and name in ("apiVersion", "kind"):
            return _Ratchet(None)
        return _Ratchet(self.here.key(name), self.here)

    def item(self, at: int) -> "_Ratchet":
        return self if self.here is None else _Ratchet(self.here.index(at), self.here)

    @property
    def unchanged(self) -> bool:
        known = self.here or self.above
        return known is not None and known.unchanged()


class OutOfBudgetError(Exception):
    """No further rules are run."""


class TooDearError(Exception):
    """An expression costs more than may be spent here."""


@dataclass(slots=True)
class Evaluation:
    """What the rules said: errors, and warnings of what was as wrong before. With a `most` below PER_CALL an expression
    that costs more raises TooDearError."""

    most: int = PER_CALL
    budget: int = BUDGET
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _paused_at: int = BUDGET

    def of(self, rules: Rules, new: Object, old: Object | None) -> Generator[None, None, None]:
        """Fill in; stops from time to time so that others get their turn."""
        ratchet = _Ratchet(None if old is None else Correlated(new, old, rules.schema))
        try:
            yield from self._value(rules, new, old, "", ratchet)
        except OutOfBudgetError:
            return

    def _value(self, rules: Rules, new: Any, old: Any, path: str, ratchet: _Ratchet) -> Generator[None, None, None]:
        if new is None:
            return
        if rules.own:
            self._own(rules, new, old, path, ratchet)
        if self._paused_at - self.budget > QUICK:
            self._paused_at = self.budget
            yield
        if isinstance(new, list) and rules.items is not None:
            known = OldItems(rules.schema, old)
            for index, item in enumerate(new):
                yield from self._value(rules.items, item, known.get(item), f"{path}[{index}]", ratchet.item(index))
        elif isinstance(new, dict):
            was = old if isinstance(old, dict) else {}
            for name, item in new.items():
                if rules.values is not None:
                    yield from self._value(rules.values, item, was.get(name), f"{path}[{name}]", ratchet.key(name))
                if name in rules.properties:
                    inner = f"{path}.{name}" if path else name
                    yield from self._value(rules.properties[name], item, was.get(name), inner, ratchet.key(name))

    def _own(self, rules: Rules, new: Any, old: Any, path: str, ratchet: _Ratchet) -> None:
        kind, shown = rules.schema.get("type") or "", path or "<nil>"
        if self.budget <= 0:
            self._stop(invalid(shown, kind, OUT_OF_BUDGET))
        for rule in rules.own:
            if rule.error:
                self.errors.append(invalid(shown, kind, f"rule compile error: {rule.error}"))
            if rule.program is None:
                continue
            optional = bool(rule.given.get("optionalOldSelf"))
            if rule.uses_old and old is None and not optional:
                continue
            variables = _Variables(new, old, rules.schema, optional=optional)
            if self._holds(rule, variables, shown, kind) is not False:
                continue
            self._failed(rule, variables, path, _value_shown(kind, new), kind, ratchet)

    def _holds(self, rule: Rule, variables: "_Variables", path: str, kind: str) -> bool | None:
        """None where the rule could not be evaluated, which is an error of its own."""
        assert rule.program is not None
        try:
            outcome = rule.program.run(variables, limit=self.most)
        except CostExceeded as error:
            if self.most < PER_CALL:
                raise TooDearError from None
            self._spend(PER_CALL, path, kind)
            words = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule:"
            self._stop(invalid(path, kind, f"{words} {rule.words}"))
        except EvaluationError as error:
            self._spend(error.cost, path, kind)
            words = f"{error} evaluating rule: {rule.words}"
            if str(error).startswith("no such overload"):
                words = (
                    f"'{error}': call arguments did not match a supported operator, function or macro signature for "
                    f"rule: {rule.words}"
                )
            self.errors.append(invalid(path, kind, words))
            return None
        self._spend(outcome.cost, path, kind)
        return outcome.value is True

    def _failed(self, rule: Rule, variables: "_Variables", path: str, value: Any, kind: str, ratchet: _Ratchet) -> None:
        at = f"{path}.{rule.field}" if path and rule.field else rule.field or path or "<nil>"
        ratcheted = not rule.uses_old and ratchet.unchanged

        def add(error: FieldError) -> None:
            if ratcheted:
                self.warnings.append(str(error))
            else:
                self.errors.append(error)

        detail = ""
        if rule.message is not None:
            detail = self._message(rule, variables, at, kind, add)
        if not detail:
            text = (rule.given.get("message") or "").strip()
            detail = text or f"failed rule: {rule.words}"
        add(_with_reason(rule.given.get("reason"), at, value, detail))

    def _message(
        self, rule: Rule, variables: "_Variables", path: str, kind: str, add: Callable[[FieldError], None]
    ) -> str:
        """What the messageExpression says, "" if nothing that can be shown."""
        assert rule.message is not None
        text = rule.given["messageExpression"]
        try:
            outcome = rule.message.run(variables, limit=self.most)
        except CostExceeded:
            if self.most < PER_CALL:
                raise TooDearError from None
            words = "no further validation rules will be run due to call cost exceeds limit for messageExpression:"
            add(invalid(path, kind, f'{words} "{text}"'))
            raise OutOfBudgetError from None
        except EvaluationError as error:
            self.budget -= error.cost
            return ""
        if outcome.cost > self.budget:
            words = "messageExpression evaluation failed due to running out of cost budget"
            add(invalid(path, kind, f"{words}, no further validation rules will be run"))
            raise OutOfBudgetError
        self.budget -= outcome.cost
        said = outcome.value.strip() if isinstance(outcome.value, str) else ""
        return "" if len(said.encode()) > LONGEST_MESSAGE or "\n" in said else said

    def _spend(self, cost: int, path: str, kind: str) -> None:
        if cost > self.budget:
            self._stop(invalid(path, kind, OUT_OF_BUDGET))
        self.budget -= cost

    def _stop(self, error: FieldError) -> None:
        self.errors.append(error)
        raise OutOfBudgetError


class _Variables(dict[str, object]):
    """self and oldSelf, looked at when an expression names them first."""

    def __init__(self, new: Any, old: Any, schema: Object, *, optional: bool) -> None:
        super().__init__()
        self._given = {"self": new, "oldSelf": old}
        self._schema, self._optional = schema, optional

    def __missing__(self, name: str) -> object:
        value = self._given[name]
        made: object
        if name == "oldSelf" and self._optional:
            made = NONE if value is None else Optional(view(value, self._schema))
        else:
            made = view(value, self._schema)
        self[name] = made
        return made


def _value_shown(kind: str, value: Any) -> Any:
    return OMITTED if kind in ("object", "array") else value


def _with_reason(reason: str | None, path: str, value: Any, detail: str) -> FieldError:
    if reason == "FieldValueForbidden":
        return forbidden(path, detail)
    if reason == "FieldValueRequired":
        return required(path, detail)
    return duplicate(path, value) if reason == "FieldValueDuplicate" else invalid(path, value, detail)


async def evaluated(rules: Rules, new: Object, old: Object | None, clock: Clock) -> Evaluation:
    """Evaluate the rules of a kind on an object. Costly ones run in a thread while other tasks continue."""
    evaluation = Evaluation(most=QUICK)
    try:
        for _ in evaluation.of(rules, new, old):
            await clock.sleep(0)
    except TooDearError:
        evaluation = Evaluation()
        await asyncio.to_thread(list, evaluation.of(rules, new, old))
    return evaluation
