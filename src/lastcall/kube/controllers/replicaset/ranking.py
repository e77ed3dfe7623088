"""Which Pods an owner with too many of them lets go first. Pure.

Source: pkg/controller/controller_utils.go:ActivePodsWithRanks.Less, replica_set.go:getPodsToDelete,
getPodsRankedByRelatedPodsOnSameNode. The first difference decides; `RULES` names each for people.
"""

# check: pure

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.pods.spec import get_condition, is_pod_ready, is_restartable_init
from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.controllers.pods.control import is_pod_active
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A Pod with what the comparison looks at. `related` counts active Pods of its relatives on its node."""

    pod: Pod
    assigned: bool
    phase: int
    ready: bool
    cost: int
    related: int
    ready_at: float | None
    restarts: int
    sidecar_restarts: int
    created_at: float | None

    @property
    def uid(self) -> str:
        return uid_of(self.pod)


def candidate(pod: Pod, related: int) -> Candidate:
    status = pod.get("status") or {}
    regular, sidecars = _max_restarts(pod)
    return Candidate(
        pod=pod,
        assigned=bool((pod.get("spec") or {}).get("nodeName")),
        phase=_PHASES.get(status.get("phase", ""), 0),
        ready=is_pod_ready(pod),
        cost=deletion_cost(pod),
        related=related,
        ready_at=_ready_time(status),
        restarts=regular,
        sidecar_restarts=sidecars,
        created_at=_seconds(pod["metadata"].get("creationTimestamp")),
    )


def deletion_cost(pod: Pod) -> int:
    """Return the annotation as a 32 bit number; an invalid one counts as 0. (`GetDeletionCostFromPodAnnotations`)"""
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "")
    if not text or text.startswith("+") or (text[0] == "0" and len(text) > 1):
        return 0
    return int_of(text, 32) or 0


def _ready_time(status: PodStatus) -> float | None:
    condition = get_condition(status, "Ready")
    if condition is None or condition.get("status") != "True":
        return None
    return _seconds(condition.get("lastTransitionTime"))


def _seconds(text: str | None) -> float | None:
    return parse_rfc3339(text).timestamp() if text else None


def _max_restarts(pod: Pod) -> tuple[int, int]:
    """(of the containers, of the sidecars)."""
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    sidecars = [each["name"] for each in spec.get("initContainers") or () if is_restartable_init(each)]
    regular = [each.get("restartCount", 0) for each in status.get("containerStatuses") or ()]
    restartable = [
        each.get("restartCount", 0) for each in status.get("initContainerStatuses") or () if each["name"] in sidecars
    ]
    return max(regular, default=0), max(restartable, default=0)


Compare = Callable[[Candidate, Candidate, float], int]
"""Negative when the first one goes first, 0 when this rule does not tell them apart."""


def _assigned(one: Candidate, other: Candidate, now: float) -> int:
    return one.assigned - other.assigned


def _phase(one: Candidate, other: Candidate, now: float) -> int:
    return one.phase - other.phase


def _ready(one: Candidate, other: Candidate, now: float) -> int:
    return one.ready - other.ready


def _cost(one: Candidate, other: Candidate, now: float) -> int:
    return one.cost - other.cost


def _related(one: Candidate, other: Candidate, now: float) -> int:
    return other.related - one.related


def _ready_for(one: Candidate, other: Candidate, now: float) -> int:
    if not (one.ready and other.ready) or one.ready_at == other.ready_at:
        return 0
    return _by_age(one, other, one.ready_at, other.ready_at, now)


def _restarts(one: Candidate, other: Candidate, now: float) -> int:
    return other.restarts - one.restarts or other.sidecar_restarts - one.sidecar_restarts


def _created(one: Candidate, other: Candidate, now: float) -> int:
    if one.created_at == other.created_at:
        return 0
    return _by_age(one, other, one.created_at, other.created_at, now)


def _by_age(one: Candidate, other: Candidate, first: float | None, second: float | None, now: float) -> int:
    """The younger first, in buckets that double: within a bucket the uid decides, so that age hardly matters."""
    if first is None or second is None:
        return -1 if first is None else 1
    difference = _bucket(now - first) - _bucket(now - second)
    if difference:
        return difference
    return -1 if one.uid < other.uid else 1


def _bucket(age: float) -> int:
    nanoseconds = age * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds >= 1 else -1


RULES: tuple[tuple[str, Compare], ...] = (
    ("not assigned to a node", _assigned),
    ("phase before Running", _phase),
    ("not Ready", _ready),
    ("lower pod-deletion-cost", _cost),
    ("more related Pods on its node", _related),
    ("Ready for a shorter time (in buckets of powers of two, then by uid)", _ready_for),
    ("more restarts", _restarts),
    ("created later (in buckets of powers of two, then by uid)", _created),
)


@dataclass(frozen=True, slots=True)
class Victim:
    """`rank` is 1 for the first to go of `candidates`; `reason` is why it goes before the first one that stays."""

    pod: Pod
    rank: int
    candidates: int
    reason: str


def choose_victims(pods: Sequence[Pod], related: Iterable[Pod], count: int, now: float) -> list[Victim]:
    """Choose the `count` Pods to delete, the first to go first. `related` are Pods of ReplicaSets of the same owner."""
    if count >= len(pods):
        return [Victim(pod, number, len(pods), "all of them go") for number, pod in enumerate(pods, 1)]
    on_node = Counter(pod["spec"]["nodeName"] for pod in related if is_pod_active(pod) and pod["spec"].get("nodeName"))
    candidates = [candidate(pod, on_node[(pod.get("spec") or {}).get("nodeName") or ""]) for pod in pods]

    def compare(one: Candidate, other: Candidate) -> int:
        return next((result for _, rule in RULES if (result := rule(one, other, now))), 0)

    ordered = sorted(candidates, key=cmp_to_key(compare))
    first_to_stay = ordered[count] if count else ordered[0]
    return [
        Victim(each.pod, number, len(pods), _reason(each, first_to_stay, now))
        for number, each in enumerate(ordered[:count], 1)
    ]


def _reason(goes: Candidate, stays: Candidate, now: float) -> str:
    return next((name for name, rule in RULES if rule(goes, stays, now)), "no rule tells them apart")
