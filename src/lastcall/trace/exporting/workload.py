"""Whose Pod it was: the workload that a metric is counted under, and how many of them there may be. Pure.

A Pod's name is never a label: it is new with each Pod, and a time series is kept for each label that ever was.
"""

# check: pure

import re
from collections import OrderedDict
from typing import NamedTuple

from lastcall.endings import Ending
from lastcall.records import kinds
from lastcall.records.quoting import one_line

OTHER = "_other"
"""Of workloads that have no place of their own. No object of Kubernetes can have this name."""
BARE = "pod"
"""Of Pods without an owner: their names are not labels."""

_TEMPLATE_HASH = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{1,10}$")
"""What the Deployment controller puts behind its name (`k8s.io/apimachinery/pkg/util/rand:SafeEncodeString`)."""
_CRON_TIME = re.compile(r"-\d{8,11}$")
"""What the CronJob controller puts behind its name: minutes since 1970 (`cronjob_controllerv2.go:getJobName`)."""


class Workload(NamedTuple):
    """`name` is in kubectl's words: `deployment/web`."""

    namespace: str
    name: str


def workload_of(ending: Ending) -> Workload:
    """Return the Pod's owner as its record of creation has it: of a ReplicaSet its Deployment, of a Job its CronJob."""
    owner: dict[str, str] = {}
    for entry in ending.entries:
        if entry.record.kind == kinds.POD_CREATED and entry.record.pod_uid == ending.pod.uid:
            found = entry.facts_as(kinds.POD_CREATED).get("owner")
            owner = {key: str(value) for key, value in found.items()} if isinstance(found, dict) else {}
    kind, name = owner.get("kind", ""), owner.get("name", "")
    if not kind and ending.decided_by is not None:
        kind, name = ending.decided_by.owner_kind, ending.decided_by.owner
    return Workload(clean(ending.pod.namespace), clean(_named(kind, name)))


def _named(kind: str, name: str) -> str:
    if not kind or not name:
        return BARE
    for of_kind, pattern, parent in (("ReplicaSet", _TEMPLATE_HASH, "deployment"), ("Job", _CRON_TIME, "cronjob")):
        if kind == of_kind and pattern.search(name):
            return f"{parent}/{pattern.sub('', name)}"
    return f"{kind.lower()}/{name}"


def clean(text: str) -> str:
    """Return a text as label values, spans and Events have it: one line, in which every character is seen."""
    return one_line(text)


class Places:
    """Which workloads have series of their own: at most `limit`; the others are counted together as `_other`.

    A workload of which no Pod has ended for `idle_seconds` gives its place to the next one that asks. So there are
    never more than `limit` at a time, and in `idle_seconds` never more than `limit` new ones.
    """

    def __init__(self, limit: int = 200, idle_seconds: float = 86_400.0) -> None:
        self._limit, self._idle_seconds = limit, idle_seconds
        self._last: OrderedDict[Workload, float] = OrderedDict()
        self.refused = 0
        """Ends that were counted as `_other`."""

    def __len__(self) -> int:
        return len(self._last)

    def place(self, workload: Workload, now: float) -> tuple[Workload, Workload | None]:
        """Return (what it is counted under, who lost its place for it). `now` in seconds, never going back."""
        gone: Workload | None = None
        if workload not in self._last and len(self._last) >= self._limit:
            oldest = next(iter(self._last), None)
            if oldest is None or now - self._last[oldest] < self._idle_seconds:
                self.refused += 1
                return Workload(OTHER, OTHER), None
            del self._last[oldest]
            gone = oldest
        self._last[workload] = now
        self._last.move_to_end(workload)
        return workload, gone
