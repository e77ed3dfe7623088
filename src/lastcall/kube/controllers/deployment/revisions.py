"""Which ReplicaSet is a Deployment's new one, which are its old ones, and the numbers they carry. Pure.

Source: pkg/controller/deployment/util/deployment_util.go (FindNewReplicaSet, SetNewReplicaSetAnnotations,
EqualIgnoreHash), pkg/controller/controller_utils.go:ComputeHash.
"""

# check: pure

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson

from lastcall.kube.api.meta import AnyObject, copy_object, name_of, uid_of
from lastcall.kube.api.resources import DEPLOYMENTS
from lastcall.kube.controllers.deployment.rolling import by_age, max_surge, replicas_of
from lastcall.kube.controllers.deployment.scaling import DESIRED_REPLICAS, MAX_REPLICAS, number_annotation
from lastcall.kube.controllers.ownership import controller_reference

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import PodTemplateSpec
    from lastcall.kube.api.types.workloads import Deployment, ReplicaSet

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
MAX_HISTORY_CHARACTERS = 2000
_NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
)
_SAFE = "bcdfghjklmnpqrstvwxz2456789"


def revision_of(obj: ReplicaSet) -> int:
    return number_annotation(obj, REVISION) or 0


def template_hash(template: AnyObject, collision_count: int | None = None) -> str:
    """Hash the template with FNV-1a, in letters that spell no words. (`ComputeHash`, `SafeEncodeString`)

    The original hashes Go's print of the struct; ours hashes its JSON, so that the values differ and the use does not.
    """
    data = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    if collision_count is not None:
        data += collision_count.to_bytes(8, "little", signed=True)
    value = 2166136261
    for byte in data:
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return "".join(_SAFE[ord(digit) % len(_SAFE)] for digit in str(value))


def equal_ignoring_hash(one: PodTemplateSpec, other: PodTemplateSpec) -> bool:
    return _without_hash(one) == _without_hash(other)


def _without_hash(template: PodTemplateSpec) -> AnyObject:
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH_LABEL}
    rest = {key: value for key, value in meta.items() if key != "labels"}
    return {**template, "metadata": {**rest, "labels": labels}}


def find_new(deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """Find the oldest ReplicaSet with the Deployment's template."""
    template = deployment["spec"]["template"]
    return next(
        (each for each in by_age(replica_sets) if equal_ignoring_hash(each["spec"]["template"], template)), None
    )


def find_old(replica_sets: Sequence[ReplicaSet], new: ReplicaSet | None) -> list[ReplicaSet]:
    return [each for each in replica_sets if new is None or uid_of(each) != uid_of(new)]


def new_replica_set(deployment: Deployment, collision_count: int | None) -> ReplicaSet:
    """Make the new ReplicaSet as it is created, but for its replicas and annotations."""
    spec = deployment["spec"]
    template = copy_object(spec["template"])
    value = template_hash(spec["template"], collision_count)
    meta = template.setdefault("metadata", {})
    meta["labels"] = {**(meta.get("labels") or {}), HASH_LABEL: value}
    selector = copy_object(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: value}
    made: ReplicaSet = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name_of(deployment)}-{value}",
            "namespace": deployment["metadata"]["namespace"],
            "labels": dict(meta["labels"]),
            "ownerReferences": [controller_reference(deployment, DEPLOYMENTS)],
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
    }
    if spec.get("minReadySeconds"):
        made["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    return made


def with_replicas_annotations(replica_set: ReplicaSet, deployment: Deployment) -> bool:
    """Note, in place, what the size was computed for; True when that changed. (`SetReplicasAnnotations`)"""
    wanted = replicas_of(deployment)
    noted = {DESIRED_REPLICAS: str(wanted), MAX_REPLICAS: str(wanted + max_surge(deployment))}
    return _set(replica_set, noted)


def with_revision_annotations(replica_set: ReplicaSet, deployment: Deployment, revision: int, *, exists: bool) -> bool:
    """Set the Deployment's annotations and the revision, in place; True when something changed.

    (`SetNewReplicaSetAnnotations`)
    """
    annotations = deployment["metadata"].get("annotations") or {}
    changed = _set(replica_set, {key: value for key, value in annotations.items() if key not in _NOT_COPIED})
    before = (replica_set["metadata"].get("annotations") or {}).get(REVISION)
    if revision_of(replica_set) < revision:
        changed = _set(replica_set, {REVISION: str(revision)}) or changed
        if before is not None:
            earlier = (replica_set["metadata"].get("annotations") or {}).get(REVISION_HISTORY, "")
            history = [each for each in earlier.split(",") if each] + [before]
            while len(",".join(history)) > MAX_HISTORY_CHARACTERS:
                history.pop(0)
            _set(replica_set, {REVISION_HISTORY: ",".join(history)})
    if not exists:
        changed = with_replicas_annotations(replica_set, deployment) or changed
    return changed


def _set(obj: ReplicaSet, annotations: dict[str, str]) -> bool:
    have = obj["metadata"].get("annotations") or {}
    if all(have.get(key) == value for key, value in annotations.items()):
        return False
    obj["metadata"]["annotations"] = {**have, **annotations}
    return True


def to_clean_up(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Return ReplicaSets beyond the history limit that no longer have Pods, lowest revision first.
    (`cleanupDeployment`)"""
    limit = deployment["spec"].get("revisionHistoryLimit")
    if limit is None or limit == 2**31 - 1:
        return []
    alive = [each for each in old if not each["metadata"].get("deletionTimestamp")]
    surplus = len(alive) - limit
    if surplus <= 0:
        return []
    return [each for each in sorted(alive, key=revision_of)[:surplus] if _is_empty(each)]


def _is_empty(replica_set: ReplicaSet) -> bool:
    status = replica_set.get("status") or {}
    seen = status.get("observedGeneration", 0) >= (replica_set["metadata"].get("generation") or 0)
    return not status.get("replicas") and replicas_of(replica_set) == 0 and seen
