"""Node-pressure eviction: when, whom, and what is said. Pure.

Source: pkg/kubelet/eviction/helpers.go and eviction_manager.go. Amounts are bytes, inodes or processes; times seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from lastcall.kube.api.disruption import disruption_target
from lastcall.kube.api.quantity import Quantity, parse_quantity
from lastcall.kube.api.scheduling import NO_SCHEDULE, untolerated
from lastcall.kube.node.admission.critical_pods import TERMINATION_BY_KUBELET, is_critical_pod, priority_of
from lastcall.kube.node.admission.decide import Rejection
from lastcall.kube.node.pods.resources import pod_resources
from lastcall.kube.node.pods.spec import containers_of, get_pod_qos, init_containers_of, is_restartable_init_container
from lastcall.kube.node.status.conditions import set_pod_condition
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus

REASON = "Evicted"
IMMEDIATE_GRACE_SECONDS = 1
"""Of a hard threshold and of a limit that was exceeded (immediateEvictionGracePeriodSeconds)."""
MEMORY_PRESSURE_TAINT = {"key": "node.kubernetes.io/memory-pressure", "effect": NO_SCHEDULE}


@dataclass(frozen=True, slots=True)
class Signal:
    """`resource` as the messages name it, `condition` of the Node."""

    resource: str
    condition: str


SIGNALS: dict[str, Signal] = {
    "memory.available": Signal("memory", "MemoryPressure"),
    "nodefs.available": Signal("ephemeral-storage", "DiskPressure"),
    "nodefs.inodesFree": Signal("inodes", "DiskPressure"),
    "imagefs.available": Signal("ephemeral-storage", "DiskPressure"),
    "imagefs.inodesFree": Signal("inodes", "DiskPressure"),
    "pid.available": Signal("pids", "PIDPressure"),
}


@dataclass(frozen=True, slots=True)
class Observation:
    """`at`: when it was read; the same reading never evicts twice."""

    available: int
    capacity: int
    at: float = 0.0


Observations = Mapping[str, Observation]


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity, or a part of the capacity."""

    quantity: int = 0
    fraction: Fraction = Fraction(0)

    def of(self, capacity: int) -> int:
        return int(self.fraction * capacity) if self.fraction else self.quantity


@dataclass(frozen=True, slots=True)
class Threshold:
    """Met when less than `value` is available; hard with `grace_seconds` None. `min_reclaim`: how much more must be
    available before it counts as resolved."""

    signal: str
    value: Amount
    grace_seconds: float | None = None
    min_reclaim: Amount = Amount()

    @property
    def hard(self) -> bool:
        return not self.grace_seconds


def parse_amount(text: str) -> Amount:
    """Parse `100Mi` or `10%`. Raises ValueError."""
    if text.endswith("%"):
        fraction = Fraction(text[:-1]) / 100
        if not 0 <= fraction <= 1:
            raise ValueError(f"eviction percentage threshold {text} must be at least 0% and at most 100%")
        return Amount(fraction=fraction)
    quantity = parse_quantity(text).whole
    if quantity < 0:
        raise ValueError(f"eviction threshold {text} must be positive")
    return Amount(quantity)


def parse_thresholds(
    hard: Mapping[str, str],
    soft: Mapping[str, str] | None = None,
    soft_grace_seconds: Mapping[str, float] | None = None,
    min_reclaim: Mapping[str, str] | None = None,
) -> tuple[Threshold, ...]:
    """Parse KubeletConfiguration's evictionHard, evictionSoft, evictionSoftGracePeriod and evictionMinimumReclaim.

    Raises ValueError for an unknown signal, a bad amount, or a soft threshold without its grace period.
    """
    found: list[Threshold] = []
    graces = soft_grace_seconds or {}
    for name in (*hard, *(soft or {}), *(min_reclaim or {})):
        if name not in SIGNALS:
            raise ValueError(f"unknown eviction signal {name!r}: {', '.join(SIGNALS)}")
    found += [Threshold(name, parse_amount(text)) for name, text in hard.items()]
    for name, text in (soft or {}).items():
        if not graces.get(name):
            raise ValueError(f"grace period must be specified for the soft eviction threshold {name}")
        found.append(Threshold(name, parse_amount(text), graces[name]))
    reclaims = {name: parse_amount(text) for name, text in (min_reclaim or {}).items()}
    return tuple(replace(each, min_reclaim=reclaims.get(each.signal, Amount())) for each in found)


DEFAULT_THRESHOLDS = parse_thresholds(
    {
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "nodefs.inodesFree": "5%",
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%",
    }
)
"""eviction/defaults_linux.go."""


@dataclass(frozen=True, slots=True)
class EvictionConfig:
    """`max_pod_grace_seconds` bounds the grace period of a soft eviction; `transition_seconds` is how long a condition
    outlives its cause (evictionPressureTransitionPeriod)."""

    thresholds: tuple[Threshold, ...] = DEFAULT_THRESHOLDS
    max_pod_grace_seconds: int = 0
    transition_seconds: float = 300.0


def thresholds_met(thresholds: Iterable[Threshold], seen: Observations, *, to_resolve: bool) -> list[Threshold]:
    """Return thresholds with too little available; `to_resolve` adds what must be reclaimed besides (thresholdsMet)."""
    met = []
    for threshold in thresholds:
        observed = seen.get(threshold.signal)
        if observed is None:
            continue
        wanted = threshold.value.of(observed.capacity)
        if to_resolve:
            wanted += threshold.min_reclaim.of(observed.capacity)
        if observed.available < wanted:
            met.append(threshold)
    return met


@dataclass(frozen=True, slots=True)
class PressureState:
    """What one pass leaves for the next. Times as `Observation.at`."""

    met: tuple[Threshold, ...] = ()
    first_observed: Mapping[Threshold, float] = field(default_factory=dict)
    conditions_last: Mapping[str, float] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    last_seen: Observations = field(default_factory=dict)


def next_pressure(
    config: EvictionConfig, state: PressureState, seen: Observations, now: float
) -> tuple[PressureState, list[Threshold]]:
    """Run one pass (eviction_manager.go:synchronize): return the new state and the thresholds to act on, in order."""
    met = thresholds_met(config.thresholds, seen, to_resolve=False)
    met += [each for each in thresholds_met(state.met, seen, to_resolve=True) if each not in met]
    first = {each: state.first_observed.get(each, now) for each in met}
    last = {**state.conditions_last, **{SIGNALS[each.signal].condition: now for each in met}}
    conditions = tuple(name for name, at in last.items() if now - at < config.transition_seconds)
    over = [each for each in met if now - first[each] >= (each.grace_seconds or 0.0)]
    fresh = [each for each in over if _is_fresher(each, seen, state.last_seen)]
    fresh.sort(key=lambda each: (each.signal != "memory.available", not each.hard))
    return PressureState(tuple(over), first, last, conditions, dict(seen)), fresh


def _is_fresher(threshold: Threshold, seen: Observations, before: Observations) -> bool:
    return threshold.signal not in before or seen[threshold.signal].at > before[threshold.signal].at


def admit_under_pressure(pod: Pod, conditions: Sequence[str]) -> Rejection | None:
    """Return why a Pod is rejected under pressure, else None (eviction_manager.go:Admit)."""
    if not conditions or is_critical_pod(pod):
        return None
    if list(conditions) == ["MemoryPressure"]:
        tolerations = pod["spec"].get("tolerations") or []
        if get_pod_qos(pod) != "BestEffort" or untolerated([MEMORY_PRESSURE_TAINT], tolerations) is None:
            return None
    return Rejection(REASON, f"The node had condition: [{' '.join(conditions)}]. ")


# -- whom -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileUsage:
    """Bytes and inodes."""

    bytes: int = 0
    inodes: int = 0

    def __add__(self, other: FileUsage) -> FileUsage:
        return FileUsage(self.bytes + other.bytes, self.inodes + other.inodes)


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    """Working set in bytes (None: nobody counts), processes, what it wrote and what it logged."""

    memory: int | None = None
    processes: int = 0
    rootfs: FileUsage = FileUsage()
    logs: FileUsage = FileUsage()


@dataclass(frozen=True, slots=True)
class PodUsage:
    """By container name; `volumes` are the local ones (emptyDir on the node's disk) by volume name."""

    containers: Mapping[str, ContainerUsage] = field(default_factory=dict)
    volumes: Mapping[str, FileUsage] = field(default_factory=dict)

    @property
    def memory(self) -> int | None:
        """Return the bytes of memory; None if nobody counts them."""
        known = [each.memory for each in self.containers.values() if each.memory is not None]
        return sum(known) if known else None

    @property
    def processes(self) -> int:
        return sum(each.processes for each in self.containers.values())

    @property
    def files(self) -> FileUsage:
        """Return what the Pod has on the node's disk. Images and the rest are on one file system."""
        total = FileUsage()
        for container in self.containers.values():
            total += container.rootfs + container.logs
        for volume in self.volumes.values():
            total += volume
        return total


Usages = Mapping[str, PodUsage]
"""By Pod UID."""


def ranked(pods: Iterable[Pod], usages: Usages, resource: str) -> list[Pod]:
    """Sort the Pods in the order in which they are evicted for `resource` (helpers.go:rank*Pressure).

    Memory and disk: Pods that use more than requested first, then the least priority, then those farthest above the
    request. Processes: the least priority, then those with the most.
    """
    rank = _RANKS[resource]
    return sorted(pods, key=lambda pod: rank(pod, usages.get(pod["metadata"]["uid"])))


_Rank = tuple[int, ...]


def _by_usage(resource: str, amount: Callable[[PodUsage], int | None]) -> Callable[[Pod, PodUsage | None], _Rank]:
    def rank(pod: Pod, usage: PodUsage | None) -> _Rank:
        used = amount(usage) if usage is not None else None
        if used is None:  # what nobody knows anything of goes first
            return (0, 0, priority_of(pod), 0)
        request = _request(pod, resource)
        return (1, 0 if used > request else 1, priority_of(pod), request - used)

    return rank


def _by_processes(pod: Pod, usage: PodUsage | None) -> _Rank:
    return (priority_of(pod), -usage.processes if usage is not None else 0)


_RANKS: dict[str, Callable[[Pod, PodUsage | None], _Rank]] = {
    "memory": _by_usage("memory", lambda usage: usage.memory),
    "ephemeral-storage": _by_usage("ephemeral-storage", lambda usage: usage.files.bytes),
    "inodes": _by_usage("inodes", lambda usage: usage.files.inodes),
    "pids": _by_processes,
}


def eviction_grace(threshold: Threshold, pod: Pod, config: EvictionConfig) -> int:
    """Return the grace period in seconds."""
    if threshold.hard:
        return IMMEDIATE_GRACE_SECONDS
    own = pod["spec"].get("terminationGracePeriodSeconds")
    return config.max_pod_grace_seconds if own is None else min(config.max_pod_grace_seconds, int(own))


# -- what is said -----------------------------------------------------------------------------------------------------


def eviction_message(
    pod: Pod, usage: PodUsage | None, threshold: Threshold, met: Iterable[Threshold], seen: Observations
) -> str:
    """Return the message of an eviction (helpers.go:evictionMessage)."""
    resource = SIGNALS[threshold.signal].resource
    message = f"The node was low on resource: {resource}. "
    for each in met:
        observed = seen.get(each.signal)
        if SIGNALS[each.signal].resource == resource and observed is not None:
            value = _text(each.value.of(observed.capacity), resource)
            message += f"Threshold quantity: {value}, available: {_text(observed.available, resource)}. "
            break
    for container in [*containers_of(pod), *filter(is_restartable_init_container, init_containers_of(pod))]:
        used = _container_usage(usage, container["name"], resource)
        requested = ((container.get("resources") or {}).get("requests") or {}).get(resource, "0")
        if used is not None and used > parse_quantity(requested).whole:
            message += (
                f"Container {container['name']} was using {_text(used, resource)}, request is "
                f"{parse_quantity(requested)}, has larger consumption of {resource}. "
            )
    return message


def evicted_status(message: str, *, disruption: bool) -> Callable[[APIPodStatus], None]:
    """Return a function that changes a status in place (eviction_manager.go:evictPod)."""

    def change(status: APIPodStatus) -> None:
        status["phase"], status["reason"], status["message"] = "Failed", REASON, message
        if disruption:
            set_pod_condition(status, disruption_target(TERMINATION_BY_KUBELET, message))

    return change


def storage_violation(pod: Pod, usage: PodUsage, *, of_sidecars: bool = False) -> str:
    """Return what a Pod has exceeded of its own local storage, in its message's words; "" for nothing.

    `of_sidecars`: their own limits count, too (since 1.37).

    Source: eviction_manager.go: emptyDirLimitEviction, podEphemeralStorageLimitEviction,
    containerEphemeralStorageLimitEviction, in that order.
    """
    for volume in pod["spec"].get("volumes") or []:
        limit = (volume.get("emptyDir") or {}).get("sizeLimit")
        used = usage.volumes.get(volume["name"])
        if limit is not None and used is not None and 0 < parse_quantity(limit).whole < used.bytes:
            return f'Usage of EmptyDir volume "{volume["name"]}" exceeds the limit "{parse_quantity(limit)}". '
    total = (pod_resources(pod).get("limits") or {}).get("ephemeral-storage")
    if total is not None and usage.files.bytes > parse_quantity(total).whole:
        return f"Pod ephemeral local storage usage exceeds the total limit of containers {parse_quantity(total)}. "
    sidecars = [each for each in init_containers_of(pod) if of_sidecars and is_restartable_init_container(each)]
    for container in [*containers_of(pod), *sidecars]:
        limit = ((container.get("resources") or {}).get("limits") or {}).get("ephemeral-storage")
        own = usage.containers.get(container["name"])
        if limit is None or own is None:
            continue
        if 0 < parse_quantity(limit).whole < (own.rootfs + own.logs).bytes:
            name = container["name"]
            return f'Container {name} exceeded its local ephemeral storage limit "{parse_quantity(limit)}". '
    return ""


def has_storage_limits(pod: Pod) -> bool:
    """Return whether `storage_violation` could ever find something."""
    volumes = pod["spec"].get("volumes") or []
    if any((volume.get("emptyDir") or {}).get("sizeLimit") is not None for volume in volumes):
        return True
    return any(
        "ephemeral-storage" in ((container.get("resources") or {}).get("limits") or {})
        for container in [*containers_of(pod), *init_containers_of(pod)]
    )


def _container_usage(usage: PodUsage | None, name: str, resource: str) -> int | None:
    own = usage.containers.get(name) if usage is not None else None
    if own is None:
        return None
    if resource == "memory":
        return own.memory
    return (own.rootfs + own.logs).bytes if resource == "ephemeral-storage" else None


def _request(pod: Pod, resource: str) -> int:
    requests = pod_resources(pod).get("requests") or {}
    return parse_quantity(requests[resource]).whole if resource in requests else 0


def _text(amount: int, resource: str) -> str:
    """As Kubernetes prints the quantity: binary for bytes."""
    return str(Quantity(Fraction(amount), "BinarySI" if resource in ("memory", "ephemeral-storage") else "DecimalSI"))
