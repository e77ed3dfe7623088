"""Schemas of API types in both dialects: definitions of OpenAPI v2 and components of OpenAPI v3.

Facts only: types, required fields, defaults, enums, and how lists and maps merge. Only metadata is described.

Sources: kube-openapi pkg/builder, pkg/builder3; apiserver pkg/endpoints/openapi/openapi.go (GroupVersionKinds).
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Literal

from lastcall.kube.api.schema.types import facts_of, full_name, known_types
from lastcall.kube.apiserver.openapi.descriptions import DESCRIPTIONS

Dialect = Literal[2, 3]
Schema = dict[str, Any]

ANY_VERSION = 1000
GVK_EXTENSION = "x-kubernetes-group-version-kind"

OPTIONS_OF_EVERY_GROUP = ("meta.v1.DeleteOptions", "meta.v1.WatchEvent")
"""Types that belong to each group version."""

_REFERENCE = {2: "#/definitions/", 3: "#/components/schemas/"}

_SCALARS: dict[tuple[str, Dialect], Schema] = {
    ("Quantity", 2): {"type": "string"},
    ("Quantity", 3): {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ("IntOrString", 2): {"type": "string", "format": "int-or-string"},
    ("IntOrString", 3): {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
}

_EXTENSIONS = {
    "lk": "x-kubernetes-list-map-keys",
    "lt": "x-kubernetes-list-type",
    "mt": "x-kubernetes-map-type",
    "mk": "x-kubernetes-patch-merge-key",
    "ps": "x-kubernetes-patch-strategy",
}


def reference(name: str, dialect: Dialect) -> Schema:
    """Return a `$ref` to the type of this short name."""
    return {"$ref": _REFERENCE[dialect] + full_name(name)}


def schema(
    name: str, dialect: Dialect, group_versions: Iterable[tuple[str, str]] = (), minor: int = ANY_VERSION
) -> Schema:
    """Return the schema of a type in Kubernetes 1.`minor`.

    `group_versions` are named by the types that belong to every group.
    """
    facts = facts_of(name)
    if (name, dialect) in _SCALARS:
        return dict(_SCALARS[name, dialect])
    # A type that says neither has no type in OpenAPI: any JSON.
    out: Schema = {"type": facts.get("t", "object")} if "t" in facts or "f" in facts else {}
    if "fmt" in facts:
        out["format"] = facts["fmt"]
    if "f" in facts:
        said = DESCRIPTIONS.get(name, {})
        out["properties"] = {
            key: _described(_property(value, dialect), said.get(key))
            for key, value in facts["f"].items()
            if value.get("v", 0) <= minor
        }
        out = _described(out, said.get(""))
    if "req" in facts:
        out["required"] = facts["req"]
    if name in OPTIONS_OF_EVERY_GROUP:
        kind = name.rpartition(".")[2]
        out[GVK_EXTENSION] = [{"group": group, "kind": kind, "version": version} for group, version in group_versions]
    elif name in _kinds_by_type():
        out[GVK_EXTENSION] = _kinds_by_type()[name]
    if "mt" in facts:
        out["x-kubernetes-map-type"] = facts["mt"]
    if "u" in facts:
        out["x-kubernetes-unions"] = facts["u"]
    return out


def _described(schema: Schema, text: str | None) -> Schema:
    return {"description": text, **schema} if text else schema


def _property(facts: dict[str, Any], dialect: Dialect, *, inside: bool = False) -> Schema:
    """`inside`: of a list or a map."""
    if "r" in facts:
        target = reference(facts["r"], dialect)
        # v3 as Kubernetes writes it wraps the reference of a field, so that something may stand beside it.
        if inside:
            return target
        wrapped: Schema = {"allOf": [target], **({"default": {}} if "z" in facts else {})}
        return (target if dialect == 2 else wrapped) | _extensions(facts)
    out: Schema = {}
    if "i" in facts:
        out |= {"type": "array", "items": _property(facts["i"], dialect, inside=True)}
    elif "m" in facts:
        out |= {"type": "object", "additionalProperties": _property(facts["m"], dialect, inside=True)}
    elif "t" in facts:
        out["type"] = facts["t"]
    if "f" in facts:
        out["format"] = facts["f"]
    if "e" in facts:
        out["enum"] = facts["e"]
    if "d" in facts and dialect == 3:
        out["default"] = facts["d"]
    return out | _extensions(facts)


def _extensions(facts: dict[str, Any]) -> Schema:
    return {extension: facts[code] for code, extension in _EXTENSIONS.items() if code in facts}


@cache
def _kinds_by_type() -> dict[str, list[dict[str, str]]]:
    kinds: dict[str, list[dict[str, str]]] = {}
    for api_version_kind, name in known_types().items():
        group, version, kind = f"/{api_version_kind}".split("/")[-3:]
        kinds.setdefault(name, []).append({"group": group, "kind": kind, "version": version})
    return kinds


def reachable(names: Iterable[str], minor: int = ANY_VERSION) -> Iterator[str]:
    """Yield every type that one of `names` holds in Kubernetes 1.`minor`, these included, each once."""
    waiting, seen = list(names), set(names)
    while waiting:
        name = waiting.pop()
        yield name
        for facts in facts_of(name).get("f", {}).values():
            if facts.get("v", 0) > minor:
                continue
            while "i" in facts or "m" in facts:
                facts = facts.get("i") or facts["m"]
            target = facts.get("r")
            if target is not None and target not in seen:
                seen.add(target)
                waiting.append(target)
