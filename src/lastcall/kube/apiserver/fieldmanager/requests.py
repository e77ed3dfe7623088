"""managedFields of a request: who writes, and what that makes of the entries. Errors get their Status here.

Source: apiserver pkg/endpoints/handlers/{create,update,patch}.go, apimachinery pkg/util/managedfields/internal
(fieldmanager, versioncheck, structuredmerge, conflict).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from lastcall.kube.api.errors import StatusError, bad_request, plain_failure, status_failure
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.apiserver.conversions.scale import SCALES, scale_of
from lastcall.kube.apiserver.conversions.table import in_version
from lastcall.kube.apiserver.fieldmanager.fields import path_text
from lastcall.kube.apiserver.fieldmanager.manager import Conflicts, Scope, applied, updated
from lastcall.kube.apiserver.fieldmanager.managers import Entry, identity, sent, shown
from lastcall.kube.apiserver.fieldmanager.reset_fields import reset_fields
from lastcall.kube.apiserver.fieldmanager.resource_types import KNOWN_TYPES, type_of
from lastcall.kube.apiserver.fieldmanager.scale import entries_of_parent, entries_of_scale
from lastcall.kube.apiserver.fieldmanager.validate import error_text, problems
from lastcall.kube.apiserver.wire.context import RequestContext

MAX_MANAGER_BYTES = 128
_WIPED = ("deletionTimestamp", "deletionGracePeriodSeconds")


def manager_of(context: RequestContext) -> str:
    """Return `fieldManager` of the query, else the user agent up to its first slash."""
    return context.field_manager or _from_user_agent(context.user_agent)


@lru_cache(256)
def _from_user_agent(user_agent: str) -> str:
    name = "".join(character for character in user_agent.partition("/")[0] if character.isprintable())
    return name.encode()[:MAX_MANAGER_BYTES].decode(errors="ignore")


@lru_cache(4 * KNOWN_TYPES)
def scope_of(resource: Resource, subresource: str) -> Scope:
    """Return the scope of writes to `resource`, in the version in which they come."""
    ignored = reset_fields(resource, subresource)
    return Scope(
        resource,
        lambda obj, api_version: in_version(resource, obj, api_version),
        subresource,
        lambda api_version: ignored,
    )


_SCALE = Scope(SCALES, lambda obj, api_version: None, "scale")


class Tracking(NamedTuple):
    """One write. `time` is RFC 3339. Objects are in the version of `scope`."""

    scope: Scope
    manager: str
    time: Callable[[], str]

    def track(self, new: Object, old: Object | None) -> list[Entry]:
        """Return the entries of `new`, which takes the place of `old` (None at its creation)."""
        if old is None:
            return self._updated(sent(new, [], subresource=False), None, new)
        return self.update(new, old)

    def create(self, obj: Object) -> list[Entry]:
        """Return the entries of what is posted."""
        # What the server fills in is not the client's, even if it wrote it (WipeObjectMetaSystemFields).
        meta, new = obj["metadata"], obj
        if any(key in meta for key in _WIPED):
            new = {**obj, "metadata": {key: value for key, value in meta.items() if key not in _WIPED}}
        return self._updated(sent(new, [], subresource=False), None, new)

    def update(self, new: Object, old: Object) -> list[Entry]:
        return self._updated(sent(new, _entries(old), subresource=bool(self.scope.subresource)), old, new)

    def _updated(self, entries: list[Entry], old: Object | None, new: Object) -> list[Entry]:
        try:
            return updated(self.scope, entries, old, new, self.manager, self.time())
        except ValueError:
            # An item lacks a key of its list: validation reports it. The write goes on, with empty managedFields
            # (fieldmanager.go:UpdateNoErrors).
            return []

    def apply(self, config: Object, live: Object | None, *, force: bool) -> Object:
        """Return `live` (None when it is new) with `config` applied, as managedFields say. Raises StatusError."""
        resource = self.scope.resource
        before = _untyped(resource) if live is None else live
        entries = [] if live is None else _entries(live)
        check_applied(resource, config, live if live is not None and not entries else None)
        new, entries = _apply(self, entries, before, config, force=force)
        return _with_entries(new, entries)


def managers_of_scale(old: Object) -> list[Object]:
    """Return managedFields of the Scale of `old`, as the API shows them."""
    return entries_of_scale(_entries(old))


def update_scale(tracking: Tracking, new: Object, old: Object) -> Object:
    """Return `new`, an object whose replicas a write to its Scale changed, with managedFields that say so."""
    resource = tracking.scope.resource
    entries = _entries(old)
    of_scale = entries_of_scale(entries)
    time = tracking.time()
    after = updated(_SCALE, of_scale, scale_of(resource, old), scale_of(resource, new), tracking.manager, time)
    return _with_entries(new, entries_of_parent(resource, entries, after)) if entries or after else new


def apply_scale(tracking: Tracking, config: Object, old: Object, *, force: bool) -> tuple[Object, list[Entry]]:
    """Return (the Scale, the object's entries) after `config` was applied to the Scale of `old`. Raises StatusError."""
    check_applied(SCALES, config)
    resource, entries = tracking.scope.resource, _entries(old)
    through = Tracking(_SCALE, tracking.manager, tracking.time)
    scale, after = _apply(through, entries_of_scale(entries), scale_of(resource, old), config, force=force)
    return scale, entries_of_parent(resource, entries, after)


def _apply(
    tracking: Tracking, entries: list[Entry], live: Object, config: Object, *, force: bool
) -> tuple[Object, list[Entry]]:
    try:
        return applied(tracking.scope, entries, live, config, tracking.manager, tracking.time(), force=force)
    except Conflicts as found:
        raise conflict_error(found) from None
    except ValueError:
        # The stored object has an item without its keys, as a write that is not an apply may leave it.
        _check_unmanaged(tracking.scope.resource, live)
        raise


def _check_unmanaged(resource: Resource, live: Object) -> None:
    """Raises the 500 StatusError of an object that nobody manages yet and that does not fit its schema.

    (fieldmanager/skipnonapplied.go)
    """
    if wrong := problems(type_of(resource), live):
        named = _named(resource, live["metadata"])
        doing = "failed to create manager for existing fields: failed to convert new object"
        raise plain_failure(f"{doing} ({named}) to smd typed: {error_text(wrong)}")


def check_applied(resource: Resource, config: Any, unmanaged: Object | None = None) -> None:
    """Raise the StatusError of something that cannot be applied: 400 for its kind, 500 for what the schema lacks.

    `unmanaged` is the object that is there, when nobody manages it: it is looked at first.
    """
    if not isinstance(config, dict):
        raise bad_request("invalid object type: /, Kind=")
    api_version, kind = str(config.get("apiVersion") or ""), str(config.get("kind") or "")
    if (api_version, kind) != (resource.api_version, resource.kind):
        group, _, version = api_version.rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
    meta = config.get("metadata") or {}
    if isinstance(meta, dict) and _are_entries(meta.get("managedFields")):
        raise bad_request("metadata.managedFields must be nil")
    if unmanaged is not None:
        _check_unmanaged(resource, unmanaged)
    if found := problems(type_of(resource), config):
        named = _named(resource, meta if isinstance(meta, dict) else {})
        raise plain_failure(f"failed to create typed patch object ({named}): {error_text(found)}")


def _are_entries(given: Any) -> bool:
    """Whether managedFields can be read as such; what cannot, the schema finds (unstructured.go:GetManagedFields)."""
    if not isinstance(given, list):
        return False
    for entry in given:
        if not isinstance(entry, dict) or any(not isinstance(entry.get(name), str | None) for name in _TEXTS):
            return False
        if (time := entry.get("time")) is not None:
            try:
                parse_rfc3339(time)
            except (TypeError, ValueError):
                return False
    return True


_TEXTS = ("manager", "operation", "apiVersion", "fieldsType", "subresource")


def _named(resource: Resource, meta: Object) -> str:
    version = resource.api_version if "/" in resource.api_version else f"/{resource.api_version}"
    namespace, name = (each if isinstance(each := meta.get(key), str) else "" for key in ("namespace", "name"))
    return f"{namespace}/{name}; {version}, Kind={resource.kind}"


def conflict_error(found: Conflicts) -> StatusError:
    """Return the 409 that names every field and its manager."""
    conflicts = sorted(found.conflicts, key=lambda each: (each[0].get("manager", ""), each[0].get("operation", "")))
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {shown(entry)}", "field": path_text(path)}
        for entry, path in conflicts
    ]
    if len(conflicts) == 1:
        entry, path = conflicts[0]
        text = f"Apply failed with 1 conflict: conflict with {shown(entry)}: {path_text(path)}"
    else:
        lines: list[str] = []
        for entry, path in conflicts:
            title = f"conflicts with {shown(entry)}:"
            lines += [title] if title not in lines else []
            lines.append(f"- {path_text(path)}")
        text = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    return status_failure(409, "Conflict", text, {"causes": causes})


def _entries(obj: Object) -> list[Entry]:
    """Of several of one manager, as a write to the Scale leaves them, the last one counts."""
    entries: list[Entry] = obj["metadata"].get("managedFields") or []
    if len(entries) < 2:
        return entries
    if len({(each.get("manager"), each.get("subresource")) for each in entries}) == len(entries):
        return entries
    found = {identity(each): each for each in entries}
    return entries if len(found) == len(entries) else list(found.values())


def _untyped(resource: Resource) -> Object:
    return {"kind": resource.kind, "apiVersion": resource.api_version}


def _with_entries(obj: Object, entries: list[Entry]) -> Object:
    """A copy of `obj`, which may be shared, with these entries."""
    new = copy_object(obj)
    if not new.get("metadata"):
        new["metadata"] = {}  # a client may write null
    meta = new["metadata"]
    meta.pop("managedFields", None)
    if entries:
        meta["managedFields"] = entries
    return new
