"""Versions of a declared kind that a webhook converts: what was converted is known, the rest is asked for.

Rules that look at objects run without waiting: they ask `Conversions.converted`, which raises ConversionNeeded for what
is not known. The caller asks the webhook and begins again (`with_conversion`). Nothing has been written by
then: conversions come before a write, but for the answer's, which is asked for on its own (`ensure`).

Source: apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go.
"""

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import orjson

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.errors import internal
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import Resource

T = TypeVar("T")
Key = tuple[str, bytes]
Ask = Callable[[Sequence[Object], str], Awaitable[list[Object]]]
"""Objects and the apiVersion that they are to have → the converted objects, in the same order. Raises StatusError."""

KNOWN_BYTES = 8 << 20
"""Of JSON that was converted and is kept, of each definition."""
QUESTION_BYTES = 4 << 20
"""Of JSON that a webhook is asked to convert at once, if it is more than one object."""
ROUNDS = 20
"""How often work begins again: an object, what it was before, and those of its managers' versions."""
KNOWN_AT_LEAST = ROUNDS
"""Converted objects that are kept, however big."""
_UNSEEN = ("resourceVersion", "managedFields", "generation")
"""Metadata that changes while the rest stays, and that comes from the object itself."""


class ConversionNeeded(Exception):
    """`obj` has to be converted before the work can go on."""

    def __init__(self, conversions: "Conversions", obj: Object, api_version: str) -> None:
        super().__init__(api_version)
        self._conversions, self._obj, self._api_version = conversions, obj, api_version

    async def ask(self) -> None:
        """Ask the webhook for the conversion. Raises StatusError."""
        await self._conversions.ensure([self._obj], self._api_version)


class Conversions:
    """The conversions of one definition, as it is now. (`Converter`)"""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[Key, tuple[Object, int]] = {}
        self._bytes = 0

    def converted(self, obj: Object, api_version: str) -> Object:
        if obj.get("apiVersion") == api_version:
            return obj
        found = self._known.get(_key(obj, api_version)[0])
        if found is None:
            raise ConversionNeeded(self, obj, api_version)
        return _with_metadata_of(obj, found[0])

    async def ensure(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        """Return the objects in a version, by one request to the webhook, or more for many bytes.

        Raises StatusError.
        """
        keys = [_key(obj, api_version) for obj in objects]
        wanted: dict[Key, tuple[Object, int]] = {}
        for obj, (key, size) in zip(objects, keys, strict=True):
            if obj.get("apiVersion") != api_version and key not in self._known:
                wanted[key] = (obj, size)
        made: list[Object] = []
        for question in _questions(wanted.values()):
            made += await self._ask(question, api_version)
        fresh = dict(zip(wanted, made, strict=True))
        found = []
        for obj, (key, _) in zip(objects, keys, strict=True):
            there = fresh.get(key) or self._known.get(key, (None, 0))[0]
            found.append(obj if there is None else _with_metadata_of(obj, there))
        for key, obj in fresh.items():
            self._keep(key, obj, wanted[key][1])
        return found

    def _keep(self, key: Key, obj: Object, size: int) -> None:
        """The oldest go when there are too many bytes, but never those that one piece of work may need."""
        self._bytes += size - self._known.pop(key, (obj, 0))[1]
        self._known[key] = (obj, size)
        while self._bytes > KNOWN_BYTES and len(self._known) > KNOWN_AT_LEAST:
            self._bytes -= self._known.pop(next(iter(self._known)))[1]


def _questions(wanted: Iterable[tuple[Object, int]]) -> Iterator[list[Object]]:
    """(object, bytes) in portions of at most `QUESTION_BYTES`, or of one object."""
    portion: list[Object] = []
    total = 0
    for obj, size in wanted:
        if portion and total + size > QUESTION_BYTES:
            yield portion
            portion, total = [], 0
        portion.append(obj)
        total += size
    if portion:
        yield portion


def _key(obj: Object, api_version: str) -> tuple[Key, int]:
    """Under what an object's conversion is known, and how many bytes of JSON the object has."""
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _UNSEEN}
    text = orjson.dumps({**obj, "metadata": meta}, option=orjson.OPT_SORT_KEYS)
    return (api_version, hashlib.sha256(text).digest()), len(text)


def _with_metadata_of(obj: Object, converted: Object) -> Object:
    """A converted object keeps all metadata of its original but labels and annotations. (`restoreObjectMeta`)"""
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("labels", "annotations")}
    given = converted.get("metadata") or {}
    for key in ("labels", "annotations"):
        if given.get(key) is not None:
            meta[key] = given[key]
    return {**copy_object({key: value for key, value in converted.items() if key != "metadata"}), "metadata": meta}


def conversions_of(resource: Resource) -> Conversions | None:
    """Return the conversions of a kind, None for one that no webhook converts."""
    if isinstance(resource, CustomResource) and isinstance(resource.converter, Conversions):
        return resource.converter
    return None


async def with_conversion(work: Callable[[], Awaitable[T]]) -> T:
    """Run `work`, again after each conversion that it needs. Raises StatusError."""
    for _ in range(ROUNDS):
        try:
            return await work()
        except ConversionNeeded as needed:
            await needed.ask()
    raise internal("an object is converted into another one each time")
