"""Turn the API server's watch into the kubelet's Pod updates (kubelet config/config.go:podStorage.merge).

Every change of the watch is a new SET of Pods; it is compared by UID with the SET before. A force delete is two writes
(MODIFIED with grace 0, then DELETED) and so two SETs: the node acts on the first and loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import is_terminating, uid_of
from lastcall.kube.api.resources import PODS
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import Informer
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

KUBELET_LOCAL_ANNOTATIONS = (
    "kubernetes.io/config.source",
    "kubernetes.io/config.seen",
    "kubernetes.io/config.hash",
)


class Operation(StrEnum):
    """Define the operations in the order in which the kubelet gets them."""

    REMOVE = "REMOVE"
    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    RECONCILE = "RECONCILE"


@dataclass(slots=True)
class PodUpdates:
    """What one SET changed. REMOVE carries the last version known, not that of the DELETED event."""

    pods: dict[Operation, list[Pod]] = field(default_factory=lambda: {each: [] for each in Operation})

    def __bool__(self) -> bool:
        return any(self.pods.values())


def semantic_difference(old: Pod, new: Pod) -> bool:
    """Return whether spec, labels, deletion marks or annotations differ; finalizers, owners, versions do not count."""
    before, after = old["metadata"], new["metadata"]
    return (
        old.get("spec") != new.get("spec")
        or (before.get("labels") or {}) != (after.get("labels") or {})
        or before.get("deletionTimestamp") != after.get("deletionTimestamp")
        or before.get("deletionGracePeriodSeconds") != after.get("deletionGracePeriodSeconds")
        or _annotations(old) != _annotations(new)
    )


def _annotations(pod: Pod) -> dict[str, str]:
    annotations = pod["metadata"].get("annotations") or {}
    return {key: value for key, value in annotations.items() if key not in KUBELET_LOCAL_ANNOTATIONS}


def classify(old: Pod | None, new: Pod | None) -> Operation | None:
    """Classify the change of one UID; None for no change (checkAndUpdatePod)."""
    if new is None:
        return Operation.REMOVE if old is not None else None
    if old is None:
        return Operation.ADD
    if semantic_difference(old, new):
        return Operation.DELETE if is_terminating(new) else Operation.UPDATE
    if (old.get("status") or {}) != (new.get("status") or {}):
        return Operation.RECONCILE
    return None


def merge(known: Mapping[str, Pod], pods: Iterable[Pod]) -> tuple[dict[str, Pod], PodUpdates]:
    """Return the new SET by UID and what it changed."""
    found = {uid_of(pod): pod for pod in pods}
    updates = PodUpdates()
    for uid in dict.fromkeys((*known, *found)):
        old, new = known.get(uid), found.get(uid)
        operation = classify(old, new)
        if operation is not None:
            updates.pods[operation].append(new if new is not None else known[uid])
    return found, updates


class PodConfig:
    """Follows the Pods bound to one node. `on_updates` is called with every SET's changes, in order."""

    def __init__(
        self, client: Client, node_name: str, on_updates: Callable[[PodUpdates], None], *, world: World
    ) -> None:
        self._informer: Informer[Pod] = Informer(client, PODS, field_selector=f"spec.nodeName={node_name}", world=world)
        self._on_updates = on_updates
        self._known: dict[str, Pod] = {}
        self.ready = False
        """True after the first SET: what is not in it may be taken for gone."""

    async def run(self) -> None:
        """Follow until cancelled."""
        self._informer.add_handler(
            on_add=lambda new: self._change(None, new),
            on_update=self._change,
            on_delete=lambda old: self._change(old, None),
        )
        await self._informer.run()

    async def first_set(self) -> None:
        """Wait for the first list and report it as one SET."""
        await self._informer.synced()
        self._known, updates = merge({}, self._informer.items())
        self.ready = True
        self._on_updates(updates)

    def _change(self, old: Pod | None, new: Pod | None) -> None:
        if not self.ready:
            return  # part of the first SET
        uid = uid_of(new if new is not None else old or {})
        known = self._known.get(uid)
        operation = classify(known, new)
        if new is None:
            self._known.pop(uid, None)
        else:
            self._known[uid] = new
        if operation is None:
            return
        updates = PodUpdates()
        pod = new if new is not None else known
        assert pod is not None
        updates.pods[operation].append(pod)
        self._on_updates(updates)
