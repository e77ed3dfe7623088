"""Which kinds an API server serves, by its own word.

One request for each of /api and /apis where the server aggregates, else one for each group and version. A group whose
word is not available is named, and the rest holds.

Source: client-go discovery (discovery_client.go:ServerPreferredResources, aggregated_discovery.go).
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, Protocol

import orjson

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import REVIEWS, SERVED, PartialResource, Resource
from lastcall.kube.client.api import ConnectionLost
from lastcall.world.dataclass import dataclass

AGGREGATED = ",".join(
    (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        "application/json",
    )
)
_KNOWN = {(each.group, each.version, each.plural): each for each in (*SERVED, *REVIEWS)}


class Request(Protocol):
    """`HTTPClient.request`."""

    async def __call__(self, method: str, path: str, *, accept: str) -> bytes: ...


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind in one version. `preferred` is one version of each kind: objects are to be seen once."""

    resource: Resource
    verbs: frozenset[str]
    preferred: bool = True


@dataclass(frozen=True, slots=True)
class Discovered:
    """`failed` says why the kinds of a group-version (`storage.k8s.io/v1`) are not known."""

    kinds: tuple[ServedKind, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def error(self) -> str:
        """Return what is not known, "" when everything is. (`ErrGroupDiscoveryFailed`)"""
        if not self.failed:
            return ""
        listed = ", ".join(sorted(f"{group_version}: {why}" for group_version, why in self.failed.items()))
        return f"unable to retrieve the complete list of server APIs: {listed}"


Discover = Callable[[], Awaitable[Discovered]]
"""Raises StatusError, ConnectionLost when nothing at all can be found out."""


async def discover(request: Request) -> Discovered:
    """Ask everything. Raises StatusError, ConnectionLost."""
    found: list[ServedKind] = []
    failed: dict[str, str] = {}
    for path in ("/api", "/apis"):
        document = await _document(request, path, AGGREGATED)
        if document.get("kind") == "APIGroupDiscoveryList":
            for group in document.get("items") or ():
                found += _group(group, failed)
        else:
            for group in _groups(document):
                found += await _unaggregated(request, path, group, failed)
    return Discovered(tuple(found), failed)


async def openapi_document(request: Request, name: str) -> bytes | None:
    """Return the OpenAPI v3 document of a group-version (`apis/apps/v1`, `api/v1`); None where the server has none.

    Raises StatusError, ConnectionLost.
    """
    try:
        return await request("GET", f"/openapi/v3/{name}", accept="application/json")
    except StatusError as error:
        if error.code == 404:
            return None
        raise


async def fetch(request: Request, path: str) -> Object:
    """Return the JSON object at a path. Raises StatusError, ConnectionLost."""
    return await _document(request, path, "application/json")


async def _document(request: Request, path: str, accept: str) -> Object:
    data = await request("GET", path, accept=accept)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ConnectionLost(f"GET {path}: the answer is not JSON: {data[:200]!r}") from error
    if not isinstance(document, dict):
        raise ConnectionLost(f"GET {path}: the answer is not a JSON object: {data[:200]!r}")
    return document


# -- aggregated --------------------------------------------------------------------------------------------------------


def _group(group: Object, failed: dict[str, str]) -> Iterator[ServedKind]:
    """The versions of a group come in the order of preference. (`SplitGroupsAndResources`)"""
    name, seen = (group.get("metadata") or {}).get("name") or "", set()
    for each in group.get("versions") or ():
        version = each.get("version", "")
        if each.get("freshness") == "Stale":
            group_version = _group_version(name, version)
            failed[group_version] = f"stale GroupVersion discovery: {group_version}"
            continue
        for entry in each.get("resources") or ():
            kind = (entry.get("responseKind") or {}).get("kind")
            if not kind:
                continue
            plural = entry.get("resource", "")
            resource = _resource(name, version, plural, kind, namespaced=entry.get("scope") == "Namespaced")
            yield ServedKind(resource, frozenset(entry.get("verbs") or ()), plural not in seen)
            seen.add(plural)


# -- one document for each group and version ---------------------------------------------------------------------------


def _groups(document: Object) -> list[tuple[str, list[str]]]:
    """(group, its versions, the preferred one first) of APIVersions or APIGroupList."""
    if "groups" not in document:
        return [("", list(document.get("versions") or ()))]
    groups = []
    for each in document["groups"]:
        preferred = (each.get("preferredVersion") or {}).get("version")
        versions = [version.get("version", "") for version in each.get("versions") or ()]
        groups.append((each.get("name", ""), sorted(versions, key=lambda version: version != preferred)))
    return groups


async def _unaggregated(
    request: Request, path: str, group: tuple[str, list[str]], failed: dict[str, str]
) -> list[ServedKind]:
    (name, versions), seen, found = group, set(), []
    for version in versions:
        group_version = _group_version(name, version)
        try:
            document = await _document(request, f"{path}/{group_version}", "application/json")
        except StatusError as error:
            failed[group_version] = error.message
            continue
        for entry in document.get("resources") or ():
            plural: Any = entry.get("name", "")
            if "/" in plural:
                continue
            resource = _resource(name, version, plural, entry.get("kind", ""), namespaced=bool(entry.get("namespaced")))
            found.append(ServedKind(resource, frozenset(entry.get("verbs") or ()), plural not in seen))
            seen.add(plural)
    return found


def _group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _resource(group: str, version: str, plural: str, kind: str, *, namespaced: bool) -> Resource:
    """Ours where we know it: then its cache is shared. Of another kind only the metadata is asked for."""
    known = _KNOWN.get((group, version, plural))
    if known is not None and (known.kind, known.namespaced) == (kind, namespaced):
        return known
    return PartialResource(group, version, plural, kind, namespaced)
