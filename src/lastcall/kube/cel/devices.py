"""What selectors of devices may name: the device. Source: dynamic-resource-allocation cel/compile.go."""

from collections.abc import Mapping
from functools import cache

from lastcall.kube.cel import types
from lastcall.kube.cel.environment import Environment
from lastcall.kube.cel.errors import CompileError, ProgramError
from lastcall.kube.cel.types import Type

_DEVICE = "kubernetes.DRADevice"
_QUANTITY = types.object_type("kubernetes.Quantity")
_FIELDS: Mapping[str, Type] = {
    "driver": types.STRING,
    "attributes": types.map_of(types.STRING, types.map_of(types.STRING, types.ANY)),
    "capacity": types.map_of(types.STRING, types.map_of(types.STRING, _QUANTITY)),
    "allowMultipleAllocations": types.BOOL,
}
_RESULTS = (types.BOOL, types.ANY, types.DYN)
_BIND = "cel.bind("
"""A macro that selectors have and other expressions of Kubernetes have not; nor has this engine."""


class _Provider:
    def has(self, name: str) -> bool:
        return name == _DEVICE

    def field(self, name: str, field: str) -> Type | None:
        return _FIELDS.get(field) if name == _DEVICE else None

    def fields(self, name: str) -> Mapping[str, Type]:
        return _FIELDS if name == _DEVICE else {}


@cache
def _environment() -> Environment:
    return Environment({"device": types.object_type(_DEVICE)}, provider=_Provider())


def selector_problem(text: str) -> str:
    """Return what is wrong with a selector; "" for nothing, and for one with `cel.bind`, which is not checked."""
    if _BIND in text:
        return ""
    try:
        result = _environment().compile(text).result
    except CompileError as error:
        return f"compilation failed: {error}"
    except ProgramError:
        return "compilation failed: invalid matches argument"  # there with its place
    if result not in _RESULTS:
        return f"must evaluate to bool or the unknown type, not {types.text(result)}"
    return ""
