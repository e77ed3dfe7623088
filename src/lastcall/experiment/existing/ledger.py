"""Keep the ledger of an experiment: what it changes on an existing cluster, written there before each change. Pure.

A ConfigMap in the namespace has one entry for each change. A restore compares what is there with the entry, so
restoring can be repeated, can begin after a change that was never made, and leaves alone what others changed since.
"""

# check: pure

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from lastcall.experiment.ready.readiness import is_custom
from lastcall.experiment.rollout.fields import REPLICAS, RESTARTED_AT
from lastcall.kube.api import (
    CONFIGMAPS,
    DAEMONSETS,
    DEPLOYMENTS,
    HORIZONTALPODAUTOSCALERS,
    JOBS,
    PERSISTENTVOLUMECLAIMS,
    PODDISRUPTIONBUDGETS,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    STATEFULSETS,
    Object,
    Resource,
    copy_object,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from lastcall.world.dataclass import dataclass

LABEL = "lastcall-experiment"
"""On the ledger and on everything that an experiment creates: the experiment's id."""
PREFIX = "lastcall-ledger-"
_ENTRIES, _HOLDER = "entries", "holder"
_ABSENT = "lastcall/absent"
"""In the place of a value that was not there, which null is not."""


CHANGES = (RESTARTED_AT, REPLICAS)
"""The fields of a workload that experiments change."""
KINDS = (
    DEPLOYMENTS,
    STATEFULSETS,
    DAEMONSETS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    JOBS,
    PODS,
    SERVICES,
    PODDISRUPTIONBUDGETS,
    HORIZONTALPODAUTOSCALERS,
    PERSISTENTVOLUMECLAIMS,
    SERVICEACCOUNTS,
    SECRETS,
    CONFIGMAPS,
)
"""What experiments create, in the order in which it is looked for and deleted."""
MOST_TEXT = 1 << 20
"""Characters in a ledger: Kubernetes allows a ConfigMap 1 MiB (`MaxSecretSize`)."""
_WORKLOADS = frozenset(("apps", plural) for plural in ("deployments", "statefulsets", "daemonsets", "replicasets"))
_WORD = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_PARTS = {
    "group": _WORD,
    "version": re.compile(r"v[a-z0-9]{1,62}"),
    "plural": re.compile(r"[a-z][-a-z0-9]{0,62}"),
    "kind": re.compile(r"[A-Z][A-Za-z0-9]{0,62}"),
}
"""Of a kind that Kubernetes does not have."""


class NotALedger(ValueError):
    """A ConfigMap has our label and no entries that can be read."""


@dataclass(frozen=True, slots=True)
class Target:
    """An object by its address; `namespace` "" is cluster-scoped."""

    group: str
    version: str
    plural: str
    kind: str
    name: str
    namespace: str = ""

    @classmethod
    def of(cls, resource: Resource, name: str, namespace: str) -> "Target":
        return cls(
            resource.group, resource.version, resource.plural, resource.kind, name, namespace * resource.namespaced
        )

    @property
    def resource(self) -> Resource:
        return Resource(self.group, self.version, self.plural, self.kind, bool(self.namespace), self.kind.lower())

    @property
    def description(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Created:
    """The object will be created, with the label."""

    target: Target
    does: Literal["created"] = "created"


@dataclass(frozen=True, slots=True)
class Changed:
    """The field at `path` will be set from `before` to `after`."""

    target: Target
    path: tuple[str, ...]
    before: Any
    after: Any
    does: Literal["changed"] = "changed"


Entry = Created | Changed


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that writes a ledger: its machine, its pid there, and when that process started."""

    host: str
    pid: int
    started: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """All that one experiment changes; `id` is a DNS label."""

    id: str
    holder: Holder
    entries: tuple[Entry, ...] = ()

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.id}"

    def with_entry(self, entry: Entry) -> "Ledger":
        return Ledger(self.id, self.holder, (*self.entries, entry))


@dataclass(frozen=True, slots=True)
class Restoration:
    """What puts one entry back. `delete` is the uid of an object to delete, `patch` a JSON patch; neither is nothing to
    do, because of `why`. `waits`: what has to go is going."""

    delete: str = ""
    patch: tuple[Mapping[str, Any], ...] = ()
    why: str = ""
    waits: bool = False


def labelled(obj: Object, id_: str, namespace: str) -> Object:
    """Return what experiment `id_` creates for `obj`.

    The claims that a StatefulSet makes have the label, too: it leaves them behind.
    (`stateful_set_utils.go:getPersistentVolumeClaims`)
    """
    made = copy_object(obj)
    made["metadata"]["namespace"] = namespace
    made["metadata"].setdefault("labels", {})[LABEL] = id_
    for template in claim_templates(made):
        template.setdefault("metadata", {}).setdefault("labels", {})[LABEL] = id_
    return made


def claim_templates(obj: Object) -> Sequence[Object]:
    """Return the claim templates of a StatefulSet, () of anything else."""
    found: Sequence[Object] = (obj.get("spec") or {}).get("volumeClaimTemplates") or ()
    return found if obj.get("kind") == STATEFULSETS.kind else ()


def is_name(name: str) -> bool:
    """Return whether a ledger can have an object of this name."""
    return bool(_WORD.fullmatch(name))


def was(obj: Object, path: Sequence[str]) -> Any:
    """Return the value of a field as `Changed.before` has it."""
    value: Any = obj
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return _ABSENT
        value = value[step]
    return value


def restoration(id_: str, entry: Entry, there: Object | None) -> Restoration:
    """Decide how to put an entry of experiment `id_` back. `there` is its object as it is now, None if it is gone."""
    if there is None:
        return Restoration(why=f"{entry.target.description} is gone")
    if isinstance(entry, Created):
        if labels_of(there).get(LABEL) != id_:
            return Restoration(why=f"{entry.target.description} was not created by this experiment")
        if "deletionTimestamp" in there["metadata"]:
            return Restoration(why=f"{entry.target.description} is ending", waits=True)
        return Restoration(delete=uid_of(there))
    now = was(there, entry.path)
    field = ".".join(entry.path)
    if now == entry.before:
        return Restoration(why=f"{field} of {entry.target.description} is as it was")
    if now != entry.after:
        return Restoration(
            why=f"{field} of {entry.target.description} was changed since by another client, and is left as it is"
        )
    path = _all_of_it(there, entry.path) if entry.before == _ABSENT else entry.path
    pointer = "".join(f"/{_escaped(step)}" for step in path)
    test = {"op": "test", "path": pointer, "value": was(there, path)}
    if entry.before == _ABSENT:
        return Restoration(patch=(test, {"op": "remove", "path": pointer}))
    return Restoration(patch=(test, {"op": "replace", "path": pointer, "value": entry.before}))


def _all_of_it(there: Object, path: Sequence[str]) -> Sequence[str]:
    """The path of what is there for this field alone: a custom resource keeps a map that has become empty."""
    while len(was(there, path[:-1])) == 1:
        path = path[:-1]
    return path


def leftover_revisions(revisions: Iterable[Object], owner_uid: str, change: Changed) -> list[Object]:
    """Return the ReplicaSets or ControllerRevisions that a rollout of ours left in the history of its workload.

    They are those of the owner whose template has what we set, and that have no Pods any more.
    """
    return [each for each in revisions if _is_ours(each, owner_uid, change)]


def _is_ours(revision: Object, owner_uid: str, change: Changed) -> bool:
    owners = revision["metadata"].get("ownerReferences") or ()
    of = revision["data"] if revision.get("kind") == "ControllerRevision" else revision
    status = revision.get("status") or {}
    return (
        any(owner.get("uid") == owner_uid for owner in owners)
        and was(of, change.path) == change.after
        and not (revision.get("spec") or {}).get("replicas")
        and not status.get("replicas")
    )


def as_config_map(ledger: Ledger, namespace: str) -> Object:
    """Return the ledger as the cluster has it."""
    return {
        "apiVersion": CONFIGMAPS.api_version,
        "kind": CONFIGMAPS.kind,
        "metadata": {"name": ledger.name, "namespace": namespace, "labels": {LABEL: ledger.id}},
        "data": {
            _HOLDER: json.dumps(asdict(ledger.holder)),
            _ENTRIES: json.dumps([asdict(each) for each in ledger.entries], indent=1),
        },
    }


def from_config_map(obj: Object) -> Ledger:
    """Return the ledger in a ConfigMap. Raise NotALedger, with why, for anything that `as_config_map` would not write.

    A user who may write ConfigMaps can forge one, and an administrator would restore it. So a ledger speaks only of
    its own namespace, names only kinds that experiments create, and changes only what experiments change: two fields
    of workloads, also of those whose kind is not Kubernetes's own.
    """
    id_ = labels_of(obj).get(LABEL, "")
    try:
        if not id_ or name_of(obj) != f"{PREFIX}{id_}":
            raise ValueError("its name differs from its label")
        data = obj.get("data")
        texts = data if isinstance(data, dict) else {}
        if sum(len(str(text)) for text in texts.values()) > MOST_TEXT:
            raise ValueError(f"it is longer than {MOST_TEXT} characters")
        entries = _decoded(texts, _ENTRIES)
        if not isinstance(entries, list):
            raise ValueError("its entries are not a list")
        holder = _holder(_decoded(texts, _HOLDER))
        return Ledger(id_, holder, tuple(_entry(each, namespace_of(obj)) for each in entries))
    except ValueError as error:
        raise NotALedger(f"ConfigMap {name_of(obj)} is not a ledger: {error}") from error


def _decoded(data: Mapping[str, Any], key: str) -> Any:
    """Raises ValueError."""
    text = data.get(key)
    if not isinstance(text, str):
        raise ValueError(f"it has no {key}")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        raise ValueError(f"its {key} cannot be read as JSON") from None


def _holder(value: Any) -> Holder:
    """Raises ValueError."""
    fields = value if isinstance(value, dict) else {}
    if {key: type(each) for key, each in fields.items()} != {"host": str, "pid": int, "started": int}:
        raise ValueError("its holder is not a process")
    return Holder(**fields)


def _entry(value: Any, namespace: str) -> Entry:
    """Raises ValueError."""
    fields = value if isinstance(value, dict) else {}
    if fields.get("does") == "created":
        return Created(_target(fields.get("target"), namespace, KINDS))
    target = _target(fields.get("target"), namespace, (*KINDS, *_custom_kind(fields.get("target"))))
    path = fields.get("path")
    known = next((each for each in CHANGES if isinstance(path, list) and list(each) == path), None)
    is_workload = (target.group, target.plural) in _WORKLOADS or is_custom(target.resource)
    if fields.get("does") != "changed" or not is_workload or known is None:
        raise ValueError("an entry describes a change that experiments do not make")
    before, after = fields.get("before"), fields.get("after")
    if type(before) not in (str, int) or type(after) not in (str, int):
        raise ValueError("an entry has a value that experiments do not set")
    return Changed(target, known, before, after)


def _custom_kind(value: Any) -> list[Resource]:
    """The kind that an entry names, if it is well-formed and not Kubernetes's own."""
    fields = value if isinstance(value, dict) else {}
    parts = {part: str(fields.get(part)) for part in _PARTS}
    if not all(_PARTS[part].fullmatch(text) for part, text in parts.items()):
        return []
    found = Resource(parts["group"], parts["version"], parts["plural"], parts["kind"], True)
    return [found] if is_custom(found) else []


def _target(value: Any, namespace: str, kinds: Iterable[Resource]) -> Target:
    """Raises ValueError."""
    fields = value if isinstance(value, dict) else {}
    resources = {(each.group, each.version, each.plural, each.kind): each for each in kinds}
    key = tuple(str(fields.get(part)) for part in ("group", "version", "plural", "kind"))
    name = fields.get("name")
    if key not in resources or not isinstance(name, str) or not is_name(name):
        raise ValueError("an entry names an object that experiments do not create")
    if fields.get("namespace") != namespace:
        raise ValueError("an entry names an object of another namespace")
    return Target.of(resources[key], name, namespace)


def _escaped(step: str) -> str:
    """(RFC 6901)"""
    return step.replace("~", "~0").replace("/", "~1")
