"""RFC 6902 as Kubernetes applies it. Time and memory are those of the patch and of what it may copy.

What differs from the RFC, tried on Kubernetes 1.36: `replace` sets a member that is not there, a missing `value` is
null, a missing member equals null, an index may be negative, what comes before the first slash of a path is not read.

Source: gopkg.in/evanphx/json-patch.v4 (patch.go), apiserver pkg/endpoints/handlers/patch.go.
"""

import re
from typing import Any

import orjson

from lastcall.kube.api.text.json_bounds import OutOfBoundsError, check_bounds

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 << 20
"""What all `copy` operations may add. (`JSONPatchMaxCopyBytes`)"""

_AS_GO_PRINTS_NO_ERROR = "%!w(<nil>)"
_INDEX = re.compile(r"[-+]?[0-9]{1,18}")


class PatchError(ValueError):
    """The patch cannot be applied to this document."""


class TestFailed(PatchError):
    """The document is not as an operation `test` wants it."""

    __test__ = False


class _Nowhere(Exception):
    """A path leads through what holds nothing."""


def apply(doc: Any, operations: list[Any]) -> Any:
    """Apply `operations` to `doc`, which stays as it is (the result shares with it what has not changed).

    Raises PatchError.
    """
    applying = _Applying(doc)
    for operation in operations:
        applying.step(operation)
    try:
        check_bounds(applying.root)
    except OutOfBoundsError as error:
        raise PatchError(str(error)) from None
    return applying.root


class _Applying:
    def __init__(self, doc: Any) -> None:
        self.root = doc
        self._own: dict[int, Any] = {}
        """Lists and objects that were made here, by id; all others are copied before they change."""
        self._copied = 0

    def step(self, operation: Any) -> None:
        op, path = operation.get("op"), operation.get("path")
        if not isinstance(path, str):
            raise PatchError("a path is missing")
        try:
            self._step(op, path, operation)
        except _Nowhere:
            raise PatchError(
                f"{op} operation does not apply: doc is missing path: {orjson.dumps(path).decode()}: missing value"
            ) from None

    def _step(self, op: Any, path: str, operation: Any) -> None:
        if op == "remove":
            self._remove(path)
        elif op == "add":
            self._add(path, operation.get("value"))
        elif op == "replace":
            self._replace(path, operation.get("value"))
        elif op == "test":
            self._test(path, operation.get("value"))
        elif op in ("move", "copy"):
            source = operation.get("from")
            if not isinstance(source, str):
                raise PatchError("from is missing")
            value = self._get(source)
            if op == "move":
                self._remove(source)
            else:
                value = self._copy(value)
            self._add(path, value)
        else:
            raise PatchError(f"Unexpected kind: {op}")

    def _mine(self, value: Any) -> Any:
        """`value` as a list or object that may be changed."""
        if id(value) in self._own:
            return value
        new = dict(value) if isinstance(value, dict) else list(value)
        self._own[id(new)] = new
        return new

    def _parent(self, path: str, *, change: bool) -> tuple[Any, str]:
        """What holds the last member of a path, and how that is called. Raises PatchError."""
        _before, *names = path.split("/")
        if not names:
            raise PatchError("the path names nothing")
        *above, last = (name.replace("~1", "/").replace("~0", "~") for name in names)
        if change:
            self.root = self._mine(self.root)
        at = self.root
        for name in above:
            key: Any = name if isinstance(at, dict) else _index(at, name)
            child = at.get(key) if isinstance(at, dict) else at[key]
            if not isinstance(child, dict | list):
                raise _Nowhere
            if change and child is not (own := self._mine(child)):
                at[key] = child = own
            at = child
        return at, last

    def _get(self, path: str) -> Any:
        parent, name = self._parent(path, change=False)
        return parent.get(name) if isinstance(parent, dict) else parent[_index(parent, name)]

    def _remove(self, path: str) -> None:
        parent, name = self._parent(path, change=True)
        if isinstance(parent, dict):
            if name not in parent:
                why = f"Unable to remove nonexistent key: {name}: missing value"
                raise PatchError(f"error in remove for path: '{path}': {why}")
            del parent[name]
        else:
            del parent[_index(parent, name)]

    def _add(self, path: str, value: Any) -> None:
        parent, name = self._parent(path, change=True)
        if isinstance(parent, dict):
            parent[name] = value
        elif name == "-":
            parent.append(value)
        else:
            parent.insert(_index(parent, name, len(parent) + 1), value)

    def _replace(self, path: str, value: Any) -> None:
        if path == "":
            if not isinstance(value, dict | list):
                raise PatchError(f"replace operation value must be object or array: {_AS_GO_PRINTS_NO_ERROR}")
            self.root = value
            return
        parent, name = self._parent(path, change=True)
        parent[name if isinstance(parent, dict) else _index(parent, name)] = value

    def _test(self, path: str, value: Any) -> None:
        found = self._get(path)
        # To Python 1, 1.0 and True are equal.
        if found is not value and (found != value or _dumps(found) != _dumps(value)):
            raise TestFailed("the test failed")

    def _copy(self, value: Any) -> Any:
        """Raises PatchError when it is too much."""
        encoded = _dumps(value, 0)
        self._copied += len(encoded)
        if self._copied > MAX_COPIED_BYTES:
            raise PatchError(f"the copies are more than {MAX_COPIED_BYTES} bytes")
        return orjson.loads(encoded) if isinstance(value, dict | list) else value


def _dumps(value: Any, option: int = orjson.OPT_SORT_KEYS) -> bytes:
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        raise PatchError("nested too deeply") from None


def _index(items: list[Any], name: str, size: int | None = None) -> int:
    """The place that `name` is of `size` places, from the end when negative. Raises PatchError."""
    size = len(items) if size is None else size
    if not _INDEX.fullmatch(name) or not -size <= (place := int(name)) < size:
        raise PatchError("there is no such place")
    return place + size if place < 0 else place
