"""What the API server and the EndpointSlice controller did to the node's Pods, as the node's own watches show it.

In a cluster of lastcall's own both write such records themselves. Here they are those that `lastcall trace` concludes
from the same objects (`tracing/pods.py`, `tracing/endpoints.py`), without what the kubelet beside records better. They
are written before the kubelet acts on what it sees, so causes stand before effects. No object says which user
asked for something: users stay "".
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from lastcall.api.meta import Object, name_of, resource_version_of, uid_of
from lastcall.timeline import kinds
from lastcall.timeline.record import Recorder
from lastcall.timeline.ring import RingRecorder
from lastcall.tracing import endpoints, pods
from lastcall.tracing.drafts import Draft

if TYPE_CHECKING:
    from lastcall.api.types.pod import Pod
    from lastcall.api.types.service import EndpointSlice
    from lastcall.timeline.record import Kind

BEGIN = (kinds.POD_CREATED, kinds.POD_BOUND)
CHANGES = (
    kinds.DELETE_ACCEPTED,
    kinds.GRACE_SHORTENED,
    kinds.HELD_BY_FINALIZERS,
    kinds.POD_STATUS_WRITTEN,
    kinds.OBJECT_REMOVED,
)
"""What of a Pod's object nobody on the node observes."""


class Witness:
    """`pod` and `slice_` hear of each change that a watch shows; None is an object that is not there."""

    def __init__(self, recorder: RingRecorder) -> None:
        self._recorders: dict[str, Recorder] = {}
        self._recorder = recorder
        self._uids: set[str] = set()

    def pod(self, old: "Pod | None", new: "Pod | None") -> None:
        self._pod(cast("Object | None", old), cast("Object | None", new))

    def _pod(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self._uids.discard(uid_of(old))
                self._write(uid_of(old), pods.removed(old, seen=True), CHANGES)
            return
        uid = uid_of(new)
        if old is not None and uid_of(old) != uid:
            self._pod(old, None)
            old = None
        if uid not in self._uids:
            self._uids.add(uid)
            self._write(uid, pods.before_the_end(new), BEGIN)
            if old is None and new["metadata"].get("deletionTimestamp"):
                self._write(uid, [pods.deleted(new)], CHANGES)
        if old is not None:
            self._write(uid, pods.changes(old, new), CHANGES)

    def slice_(self, before: "EndpointSlice | None", after: "EndpointSlice | None") -> None:
        old, new = cast("Object | None", before), cast("Object | None", after)
        either = new if new is not None else old
        if either is None:
            return
        were = endpoints.endpoints_of(old) if old is not None else {}
        are = endpoints.endpoints_of(new) if new is not None else {}
        names = endpoints.service_of(either), name_of(either), resource_version_of(either)
        for uid, draft in endpoints.changes(*names, were, are):
            if uid in self._uids:
                self._write(uid, [draft], (draft.kind,))

    def _write(self, uid: str, drafts: Iterable[Draft], wanted: Iterable[str]) -> None:
        for each in drafts:
            if each.kind in wanted:
                recorder = self._recorders.setdefault(each.actor, self._recorder.for_actor(each.actor))
                recorder.record(
                    cast("Kind[Any]", each.kind),
                    pod_uid=uid,
                    container=each.container,
                    rule=each.rule,
                    facts=each.facts,
                    evidence=each.evidence,
                )
