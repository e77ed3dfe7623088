"""Macros: calls that the parser replaces by what they mean.

Sources: cel-go parser/macro.go, cel/library.go (optionals), ext/comprehensions.go, ext/lists.go (sortBy).
"""

from collections.abc import Callable, Mapping, Sequence

from lastcall.kube.cel.ast import Call, Comprehension, Expression, ListLiteral, Name, Select
from lastcall.kube.cel.parsing.builder import ACCUMULATOR, OLD_ACCUMULATOR, Builder

UNUSED = "#unused"
_SORTED = "@__sortBy_input__"
_OVERWRITES = "iteration variable overwrites accumulator variable"


class NotExpanded(Exception):
    """The macro's arguments are wrong; `id` is of the one that is."""

    def __init__(self, id_: int, message: str) -> None:
        super().__init__(message)
        self.id, self.message = id_, message


Expand = Callable[[Builder, Expression, Sequence[Expression]], Expression]
"""(builder, target, arguments) → what replaces the call. Raises NotExpanded."""


def presence(build: Builder, argument: Expression) -> Expression:
    """Expand `has(a.b)`."""
    if isinstance(argument, Select) and not argument.test:
        return build.presence(argument.operand, argument.field)
    raise NotExpanded(argument.id, "invalid argument to has() macro")


# -- quantifiers -------------------------------------------------------------------------------------------------------


def _all(build: Builder, over: Expression, names: tuple[str, str | None], predicate: Expression) -> Expression:
    start, condition = build.constant(True), build.call("@not_strictly_false", build.accumulator())
    step = build.call("_&&_", build.accumulator(), predicate)
    return build.fold(over, names[0], start, condition, step, build.accumulator(), second=names[1])


def _exists(build: Builder, over: Expression, names: tuple[str, str | None], predicate: Expression) -> Expression:
    start = build.constant(False)
    condition = build.call("@not_strictly_false", build.call("!_", build.accumulator()))
    step = build.call("_||_", build.accumulator(), predicate)
    return build.fold(over, names[0], start, condition, step, build.accumulator(), second=names[1])


def _exists_one(build: Builder, over: Expression, names: tuple[str, str | None], predicate: Expression) -> Expression:
    start, condition = build.constant(0), build.constant(True)
    more = build.call("_+_", build.accumulator(), build.constant(1))
    step = build.call("_?_:_", predicate, more, build.accumulator())
    result = build.call("_==_", build.accumulator(), build.constant(1))
    return build.fold(over, names[0], start, condition, step, result, second=names[1])


Quantify = Callable[[Builder, Expression, tuple[str, str | None], Expression], Expression]


def _quantifier(quantify: Quantify) -> Expand:
    def expand(build: Builder, target: Expression, arguments: Sequence[Expression]) -> Expression:
        name = _variable(arguments[0], "argument must be a simple name")
        return quantify(build, target, (name, None), arguments[1])

    return expand


def _quantifier_of_two(quantify: Quantify) -> Expand:
    def expand(build: Builder, target: Expression, arguments: Sequence[Expression]) -> Expression:
        return quantify(build, target, _two_variables(arguments), arguments[2])

    return expand


# -- lists and maps ----------------------------------------------------------------------------------------------------


def _collect(
    build: Builder,
    over: Expression,
    names: tuple[str, str | None],
    start: Expression,
    step: Expression,
    condition: Expression | None,
) -> Expression:
    """A fold that adds with `step`, where `condition` holds."""
    if condition is not None:
        step = build.call("_?_:_", condition, step, build.accumulator())
    always, result = build.constant(True), build.accumulator()
    return build.fold(over, names[0], start, always, step, result, second=names[1])


def _map(build: Builder, target: Expression, arguments: Sequence[Expression]) -> Expression:
    name = _variable(arguments[0], "argument is not an identifier")
    condition = arguments[1] if len(arguments) == 3 else None
    step = build.call("_+_", build.accumulator(), build.list(arguments[-1]))
    return _collect(build, target, (name, None), build.list(), step, condition)


def _filter(build: Builder, target: Expression, arguments: Sequence[Expression]) -> Expression:
    name = _variable(arguments[0], "argument is not an identifier")
    step = build.call("_+_", build.accumulator(), build.list(arguments[0]))
    return _collect(build, target, (name, None), build.list(), step, arguments[1])


def _transform_list(build: Builder, target: Expression, arguments: Sequence[Expression]) -> Expression:
    names = _two_variables(arguments)
    condition = arguments[2] if len(arguments) == 4 else None
    step = build.call("_+_", build.accumulator(), build.list(arguments[-1]))
    return _collect(build, target, names, build.list(), step, condition)


def _transform_map(build: Builder, target: Expression, arguments: Sequence[Expression]) -> Expression:
    names = _two_variables(arguments)
    condition = arguments[2] if len(arguments) == 4 else None
    step = build.call("cel.@mapInsert", build.accumulator(), build.name(names[0]), arguments[-1])
    return _collect(build, target, names, build.map(), step, condition)


def _transform_map_entry(build: Builder, target: Expression, arguments: Sequence[Expression]) -> Expression:
    names = _two_variables(arguments)
    condition = arguments[2] if len(arguments) == 4 else None
    step = build.call("cel.@mapInsert", build.accumulator(), arguments[-1])
    return _collect(build, target, names, build.map(), step, condition)


def _sort_by(build: Builder, target: Expression, arguments: Sequence[Expression]) -> Expression:
    if not isinstance(target, ListLiteral | Select | Name | Comprehension | Call):
        why = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise NotExpanded(target.id, why)
    keys = _map(build, build.name(_SORTED), arguments)
    call = build.method(build.name(_SORTED), "@sortByAssociatedKeys", keys)
    return _bind(build, _SORTED, target, call)


# -- optionals ---------------------------------------------------------------------------------------------------------


def _opt_map(build: Builder, target: Expression, arguments: Sequence[Expression]) -> Expression:
    name = _simple(arguments[0], "optMap() variable name must be a simple identifier")
    there = build.method(target, "hasValue")
    made = build.call("optional.of", _bind(build, name, build.method(build.copy(target), "value"), arguments[1]))
    return build.call("_?_:_", there, made, build.call("optional.none"))


def _opt_flat_map(build: Builder, target: Expression, arguments: Sequence[Expression]) -> Expression:
    name = _simple(arguments[0], "optFlatMap() variable name must be a simple identifier")
    there = build.method(target, "hasValue")
    made = _bind(build, name, build.method(build.copy(target), "value"), arguments[1])
    return build.call("_?_:_", there, made, build.call("optional.none"))


def _bind(build: Builder, name: str, value: Expression, within: Expression) -> Expression:
    """`within`, where `name` is `value`."""
    never = build.constant(False)
    return build.fold(build.list(), UNUSED, value, never, build.name(name), within, accumulator=name)


# -- names -------------------------------------------------------------------------------------------------------------


def _simple(argument: Expression, why: str) -> str:
    if not isinstance(argument, Name):
        raise NotExpanded(argument.id, why)
    return argument.name


def _variable(argument: Expression, why: str) -> str:
    name = _simple(argument, why)
    if name in (ACCUMULATOR, OLD_ACCUMULATOR):
        raise NotExpanded(argument.id, _OVERWRITES)
    return name


def _two_variables(arguments: Sequence[Expression]) -> tuple[str, str]:
    one, two = (_simple(each, "argument must be a simple name") for each in arguments[:2])
    if one == two:
        raise NotExpanded(arguments[1].id, f"duplicate variable name: {one}")
    for argument, name in zip(arguments, (one, two), strict=False):
        if name in (ACCUMULATOR, OLD_ACCUMULATOR):
            raise NotExpanded(argument.id, _OVERWRITES)
    return one, two


METHODS: Mapping[tuple[str, int], Expand] = {
    ("all", 2): _quantifier(_all),
    ("all", 3): _quantifier_of_two(_all),
    ("exists", 2): _quantifier(_exists),
    ("exists", 3): _quantifier_of_two(_exists),
    ("exists_one", 2): _quantifier(_exists_one),
    ("exists_one", 3): _quantifier_of_two(_exists_one),
    ("existsOne", 3): _quantifier_of_two(_exists_one),
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry,
    ("transformMapEntry", 4): _transform_map_entry,
    ("sortBy", 2): _sort_by,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
}
"""By name and number of arguments."""
