"""The forms an answer can take: Tables, PartialObjectMetadata, indented JSON, YAML (lists: list_bodies.py).

Sources: apiserver pkg/endpoints/handlers/response.go, pkg/endpoints/handlers/watch.go.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache, partial
from typing import Any, cast

import orjson

from lastcall.kube.api.defaults.workloads import metadata_alone
from lastcall.kube.api.errors import bad_request
from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object
from lastcall.kube.api.protobuf.encoding import encode_envelope, watch_frame
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.operations import Operations
from lastcall.kube.apiserver.registry.objects import watch_line
from lastcall.kube.apiserver.registry.watch import WatchItem
from lastcall.kube.apiserver.wire.negotiation import PROTOBUF, YAML, MediaType, check_form

META_GROUP = "meta.k8s.io"


def table(
    resource: Resource,
    objects: list[Object],
    media_type: MediaType,
    query: Mapping[str, str],
    meta: Object,
    moment: datetime,
    minor: int,
) -> Object:
    """Return a Table of `objects` as of `moment`, with the columns of Kubernetes 1.`minor`.

    `?includeObject=` says what of the object each row carries.
    """
    # late: 4.8 ms of the control plane's start
    from lastcall.kube.api.table.rows import IncludeObject, table_for

    asked = query.get("includeObject", "")
    if asked not in ("", "None", "Metadata", "Object"):
        why = f"includeObject: Invalid value: {go_quote(asked)}: must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"Unable to convert to Table as requested: {why}")
    include: IncludeObject = "Object" if asked == "Object" else "None" if asked == "None" else "Metadata"
    made = table_for(resource, objects, moment, include, meta, minor=minor)
    made["apiVersion"] = f"{META_GROUP}/{media_type.version}"
    if include == "Metadata" and media_type.version != "v1":
        for row in made["rows"]:
            row["object"]["apiVersion"] = made["apiVersion"]
    return made


def partial_metadata(obj: Object, media_type: MediaType) -> Object:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"{META_GROUP}/{media_type.version}",
        "metadata": metadata_alone(obj),
    }


def object_body(
    resource: Resource,
    obj: Object,
    media_type: MediaType,
    query: Mapping[str, str],
    moment: datetime,
    minor: int,
) -> bytes:
    """Encode one object in the wanted form. Raises the 406 StatusError of a form that only a list has."""
    check_form(media_type, resource, list_=False)
    if media_type.as_ == "Table":
        return orjson.dumps(table(resource, [obj], media_type, query, _table_meta(obj), moment, minor))
    if media_type.as_ == "PartialObjectMetadata":
        return orjson.dumps(partial_metadata(obj, media_type))
    return orjson.dumps(obj)


def _table_meta(obj: Object) -> Object:
    version = obj.get("metadata", {}).get("resourceVersion")
    return {"resourceVersion": version} if version else {}


class WatchEncoder:
    """Turns events into lines of the stream; a Table watch names its columns only in the first one."""

    def __init__(
        self, operations: Operations, resource: Resource, media_type: MediaType, query: Mapping[str, str]
    ) -> None:
        self._operations = operations
        self._resource = resource
        self._media_type = media_type
        self._query = query
        self._columns_sent = False

    def frame(self, event: WatchItem) -> bytes:
        """Encode an event in protobuf."""
        said = orjson.loads(self.line(event))
        return watch_frame(said["type"], said["object"])

    def line(self, event: WatchItem) -> bytes:
        if event.type == "ERROR":
            return watch_line(event.type, event.value.encoded())
        if not self._media_type.as_:
            if event.type == "BOOKMARK":
                return watch_line(event.type, event.value.encoded())
            return watch_line(event.type, self._operations.present(self._resource, event.value))
        obj = (
            event.value.decoded() or {}
            if event.type == "BOOKMARK"
            else self._operations.decode(self._resource, event.value)
        )
        if self._media_type.as_ == "PartialObjectMetadata":
            return watch_line(event.type, orjson.dumps(partial_metadata(obj, self._media_type)))
        moment = self._operations.now()
        minor = self._operations.minor
        rows = table(self._resource, [obj], self._media_type, self._query, _table_meta(obj), moment, minor)
        if self._columns_sent:
            rows["columnDefinitions"] = None
        self._columns_sent = True
        return watch_line(event.type, orjson.dumps(rows))


_END_OF_DOCUMENT = "...\n"
"""What libyaml writes after a text whose last lines are empty, wherever that stood. Nobody else does, and more of the
document may follow."""


def reformat(body: bytes, media_type: MediaType) -> bytes:
    """Convert JSON to YAML or protobuf, or indent it."""
    if media_type.name == PROTOBUF:
        return encode_envelope(orjson.loads(body))
    if media_type.name == YAML:
        return _yaml_writer()(orjson.loads(body)).removesuffix(_END_OF_DOCUMENT).encode()
    return orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2)


@cache
def _yaml_writer() -> Callable[[Any], str]:
    """Strings as Go's encoder writes them: those of several lines as literals, those that would be read as something
    else (`"true"`, `"1"`, times) in double quotes. (sigs.k8s.io/yaml, goyaml.v2 encode.go:stringv)"""
    # late: 15 ms of the API server's start
    import yaml

    base = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    dumper: Any = type("Dumper", (base,), {})
    text = "tag:yaml.org,2002:str"

    def represent(dumper: Any, value: str) -> Any:
        style = None
        if "\n" in value:
            style = "|"
        elif value in ("y", "Y", "n", "N") or dumper.resolve(yaml.ScalarNode, value, (True, False)) != text:
            style = '"'
        return dumper.represent_scalar(text, value, style=style)

    dumper.add_representer(str, represent)
    write: Any = partial(yaml.dump, Dumper=dumper, default_flow_style=False, allow_unicode=True)
    return cast(Callable[[Any], str], write)
