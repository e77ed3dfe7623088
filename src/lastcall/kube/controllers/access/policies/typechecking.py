"""Whether the expressions of a policy fit the kinds that it matches, and what is wrong where they do not. Pure.

Source: apiserver pkg/admission/plugin/policy/validating/typechecking.go.
"""

# check: pure

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lastcall.kube.api.resources import Resource
from lastcall.kube.cel import types
from lastcall.kube.cel.admission import declared, environment
from lastcall.kube.cel.errors import CompileError
from lastcall.kube.cel.shapes import Shapes, shape_of
from lastcall.kube.cel.types import Type
from lastcall.kube.controllers.access.policies.schemas import Schema

if TYPE_CHECKING:
    from lastcall.kube.api.types.admission import (
        TypeChecking,
        ValidatingAdmissionPolicy,
        ValidatingAdmissionPolicyStatus,
    )

MOST_KINDS = 10
"""`maxTypesToCheck`, of each rule."""


class Kind(NamedTuple):
    """`str` is as messages show it: `apps/v1, Kind=Deployment`."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"

    @property
    def document(self) -> str:
        """Return the OpenAPI document that has it: `apis/apps/v1`, `api/v1`."""
        return f"apis/{self.group}/{self.version}" if self.group else f"api/{self.version}"


def kinds_to_check(policy: "ValidatingAdmissionPolicy", served: Iterable[Resource]) -> list[Kind]:
    """Return the kinds that a policy's rules name, sorted; rules with a wildcard name none. (`typesToCheck`)"""
    by_resource: dict[tuple[str, str], list[Resource]] = {}
    for each in served:
        for name in {each.plural, each.kind.lower()}:
            by_resource.setdefault((each.version, name), []).append(each)
    found: set[Kind] = set()
    for rule in (policy["spec"].get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions = _named(rule.get("apiGroups") or ()), _named(rule.get("apiVersions") or ())
        resources = sorted(each for each in rule.get("resources") or () if not {"*", "/"} & set(each))
        count = 0
        for group in groups:
            for version in versions:
                for resource in resources:
                    for each in by_resource.get((version, resource.lower()), ()):
                        # A rule of the group "" names resources of this version in every group. (RESTMapper.KindsFor)
                        if group in ("", each.group):
                            found.add(Kind(each.group, each.version, each.kind))
                            count += 1
                            if count == MOST_KINDS:
                                return sorted(found)
    return sorted(found)


def _named(names: Sequence[str]) -> list[str]:
    return [] if any("*" in each for each in names) else sorted(names)


def parameter_kind(policy: "ValidatingAdmissionPolicy") -> Kind | None:
    """Return the kind of `params`; None without parameters."""
    kind = policy["spec"].get("paramKind")
    if not kind:
        return None
    group, _, version = (kind.get("apiVersion") or "").rpartition("/")
    return Kind(group, version, kind.get("kind") or "")


def expressions_of(policy: "ValidatingAdmissionPolicy") -> list[tuple[str, str]]:
    """Return (field, expression) of what is checked: validations and their messages."""
    found = []
    for index, each in enumerate(policy["spec"].get("validations") or ()):
        at = f"spec.validations[{index}]"
        found.append((f"{at}.expression", each.get("expression") or ""))
        if each.get("messageExpression"):
            found.append((f"{at}.messageExpression", each["messageExpression"]))
    return found


class KindChecker:
    """Checks expressions of one policy for one of the kinds that it matches.

    `schemas`: of that kind, and of its `parameters`, which stay without a type where their schema is not known.
    """

    def __init__(
        self, policy: "ValidatingAdmissionPolicy", kind: Kind, schemas: Mapping[Kind, Schema], parameters: Kind | None
    ) -> None:
        shapes = Shapes()
        self._kind = kind
        given = None if parameters is None else _type(schemas.get(parameters), shapes, f"params.{parameters.kind}")
        objects = _type(schemas[kind], shapes, kind.kind)
        variables: dict[str, Type] = {}
        self._environment = environment(variables, params=given, objects=objects, shapes=shapes)
        for each in policy["spec"].get("variables") or ():
            try:
                checked = self._environment.check(each.get("expression") or "")
                variables[each["name"]] = declared(checked.types[checked.tree.root.id])
            except CompileError:
                variables[each["name"]] = types.DYN

    def problem(self, expression: str) -> str:
        """Return what is wrong, in the words of a warning; "" for nothing."""
        try:
            self._environment.check(expression)
        except CompileError as error:
            return f"{self._kind}: {error}\n"
        return ""


def _type(schema: Schema | None, shapes: Shapes, name: str) -> Type:
    if schema is None:
        return types.DYN
    metadata = (schema.get("properties") or {}).get("metadata") or {}
    shape = shape_of(schema, shapes, name, root="name" not in (metadata.get("properties") or {}))
    return types.DYN if shape is None else shape.type


def status_of(
    policy: "ValidatingAdmissionPolicy", warnings: Sequence[tuple[str, str]]
) -> "ValidatingAdmissionPolicyStatus":
    """Return the status to write; `warnings`: (field, text)."""
    checking: TypeChecking = {}
    if warnings:
        checking["expressionWarnings"] = [{"fieldRef": field, "warning": text} for field, text in warnings]
    return {"observedGeneration": policy["metadata"].get("generation") or 0, "typeChecking": checking}
