"""The bodies of lists, made piece by piece: no list, however long, keeps the event loop from its other work.

The plain form is cut from the stored bytes and nothing is decoded. All other forms are decoded, shaped and encoded a
slice of items at a time, and read as if they had been encoded at once.

Sources: apiserver pkg/endpoints/handlers/response.go, pkg/endpoints/handlers/get.go:ListResource.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

import orjson

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.meta import Object
from lastcall.kube.api.protobuf.encoding import encode_items, encode_list
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.answers.representation import META_GROUP, partial_metadata, reformat, table
from lastcall.kube.apiserver.answers.sending import PIECE_BYTES
from lastcall.kube.apiserver.operations import Operations
from lastcall.kube.apiserver.registry.listing import SLICE, Page
from lastcall.kube.apiserver.registry.objects import list_head
from lastcall.kube.apiserver.wire.negotiation import PROTOBUF, YAML, MediaType, check_form
from lastcall.kube.store.api import Entry
from lastcall.world.dataclass import dataclass

END = b"]}\n"
"""Go's json.Encoder ends a value with a newline, MarshalIndent does not."""


@dataclass(frozen=True, slots=True)
class StoredList:
    """A list made of stored bytes: how long it is, and its pieces."""

    length: int
    pieces: Iterator[bytes]


def is_stored_form(operations: Operations, resource: Resource) -> bool:
    """Return whether items are shown as they are stored. Those of declared kinds carry kind and apiVersion, too."""
    return operations.kind(resource).resource is resource and not isinstance(resource, CustomResource)


def is_long(page: Page) -> bool:
    """Return True for a page whose objects have more JSON than is sent at once."""
    return sum(entry.value.size for entry in page.entries) > PIECE_BYTES


async def stored_list(operations: Operations, resource: Resource, page: Page) -> StoredList:
    """Return the plain form of a page of a kind that is shown as it is stored."""
    codec = operations.kind(resource).codec
    cut, items = codec.item_start, []
    for start in range(0, len(page.entries), SLICE):
        made = [entry.value.encoded() for entry in page.entries[start : start + SLICE]]
        for value in made:
            codec.check(value)
        items += made
        if len(items) < len(page.entries):
            await operations.clock.sleep(0)
    head = list_head(resource, page.revision, page.continue_, page.remaining)
    # An item is `{` and what follows kind and apiVersion; between two items is a comma.
    length = len(head) + sum(map(len, items)) + (2 - cut) * len(items) - bool(items) + len(END)
    return StoredList(length, _stored_pieces(head, items, cut))


def _stored_pieces(head: bytes, items: list[bytes], cut: int) -> Iterator[bytes]:
    lead, start, size = head + b"{", 0, 0
    for end, value in enumerate(items, 1):
        size += len(value)
        if size < PIECE_BYTES and end < len(items):
            continue
        # Slices of memory views: each item is copied once, into its piece.
        piece = lead + b",{".join([memoryview(value)[cut:] for value in items[start:end]])
        lead, start, size = b",{", end, 0
        yield piece if end < len(items) else piece + END
    if not items:
        yield head + END


async def list_body(
    operations: Operations, resource: Resource, page: Page, media_type: MediaType, query: Mapping[str, str]
) -> bytes:
    """Return a page in the wanted form and encoding.

    Raises the 406 StatusError of a form that a list does not have.
    """
    check_form(media_type, resource, list_=True)
    if media_type.plain and is_stored_form(operations, resource):
        return b"".join((await stored_list(operations, resource, page)).pieces)
    if media_type.name == PROTOBUF:
        head, _, shape = _form(operations, resource, page, media_type, query)
        items = []
        for entries in _slices(page.entries):
            items.append(encode_items(head, shape([operations.decode(resource, each.value) for each in entries])))
            await operations.clock.sleep(0)
        return encode_list(head, b"".join(items))
    return b"".join([piece async for piece in list_pieces(operations, resource, page, media_type, query)])


def list_pieces(
    operations: Operations, resource: Resource, page: Page, media_type: MediaType, query: Mapping[str, str]
) -> AsyncIterator[bytes]:
    """Return the same body as it is made; there is none in protobuf. Raises as `list_body`."""
    check_form(media_type, resource, list_=True)
    head, name, shape = _form(operations, resource, page, media_type, query)
    return _pieces(operations, resource, page, shape, _Encoder(head, name, media_type))


Shape = Callable[[list[Object]], list[Object]]


def _form(
    operations: Operations, resource: Resource, page: Page, media_type: MediaType, query: Mapping[str, str]
) -> tuple[Object, str, Shape]:
    """(the list without its items, the name of their field, what becomes of a slice of objects)."""
    meta: Object = {"resourceVersion": str(page.revision)}
    if page.continue_:
        meta["continue"] = page.continue_
        if page.remaining is not None:
            meta["remainingItemCount"] = page.remaining
    if media_type.as_ == "Table":
        moment = operations.now()
        minor = operations.minor
        head = table(resource, [], media_type, query, meta, moment, minor)
        head.pop("rows")
        return head, "rows", lambda objects: table(resource, objects, media_type, query, {}, moment, minor)["rows"]
    if media_type.as_:
        kind, version = "PartialObjectMetadataList", f"{META_GROUP}/{media_type.version}"
        shape: Shape = lambda objects: [partial_metadata(obj, media_type) for obj in objects]  # noqa: E731
    else:
        kind, version, shape = f"{resource.kind}List", resource.api_version, _without_types
        if isinstance(resource, CustomResource):
            kind, shape = resource.list_kind, lambda objects: objects
            meta.setdefault("continue", "")  # as Go writes a list of a kind that it has no type for
    return {"kind": kind, "apiVersion": version, "metadata": meta}, "items", shape


def _without_types(objects: list[Object]) -> list[Object]:
    return [{key: value for key, value in obj.items() if key not in ("kind", "apiVersion")} for obj in objects]


async def _pieces(
    operations: Operations, resource: Resource, page: Page, shape: Shape, encode: "_Encoder"
) -> AsyncIterator[bytes]:
    yield encode.before
    first = True
    for entries in _slices(page.entries):
        yield encode.items(shape([operations.decode(resource, entry.value) for entry in entries]), first=first)
        first = False
        await operations.clock.sleep(0)
    yield encode.after(bool(page.entries))


def _slices(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """At most SLICE entries at a time, and of more than one at most PIECE_BYTES of JSON."""
    start, size = 0, 0
    for end, entry in enumerate(entries):
        if end > start and (end - start == SLICE or size + entry.value.size > PIECE_BYTES):
            yield entries[start:end]
            start, size = end, 0
        size += entry.value.size
    if entries:
        yield entries[start:]


class _Encoder:
    """A list in JSON, indented JSON or YAML, as `reformat` gives it, from slices of its items."""

    def __init__(self, head: Object, name: str, media_type: MediaType) -> None:
        """`head` is all but the field `name`, which comes last in JSON and in its alphabetic place in YAML."""
        self._name, self._media_type = name, media_type
        columns = [each["name"] for each in head.get("columnDefinitions") or ()]
        nil = media_type.as_ == "PartialObjectMetadataList" or columns == ["Name", "Created At"]  # of no printer's own
        self._nothing = b"null" if nil else b"[]"
        """The JSON of no items: Go appends to a list that is nil there."""
        self._yaml = media_type.name == YAML
        if self._yaml:
            self.before = self._text({key: value for key, value in head.items() if key < name})
            self._rest = self._text({key: value for key, value in head.items() if key > name})
        else:
            self.before = (
                self._text(head).rstrip()[:-1].rstrip()
                + (b',\n  "%b": ' if media_type.pretty else b',"%b":') % name.encode()
            )

    def _text(self, obj: Object) -> bytes:
        """Some keys of the document; in YAML nothing is left of none."""
        if self._yaml and not obj:
            return b""
        body = orjson.dumps(obj)
        return reformat(body, self._media_type) if self._yaml or self._media_type.pretty else body

    def items(self, items: list[Object], *, first: bool) -> bytes:
        body = orjson.dumps(items)
        if self._yaml:
            return (f"{self._name}:\n".encode() if first else b"") + reformat(body, self._media_type)
        if self._media_type.pretty:
            # One level deeper. A line break inside a text is written as \\n, so each one here is of the layout.
            body = reformat(body, self._media_type).rstrip().replace(b"\n", b"\n  ")
            return (b"[" if first else b",") + body[1:-1].rstrip()
        return (b"[" if first else b",") + body[1:-1]

    def after(self, any_items: bool) -> bytes:
        if self._yaml:
            return (b"" if any_items else b"%b: %b\n" % (self._name.encode(), self._nothing)) + self._rest
        if self._media_type.pretty:
            return b"\n  ]\n}" if any_items else self._nothing + b"\n}"
        return END if any_items else self._nothing + b"}\n"
