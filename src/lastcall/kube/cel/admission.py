"""What expressions of admission may name: the request, the object, its Namespace, parameters, variables.

Source: apiserver pkg/admission/plugin/cel/{compile.go, composition.go}, pkg/cel/mutation/{typeresolver.go,
jsonpatch.go}.
"""

from collections.abc import Mapping

from lastcall.kube.cel import types
from lastcall.kube.cel.environment import Environment
from lastcall.kube.cel.libraries.every import KUBERNETES, MUTATION
from lastcall.kube.cel.types import Type, TypeProvider
from lastcall.world.dataclass import dataclass

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


@dataclass(frozen=True)
class _Provider:
    """The object types that an expression may meet. `patch`: also those that describe a change; `shapes`: of kinds."""

    variables: Mapping[str, Type]
    patch: bool
    shapes: TypeProvider | None = None

    def has(self, name: str) -> bool:
        return name in _TYPES or name == VARIABLES or (self.patch and _describes_change(name)) or self._shaped(name)

    def field(self, name: str, field: str) -> Type | None:
        if name == VARIABLES:
            return self.variables.get(field)
        if name in _TYPES:
            return _TYPES[name].get(field)
        if self.shapes is not None and self._shaped(name):
            return self.shapes.field(name, field)
        if not (self.patch and _describes_change(name)):
            return None
        return _JSON_PATCH.get(field, _NO_TYPE) if name == "JSONPatch" else types.DYN

    def fields(self, name: str) -> Mapping[str, Type]:
        if name == VARIABLES:
            return self.variables
        if self.shapes is not None and self._shaped(name):
            return self.shapes.fields(name)
        return _JSON_PATCH if name == "JSONPatch" else _TYPES.get(name, {})

    def _shaped(self, name: str) -> bool:
        return self.shapes is not None and self.shapes.has(name)


def _describes_change(name: str) -> bool:
    return name in ("Object", "JSONPatch") or name.startswith("Object.")


def environment(
    variables: Mapping[str, Type] | None = None,
    *,
    params: Type | None = None,
    authorizer: bool = True,
    patch: bool = False,
    objects: Type = types.DYN,
    shapes: TypeProvider | None = None,
) -> Environment:
    """Return what expressions may name; None is a name that they do not have.

    `variables`: the types of the policy's own variables. `objects`: the type of `object` and `oldObject`; `shapes`
    knows the fields of that type and of `params`.
    """
    names: dict[str, Type] = {
        "object": objects,
        "oldObject": objects,
        "namespaceObject": types.object_type("kubernetes.Namespace"),
        "request": types.object_type("kubernetes.AdmissionRequest"),
    }
    if params is not None:
        names["params"] = params
    if authorizer:
        names["authorizer"] = types.object_type("kubernetes.authorization.Authorizer")
        names["authorizer.requestResource"] = types.object_type("kubernetes.authorization.ResourceCheck")
    if variables is not None:
        names["variables"] = types.object_type(VARIABLES)
    return Environment(
        names, MUTATION if patch else KUBERNETES, _Provider({} if variables is None else variables, patch, shapes)
    )


def declared(result: Type) -> Type:
    """Return as what a variable with this result is declared. (composition.go:convertCelTypeToDeclType)"""
    if result in _SIMPLE:
        return result
    if result.kind in ("list", "map"):
        return Type(result.kind, result.name, tuple(declared(each) for each in result.parameters))
    return types.DYN


_SIMPLE = (
    types.ANY, types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT, types.NULL, types.STRING,
    types.TIMESTAMP, types.UINT,
)  # fmt: skip
