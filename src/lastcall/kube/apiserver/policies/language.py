"""The CEL of admission: what expressions of policies and webhooks may name, and policies as programs.

Source: apiserver pkg/admission/plugin/cel/{compile.go, composition.go}, plugin/policy/{validating/plugin.go,
mutating/compilation.go}.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache

from lastcall.kube.api.meta import Object
from lastcall.kube.cel import types
from lastcall.kube.cel.admission import declared, environment
from lastcall.kube.cel.environment import Environment, Program
from lastcall.kube.cel.errors import CompileError, ProgramError
from lastcall.kube.cel.types import Type
from lastcall.world.dataclass import dataclass

_RESULTS: Mapping[str, Type] = {
    "bool": types.BOOL,
    "string": types.STRING,
    "null_type": types.NULL,
    "Object": types.object_type("Object"),
    "list(JSONPatch)": types.list_of(types.object_type("JSONPatch")),
}
"""The types of results that expressions are asked for, by what messages call them."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression as it was written, and its program, or the error that compiling it gave."""

    text: str
    program: Program | None
    problem: str = ""


@lru_cache(maxsize=8)
def _plain_environment(*, params: bool, authorizer: bool) -> Environment:
    return environment(params=types.DYN if params else None, authorizer=authorizer)


class PolicyScope:
    """The expressions of one policy, in their order. (`CompositedCompiler`)"""

    def __init__(self, *, params: bool) -> None:
        self._params = params
        self._variables: dict[str, Type] = {}

    def compiled_variable(self, name: str, text: str) -> Compiled:
        made = self.compiled(text, ())
        self._variables[name] = types.DYN if made.program is None else declared(made.program.result)
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
            names = environment(known, params=types.DYN if self._params else None, authorizer=authorizer, patch=patch)
        else:
            names = _plain_environment(params=self._params, authorizer=authorizer)
        try:
            program = names.compile(text)
        except CompileError as error:
            return Compiled(text, None, f"compilation failed: {error}")
        except ProgramError as error:
            return Compiled(text, None, str(error))
        if returns and program.result not in [_RESULTS[each] for each in returns]:
            wanted = returns[0] if len(returns) == 1 else f"one of [{' '.join(returns)}]"
            return Compiled(text, None, f"must evaluate to {wanted} but got {types.text(program.result)}")
        return Compiled(text, program)


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
    """Compile a webhook's matchConditions, which know no variables."""
    scope = PolicyScope(params=False)
    return [scope.compiled(each, ("bool",), variables=False) for each in texts]
