"""What a mutation of a MutatingAdmissionPolicy makes of an object. Pure.

Source: apiserver pkg/admission/plugin/policy/mutating/{dispatcher.go, patch/json_patch.go, patch/smd.go},
pkg/cel/mutation/dynamic/objects.go:CheckTypeNamesMatchFieldPathNames.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lastcall.kube.api.meta import Object
from lastcall.kube.api.patch import json_patch
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.fieldmanager.merge import merged
from lastcall.kube.apiserver.fieldmanager.resource_types import type_of
from lastcall.kube.apiserver.fieldmanager.types import Type
from lastcall.kube.apiserver.fieldmanager.validate import error_text, problems
from lastcall.kube.apiserver.policies.evaluation import Evaluation, OutOfBudget
from lastcall.kube.apiserver.policies.language import Compiled
from lastcall.kube.cel.values import Record, Uint

_WHICH = "which matches field name path from root Object type"


class NotMutated(Exception):
    """The mutation failed: the policy's failurePolicy decides."""


def mutated(mutation: Compiled, evaluation: Evaluation, resource: Resource, obj: Object) -> Object:
    """Return `obj`, which is shown as one of `resource`, as the mutation makes it; it is not changed itself.

    Raises NotMutated.
    """
    if mutation.program is None:
        raise NotMutated(mutation.problem)
    try:
        result = evaluation.run(mutation)
    except OutOfBudget as error:
        raise NotMutated(str(error)) from None
    if result.error:
        raise NotMutated(result.error)
    if isinstance(result.value, Record):
        return _applied(result.value, resource, obj)
    assert isinstance(result.value, list | tuple), "the checker has seen the type"
    return _patched([_operation(each) for each in result.value], obj)


# -- JSONPatch ---------------------------------------------------------------------------------------------------------


def _operation(made: Record) -> Object:
    fields = made.fields
    operation: Object = {"op": fields.get("op", ""), "path": fields.get("path", "")}
    if fields.get("from"):
        operation["from"] = fields["from"]
    if "value" in fields:
        value = fields["value"]
        if isinstance(value, Record):
            _check_names(value, value.type_name)
        operation["value"] = as_json(value)
    return operation


def _patched(operations: list[Object], obj: Object) -> Object:
    try:
        patched = json_patch.apply(obj, operations)
    except json_patch.TestFailed:
        return obj  # a test that fails says that nothing is to be changed
    except json_patch.PatchError as error:
        raise NotMutated(f"JSON Patch: {error}") from None
    if not isinstance(patched, dict):
        raise NotMutated("JSON Patch: the patch does not leave an object")
    return patched


# -- ApplyConfiguration ------------------------------------------------------------------------------------------------


def _applied(made: Record, resource: Resource, obj: Object) -> Object:
    _check_names(made, made.type_name)
    patch = {**as_json(made), "apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    type_ = type_of(resource)
    if found := problems(type_, patch):
        why = f"failed to convert patch object to typed object: {error_text(found)}"
        raise NotMutated(f"error applying patch: {why}")
    if atomics := list(_atomics(type_, patch, "")):
        why = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise NotMutated(f"error applying patch: invalid ApplyConfiguration: {why}")
    result: Object = merged(type_, obj, patch)
    return result


def _atomics(type_: Type, value: Any, path: str) -> Iterator[str]:
    """The paths of lists, maps and structs that are one value. (`findAtomics`)"""
    if isinstance(value, dict):
        if type_.leaf and type_.kind in ("map", "struct"):
            yield path
        for name, item in value.items():
            if type_.kind == "struct" and name in type_.fields:
                yield from _atomics(type_.child(name)[1], item, f"{path}.{name}")
    elif isinstance(value, list) and type_.kind in ("list", "set"):
        if type_.leaf:
            yield path
        for index, item in enumerate(value):
            if type_.item is not None:
                yield from _atomics(type_.item, item, f"{path}[{index}]")


def _check_names(made: Record, root: str) -> None:
    """`Object.spec{template: Object.wrong{}}` is refused. Raises NotMutated."""
    if wrong := [f'unexpected type name "{name}", expected "{path}", {_WHICH}' for name, path in _misnamed(made, root)]:
        raise NotMutated("type mismatch: " + "\n".join(wrong))


def _misnamed(value: object, path: str) -> Iterator[tuple[str, str]]:
    """(type's name, what it should be) of structs that have not the name of the place where they are."""
    if isinstance(value, Record):
        if value.type_name != path:
            yield value.type_name, path
        for name, item in value.fields.items():
            yield from _misnamed(item, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _misnamed(item, path)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _misnamed(item, path)


def as_json(value: object) -> Any:
    """Convert a value of CEL to JSON."""
    if isinstance(value, Record):
        return {name: as_json(item) for name, item in value.fields.items()}
    if isinstance(value, Uint):
        return int(value)
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [as_json(item) for item in value]
    raise NotMutated(f"a value of the type {type(value).__name__} cannot be written as JSON")
