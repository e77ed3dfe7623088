"""`deployment/web`, `deploy/web`, `web` (a Pod), or the object itself: what a reference names. Pure."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from lastcall.errors import LastcallError
from lastcall.kube.api import PODS, SERVED, Object, Resource
from lastcall.world.dataclass import dataclass

_NAMED = 8
"""Kinds of CustomResourceDefinitions in an error."""

Reference = str | Mapping[str, Any]
"""`kind/name` with the kind as kubectl takes it, a Pod's name, or an object with apiVersion, kind and metadata."""


@dataclass(frozen=True, slots=True)
class Named:
    """An object by its name. `namespace` is "" for kinds that have none."""

    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource.kind} {where}{self.name}"


__tracebackhide__ = True  # pytest shows the caller's line


def names_of(resource: Resource) -> set[str]:
    """Return what kubectl takes for a kind: plural, singular, short names, each with its group, and the kind itself."""
    plain = {resource.plural, resource.singular or resource.kind.lower(), resource.kind.lower()}
    grouped = {f"{name}.{resource.group}" for name in plain} if resource.group else set()
    versioned = {f"{resource.plural}.{resource.version}.{resource.group}"} if resource.group else set()
    return plain | grouped | versioned | set(resource.short_names)


def find_kind(word: str, served: Iterable[Resource]) -> Resource:
    """Return the first kind of that name. Raises LastcallError that proposes the nearest."""
    known: dict[str, Resource] = {}
    for each in served:
        for name in names_of(each):
            known.setdefault(name, each)
    if word.lower() in known:
        return known[word.lower()]
    if near := get_close_matches(word.lower(), known, 1):
        raise LastcallError(f"unknown kind {word!r}: did you mean {near[0]}?")
    declared = sorted({each.group_resource for each in known.values()} - {each.group_resource for each in SERVED})
    names = ", ".join([*declared[:_NAMED], *(["…"] if len(declared) > _NAMED else [])])
    raise LastcallError(f"unknown kind {word!r}" + (f": the cluster also serves {names}" if names else ""))


def find(reference: Reference, namespace: str, served: Iterable[Resource]) -> Named:
    """Return what `reference` names; `namespace` is for those that say none. Raises LastcallError."""
    if isinstance(reference, str):
        kind, slash, name = reference.rpartition("/")
        resource = find_kind(kind, served) if slash else PODS
        if not name:
            raise LastcallError(f"{reference!r} has no name: write KIND/NAME, such as deployment/web")
        return Named(resource, namespace if resource.namespaced else "", name)
    return _of_object(reference, namespace, served)


def _of_object(obj: Mapping[str, Any], namespace: str, served: Iterable[Resource]) -> Named:
    metadata = obj.get("metadata") or {}
    api_version, kind, name = obj.get("apiVersion"), obj.get("kind"), metadata.get("name")
    if not (api_version and kind and name):
        raise LastcallError(f"an object needs apiVersion, kind and metadata.name: {_shown(obj)}")
    for each in served:
        if (each.api_version, each.kind) == (api_version, kind):
            return Named(each, (metadata.get("namespace") or namespace) if each.namespaced else "", name)
    raise LastcallError(f"the cluster serves no kind {kind} in {api_version}")


def with_namespace(obj: Object, resource: Resource, namespace: str) -> Object:
    """Return the object in `namespace`, where its kind has one and it names none itself."""
    metadata = obj.get("metadata") or {}
    if not resource.namespaced or metadata.get("namespace"):
        return obj
    return {**obj, "metadata": {**metadata, "namespace": namespace}}


def _shown(obj: Mapping[str, Any]) -> str:
    text = repr(dict(obj))
    return text if len(text) <= 200 else f"{text[:199]}…"
