"""Paths and operations of the OpenAPI documents: what can be asked of each resource, in both dialects.

Source: apiserver pkg/endpoints/installer.go:registerResourceHandlers (parameters, answers and operation names).
"""

# check: asks for kinds because the proxies of Pods and Services have parameters of their own

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.types import known_types
from lastcall.kube.apiserver.discovery import response_kind, subresource_verbs, verbs_of
from lastcall.kube.apiserver.openapi.schemas import GVK_EXTENSION, Dialect, Schema, reference
from lastcall.world.dataclass import dataclass

PRODUCES = ("application/json", "application/yaml")
STREAMS = ("application/json;stream=watch",)
PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json")

_FIELD = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
_DELETE = {
    "dryRun": "string",
    "gracePeriodSeconds": "integer",
    "orphanDependents": "boolean",
    "propagationPolicy": "string",
}
_SELECT = {
    "continue": "string",
    "fieldSelector": "string",
    "labelSelector": "string",
    "limit": "integer",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
}
_QUERY: dict[str, dict[str, str]] = {
    "get": {},
    "list": {"allowWatchBookmarks": "boolean", **_SELECT, "watch": "boolean"},
    "post": _FIELD,
    "put": _FIELD,
    "patch": {**_FIELD, "force": "boolean"},
    "delete": _DELETE,
    "deletecollection": {**_SELECT, **_DELETE},
}
"""Query parameters by action, with their types."""

_SUBRESOURCE_QUERY: dict[str, dict[str, str]] = {
    "log": {
        "container": "string",
        "follow": "boolean",
        "limitBytes": "integer",
        "previous": "boolean",
        "sinceSeconds": "integer",
        "sinceTime": "string",
        "tailLines": "integer",
        "timestamps": "boolean",
    },
    "exec": {
        "command": "string",
        "container": "string",
        "stderr": "boolean",
        "stdin": "boolean",
        "stdout": "boolean",
        "tty": "boolean",
    },
    "attach": {
        "container": "string",
        "stderr": "boolean",
        "stdin": "boolean",
        "stdout": "boolean",
        "tty": "boolean",
    },
    "portforward": {"ports": "integer"},
    "proxy": {"path": "string"},
}
_METHODS = {"get": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}
_PASSED_ON = ("get", "put", "post", "delete", "options", "head", "patch")
"""What a proxy subresource takes: more than there are verbs for."""
_WORDS = {"get": "read", "post": "create", "put": "replace", "patch": "patch", "delete": "delete", "list": "list"}
_TEXTS = {200: "OK", 201: "Created", 202: "Accepted", 401: "Unauthorized"}


@dataclass(frozen=True, slots=True)
class _Operation:
    """`action` is Kubernetes's word (`x-kubernetes-action`), `body` and `answer` are short type names or ""."""

    method: str
    action: str
    name: str
    kind: tuple[str, str, str]
    query: Mapping[str, str]
    body: str
    answer: str
    codes: tuple[int, ...]


def types_of(resource: Resource) -> list[str]:
    """Return short names of the types that the operations of a resource accept and answer."""
    names = {operation.body for path in _paths(resource) for operation in path[1]}
    names |= {operation.answer for path in _paths(resource) for operation in path[1]}
    return sorted(name for name in names if name)


def path_items(resource: Resource, dialect: Dialect) -> Iterator[tuple[str, Schema]]:
    """Yield (path, its path item) for every operation of a resource."""
    for path, operations in _paths(resource):
        item: Schema = {
            operation.method: _rendered(resource, operation, dialect)
            for operation in sorted(operations, key=lambda each: each.method)
        }
        in_path = [name for name in ("name", "namespace", "path") if "{" + name + "}" in path]
        item["parameters"] = [_parameter(name, "path", "string", dialect) for name in in_path]
        item["parameters"].append(_parameter("pretty", "query", "string", dialect))
        yield path, item


def _paths(resource: Resource) -> Iterator[tuple[str, list[_Operation]]]:
    verbs = verbs_of(resource)
    collection = resource.path("{namespace}")
    yield collection, list(_collection(resource, verbs))
    if "get" not in verbs:
        return
    yield resource.path("{namespace}", "{name}"), list(_object(resource, verbs))
    for subresource in sorted(resource.subresources):
        operations = list(_subresource(resource, subresource))
        path = resource.path("{namespace}", "{name}", subresource)
        if operations:
            yield path, operations
        if subresource == "proxy":
            below = [replace(each, name=f"{each.name}WithPath", query={}) for each in operations]
            yield f"{path}/{{path}}", below
    if resource.namespaced:
        everywhere = _operation(resource, "get", "list", everywhere=True)
        yield resource.path(), [everywhere]


def _collection(resource: Resource, verbs: Sequence[str]) -> Iterator[_Operation]:
    if "list" in verbs:
        yield _operation(resource, "get", "list")
    if "create" in verbs:
        yield _operation(resource, "post", "post")
    if "deletecollection" in verbs:
        yield _operation(resource, "delete", "deletecollection")


def _object(resource: Resource, verbs: Sequence[str]) -> Iterator[_Operation]:
    for verb, method in _METHODS.items():
        if verb in verbs and verb != "create":
            yield _operation(resource, method, method)


def _subresource(resource: Resource, subresource: str) -> Iterator[_Operation]:
    if subresource == "proxy":
        for method in _PASSED_ON:
            yield _operation(resource, method, method, subresource)
        return
    for verb in subresource_verbs(resource, subresource):
        yield _operation(resource, _METHODS[verb], _METHODS[verb], subresource)


def _operation(
    resource: Resource, method: str, action: str, subresource: str = "", *, everywhere: bool = False
) -> _Operation:
    kind = response_kind(resource, subresource) if subresource else (resource.group, resource.version, resource.kind)
    type_ = _type_name(kind)
    connects = bool(subresource) and kind[2].endswith("Options")
    body = {"post": type_, "put": type_, "patch": "meta.v1.Patch", "delete": "meta.v1.DeleteOptions"}.get(method, "")
    answer = type_
    codes: tuple[int, ...] = {"post": (200, 201, 202), "put": (200, 201), "patch": (200, 201)}.get(method, (200,))
    if action == "list":
        answer = _type_name((kind[0], kind[1], kind[2] + "List"))
    elif action == "delete":
        codes, answer = (200, 202), type_ if resource.plural in ("pods", "services") else "meta.v1.Status"
    elif action == "deletecollection":
        answer = "meta.v1.Status"
    if connects or subresource == "log":
        body, answer, codes = "", "", (200,)
    query = _SUBRESOURCE_QUERY[subresource] if subresource in _SUBRESOURCE_QUERY else _QUERY[action]
    return _Operation(
        method,
        "connect" if connects else action,
        _operation_name(resource, method, action, subresource, everywhere=everywhere, connects=connects),
        kind,
        query,
        body,
        answer,
        codes,
    )


def _type_name(kind: tuple[str, str, str]) -> str:
    group, version, name = kind
    return known_types().get(f"{group}/{version}/{name}" if group else f"{version}/{name}", "")


def _group_word(resource: Resource) -> str:
    """`Core`, `RbacAuthorization` of rbac.authorization.k8s.io, `ExampleCom` of example.com."""
    return "".join(each.capitalize() for each in resource.group.removesuffix(".k8s.io").split(".")) or "Core"


def _operation_name(
    resource: Resource, method: str, action: str, subresource: str, *, everywhere: bool, connects: bool
) -> str:
    """`listCoreV1NamespacedPod`, `replaceCoreV1NamespacedPodStatus`, `deleteCoreV1CollectionNode`."""
    word = "connect" if connects else _WORDS.get(action, "delete")
    parts = [word, _group_word(resource), resource.version.capitalize()]
    if action == "deletecollection":
        parts.append("Collection")
    if connects:
        parts.append(method.capitalize())
    if resource.namespaced and not everywhere:
        parts.append("Namespaced")
    parts += [resource.kind, subresource.capitalize()]
    if everywhere:
        parts.append("ForAllNamespaces")
    return "".join(parts)


def _rendered(resource: Resource, operation: _Operation, dialect: Dialect) -> Schema:
    group, version, kind = operation.kind
    word = _group_word(resource)
    out: Schema = {
        "tags": [word[0].lower() + word[1:] + "_" + resource.version],
        "operationId": operation.name,
        "parameters": [_parameter(name, "query", type_, dialect) for name, type_ in sorted(operation.query.items())],
        "responses": {},
        "x-kubernetes-action": operation.action,
        GVK_EXTENSION: {"group": group, "kind": kind, "version": version},
    }
    produces: tuple[str, ...] = PRODUCES + STREAMS if operation.action == "list" else PRODUCES
    if not operation.answer:
        produces = ("*/*",) if operation.action == "connect" else ("text/plain",)
    consumes = PATCHES if operation.method == "patch" and operation.body else ("*/*",)
    answer = reference(operation.answer, dialect) if operation.answer else {"type": "string"}
    for code in operation.codes:
        out["responses"][str(code)] = {"description": _TEXTS[code]} | (
            {"schema": answer} if dialect == 2 else {"content": {name: {"schema": answer} for name in produces}}
        )
    out["responses"]["401"] = {"description": _TEXTS[401]}
    if dialect == 2:
        out |= {"produces": list(produces), "consumes": list(consumes), "schemes": ["https"]}
    if operation.body:
        body = reference(operation.body, dialect)
        required = operation.method != "delete"
        if dialect == 2:
            given: Schema = {"name": "body", "in": "body", "schema": body}
            out["parameters"].insert(0, given | ({"required": True} if required else {}))
        else:
            out["requestBody"] = {"content": {name: {"schema": body} for name in consumes}}
            if required:
                out["requestBody"]["required"] = True
    return out


def _parameter(name: str, where: str, type_: str, dialect: Dialect) -> Schema:
    kind: Schema = {"type": type_, "uniqueItems": True}
    out: Schema = {"name": name, "in": where} | ({"required": True} if where == "path" else {})
    return out | (kind if dialect == 2 else {"schema": kind})
