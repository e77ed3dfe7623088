"""What a node process writes down for the next one: which sandboxes and containers there are, as JSON files.

`sandbox-<id>.json` and `container-<id>.json` hold what was asked for, `status-<id>.json` how far a container came. What
runs is the shim's to say. Environment, command and arguments, which may carry secrets, are not kept: nobody starts a
container twice. Files are 0600, replaced whole, and end with a line that has their checksum; one that cannot be read is
reported, and set aside until the next start.
"""

import logging
import os
import types
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import IntEnum
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from zlib import crc32

import orjson

from lastcall.world.files import replace_file

T = TypeVar("T")
_ASIDE = ".unreadable"
_log = logging.getLogger(__name__)


class Records:
    """The files of one directory, which is made with the first one.

    `durable`: they are for a cluster that is started again, and outlive the machine's power.
    """

    def __init__(self, directory: str, *, durable: bool = False) -> None:
        self._directory = directory
        self._durable = durable

    @property
    def any(self) -> bool:
        """Return whether an earlier node process has written here."""
        return os.path.isdir(self._directory)

    def save(self, kind: str, identity: str, value: Any) -> None:
        """Write `<kind>-<identity>.json`; dataclasses and enums are allowed. Raises OSError."""
        path = self._path(kind, identity)
        data = orjson.dumps(value)
        data = b"%s\n%08x\n" % (data, crc32(data))
        try:
            replace_file(path, data, temporary=f"{path}.tmp", durable=self._durable)
        except FileNotFoundError:
            os.makedirs(self._directory, 0o700, exist_ok=True)
            replace_file(path, data, temporary=f"{path}.tmp", durable=self._durable)

    def clear_leftovers(self) -> None:
        """Remove what killed writers left, and what an earlier start set aside."""
        for name in self._names():
            if name.endswith((".tmp", _ASIDE)):
                with suppress(OSError):
                    os.unlink(f"{self._directory}/{name}")

    def load(self, kind: str) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """Load (identity, value) of every file of a kind, in no meaningful order; None for one that was set aside."""
        for name in self._names():
            if name.startswith(f"{kind}-") and name.endswith(".json"):
                identity = name[len(kind) + 1 : -len(".json")]
                try:
                    with open(f"{self._directory}/{name}", "rb") as file:
                        value = _whole(file.read())
                except (OSError, ValueError) as error:
                    self.set_aside(kind, identity, error)
                    value = None
                yield identity, value

    def set_aside(self, kind: str, identity: str, why: Exception) -> None:
        """Set aside a file that cannot be understood, so that people can later see what was in it."""
        path = self._path(kind, identity)
        _log.warning("%s cannot be read (%r): it is now %s%s, what it stood for is ended", path, why, path, _ASIDE)
        with suppress(OSError):
            os.replace(path, f"{path}{_ASIDE}")

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(self._directory))
        except OSError:
            return []

    def remove(self, kind: str, identity: str) -> None:
        """Remove a record; a missing one is no error."""
        with suppress(FileNotFoundError):
            os.unlink(self._path(kind, identity))

    def _path(self, kind: str, identity: str) -> str:
        return f"{self._directory}/{kind}-{identity}.json"


def _whole(data: bytes) -> dict[str, Any]:
    """Raises ValueError. What an older version wrote has no second line."""
    text, _, checksum = data.partition(b"\n")
    if checksum and checksum != b"%08x\n" % crc32(text):
        raise ValueError("it is not what was written")
    value = orjson.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"is a {type(value).__name__}")
    return value


def decode(kind: type[T], value: Any) -> T:
    """Decode a CRI dataclass from what orjson made; ignores unknown keys. Raises TypeError, ValueError."""
    decoded: T = _decode(kind, value)
    return decoded


def _decode(kind: Any, value: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise TypeError(f"{type(value).__name__} in place of {kind}")
        hints = _hints(cast(type, kind))
        known = {field.name for field in fields(kind)}
        return kind(**{name: _decode(hints[name], each) for name, each in value.items() if name in known})  # type: ignore[operator]
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return tuple(_decode(arguments[0], each) for each in value)
        return tuple(_decode(each, item) for each, item in zip(arguments, value, strict=True))
    if origin is dict:
        if not isinstance(value, dict):
            raise TypeError(f"{type(value).__name__} in place of a dict")
        return dict(value)
    if origin in (Union, types.UnionType):
        return None if value is None else _decode(next(each for each in arguments if each is not type(None)), value)
    if origin is Literal:
        return value
    if issubclass(kind, IntEnum):
        return kind(value)
    if kind in (int, str, bool) and type(value) is not kind:
        raise TypeError(f"{type(value).__name__} in place of {kind.__name__}")
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
