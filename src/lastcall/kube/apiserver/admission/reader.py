"""How admission reads objects, and what it has read.

What admission makes of an object follows from the object itself and from what it reads. `Reads` is a reader that notes
each look and its answer: as long as all answers are the same, so is what was made, since each further look follows from
the ones before it. Nobody has to list what admission looks at.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from lastcall.kube.api.meta import Object, resource_version_of
from lastcall.kube.api.resources import Resource

GetObject = Callable[[Resource, str, str], Awaitable[Object | None]]
"""(resource, namespace, name) → the object, None when it is not there."""


class ListObjects(Protocol):
    """All objects of a kind, or those of one namespace."""

    def __call__(self, resource: Resource, namespace: str = "") -> Awaitable[list[Object]]: ...


class Kinds:
    """Kinds of which is asked, with each write, whether there is any object of them: known by itself."""

    __slots__ = ("resources",)

    def __init__(self, *resources: Resource) -> None:
        self.resources = resources


class Reader(NamedTuple):
    get: GetObject
    list: ListObjects
    holds: Callable[[Kinds], bool]
    """Whether one of these kinds has any object: quicker than a list. After True they are to be listed."""


Look = tuple[Resource, str, str | None]
"""kind, namespace, name; None for a list."""
Seen = tuple[str, ...] | None
"""The versions of what was answered; no two objects and no two states of one have the same. None: not there."""


class Reads:
    """What was looked at for one object, with the versions that were seen. `settled` is False once two looks at the
    same had different answers: what was made belongs to no state then."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._seen: dict[Look, Seen] = {}
        self.settled = True

    def reader(self) -> Reader:
        """Return a reader whose reads are noted."""
        return Reader(self._get, self._list, self._holds)

    async def unchanged(self) -> bool:
        """Return whether each look would have the same answer now."""
        get, list_all, _ = self._reader
        for (resource, namespace, name), seen in self._seen.items():
            if name is None:
                now: Seen = _versions(await list_all(resource, namespace))
            else:
                now = _version(await get(resource, namespace, name))
            if now != seen:
                return False
        return True

    async def _get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        found = await self._reader.get(resource, namespace, name)
        self._note((resource, namespace, name), _version(found))
        return found

    async def _list(self, resource: Resource, namespace: str = "") -> list[Object]:
        found = await self._reader.list(resource, namespace)
        self._note((resource, namespace, None), _versions(found))
        return found

    def _holds(self, kinds: Kinds) -> bool:
        if self._reader.holds(kinds):
            return True
        for resource in kinds.resources:
            self._note((resource, "", None), ())
        return False

    def _note(self, look: Look, seen: Seen) -> None:
        if self._seen.setdefault(look, seen) != seen:
            self.settled = False


def _version(found: Object | None) -> Seen:
    return None if found is None else (resource_version_of(found),)


def _versions(found: list[Object]) -> Seen:
    return tuple(resource_version_of(each) for each in found)
