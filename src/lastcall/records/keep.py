"""Keeps the records of a cluster that runs for weeks in bounded memory.

What is dropped first: the Pods that ended, oldest end first, as a whole. Then of the Pods that live, what they printed,
oldest line first, and then their oldest steps, so that a container that restarts for a week costs no more than one that
does for an hour. Of a Pod that is ending nothing is dropped but lines of output, and only beyond its own share. The
records that a story is built around (created, bound, deleted, gone) always stay.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import field, replace
from typing import Any

from lastcall.records import kinds
from lastcall.records.order import by_time
from lastcall.records.record import Record
from lastcall.world.dataclass import dataclass

MAX_PODS = 500
MAX_BYTES = 64 << 20
"""About 60 000 records."""

POD_SHARE = 1 / 8
"""The most that one Pod may take of all bytes."""

LOOSE_SHARE = 1 / 16
"""The most that the records of no Pod may take."""

LINGER_NS = 600 * 10**9
"""A Pod whose object is gone counts as ended after this time, even when the kubelet never said that it is done."""

_REMEMBERED = 4096
"""Uids of dropped Pods whose late records are not taken any more."""

_FRAME = (
    kinds.POD_CREATED,
    kinds.EPHEMERAL_CONTAINERS_ADDED,
    kinds.POD_BOUND,
    kinds.POD_SCHEDULED,
    kinds.POD_ADMITTED,
    kinds.DELETION_DECIDED,
    kinds.DELETE_SENT,
    kinds.DELETE_ACCEPTED,
    kinds.GRACE_SHORTENED,
    kinds.HELD_BY_FINALIZERS,
    kinds.OBJECT_REMOVED,
    kinds.POD_GONE_SEEN,
    kinds.WORKER_FINISHED,
)
"""Kinds that a Pod has a handful of in its life."""

_ENDING = (kinds.DELETE_SENT, kinds.DELETE_ACCEPTED, kinds.TERMINATION_OBSERVED)


@dataclass(frozen=True, slots=True)
class KeptPod:
    """A Pod of which records are kept. Times are of the monotonic clock in ns, None where it has not come to that.

    `ended`: its object is gone and the node is done with it. `dropped` counts records that were too many to keep.
    """

    uid: str
    namespace: str
    name: str
    ending_ns: int | None
    gone_ns: int | None
    ended: bool
    records: int
    bytes: int
    dropped: int


@dataclass(slots=True)
class _Pod:
    uid: str
    namespace: str = ""
    name: str = ""
    ending_ns: int | None = None
    gone_ns: int | None = None
    last_ns: int = 0
    on_node: bool = False
    worker_done: bool = False
    frame: list[Record] = field(default_factory=list)
    steps: deque[Record] = field(default_factory=deque)
    output: deque[Record] = field(default_factory=deque)
    bytes: int = 0
    dropped: int = 0
    dropped_lines: int = 0

    def ended(self, now_ns: int) -> bool:
        if self.gone_ns is None:
            return False
        return self.worker_done or not self.on_node or now_ns - self.last_ns > LINGER_NS

    def is_ending(self, now_ns: int) -> bool:
        return self.ending_ns is not None and not self.ended(now_ns)

    def records(self) -> Iterable[Record]:
        yield from self.frame
        yield from self.steps
        for index, record in enumerate(self.output):
            if index == 0 and self.dropped_lines:
                lines = self.dropped_lines + int(record.facts_as(kinds.OUTPUT).get("dropped") or 0)
                record = replace(record, facts={**record.facts, "dropped": lines})
            yield record


class RecordKeeper:
    """`add` what comes, in any order; `records` and `pods` answer what is still there."""

    def __init__(self, *, max_pods: int = MAX_PODS, max_bytes: int = MAX_BYTES) -> None:
        """Keep at most `max_pods` Pods (those that have not ended are kept in any case) and about `max_bytes`."""
        if max_pods < 1 or max_bytes < 1:
            raise ValueError("max_pods and max_bytes must be at least 1")
        self._max_pods = max_pods
        self._max_bytes = max_bytes
        self._pods: dict[str, _Pod] = {}
        self._loose: deque[Record] = deque()
        self._loose_bytes = 0
        self._forgotten: OrderedDict[str, None] = OrderedDict()
        self._now_ns = 0
        self.bytes = 0
        """An estimate of the memory taken."""

    def add(self, record: Record) -> None:
        """Keep a record; others may be dropped for it."""
        self._now_ns = max(self._now_ns, record.at_ns)
        size = weight(record)
        if not record.pod_uid:
            self._loose.append(record)
            self._loose_bytes += size
            self.bytes += size
            while self._loose_bytes > self._max_bytes * LOOSE_SHARE and len(self._loose) > 1:
                self._take(None, self._loose)
        elif record.pod_uid in self._forgotten:
            return
        else:
            pod = self._pods.get(record.pod_uid)
            if pod is None:
                pod = self._pods[record.pod_uid] = _Pod(record.pod_uid)
            _note(pod, record)
            target = pod.frame if record.kind in _FRAME else pod.output if record.kind == kinds.OUTPUT else pod.steps
            target.append(record)
            pod.bytes += size
            self.bytes += size
            self._trim(pod, self._max_bytes * POD_SHARE)
        if self.bytes > self._max_bytes or len(self._pods) > self._max_pods:
            self._make_room()

    def records(self, pod_uid: str | None = None) -> list[Record]:
        """Return the records of a Pod, or of all and of no Pod, sorted by time."""
        if pod_uid is not None:
            pod = self._pods.get(pod_uid)
            return sorted(pod.records(), key=by_time) if pod else []
        found = list(self._loose)
        for pod in self._pods.values():
            found += pod.records()
        return sorted(found, key=by_time)

    def around(self, pod_uid: str) -> list[Record]:
        """Return the records of a Pod and those of no Pod (its owners, the cluster's processes), sorted by time."""
        pod = self._pods.get(pod_uid)
        return sorted([*self._loose, *(pod.records() if pod else ())], key=by_time)

    def pods(self) -> list[KeptPod]:
        """Return all Pods of which records are kept, in the order in which they were first heard of."""
        return [
            KeptPod(
                uid=pod.uid,
                namespace=pod.namespace,
                name=pod.name,
                ending_ns=pod.ending_ns,
                gone_ns=pod.gone_ns,
                ended=pod.ended(self._now_ns),
                records=len(pod.frame) + len(pod.steps) + len(pod.output),
                bytes=pod.bytes,
                dropped=pod.dropped,
            )
            for pod in self._pods.values()
        ]

    # -- dropping -----------------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        ended = [pod for pod in self._pods.values() if pod.ended(self._now_ns)]
        for pod in sorted(ended, key=lambda each: each.gone_ns or 0):
            if self.bytes <= self._max_bytes and len(self._pods) <= self._max_pods:
                return
            self._forget(pod)
        # Those that live or are ending: the largest give first, an eighth of what they have at a time.
        alive = sorted(self._pods.values(), key=lambda each: -each.bytes)
        for pod in alive:
            if self.bytes <= self._max_bytes:
                return
            self._trim(pod, pod.bytes * 7 / 8)

    def _forget(self, pod: _Pod) -> None:
        del self._pods[pod.uid]
        self.bytes -= pod.bytes
        self._forgotten[pod.uid] = None
        while len(self._forgotten) > _REMEMBERED:
            self._forgotten.popitem(last=False)

    def _trim(self, pod: _Pod, limit: float) -> None:
        while pod.bytes > limit and pod.output:
            pod.dropped_lines += 1 + int(pod.output[0].facts_as(kinds.OUTPUT).get("dropped") or 0)
            self._take(pod, pod.output)
        while pod.bytes > limit and pod.steps and not pod.is_ending(self._now_ns):
            self._take(pod, pod.steps)

    def _take(self, pod: _Pod | None, records: deque[Record]) -> None:
        size = weight(records.popleft())
        self.bytes -= size
        if pod is None:
            self._loose_bytes -= size
        else:
            pod.bytes -= size
            pod.dropped += 1


def _note(pod: _Pod, record: Record) -> None:
    """What a record says about where its Pod is in its life."""
    pod.last_ns = max(pod.last_ns, record.at_ns)
    pod.on_node = pod.on_node or record.actor in ("kubelet", "runtime")
    if record.kind == kinds.POD_CREATED:
        created = record.facts_as(kinds.POD_CREATED)
        pod.namespace = str(created.get("namespace") or "")
        pod.name = str(created.get("name") or "")
    elif record.kind in _ENDING and pod.ending_ns is None:
        pod.ending_ns = record.at_ns
    elif record.kind in (kinds.OBJECT_REMOVED, kinds.POD_GONE_SEEN) and pod.gone_ns is None:
        pod.gone_ns = record.at_ns
    elif record.kind == kinds.WORKER_FINISHED:
        pod.worker_done = True


def weight(record: Record) -> int:
    """Return about how many bytes of memory a record takes."""
    return 720 + len(record.id) + _weight(record.facts)


def _weight(value: Any) -> int:
    if isinstance(value, str):
        return 56 + len(value) * (1 if value.isascii() else 4)
    if isinstance(value, dict):
        return 64 + sum(104 + _weight(each) for each in value.values())
    if isinstance(value, list | tuple):
        return 56 + sum(8 + _weight(each) for each in value)
    return 32
