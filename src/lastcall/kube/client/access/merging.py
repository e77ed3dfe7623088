"""Several kubeconfig files as one. Pure.

The first file that has a name wins, with all that it says of it: entries are never mixed. Types are checked as kubectl
checks them: a token that is a number is an error. Unknown fields are ignored.

Source: client-go tools/clientcmd/loader.go:Load, api/v1/conversion.go.
"""

# check: pure

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from lastcall.kube.client.access.errors import KubeconfigError
from lastcall.records.quoting import one_line
from lastcall.world.dataclass import dataclass

Fields = Mapping[str, Any]

_KINDS = {"clusters": "cluster", "users": "user", "contexts": "context"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A cluster, user or context; `place` names file and entry in errors: `/a/config: users[me].user`."""

    name: str
    file: str
    place: str
    fields: Fields

    def text(self, key: str) -> str:
        """Return a string, "" when it is not given. Raises KubeconfigError."""
        return str(self._typed(key, str, "a string; write it in quotes", ""))

    def flag(self, key: str) -> bool:
        return bool(self._typed(key, bool, "true or false", False))

    def texts(self, key: str) -> tuple[str, ...]:
        found = self._typed(key, list, "a list", [])
        if not all(isinstance(each, str) for each in found):
            raise self.wrong(key, "must be a list of strings; write each in quotes")
        return tuple(found)

    def mapping(self, key: str) -> "Entry":
        found = self._typed(key, dict, "a mapping", {})
        return Entry(self.name, self.file, f"{self.place}.{key}", found)

    def items(self, key: str) -> list["Entry"]:
        """Return the entries of a list of mappings."""
        found = self._typed(key, list, "a list", [])
        if not all(isinstance(each, dict) for each in found):
            raise self.wrong(key, "must be a list of mappings")
        return [Entry(self.name, self.file, f"{self.place}.{key}[{i}]", each) for i, each in enumerate(found)]

    def wrong(self, key: str, why: str) -> KubeconfigError:
        return KubeconfigError(f"{self.place}.{key} {why}")

    def _typed(self, key: str, wanted: type, words: str, missing: Any) -> Any:
        value = self.fields.get(key)
        if value is None:
            return missing
        if not isinstance(value, wanted):
            raise self.wrong(key, f"is {_shown(value)}: must be {words}")
        return value


@dataclass(frozen=True, slots=True)
class Merged:
    """All files together. `files` are those that were read."""

    files: tuple[str, ...]
    current_context: str = ""
    clusters: Mapping[str, Entry] = field(default_factory=dict)
    users: Mapping[str, Entry] = field(default_factory=dict)
    contexts: Mapping[str, Entry] = field(default_factory=dict)


def merged(files: Sequence[tuple[str, Any]]) -> Merged:
    """Merge `files`, (path, decoded YAML) of each file in order. Raises KubeconfigError."""
    current = ""
    found: dict[str, dict[str, Entry]] = {kind: {} for kind in _KINDS}
    for file, data in files:
        if data is None:
            continue
        if not isinstance(data, dict):
            raise KubeconfigError(f"kubeconfig {file}: the document must be a mapping, not {type(data).__name__}")
        top = Entry("", file, f"{file}: ", data)
        if data.get("kind", "Config") != "Config" or data.get("apiVersion", "v1") not in ("v1", ""):
            kind = f"{data.get('apiVersion', '')} {data.get('kind', '')}".strip()
            raise KubeconfigError(f"{file}: is a {one_line(kind)}, not a kubeconfig (apiVersion v1, kind Config)")
        named = data.get("current-context")
        if named is not None and not isinstance(named, str):
            raise KubeconfigError(f"{file}: current-context is {_shown(named)}: must be a string; write it in quotes")
        current = current or named or ""
        for kind, inner in _KINDS.items():
            for name, entry in _entries(top, kind, inner).items():
                found[kind].setdefault(name, entry)
    return Merged(tuple(file for file, _ in files), current, found["clusters"], found["users"], found["contexts"])


def _entries(top: Entry, kind: str, inner: str) -> dict[str, Entry]:
    file, listed = top.file, top.fields.get(kind)
    if listed is None:
        return {}
    if not isinstance(listed, list):
        raise KubeconfigError(f"{file}: {kind} must be a list")
    found: dict[str, Entry] = {}
    for each in listed:
        if not isinstance(each, dict):
            raise KubeconfigError(f"{file}: {kind} has an entry that is not a mapping")
        name = each.get("name", "")
        if not isinstance(name, str):
            raise KubeconfigError(f"{file}: {kind} has the name {_shown(name)}: must be a string; write it in quotes")
        fields = each.get(inner) or {}
        place = f"{file}: {kind}[{one_line(name)}].{inner}"
        if not isinstance(fields, dict):
            raise KubeconfigError(f"{place} must be a mapping")
        if name in found:
            raise KubeconfigError(f"{file}: {kind} has {one_line(name)!r} twice: remove one of them")
        found[name] = Entry(name, file, place, cast(Fields, fields))
    return found


def _shown(value: object) -> str:
    """A value that is of the wrong type. What it says may be a secret."""
    return {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}.get(
        type(value), "a mapping" if isinstance(value, dict) else f"a {type(value).__name__}"
    )
