"""Preemption: which Pods of lower priority have to end so that a Pod fits. Pure.

Sources: pkg/scheduler/framework/preemption/preemption.go, plugins/defaultpreemption/default_preemption.go.
"""

# check: pure

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import name_of, namespace_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.selectors import LabelSelector, selector_of_expressions
from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.filters import CycleState, Diagnosis, Refusal, listed
from lastcall.kube.scheduler.node_info import NodeInfo
from lastcall.kube.scheduler.placement import refusal_with_nominated
from lastcall.kube.scheduler.pod_info import PodInfo
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.policy import PodDisruptionBudget

NEVER = "not eligible due to preemptionPolicy=Never."
WAITING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"

MIN_CANDIDATES = 100
MIN_CANDIDATES_PERCENTAGE = 10

_LOWEST = 2**31
"""Added to every priority that is summed up, so that two victims always weigh more than one."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node and who has to leave it, the most important first. `violations`: victims whose budget allows no more."""

    node: NodeInfo
    victims: tuple[PodInfo, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class Preemption:
    """`message` is for the Event, "" when room is made. `nominate`: the node; "" takes it back, None leaves it."""

    message: str = ""
    nominate: str | None = None
    chosen: Candidate | None = None
    candidates: int = 0


def preempt(pod: PodInfo, cache: Cache, diagnosis: Diagnosis, budgets: Sequence[PodDisruptionBudget]) -> Preemption:
    """Decide what to do about a Pod that fits nowhere."""
    why = ineligible(pod, cache, diagnosis)
    if why:
        return Preemption(why)
    refusals: dict[str, Refusal] = {}
    candidates = find_candidates(pod, cache, diagnosis, budgets, refusals)
    if not candidates:
        return Preemption(_not_possible(len(cache.nodes), refusals), nominate="")
    chosen = pick(candidates)
    return Preemption(nominate=chosen.node.name, chosen=chosen, candidates=len(candidates))


def ineligible(pod: PodInfo, cache: Cache, diagnosis: Diagnosis) -> str:
    """Return why the Pod may not preempt now, "" when it may (`PodEligibleToPreemptOthers`)."""
    if not pod.requirements.preempts:
        return NEVER
    name = cache.nominated_node(pod.uid)
    node = cache.nodes.get(name)
    if node is None:
        return ""
    refusal = diagnosis.refusals.get(name)
    if refusal is not None and refusal.unresolvable:
        return ""
    leaving = any(other.priority < pod.priority and is_preempted(other) for other in node.pods.values())
    return WAITING if leaving else ""


def is_preempted(pod: PodInfo) -> bool:
    """Return whether the Pod is ending because the scheduler preempted it (`podTerminatingByPreemption`)."""
    if pod.preempted or not pod.terminating:
        return pod.preempted
    condition = get_condition(pod.pod.get("status") or {}, "DisruptionTarget")
    return condition is not None and (condition.get("status"), condition.get("reason")) == (
        "True",
        PREEMPTION_BY_SCHEDULER,
    )


def find_candidates(
    pod: PodInfo,
    cache: Cache,
    diagnosis: Diagnosis,
    budgets: Sequence[PodDisruptionBudget],
    refusals: dict[str, Refusal],
) -> list[Candidate]:
    """Find nodes on which preempting helps; fill `refusals` for those on which it does not help
    (`DryRunPreemption`)."""
    names = [name for name, refusal in diagnosis.refusals.items() if not refusal.unresolvable and name in cache.nodes]
    if not names:
        return []
    wanted = min(len(names), max(MIN_CANDIDATES, len(names) * MIN_CANDIDATES_PERCENTAGE // 100))
    state = CycleState(pod, cache)
    with_budget: list[Candidate] = []
    violating: list[Candidate] = []
    for name in names:
        found = select_victims(state, cache.nodes[name], budgets)
        if isinstance(found, Refusal):
            refusals[name] = found
        else:
            (violating if found.violations else with_budget).append(found)
            if with_budget and len(with_budget) + len(violating) >= wanted:
                break
    return with_budget + violating


def select_victims(state: CycleState, node: NodeInfo, budgets: Sequence[PodDisruptionBudget]) -> Candidate | Refusal:
    """Select the fewest Pods of lower priority that have to leave, the least important ones (`SelectVictimsOnNode`)."""
    pod = state.pod
    potential = [other for other in node.pods.values() if other.priority < pod.priority]
    if not potential:
        return Refusal("DefaultPreemption", (NO_VICTIMS,), True)
    state, node = state.copy(), node.copy()

    def take(other: PodInfo) -> None:
        node.remove(other)
        state.change(other, node, -1)

    def give_back(other: PodInfo) -> None:
        node.add(other)
        state.change(other, node, 1)

    for other in potential:
        take(other)
    refusal = refusal_with_nominated(state, node)
    if refusal is not None:
        return refusal
    potential.sort(key=importance)
    violating, others = split_by_budgets(potential, budgets)
    victims: list[PodInfo] = []
    violations = 0
    for group in (violating, others):
        for other in group:
            give_back(other)
            if refusal_with_nominated(state, node) is not None:
                take(other)
                victims.append(other)
                violations += group is violating
    victims.sort(key=importance)
    return Candidate(state.cache.nodes[node.name], tuple(victims), violations)


def importance(pod: PodInfo) -> tuple[int, str, str]:
    """Return the sort key, the most important first: higher priority, then started earlier (`MoreImportantPod`)."""
    return -pod.priority, started(pod), pod.uid


def started(pod: PodInfo) -> str:
    """Return status.startTime; a Pod that has not started sorts last. RFC 3339 in one zone compares as text."""
    return str((pod.pod.get("status") or {}).get("startTime") or "~")


def split_by_budgets(
    pods: Iterable[PodInfo], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """Split into (those whose budget would be violated, the others), in order (`filterPodsWithPDBViolation`)."""
    left = [(budget.get("status") or {}).get("disruptionsAllowed") or 0 for budget in budgets]
    selectors = [_selector(budget) for budget in budgets]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        violated = False
        for index, budget in enumerate(budgets):
            if namespace_of(budget) != pod.namespace or not pod.labels or not selectors[index].matches(pod.labels):
                continue
            if pod.name in ((budget.get("status") or {}).get("disruptedPods") or {}):
                continue  # counted when it was evicted
            left[index] -= 1
            violated = violated or left[index] < 0
        (violating if violated else others).append(pod)
    return violating, others


def _selector(budget: PodDisruptionBudget) -> LabelSelector:
    selector = selector_of_expressions((budget.get("spec") or {}).get("selector"))
    return LabelSelector(nothing=True) if selector.empty else selector


def _latest_start(candidate: Candidate) -> str:
    """The earliest start among the victims of the highest priority (`GetEarliestPodStartTime`)."""
    highest = max(victim.priority for victim in candidate.victims)
    return min(started(victim) for victim in candidate.victims if victim.priority == highest)


ORDERED: tuple[tuple[str, Callable[[Candidate], int]], ...] = (
    ("fewest budgets violated", lambda c: c.violations),
    ("lowest priority of the most important victim", lambda c: max(v.priority for v in c.victims)),
    ("lowest sum of priorities", lambda c: sum(v.priority + _LOWEST for v in c.victims)),
    ("fewest victims", lambda c: len(c.victims)),
)
"""The order in which candidates are compared (`pickOneNodeForPreemption`); then the one whose victims started last."""


def pick(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate that does the least harm; equal ones by name, where the original takes any."""
    free = [candidate for candidate in candidates if not candidate.victims]
    if free:
        return min(free, key=lambda candidate: candidate.node.name)
    rest = list(candidates)
    for _, measure in ORDERED:
        least = min(measure(candidate) for candidate in rest)
        rest = [candidate for candidate in rest if measure(candidate) == least]
    latest = max(_latest_start(candidate) for candidate in rest)
    return min((c for c in rest if _latest_start(c) == latest), key=lambda candidate: candidate.node.name)


def lower_nominations(pod: PodInfo, node: str, cache: Cache) -> list[PodInfo]:
    """Return the Pods of lower priority that are nominated to the node and lose it to this Pod."""
    return [
        other
        for other in cache.nominated.get(node, {}).values()
        if other.uid != pod.uid and other.priority < pod.priority
    ]


def _not_possible(node_count: int, refusals: dict[str, Refusal]) -> str:
    counted: dict[str, int] = {}
    for refusal in refusals.values():
        for reason in refusal.reasons:
            counted[reason] = counted.get(reason, 0) + 1
    if node_count > len(refusals):
        counted[NOT_HELPFUL] = counted.get(NOT_HELPFUL, 0) + node_count - len(refusals)
    return f"0/{node_count} nodes are available: {listed(counted)}."


def describe(pod: PodInfo) -> str:
    """Return `namespace/name (priority 100)`, for a record."""
    return f"{pod.namespace}/{name_of(pod.pod)} (priority {pod.priority})"
