"""The CEL of admission: what expressions of policies and webhooks may name, and policies as programs.

Source: apiserver pkg/admission/plugin/cel/{compile.go, composition.go}, plugin/policy/{validating/plugin.go,
mutating/compilation.go}, pkg/cel/mutation/{typeresolver.go, jsonpatch.go}.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lastcall.api.meta import Object
from lastcall.cel import types
from lastcall.cel.environment import Environment, Program
from lastcall.cel.errors import CompileError, ProgramError
from lastcall.cel.libraries.every import KUBERNETES, MUTATION
from lastcall.cel.types import Type

VARIABLES = "kubernetes.variables"
"""The type of `variables`."""
_STRINGS = types.list_of(types.STRING)
_KIND = {"group": types.STRING, "version": types.STRING, "kind": types.STRING}
_RESOURCE = {"group": types.STRING, "version": types.STRING, "resource": types.STRING}
_TYPES: Mapping[str, Mapping[str, Type]] = {
    "kubernetes.GroupVersionKind": _KIND,
    "kubernetes.GroupVersionResource": _RESOURCE,
    "kubernetes.UserInfo": {
        "username": types.STRING,
        "uid": types.STRING,
        "groups": _STRINGS,
        "extra": types.map_of(types.STRING, _STRINGS),
    },
    "kubernetes.AdmissionRequest": {
        "kind": types.object_type("kubernetes.GroupVersionKind"),
        "resource": types.object_type("kubernetes.GroupVersionResource"),
        "subResource": types.STRING,
        "requestKind": types.object_type("kubernetes.GroupVersionKind"),
        "requestResource": types.object_type("kubernetes.GroupVersionResource"),
        "requestSubResource": types.STRING,
        "name": types.STRING,
        "namespace": types.STRING,
        "operation": types.STRING,
        "userInfo": types.object_type("kubernetes.UserInfo"),
        "dryRun": types.BOOL,
        "options": types.DYN,
    },
    "kubernetes.NamespaceSpec": {"finalizers": _STRINGS},
    "kubernetes.NamespaceCondition": {
        "status": types.STRING,
        "type": types.STRING,
        "lastTransitionTime": types.TIMESTAMP,
        "message": types.STRING,
        "reason": types.STRING,
    },
    "kubernetes.NamespaceStatus": {
        "conditions": types.list_of(types.object_type("kubernetes.NamespaceCondition")),
        "phase": types.STRING,
    },
    "kubernetes.NamespaceMetadata": {
        "name": types.STRING,
        "generateName": types.STRING,
        "namespace": types.STRING,
        "labels": types.map_of(types.STRING, types.STRING),
        "annotations": types.map_of(types.STRING, types.STRING),
        "UID": types.STRING,
        "creationTimestamp": types.TIMESTAMP,
        "deletionGracePeriodSeconds": types.INT,
        "deletionTimestamp": types.TIMESTAMP,
        "generation": types.INT,
        "resourceVersion": types.STRING,
        "finalizers": _STRINGS,
    },
    "kubernetes.Namespace": {
        "metadata": types.object_type("kubernetes.NamespaceMetadata"),
        "spec": types.object_type("kubernetes.NamespaceSpec"),
        "status": types.object_type("kubernetes.NamespaceStatus"),
    },
}
_JSON_PATCH = {"op": types.STRING, "path": types.STRING, "from": types.STRING, "value": types.DYN}
_NO_TYPE = Type("object", "")
_RESULTS: Mapping[str, Type] = {
    "bool": types.BOOL,
    "string": types.STRING,
    "null_type": types.NULL,
    "Object": types.object_type("Object"),
    "list(JSONPatch)": types.list_of(types.object_type("JSONPatch")),
}
"""The types of results that expressions are asked for, by what messages call them."""


@dataclass(frozen=True)
class _Provider:
    """The object types that an expression may meet. `patch`: also those that describe a change."""

    variables: Mapping[str, Type]
    patch: bool

    def has(self, name: str) -> bool:
        return name in _TYPES or name == VARIABLES or (self.patch and _describes_change(name))

    def field(self, name: str, field: str) -> Type | None:
        if name == VARIABLES:
            return self.variables.get(field)
        if name in _TYPES:
            return _TYPES[name].get(field)
        if not (self.patch and _describes_change(name)):
            return None
        return _JSON_PATCH.get(field, _NO_TYPE) if name == "JSONPatch" else types.DYN

    def fields(self, name: str) -> Mapping[str, Type]:
        if name == VARIABLES:
            return self.variables
        return _JSON_PATCH if name == "JSONPatch" else _TYPES.get(name, {})


def _describes_change(name: str) -> bool:
    return name in ("Object", "JSONPatch") or name.startswith("Object.")


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression as it stands, and its program or why there is none."""

    text: str
    program: Program | None
    problem: str = ""


def _environment(variables: Mapping[str, Type] | None, *, params: bool, authorizer: bool, patch: bool) -> Environment:
    names: dict[str, Type] = {
        "object": types.DYN,
        "oldObject": types.DYN,
        "namespaceObject": types.object_type("kubernetes.Namespace"),
        "request": types.object_type("kubernetes.AdmissionRequest"),
    }
    if params:
        names["params"] = types.DYN
    if authorizer:
        names["authorizer"] = types.object_type("kubernetes.authorization.Authorizer")
        names["authorizer.requestResource"] = types.object_type("kubernetes.authorization.ResourceCheck")
    if variables is not None:
        names["variables"] = types.object_type(VARIABLES)
    return Environment(names, MUTATION if patch else KUBERNETES, _Provider(variables or {}, patch))


@lru_cache(maxsize=8)
def _plain_environment(*, params: bool, authorizer: bool) -> Environment:
    return _environment(None, params=params, authorizer=authorizer, patch=False)


class PolicyScope:
    """The expressions of one policy, in their order. (`CompositedCompiler`)"""

    def __init__(self, *, params: bool) -> None:
        self._params = params
        self._variables: dict[str, Type] = {}

    def compiled_variable(self, name: str, text: str) -> Compiled:
        made = self.compiled(text, ())
        self._variables[name] = types.DYN if made.program is None else _declared(made.program.result)
        return made

    def variable(self, name: str, text: str) -> str:
        return self.compiled_variable(name, text).problem

    def problem(
        self,
        text: str,
        returns: Sequence[str],
        *,
        authorizer: bool = True,
        variables: bool = False,
        patch: bool = False,
    ) -> str:
        return self.compiled(text, returns, authorizer=authorizer, variables=variables, patch=patch).problem

    def compiled(
        self,
        text: str,
        returns: Sequence[str],
        *,
        authorizer: bool = True,
        variables: bool = True,
        patch: bool = False,
    ) -> Compiled:
        if variables or patch:
            known = dict(self._variables) if variables else None
            environment = _environment(known, params=self._params, authorizer=authorizer, patch=patch)
        else:
            environment = _plain_environment(params=self._params, authorizer=authorizer)
        try:
            program = environment.compile(text)
        except CompileError as error:
            return Compiled(text, None, f"compilation failed: {error}")
        except ProgramError as error:
            return Compiled(text, None, str(error))
        if returns and program.result not in [_RESULTS[each] for each in returns]:
            wanted = returns[0] if len(returns) == 1 else f"one of [{' '.join(returns)}]"
            return Compiled(text, None, f"must evaluate to {wanted} but got {types.text(program.result)}")
        return Compiled(text, program)


def _declared(result: Type) -> Type:
    """As what a variable with this result is declared. (composition.go:convertCelTypeToDeclType)"""
    if result in _SIMPLE:
        return result
    if result.kind in ("list", "map"):
        return Type(result.kind, result.name, tuple(_declared(each) for each in result.parameters))
    return types.DYN


_SIMPLE = (
    types.ANY, types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT, types.NULL, types.STRING,
    types.TIMESTAMP, types.UINT,
)  # fmt: skip


# -- programs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ValidatingPrograms:
    variables: Mapping[str, Compiled]
    conditions: Sequence[Compiled]
    specs: Sequence[Object]
    """The validations as they stand in the policy; `validations` and `messages` are their expressions."""
    validations: Sequence[Compiled]
    messages: Sequence[Compiled | None]
    annotations: Sequence[tuple[str, Compiled]]


@dataclass(frozen=True, slots=True)
class MutatingPrograms:
    variables: Mapping[str, Compiled]
    conditions: Sequence[Compiled]
    mutations: Sequence[Compiled] = field(default=())


def validating_programs(spec: Object) -> ValidatingPrograms:
    scope, variables, conditions = _common(spec)
    validations = spec.get("validations") or ()
    messages = [each.get("messageExpression") for each in validations]
    annotations = spec.get("auditAnnotations") or ()
    return ValidatingPrograms(
        variables,
        conditions,
        validations,
        [scope.compiled(each.get("expression") or "", ("bool",)) for each in validations],
        [scope.compiled(each, ("string",), authorizer=False) if each else None for each in messages],
        [
            (each.get("key") or "", scope.compiled(each.get("valueExpression") or "", ("string", "null_type")))
            for each in annotations
        ],
    )


def mutating_programs(spec: Object) -> MutatingPrograms:
    scope, variables, conditions = _common(spec)
    mutations = []
    for mutation in spec.get("mutations") or ():
        key, result = _PATCHES[mutation["patchType"]]
        mutations.append(scope.compiled((mutation.get(key) or {}).get("expression") or "", (result,), patch=True))
    return MutatingPrograms(variables, conditions, mutations)


_PATCHES = {"ApplyConfiguration": ("applyConfiguration", "Object"), "JSONPatch": ("jsonPatch", "list(JSONPatch)")}


def _common(spec: Object) -> tuple[PolicyScope, dict[str, Compiled], list[Compiled]]:
    scope = PolicyScope(params=spec.get("paramKind") is not None)
    variables = {
        each["name"]: scope.compiled_variable(each["name"], each.get("expression") or "")
        for each in spec.get("variables") or ()
    }
    return (
        scope,
        variables,
        [scope.compiled(each["expression"], ("bool",)) for each in spec.get("matchConditions") or ()],
    )


def condition_programs(texts: Sequence[str]) -> list[Compiled]:
    """Of a webhook's matchConditions: they know no variables."""
    scope = PolicyScope(params=False)
    return [scope.compiled(each, ("bool",), variables=False) for each in texts]
