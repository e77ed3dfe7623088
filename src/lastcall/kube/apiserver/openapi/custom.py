"""Declared kinds in the OpenAPI documents: their schemas, and the operations of `paths.py` with these.

Source: apiextensions-apiserver pkg/controller/openapi/builder/builder.go.
"""

from collections.abc import Iterator

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.apiserver.openapi.custom_schemas import kind_schema, list_schema
from lastcall.kube.apiserver.openapi.paths import PATCHES, PRODUCES, path_items
from lastcall.kube.apiserver.openapi.schemas import Dialect, Schema, reference


def custom_name(resource: CustomResource) -> str:
    """Return `com.example.v1.Widget`."""
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def custom_parts(resource: CustomResource, dialect: Dialect) -> Iterator[tuple[str, str, Schema]]:
    """Yield ("paths" or "definitions", name, value), each."""
    name = custom_name(resource)
    one, several = _reference(name, dialect), _reference(f"{name}List", dialect)
    for path, item in path_items(resource, dialect):
        for method in ("get", "post", "put", "patch", "delete"):
            if method in item and not path.endswith("/scale"):
                _fill(item[method], method, one, several, dialect)
            if method in item:
                _describe(item[method], path, method, resource, dialect)
            if method in item and method == "patch":
                _say_patches(item[method], dialect)
        yield "paths", path, item
    yield "definitions", name, kind_schema(resource, dialect)
    yield "definitions", f"{name}List", list_schema(resource, dialect, one)


def _fill(operation: Schema, method: str, one: Schema, several: Schema, dialect: Dialect) -> None:
    action = operation["x-kubernetes-action"]
    answer = several if action == "list" else one if method != "delete" else reference("meta.v1.Status", dialect)
    for code, response in operation["responses"].items():
        if code != "401":
            content: Schema = {"content": {each: {"schema": answer} for each in PRODUCES}}
            operation["responses"][code] = {
                "description": response["description"],
                **(content if dialect == 3 else {"schema": answer}),
            }
    if dialect == 2:
        operation["produces"] = list(PRODUCES)
    if method in ("post", "put"):
        if dialect == 3:
            operation["requestBody"] = {"required": True, "content": {each: {"schema": one} for each in PRODUCES}}
        else:
            operation["parameters"].insert(0, {"name": "body", "in": "body", "schema": one, "required": True})


def _describe(operation: Schema, path: str, method: str, resource: CustomResource, dialect: Dialect) -> None:
    """(`descriptionFor`)"""
    kind, action = resource.kind, operation["x-kubernetes-action"]
    below = path.rpartition("{name}/")[2] if "{name}/" in path else ""
    of = f" {below} of" if below else ""
    article = "an" if kind[0] in "AEIOUaeiou" else "a"
    operation["description"] = {
        "list": f"list objects of kind {kind}",
        "get": f"read{of} the specified {kind}",
        "put": f"replace{of} the specified {kind}",
        "patch": f"partially update{of} the specified {kind}",
        "post": f"create {article} {kind}",
        "delete": f"delete {article} {kind}",
        "deletecollection": f"delete collection of {kind}",
    }[action]
    if method == "patch":
        operation["responses"].pop("201", None)
    elif dialect == 2:
        operation["consumes"] = list(PRODUCES)


def _say_patches(operation: Schema, dialect: Dialect) -> None:
    """A declared kind has no strategic merge patch; kubectl looks here for which patch it may send."""
    patches = [*(each for each in PATCHES if "strategic" not in each), "application/apply-patch+yaml"]
    patch = reference("meta.v1.Patch", dialect)
    if dialect == 3:
        operation["requestBody"] = {"required": True, "content": {each: {"schema": patch} for each in patches}}
    else:
        operation["consumes"] = patches


def _reference(name: str, dialect: Dialect) -> Schema:
    return {"$ref": ("#/definitions/" if dialect == 2 else "#/components/schemas/") + name}
