"""What a write does to managedFields, and what an apply does to an object: pure functions.

Source: structured-merge-diff merge/update.go, apimachinery pkg/util/managedfields/internal (structuredmerge,
stripmeta, managedfieldsupdater, lastapplied, skipnonapplied).
"""

# check: pure

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.fieldmanager.compare import UNMANAGED, compare
from lastcall.kube.apiserver.fieldmanager.fields import (
    EMPTY,
    FieldSet,
    Path,
    difference,
    exclude,
    has,
    intersection,
    paths,
    union,
)
from lastcall.kube.apiserver.fieldmanager.managers import APPLY, UPDATE, Entry, Manager, capped, ordered
from lastcall.kube.apiserver.fieldmanager.merge import merged, named_fields, with_named_parents, without
from lastcall.kube.apiserver.fieldmanager.resource_types import empty_object, type_of
from lastcall.kube.apiserver.fieldmanager.types import Type
from lastcall.world.dataclass import dataclass

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
"""The manager for whom server-side apply takes over what client-side apply wrote."""
BEFORE_FIRST_APPLY = "before-first-apply"

_STRIPPED: FieldSet = {
    "f:apiVersion": EMPTY,
    "f:kind": EMPTY,
    "f:metadata": {".": EMPTY, **{f"f:{name}": EMPTY for name in sorted(UNMANAGED)}},
}

View = Callable[[Object, str], tuple[Resource, Object] | None]
"""An object, given in the written version, in another version; None for a version that is not served."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is written: a kind in one version, or a subresource of it. `ignored` are fields that it cannot change."""

    resource: Resource
    view: View
    subresource: str = ""
    ignored: Callable[[str], FieldSet] = lambda api_version: EMPTY

    def left(self, fields: FieldSet, api_version: str) -> FieldSet:
        """Return those of these fields that it can change."""
        return exclude(fields, self.ignored(api_version))

    def manager(self, name: str, operation: str) -> Manager:
        return Manager(name, operation, self.resource.api_version, self.subresource)


class Conflicts(Exception):
    """Fields that an apply would change and others manage: (entry, path), managers by name."""

    def __init__(self, conflicts: Sequence[tuple[Entry, Path]]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = list(conflicts)


class _Comparison:
    """Run `compare` in every version that has managed fields."""

    def __init__(self, scope: Scope, old: Object, new: Object) -> None:
        self._scope, self._old, self._new = scope, old, new
        own = scope.resource.api_version
        self._known: dict[str, tuple[FieldSet, FieldSet] | None] = {own: self._compare(scope.resource, old, new)}

    def _compare(self, resource: Resource, old: Object, new: Object) -> tuple[FieldSet, FieldSet]:
        changed, removed = compare(type_of(resource), old, new)
        return self._scope.left(changed, resource.api_version), self._scope.left(removed, resource.api_version)

    def own(self) -> tuple[FieldSet, FieldSet]:
        found = self._known[self._scope.resource.api_version]
        assert found is not None
        return found

    def at(self, api_version: str) -> tuple[FieldSet, FieldSet] | None:
        """(changed, removed), None for a version that is not served."""
        if api_version not in self._known:
            before, after = (self._scope.view(obj, api_version) for obj in (self._old, self._new))
            missing = before is None or after is None
            self._known[api_version] = None if missing else self._compare(before[0], before[1], after[1])  # type: ignore[index]
        return self._known[api_version]


def updated(
    scope: Scope, entries: list[Entry], old: Object | None, new: Object, manager: str, time: str
) -> list[Entry]:
    """Return the entries after a create (`old` None) or update; those given when nothing changed.

    An object without managers stays so until the first apply.
    """
    own = scope.manager(manager, UPDATE)
    if not entries:
        if old is not None:
            return entries
        changed = compare(type_of(scope.resource), empty_object(scope.resource), new)[0]
        changed = scope.left(changed, scope.resource.api_version)
        return [own.entry(changed, time)] if changed else []
    before = empty_object(scope.resource) if old is None else old
    comparison = _Comparison(scope, before, new)
    changed, removed = comparison.own()
    if not changed and not removed and all(comparison.at(entry.get("apiVersion", "")) for entry in entries):
        return entries
    if not changed:
        return ordered(capped(_others(entries, comparison, None)))
    previous = next((entry for entry in entries if own.matches(entry)), None)
    fields = changed
    if previous is not None:
        entries = [entry for entry in entries if entry is not previous]
        fields = union(difference(previous["fieldsV1"], removed), changed)
    return ordered(capped([*_others(entries, comparison, None), own.entry(fields, time)]))


def _others(entries: list[Entry], comparison: _Comparison, workflow: Manager | None) -> list[Entry]:
    """The entries, less the fields that have changed hands or went; `workflow`'s own stays as it is."""
    left = []
    for entry in entries:
        if workflow is not None and workflow.matches(entry):
            left.append(entry)
            continue
        change = comparison.at(entry.get("apiVersion", ""))
        if change is None:
            continue
        fields = difference(difference(entry["fieldsV1"], change[0]), change[1])
        if fields is entry["fieldsV1"]:
            left.append(entry)
        elif fields:
            left.append({**entry, "fieldsV1": fields})
    return left


def applied(
    scope: Scope, entries: list[Entry], live: Object, config: Object, manager: str, time: str, *, force: bool
) -> tuple[Object, list[Entry]]:
    """Return (the object, the entries) after `manager` applied `config`; `live` itself when it stays as it is.

    `live` is `{}` (but for kind and apiVersion) when there was none. Raises Conflicts.
    """
    if not entries and len(live) > 2:
        existing = _Comparison(scope, empty_object(scope.resource), live).own()[0]
        if existing:
            entries = [scope.manager(BEFORE_FIRST_APPLY, UPDATE).entry(existing, time)]
    try:
        result, left = _applied(scope, entries, live, config, manager, time, force=force)
    except Conflicts as found:
        if manager != KUBECTL:
            raise
        allowed = _allowed_by_last_applied(scope, live)
        if allowed is None:
            raise
        others = [(entry, path) for entry, path in found.conflicts if not has(allowed, path)]
        if others:
            raise Conflicts(others) from None
        result, left = _applied(scope, entries, live, config, manager, time, force=True)
    if manager == KUBECTL and (result.get("metadata", {}).get("annotations") or {}).get(LAST_APPLIED):
        result = copy_object(result)
        result["metadata"]["annotations"][LAST_APPLIED] = _last_applied(config)
    return result, left


def _applied(
    scope: Scope, entries: list[Entry], live: Object, config: Object, manager: str, time: str, *, force: bool
) -> tuple[Object, list[Entry]]:
    type_ = type_of(scope.resource)
    own = scope.manager(manager, APPLY)
    last = next((entry for entry in entries if own.matches(entry)), None)
    fields = scope.left(named_fields(type_, config), scope.resource.api_version)
    mine = own.entry(fields, "" if last is None else last.get("time") or "")
    managed = [*(entry for entry in entries if entry is not last), mine]
    new: Object = merged(type_, live, config)
    if last is not None:
        new = _pruned(scope, type_, new, last, managed)
    comparison = _Comparison(scope, live, new)
    if not force:
        _refuse_conflicts(managed, comparison, own)
    left = _others(managed, comparison, own)
    # What nobody manages may be in a manifest, but makes nobody its manager.
    fields = difference(fields, _STRIPPED)
    moment = (mine.get("time") or "") if new == live else time
    left = [own.entry(fields, moment) if entry is mine else entry for entry in left]
    return live if new == live else new, ordered(left)


def _refuse_conflicts(entries: list[Entry], comparison: _Comparison, own: Manager) -> None:
    found: list[tuple[Entry, Path]] = []
    for entry in entries:
        change = None if own.matches(entry) else comparison.at(entry.get("apiVersion", ""))
        if change is not None:
            found += [(entry, path) for path in paths(intersection(entry["fieldsV1"], change[0]))]
    if found:
        raise Conflicts(found)


def _pruned(scope: Scope, type_: Type, new: Object, last: Entry, managed: list[Entry]) -> Object:
    """Without what this manager applied last time, does not apply now, and nobody else manages.

    Fields are looked at in the written version; an earlier apply in another one leaves its fields.
    """
    version = scope.resource.api_version
    if last.get("apiVersion") != version or not last["fieldsV1"]:
        return new
    applied_last = with_named_parents(type_, last["fieldsV1"])
    pruned = without(type_, new, applied_last) or {}
    owned: FieldSet = EMPTY
    for entry in managed:
        if entry.get("apiVersion") == version:
            owned = union(owned, entry["fieldsV1"])
    there = with_named_parents(type_, named_fields(type_, new))
    kept = union(with_named_parents(type_, named_fields(type_, pruned)), with_named_parents(type_, owned))
    pruned = without(type_, new, difference(there, kept)) or {}
    left = with_named_parents(type_, named_fields(type_, pruned))
    result: Any = without(type_, new, intersection(difference(there, left), applied_last))
    return result or {}


def _allowed_by_last_applied(scope: Scope, live: Object) -> FieldSet | None:
    """The fields that client-side apply wrote and nobody changed since; None when there is nothing to go by."""
    text = (live.get("metadata", {}).get("annotations") or {}).get(LAST_APPLIED)
    try:
        last: Any = orjson.loads(text or b"null")
    except ValueError:
        return None
    if not isinstance(last, dict) or last.get("apiVersion") != scope.resource.api_version:
        return None
    type_ = type_of(scope.resource)
    try:
        changed, removed = compare(type_, last, live)
        return difference(difference(named_fields(type_, last), changed), removed)
    except (ValueError, AttributeError, TypeError):
        return None  # what the annotation says does not fit the schema


def _last_applied(config: Object) -> str:
    """The annotation for client-side apply, kept in step with what is applied now."""
    shown = copy_object(config)
    annotations = shown.get("metadata", {}).get("annotations")
    if annotations:
        annotations.pop(LAST_APPLIED, None)
        if not annotations:
            del shown["metadata"]["annotations"]
    text = orjson.dumps(shown, option=orjson.OPT_SORT_KEYS).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e") + "\n"
