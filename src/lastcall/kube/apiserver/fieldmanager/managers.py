"""metadata.managedFields: who manages what, as entries in the API's own form.

Source: apimachinery pkg/util/managedfields/internal/{managedfields,capmanagers,fieldmanager}.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.fieldmanager.fields import FieldSet, check, union

APPLY, UPDATE = "Apply", "Update"
FIELDS_V1 = "FieldsV1"

MAX_UPDATE_MANAGERS = 10
ANCIENT_CHANGES = "ancient-changes"
"""Who manages what the oldest of too many managers did."""

Entry = Object
"""One entry of managedFields. Entries are shared between versions of an object: never change one."""

RESET: list[Entry] = [{}]
"""What a client writes to have managedFields forgotten; an empty list says the same."""


class Manager(NamedTuple):
    """Whose entry it is. For Apply the version is part of what is managed, not of who manages."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    def matches(self, entry: Entry) -> bool:
        return (
            entry.get("manager", "") == self.name
            and entry.get("operation") == self.operation
            and entry.get("subresource", "") == self.subresource
            and (self.operation == APPLY or entry.get("apiVersion") == self.api_version)
        )

    def entry(self, fields: FieldSet, time: str) -> Entry:
        """Make an entry; `time` is RFC 3339, "" for none.

        Fields are in order: clients that get JSON in protobuf compare bytes.
        """
        return {
            **({"manager": self.name} if self.name else {}),
            "operation": self.operation,
            "apiVersion": self.api_version,
            **({"time": time} if time else {}),
            "fieldsType": FIELDS_V1,
            "fieldsV1": orjson.loads(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)),
            **({"subresource": self.subresource} if self.subresource else {}),
        }


def shown(entry: Entry) -> str:
    """Format a manager for messages: `"one"`, `"scaler" with subresource "scale" using apps/v1`."""
    name = f'"{entry.get("manager", "")}"'
    if entry.get("subresource"):
        name += f' with subresource "{entry["subresource"]}"'
    return f"{name} using {entry.get('apiVersion', '')}" if entry.get("operation") == UPDATE else name


def sent(new: Object, old: Sequence[Entry], *, subresource: bool) -> list[Entry]:
    """Return the entries a write starts from: its object's, unless there are none, or they are not valid here."""
    given = new.get("metadata", {}).get("managedFields")
    if subresource or given is None or given is old:
        return list(old)
    if not given or given == RESET:
        return []
    found = decoded(given)
    return list(old) if found is None else found


def decoded(entries: Any) -> list[Entry] | None:
    """Return the entries of a client, None when one of them is not an entry.

    Of several of the same manager the last one counts, whenever it was; those of nothing do not.
    """
    found = [entry for entry in entries if isinstance(entry, Mapping)]
    good = all(
        entry.get("operation") in (APPLY, UPDATE)
        and entry.get("apiVersion")
        and entry.get("fieldsType") == FIELDS_V1
        and check(entry.get("fieldsV1") or {})
        for entry in found
    )
    if not good:
        return None
    kept = {identity(entry): entry for entry in found}
    return [dict(entry) for entry in kept.values() if entry.get("fieldsV1")]


def identity(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what makes an entry that of another manager: not its time, of Apply not its version.

    (managedfields.go:BuildManagerIdentifier)
    """
    version = "" if entry.get("operation") == APPLY else entry.get("apiVersion")
    return entry.get("manager"), entry.get("operation"), version, entry.get("subresource")


def ordered(entries: Iterable[Entry]) -> list[Entry]:
    """Apply before Update, then by time, then by name; managers of nothing are no longer listed."""
    managed = [entry for entry in entries if entry["fieldsV1"]]
    if len(managed) > 1:
        managed.sort(key=_order)
    return managed


def _order(entry: Entry) -> tuple[str, ...]:
    get = entry.get
    return (
        get("operation") or "", get("time") or "", get("manager") or "", get("apiVersion") or "",
        get("subresource") or "",
    )  # fmt: skip


def capped(entries: list[Entry]) -> list[Entry]:
    """Limit the entries for Update to ten: the oldest of each version are put together."""
    if len(entries) <= MAX_UPDATE_MANAGERS:
        return entries
    updates = sorted((e for e in entries if e["operation"] == UPDATE), key=lambda e: (e.get("time") or "", _order(e)))
    excess = len(updates) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return entries
    buckets: dict[str, Entry] = {}
    gone: list[Entry] = []
    for entry in updates:
        if excess <= 0:
            break
        version = entry.get("apiVersion", "")
        first = buckets.get(version)
        if first is None:
            buckets[version] = entry
            continue
        gone += [first, entry]
        manager = Manager(ANCIENT_CHANGES, UPDATE, version)
        buckets[version] = manager.entry(union(entry["fieldsV1"], first["fieldsV1"]), entry.get("time") or "")
        excess -= 1
    made = [entry for entry in buckets.values() if entry.get("manager") == ANCIENT_CHANGES]
    kept = [entry for entry in entries if not any(entry is each for each in gone)]
    return [*kept, *(entry for entry in made if not any(entry is each for each in kept))]


def same_but_times(one: Sequence[Entry], other: Sequence[Entry]) -> bool:
    """Return whether two lists of entries say the same, except the times."""
    return len(one) == len(other) and all(
        {**first, "time": ""} == {**second, "time": ""} for first, second in zip(one, other, strict=True)
    )
