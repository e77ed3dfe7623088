"""Owners of Pods, as small as a decision needs them, and what two of their states say. Pure."""

# check: pure

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

import orjson

from lastcall.kube.api import Object, annotations_of, name_of, namespace_of, uid_of
from lastcall.records import kinds, rules
from lastcall.records.record import Record
from lastcall.trace.drafts import Draft, draft
from lastcall.trace.pods import controller_of
from lastcall.trace.stamps import SECOND
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.apiserver import OwnerDeleted, OwnerWritten
    from lastcall.records.definitions.controllers import DeletionDecided, ScaleDecided
    from lastcall.records.definitions.parts import SpecChange

REVISION = "deployment.kubernetes.io/revision"
CONTROLLER_MANAGER = "kube-controller-manager"
AUTOSCALER = "horizontal-pod-autoscaler"
"""The one part of the controller manager that writes the subresource scale."""


@dataclass(frozen=True, slots=True)
class OwnerState:
    """An owner. `fields` are digests of its spec's fields, `writers` who wrote each of them last, by its managedFields.

    `finished` and `finished_reason` are a Job's condition; `update_revision` is a StatefulSet's, `template_generation`
    a DaemonSet's.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    owner_kind: str = ""
    owner: str = ""
    owner_uid: str = ""
    generation: int = 0
    replicas: int | None = None
    fields: Mapping[str, int] = field(default_factory=dict)
    writers: Mapping[str, str] = field(default_factory=dict)
    revision: str = ""
    deleting: bool = False
    finished: str = ""
    finished_reason: str = ""
    suspended: bool = False
    update_revision: str = ""
    template_generation: str = ""


def state_of(kind: str, obj: Object, old: OwnerState | None = None) -> OwnerState:
    """Return what is kept of an owner. With the state before, a spec of the same generation is not read again."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    generation = int(meta.get("generation") or 0)
    annotations = annotations_of(obj)
    finished: Object = next(
        (
            each
            for each in status.get("conditions") or ()
            if each.get("type") in ("Complete", "Failed") and each.get("status") == "True"
        ),
        {},
    )
    if old is None or old.generation != generation:
        owner = controller_of(obj)
        size = spec.get("replicas", spec.get("parallelism"))
        old = OwnerState(
            kind,
            namespace_of(obj),
            name_of(obj),
            uid_of(obj),
            owner_kind=str(owner.get("kind") or ""),
            owner=str(owner.get("name") or ""),
            owner_uid=str(owner.get("uid") or ""),
            generation=generation,
            replicas=size if isinstance(size, int) else None,
            fields={name: hash(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)) for name, value in spec.items()},
            writers={name: writer for name in spec if (writer := writer_of(obj, name))},
        )
    return replace(
        old,
        revision=annotations.get(REVISION, ""),
        deleting=bool(meta.get("deletionTimestamp")),
        finished=str(finished.get("type") or ""),
        finished_reason=str(finished.get("reason") or ""),
        suspended=bool(spec.get("suspend")),
        update_revision=str(status.get("updateRevision") or ""),
        template_generation=annotations.get("deprecated.daemonset.template.generation", ""),
    )


def writer_of(obj: Object, name: str) -> str:
    """Return the field manager that wrote a field of the spec last; "" where managedFields do not tell.

    Who changes a value owns it alone: of several that own parts of the field the last one counts, and nobody where that
    is not known. A write of the subresource scale has no time (`managedfields/scalehandler.go:ToParent`). The name is
    one that the writer chose: kubectl names itself by its command (`kubectl-scale`, `kubectl-rollout`).
    """
    writers = [
        (str(entry.get("time") or ""), _name_of(entry))
        for entry in obj["metadata"].get("managedFields") or ()
        if entry.get("subresource") in (None, "", "scale")
        and f"f:{name}" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    last = max(writers, default=("", ""))
    clear = len(writers) == 1 or (all(at for at, _ in writers) and sum(at == last[0] for at, _ in writers) == 1)
    return last[1] if clear else ""


def _name_of(entry: Mapping[str, object]) -> str:
    manager = str(entry.get("manager") or "")
    if manager == CONTROLLER_MANAGER and entry.get("subresource") == "scale":
        return AUTOSCALER
    return "" if manager in (CONTROLLER_MANAGER, "unknown") else manager


def changes(old: OwnerState | None, new: OwnerState, version: str, newest_revision: str = "") -> Iterator[Draft]:
    """Yield the records, of no Pod, that tell what was written.

    `newest_revision` is the Deployment's, for a ReplicaSet: of one that is about to get its next, that next one.
    """
    about = _about(new, version)
    if new.deleting and (old is None or not old.deleting):
        yield draft(kinds.OWNER_DELETED, about, "apiserver")
    if old is None or old.generation == new.generation:
        return
    changed = sorted(name for name in {*old.fields, *new.fields} if old.fields.get(name) != new.fields.get(name))
    if not changed:
        return
    resized = new.replicas is not None and old.replicas is not None and old.replicas != new.replicas
    if new.kind == "ReplicaSet" and new.owner_kind == "Deployment" and resized:
        rolled = bool(newest_revision) and newest_revision != new.revision
        scaled: ScaleDecided = {
            "ownerKind": new.owner_kind,
            "owner": new.owner,
            "ownerUid": new.owner_uid,
            "step": "rollout" if rolled else "scaling",
            "revision": newest_revision,
            "ofKind": new.kind,
            "name": new.name,
            "uid": new.uid,
            "generation": new.generation,
            "resourceVersion": version,
            "from": old.replicas or 0,
            "to": new.replicas or 0,
            "why": "",
        }
        yield draft(kinds.SCALE_DECIDED, scaled, "deployment-controller", evidence="inferred")
        return
    change: SpecChange = {"changed": changed}
    if resized:
        change["from"], change["to"] = old.replicas, new.replicas
    writers = {new.writers.get(name, "") for name in changed}
    writer = writers.pop() if len(writers) == 1 else ""
    written: OwnerWritten = {**about, "userAgent": writer, **change}
    yield draft(kinds.OWNER_WRITTEN, written, "apiserver")


def differ(old: OwnerState, new: OwnerState) -> bool:
    """Return whether a decision about its Pods may be another one."""

    def grounds(state: OwnerState) -> tuple[object, ...]:
        return (
            state.generation,
            state.finished,
            state.finished_reason,
            state.suspended,
            state.update_revision,
            state.template_generation,
        )

    return grounds(old) != grounds(new)


def removed(old: OwnerState, version: str) -> Iterator[Draft]:
    """Yield its deletion: it is gone. Nothing new when it was being deleted before."""
    if not old.deleting:
        yield draft(kinds.OWNER_DELETED, _about(old, version), "apiserver")


def replaced_by_cron_job(job: OwnerState, cron_job: str) -> Iterator[Draft]:
    """Yield the decision of a CronJob with concurrencyPolicy Replace about its Job."""
    job_of = f"Job {job.name} of CronJob {cron_job}"
    decided: DeletionDecided = {
        "why": f"{job_of} still runs when the next is due, and concurrencyPolicy is Replace",
        "ownerKind": "CronJob",
        "owner": cron_job,
        "kind": job.kind,
        "name": job.name,
        "namespace": job.namespace,
        "uid": job.uid,
        "observedResourceVersion": "",
    }
    rule = rules.DELETE_JOB_OF_CRON_JOB
    yield draft(kinds.DELETION_DECIDED, decided, "cronjob-controller", rule=rule, evidence="inferred")


def with_generations(records: Sequence[Record]) -> list[Record]:
    """Return the records; a ReplicaSet's change of size names the generation of the Deployment that it was made for.

    The two are seen by two watches, in either order.
    """
    return [_with_generation(each, records) if each.kind == kinds.SCALE_DECIDED else each for each in records]


def _with_generation(scaled: Record, records: Sequence[Record]) -> Record:
    decided = scaled.facts_as(kinds.SCALE_DECIDED)
    field_ = "template" if decided.get("step") == "rollout" else "replicas"
    written = [
        each.facts_as(kinds.OWNER_WRITTEN)["generation"]
        for each in records
        if each.kind == kinds.OWNER_WRITTEN
        and each.at_ns <= scaled.at_ns + SECOND
        and each.facts_as(kinds.OWNER_WRITTEN)["uid"] == decided.get("ownerUid")
        and field_ in each.facts_as(kinds.OWNER_WRITTEN)["changed"]
    ]
    return replace(scaled, facts={**scaled.facts, "ownerGeneration": max(written)}) if written else scaled


def _about(owner: OwnerState, version: str) -> "OwnerDeleted":
    return {
        "ofKind": owner.kind,
        "namespace": owner.namespace,
        "name": owner.name,
        "uid": owner.uid,
        "ownerUid": owner.owner_uid,
        "generation": owner.generation,
        "resourceVersion": version,
        "user": "",
        "userAgent": "",  # the API does not say who deletes
    }
