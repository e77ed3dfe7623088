"""What the store keeps for a key: an object as its JSON, as it was decoded, or as both.

Most writes are made and read by the same process, and nobody asks for the JSON of a version that the next one replaces
a moment later. So JSON is made when it is first asked for; from then on it is what is kept, and the decoded object
only as long as another part of the process has it.
"""

from typing import Any
from weakref import ref

import orjson


class Decoded(dict[str, Any]):
    """A decoded object that can be referred to weakly."""

    __slots__ = ("__weakref__",)


class Value:
    """Never changed, but for its form. `object` is the decoded object while it is all there is."""

    __slots__ = ("_assumed", "_encoded", "_object", "guesses", "object")

    def __init__(
        self, encoded: bytes | None, decoded: dict[str, Any] | None = None, like: "Value | None" = None
    ) -> None:
        """One of the two forms. The size of `decoded` is taken to be that of `like`."""
        self._encoded = encoded
        self._object: ref[Decoded] | None = None
        self.object = decoded
        self._assumed = self.guesses = 0
        """`guesses`: how many sizes, each taken to be the one before, lie between this one and a known one."""
        if like is not None:
            self._assumed = like.size
            self.guesses = like.guesses + 1

    @property
    def size(self) -> int:
        """Return the bytes of the JSON. While there is none, return those of the value that this one resembles."""
        return self._assumed if self._encoded is None else len(self._encoded)

    def decoded(self) -> dict[str, Any] | None:
        """Return the decoded object, where it is still in use. Shared: never change it."""
        if self.object is not None:
            return self.object
        return None if self._object is None else self._object()

    def parsed(self) -> Decoded:
        """Decode the JSON once more."""
        return Decoded(orjson.loads(self.encoded()))

    def remember(self, decoded: Decoded) -> None:
        """Remember `decoded`, which is what the JSON says."""
        self._object = ref(decoded)

    def encoded(self) -> bytes:
        """Return the JSON."""
        value = self._encoded
        if value is None:
            # A copy, because what orjson gives keeps the buffer it was written in: 8 KiB for 3 KiB of a Pod.
            value = self._encoded = bytes(memoryview(orjson.dumps(self.object)))
            if isinstance(self.object, Decoded):
                self._object, self.object, self.guesses = ref(self.object), None, 0
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self.encoded() == other.encoded()

    __hash__ = None  # type: ignore[assignment]  # equal ones may be asked for by nobody

    def __repr__(self) -> str:
        return f"Value({self.encoded()!r})"
