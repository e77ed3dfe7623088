"""Classes of the messages of CRI v1, made of `schema` when this is imported.

So they suit whatever version of protobuf's runtime is installed. `classes["PodSandboxStatus"]` is one of them.
"""

# check: allow google.protobuf because it makes CRI's messages

from collections.abc import Callable
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from lastcall.kube.cri.v1 import schema

PACKAGE = "runtime.v1"
RUNTIME_SERVICE = f"{PACKAGE}.RuntimeService"
IMAGE_SERVICE = f"{PACKAGE}.ImageService"
DOWNLOADS = ("ListStatuses", "ListContentStatusesRequest", "ListContentStatusesResponse")
CONTENT_SERVICE = "containerd.services.content.v1.Content"
"""containerd's own: what it downloads at the moment."""
EVENTS = ("GetContainerEvents", "GetEventsRequest", "ContainerEventResponse")
"""The method that answers with a stream. Each of the others takes a `<name>Request` and answers a `<name>Response`."""


def rows(table: str) -> list[tuple[str, list[str]]]:
    """Return (name, words) of each entry of a table; an indented line continues the one before."""
    found: list[tuple[str, list[str]]] = []
    for line in table.strip("\n").splitlines():
        if line.startswith(" "):
            found[-1][1].extend(line.split())
        else:
            name, _, rest = line.partition(":")
            found.append((name, rest.split()))
    return found


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="lastcall/cri.proto", package=PACKAGE, syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    enums = dict(rows(schema.ENUMS))
    for name, values in enums.items():
        enum = file.enum_type.add(name=name)
        for place, value in enumerate(values):
            enum.value.add(name=value, number=place)
    tables = (schema.SANDBOXES_AND_CONTAINERS, schema.IMAGES, schema.STATS, schema.DOWNLOADS)
    messages = dict(row for table in tables for row in rows(table))
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for text in fields:
            label, _, rest = text.partition("=")
            repeated = "*" in rest
            number, _, type_ = rest.replace("*", ":").partition(":")
            field = message.field.add(name=label, number=int(number), label=kinds.LABEL_OPTIONAL)
            if repeated or type_ == "map":
                field.label = kinds.LABEL_REPEATED
            if type_ == "map":
                entry = message.nested_type.add(name=f"{label.title().replace('_', '')}Entry")
                entry.options.map_entry = True
                for key, at in (("key", 1), ("value", 2)):
                    entry.field.add(name=key, number=at, label=kinds.LABEL_OPTIONAL, type=kinds.TYPE_STRING)
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{PACKAGE}.{name}.{entry.name}"
            elif type_ in messages:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{PACKAGE}.{type_}"
            elif type_ in enums:
                field.type, field.type_name = kinds.TYPE_ENUM, f".{PACKAGE}.{type_}"
            else:
                field.type = getattr(kinds, f"TYPE_{(type_ or 'string').upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in messages}


classes = _classes()
SIGNALS = tuple(dict(rows(schema.ENUMS))["Signal"])
"""Names of CRI's Signal by number; the first is the runtime's default."""


def new(message: str, /, **fields: Any) -> Any:
    """Make a message. A field that is None is left out; a map may be a dict."""
    return classes[message](**{key: value for key, value in fields.items() if value is not None})


def method_of(service: str, name: str) -> tuple[str, Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Return for a client: (path, how a request is written, how an answer is read)."""
    own = {each[0]: each[1:] for each in (EVENTS, DOWNLOADS)}
    request, response = own.get(name, (f"{name}Request", f"{name}Response"))
    return f"/{service}/{name}", classes[request].SerializeToString, classes[response].FromString
