"""Which types fit which (cel-go checker/{types.go, mapping.go})."""

from collections.abc import Sequence

from lastcall.kube.cel.types import DYN, Type

Bindings = dict[Type, Type]
"""What type parameters stand for."""
_NULLABLE = frozenset(("object", "opaque", "timestamp", "duration", "any", "null", "dyn"))


def is_dyn(type_: Type) -> bool:
    return type_.kind in ("dyn", "any")


def is_dyn_or_error(type_: Type) -> bool:
    return type_.kind in ("dyn", "any", "error")


def unwrapped(type_: Type) -> tuple[Type, bool]:
    """Return what an optional is about, and whether it is one."""
    if type_.kind == "opaque" and type_.name == "optional_type":
        return type_.parameters[0], True
    return type_, False


def substitute(bindings: Bindings, type_: Type, *, free_as_dyn: bool) -> Type:
    """Replace the parameters of `type_` by what they stand for. Those that stand for nothing stay, or become dyn."""
    while type_.kind == "parameter":
        bound = bindings.get(type_)
        if bound is None or bound == type_:
            return DYN if free_as_dyn else type_
        type_ = bound
    if not type_.parameters:
        return type_
    inner = tuple(substitute(bindings, each, free_as_dyn=free_as_dyn) for each in type_.parameters)
    return type_ if inner == type_.parameters else Type(type_.kind, type_.name, inner)


def assigned(bindings: Bindings, actual: Type, wanted: Type) -> Bindings | None:
    """Return the bindings with which a value of the type `actual` may be used as `wanted`; None: it may not."""
    tried = dict(bindings)
    return tried if _assignable(tried, actual, wanted) else None


def all_assigned(bindings: Bindings, actual: Sequence[Type], wanted: Sequence[Type]) -> Bindings | None:
    if len(actual) != len(wanted):
        return None
    tried = dict(bindings)
    return tried if all(_assignable(tried, *pair) for pair in zip(actual, wanted, strict=True)) else None


def _assignable(bindings: Bindings, one: Type, two: Type) -> bool:
    if two.kind == "parameter":
        fits, bound = _stands_for(bindings, one, two)
        if fits or bound:
            return fits
    if one.kind == "parameter":
        return _stands_for(bindings, two, one)[0]
    if is_dyn_or_error(one) or is_dyn_or_error(two):
        return True
    if one.kind == "null":
        return two.kind in _NULLABLE
    if two.kind == "null":
        return one.kind in _NULLABLE
    if one.kind != two.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in ("object", "opaque") and one.name != two.name:
        return False
    return len(one.parameters) == len(two.parameters) and all(
        _assignable(bindings, *pair) for pair in zip(one.parameters, two.parameters, strict=True)
    )


def _stands_for(bindings: Bindings, type_: Type, parameter: Type) -> tuple[bool, bool]:
    """(whether the parameter may stand for the type, whether it stood for one before)"""
    if type_ == parameter:
        return True, True
    bound = bindings.get(parameter)
    if bound is not None:
        if type_ == bound:
            return True, True
        if _assignable(bindings, type_, bound):
            wider = type_ if _less_specific(type_, bound) else bound
            if not _mentions(bindings, parameter, wider):
                bindings[parameter] = wider
            return True, True
        return False, True
    if _mentions(bindings, parameter, type_):
        return False, False
    bindings[parameter] = type_
    return True, False


def _mentions(bindings: Bindings, parameter: Type, within: Type) -> bool:
    if within == parameter:
        return True
    if within.kind == "parameter":
        bound = bindings.get(within)
        return bound is not None and _mentions(bindings, parameter, bound)
    return any(_mentions(bindings, parameter, each) for each in within.parameters)


def more_general(one: Type, two: Type) -> Type:
    return one if _less_specific(one, two) else two


def _less_specific(one: Type, two: Type) -> bool:
    """Return True if `one` is as specific as `two`, or less."""
    if is_dyn(one) or one.kind == "parameter":
        return True
    if is_dyn(two) or two.kind == "parameter" or one.kind != two.kind:
        return False
    if one.kind in ("list", "map", "opaque"):
        return (
            one.name == two.name
            and len(one.parameters) == len(two.parameters)
            and all(_less_specific(*pair) for pair in zip(one.parameters, two.parameters, strict=True))
        )
    return one.kind == "type" or one == two
