"""The OpenAPI documents, made when first asked for, in small steps, and then kept.

| path | what |
|---|---|
| /openapi/v2 | one document of everything served, as JSON or protobuf by Accept |
| /openapi/v3 | the documents below, each with the hash of its content |
| /openapi/v3/api/v1, /openapi/v3/apis/GROUP/VERSION | one group version, JSON |

Sources: kube-openapi pkg/handler/handler.go, pkg/handler3/handler.go.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence

import orjson

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.types import full_name
from lastcall.kube.apiserver.openapi import protobuf
from lastcall.kube.apiserver.openapi.custom import custom_parts
from lastcall.kube.apiserver.openapi.paths import path_items, types_of
from lastcall.kube.apiserver.openapi.schemas import OPTIONS_OF_EVERY_GROUP, Dialect, Schema, reachable, schema
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_NAMES = (V2_PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
V3_PROTOBUF_NAMES = (
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
)
JSON = "application/json"

STEPS_AT_ONCE = 8
"""How many definitions or paths are made before others get their turn (about a millisecond)."""


@dataclass(frozen=True, slots=True)
class Document:
    """`hash` is the upper-case SHA-512 of the content, in hex: the ETag, and `?hash=` of v3."""

    body: bytes
    media_type: str
    hash: str


class OpenAPI:
    """`v2`, `index` and `v3` answer documents; the first request waits until they are made (well under a second)."""

    def __init__(self, clock: Clock, resources: Sequence[Resource], kubernetes_version: str) -> None:
        self._clock = clock
        self._resources = sorted(resources, key=lambda resource: resource.path())
        self._info = {"title": "Kubernetes", "version": kubernetes_version}
        self._minor = int(kubernetes_version.split(".")[1])
        self._making = asyncio.Lock()
        self._documents: dict[str, Document] = {}
        self._group_versions = sorted({(each.group, each.version) for each in resources})

    def has(self, name: str) -> bool:
        """Return whether `api/v1`, `apis/GROUP/VERSION` is a document of v3."""
        return any(name == _name(*each) for each in self._group_versions)

    async def v2(self, accept: str) -> Document | None:
        """Return the document by the first media type in `accept` that is served; None when none of them is."""
        wanted = _negotiate(accept)
        if wanted is None:
            return None
        async with self._making:
            if wanted not in self._documents:
                await self._make_v2()
            return self._documents[wanted]

    async def v3(self, name: str) -> Document:
        """Return a document of v3. Raises KeyError for a name that `has` does not know."""
        async with self._making:
            if name not in self._documents:
                group_version = next(each for each in self._group_versions if _name(*each) == name)
                resources = [each for each in self._resources if (each.group, each.version) == group_version]
                self._documents[name] = _document(await self._make(resources, 3), JSON)
            return self._documents[name]

    async def index(self) -> Document:
        paths = {}
        for each in self._group_versions:
            name = _name(*each)
            hash_ = (await self.v3(name)).hash
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={hash_}"}
        return _document({"paths": paths}, "text/plain; charset=utf-8")

    async def _make_v2(self) -> None:
        content = await self._make(self._resources, 2)
        self._documents[JSON] = _document(content, JSON)
        pieces = []
        for number, piece in enumerate(protobuf.document(content)):
            pieces.append(piece)
            if number % STEPS_AT_ONCE == 0:
                await self._clock.sleep(0)
        body = b"".join(pieces)
        # One ETag for one content, whatever its form: Vary says to caches that Accept matters.
        self._documents[V2_PROTOBUF] = Document(body, V2_PROTOBUF, _hash(body))

    async def _make(self, resources: Sequence[Resource], dialect: Dialect) -> Schema:
        paths: Schema = {}
        definitions: Schema = {}
        for number, (section, name, value) in enumerate(self._parts(resources, dialect)):
            (paths if section == "paths" else definitions)[name] = value
            if number % STEPS_AT_ONCE == 0:
                await self._clock.sleep(0)
        definitions = {name: definitions[name] for name in sorted(definitions)}
        if dialect == 2:
            return {"swagger": "2.0", "info": self._info, "paths": paths, "definitions": definitions}
        return {"openapi": "3.0.0", "info": self._info, "paths": paths, "components": {"schemas": definitions}}

    def _parts(self, resources: Sequence[Resource], dialect: Dialect) -> Iterator[tuple[str, str, Schema]]:
        group_versions = sorted({(each.group, each.version) for each in resources})
        names = dict.fromkeys(OPTIONS_OF_EVERY_GROUP)
        for resource in resources:
            if isinstance(resource, CustomResource):
                names.update(
                    dict.fromkeys(("meta.v1.ObjectMeta", "meta.v1.ListMeta", "meta.v1.Status", "meta.v1.Patch"))
                )
                if "scale" in resource.subresources:
                    names["autoscaling.v1.Scale"] = None
                yield from custom_parts(resource, dialect)
                continue
            names.update(dict.fromkeys(types_of(resource)))
            for path, item in path_items(resource, dialect):
                yield "paths", path, item
        for name in reachable(names, self._minor):
            yield "definitions", full_name(name), schema(name, dialect, group_versions, self._minor)


def _name(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _document(content: Schema, media_type: str) -> Document:
    body = orjson.dumps(content)
    return Document(body, media_type, _hash(body))


def _hash(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


def speaks_json(accept: str) -> bool:
    """Return whether a document of v3 can be sent: it is JSON, also for a client that wants protobuf."""
    return any(name in (JSON, "*/*", "application/*", *V3_PROTOBUF_NAMES) for name in _names(accept))


def _names(accept: str) -> Iterator[str]:
    for clause in accept.split(",") if accept.strip() else ["*/*"]:
        yield clause.partition(";")[0].strip().lower()


def _negotiate(accept: str) -> str | None:
    for name in _names(accept):
        if name in PROTOBUF_NAMES:
            return V2_PROTOBUF
        if name in (JSON, "*/*", "application/*"):
            return JSON
    return None
