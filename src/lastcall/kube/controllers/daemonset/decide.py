"""Which nodes need a DaemonSet's Pod, and which of its Pods have to go. Pure.

Source: pkg/controller/daemon/daemon_controller.go (podsShouldBeOnNode, NodeShouldRunDaemonPod), update.go
(rollingUpdate). A node whose Pod is still ending counts as having one, unless the update may surge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, cast

from lastcall.kube.api.meta import copy_object, is_terminating, labels_of, name_of, namespace_of
from lastcall.kube.api.resources import DAEMONSETS
from lastcall.kube.api.scheduling import NO_EXECUTE, NO_SCHEDULE, matches_node, taints_of, untolerated
from lastcall.kube.api.text.numbers import scaled
from lastcall.kube.controllers.history import REVISION_LABEL
from lastcall.kube.controllers.ownership import controller_reference
from lastcall.kube.controllers.pods.control import pod_from_template, seconds_until_available
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod, PodSpec
    from lastcall.kube.api.types.scheduling import Affinity, NodeSelectorRequirement, Toleration
    from lastcall.kube.api.types.workloads import DaemonSet, DaemonSetStatus

TEMPLATE_GENERATION_LABEL = "pod-template-generation"
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

_Taint = tuple[str, Literal["NoExecute", "NoSchedule"]]
_TOLERATED: tuple[_Taint, ...] = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
ENDED = ("Failed", "Succeeded")
_NETWORK_UNAVAILABLE: _Taint = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


@dataclass(frozen=True, slots=True)
class Removal:
    """A Pod to delete and why, in one sentence. `ended` is its phase when it has ended by itself."""

    pod: Pod
    why: str
    ended: str = ""
    rollout: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The nodes (names) that get a Pod, and the Pods that go."""

    create: tuple[str, ...] = ()
    remove: tuple[Removal, ...] = ()


def target_node(pod: Pod) -> str:
    """Return the node a daemon Pod runs on, or is meant for. (`GetTargetNodeName`)"""
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name" and field["operator"] == "In" and len(field["values"]) == 1:
                return str(field["values"][0])
    return ""


def by_node(pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    """Group the Pods that count by node. A Pod that has ended and is being deleted does not.
    (`getNodesToDaemonPods`)"""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if is_terminating(pod) and (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            continue
        found.setdefault(target_node(pod), []).append(pod)
    return found


def new_pod(owner: DaemonSet, node: str, revision: str) -> Pod:
    """Make a Pod that is pinned to its node by affinity, left to the scheduler and tolerates node taints. (`NewPod`)"""
    pod = pod_from_template(owner["spec"]["template"], name_of(owner), controller_reference(owner, DAEMONSETS))
    pod["metadata"]["namespace"] = namespace_of(owner)
    generation = (owner["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION)
    labels = pod["metadata"].setdefault("labels", {})
    if generation:
        labels[TEMPLATE_GENERATION_LABEL] = generation
    labels[REVISION_LABEL] = revision
    spec = pod["spec"]
    add_tolerations(spec)
    _pin(spec, node)
    return pod


def add_tolerations(spec: PodSpec) -> None:
    """Add the tolerations that each Pod of a DaemonSet has. (`AddOrUpdateDaemonPodTolerations`)"""
    tolerations = list(spec.get("tolerations") or ())
    wanted = [*_TOLERATED, _NETWORK_UNAVAILABLE] if spec.get("hostNetwork") else list(_TOLERATED)
    for key, effect in wanted:
        toleration: Toleration = {"key": key, "operator": "Exists", "effect": effect}
        if toleration not in tolerations:
            tolerations.append(toleration)
    spec["tolerations"] = tolerations


def _pin(spec: PodSpec, node: str) -> None:
    """(`ReplaceDaemonSetPodNodeNameNodeAffinity`)"""
    field: NodeSelectorRequirement = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity: Affinity = copy_object(spec.get("affinity") or {})
    node_affinity = affinity.setdefault("nodeAffinity", {})
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    spec["affinity"] = affinity


def should_run(owner: DaemonSet, node: Node) -> tuple[bool, bool]:
    """Return (a new Pod may start there, a running one may stay). (`NodeShouldRunDaemonPod`)"""
    spec = copy_object((owner["spec"]["template"].get("spec")) or {})
    if spec.get("nodeName") and spec["nodeName"] != name_of(node):
        return False, False
    if not matches_node(spec, node):
        return False, False
    add_tolerations(spec)
    tolerations = spec["tolerations"]
    taints = taints_of(node)
    if untolerated(taints, tolerations, (NO_EXECUTE, NO_SCHEDULE)) is not None:
        return False, untolerated(taints, tolerations, (NO_EXECUTE,)) is None
    return True, True


def limits(owner: DaemonSet, desired: int) -> tuple[int, int]:
    """Return (maxSurge, maxUnavailable) as numbers, both rounded up. (`updatedDesiredNodeCounts`)"""
    rolling = (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    surge = scaled(rolling.get("maxSurge"), desired, up=True)
    unavailable = scaled(rolling.get("maxUnavailable", 1), desired, up=True)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def _surges(owner: DaemonSet) -> bool:
    update = owner["spec"].get("updateStrategy") or {}
    return update.get("type") == "RollingUpdate" and limits(owner, 1)[0] > 0


def is_updated(owner: DaemonSet, pod: Pod, revision: str) -> bool:
    """Return True if a Pod has the current template. (`IsPodUpdated`)"""
    labels = labels_of(pod)
    generation = (owner["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION)
    if generation and labels.get(TEMPLATE_GENERATION_LABEL) == generation:
        return True
    return bool(revision and labels.get(REVISION_LABEL) == revision)


def _is_available(owner: DaemonSet, pod: Pod, now: float) -> bool:
    return seconds_until_available(pod, owner["spec"].get("minReadySeconds") or 0, now) == 0.0


def manage(
    owner: DaemonSet, nodes: Sequence[Node], pods: Mapping[str, Sequence[Pod]], revision: str, now: float
) -> Plan:
    """Plan one Pod for every node that should have one, and none for any other. (`manage`)"""
    create: list[str] = []
    remove: list[Removal] = []
    for node in nodes:
        here = pods.get(name_of(node)) or ()
        start, stay = should_run(owner, node)
        if start and not here:
            create.append(name_of(node))
        elif stay:
            remove += _surplus(owner, here, revision, now)
            if start and _surges(owner) and not any(map(_is_running, here)):
                create.append(name_of(node))
        else:
            why = f"node {name_of(node)} does not fit DaemonSet {name_of(owner)} any more"
            remove += [Removal(pod, why) for pod in here if not is_terminating(pod)]
    known = {name_of(node) for node in nodes}
    for name, here in pods.items():
        if name and name not in known:
            why = f"its node {name} is gone"
            remove += [Removal(p, why) for p in here if not is_terminating(p) and not p["spec"].get("nodeName")]
    return Plan(tuple(create), tuple(remove))


def _surplus(owner: DaemonSet, here: Sequence[Pod], revision: str, now: float) -> list[Removal]:
    """Pods that have ended, and all but one of those that run."""
    remove: list[Removal] = []
    for pod in here:
        phase = _phase(pod)
        if phase in ENDED and not is_terminating(pod):
            remove.append(
                Removal(pod, f"it has ended ({phase}), and DaemonSet {name_of(owner)} creates it again", phase)
            )
    running = sorted(filter(_is_running, here), key=_age)
    why = f"one Pod of DaemonSet {name_of(owner)} is enough on a node"
    if not _surges(owner):
        return [*remove, *(Removal(pod, why) for pod in running[1:])]
    # While surging a node may have one old and one new Pod; of each kind the oldest stays.
    new, old = ([pod for pod in running if is_updated(owner, pod, revision) is updated] for updated in (True, False))
    remove += [Removal(pod, why) for pod in (*new[1:], *old[1:])]
    if new and old and (not _is_ready(old[0]) or _is_available(owner, new[0], now)):
        remove.append(Removal(old[0], f"DaemonSet {name_of(owner)} rolls out revision {revision}", rollout=True))
    return remove


def rolling_update(
    owner: DaemonSet, nodes: Sequence[Node], pods: Mapping[str, Sequence[Pod]], revision: str, now: float
) -> Plan:
    """Plan the next Pods to replace within maxUnavailable or maxSurge. (`rollingUpdate`)"""
    desired = sum(should_run(owner, node)[0] for node in nodes)
    surge, unavailable = limits(owner, desired)
    why = f"DaemonSet {name_of(owner)} rolls out revision {revision}"
    free: list[str | Pod] = []
    candidates: list[str | Pod] = []
    done: list[Removal] = []
    used = 0
    for name in sorted(pods):
        old, new, clear = _old_and_new(owner, pods[name], revision)
        if not clear:
            used += 1
        elif surge:
            if old is not None and new is None:
                (candidates if _is_available(owner, old, now) else free).append(name)
            elif old is not None and new is not None:
                if _is_available(owner, new, now):
                    done.append(Removal(old, why, rollout=True))
                else:
                    used += 1
        elif (old is None) == (new is None):
            used += 1
        elif new is not None:
            used += not _is_available(owner, new, now)
        elif old is not None:
            if _is_available(owner, old, now):
                candidates.append(old)
            else:
                # It serves nobody: replacing it costs nothing.
                free.append(old)
                used += 1
    chosen = [*free, *candidates[: max(0, (surge or unavailable) - used)]]
    if surge:
        return Plan(tuple(str(name) for name in chosen), tuple(done))
    return Plan((), tuple(Removal(pod, why, rollout=True) for pod in chosen if isinstance(pod, dict)))


def _old_and_new(owner: DaemonSet, here: Sequence[Pod], revision: str) -> tuple[Pod | None, Pod | None, bool]:
    """(the old Pod, the new Pod, False when there are two of a kind). (`findUpdatedPodsOnNode`)"""
    old: Pod | None = None
    new: Pod | None = None
    for pod in here:
        if is_terminating(pod):
            continue
        if is_updated(owner, pod, revision):
            if new is not None:
                return None, None, False
            new = pod
        else:
            if old is not None:
                return None, None, False
            old = pod
    return old, new, True


def status_of(
    owner: DaemonSet,
    nodes: Sequence[Node],
    pods: Mapping[str, Sequence[Pod]],
    revision: str,
    now: float,
    *,
    observe: bool,
) -> DaemonSetStatus:
    """Return the status (`updateDaemonSetStatus`). With `observe`, its observedGeneration is the current one."""
    counts = dict.fromkeys(("desired", "current", "misscheduled", "ready", "updated", "available"), 0)
    for node in nodes:
        start, _ = should_run(owner, node)
        here = pods.get(name_of(node)) or ()
        if not start:
            counts["misscheduled"] += bool(here)
            continue
        counts["desired"] += 1
        if not here:
            continue
        counts["current"] += 1
        pod = min(here, key=_age)
        counts["ready"] += _is_ready(pod)
        counts["available"] += _is_available(owner, pod, now)
        counts["updated"] += is_updated(owner, pod, revision)
    old = owner.get("status") or {}
    generation = owner["metadata"].get("generation") or 0
    status: DaemonSetStatus = {
        "currentNumberScheduled": counts["current"],
        "numberMisscheduled": counts["misscheduled"],
        "desiredNumberScheduled": counts["desired"],
        "numberReady": counts["ready"],
        "observedGeneration": generation if observe else old.get("observedGeneration", 0),
    }
    if not status["observedGeneration"]:
        del status["observedGeneration"]
    more: DaemonSetStatus = {
        "updatedNumberScheduled": counts["updated"],
        "numberAvailable": counts["available"],
        "numberUnavailable": counts["desired"] - counts["available"],
        "collisionCount": old.get("collisionCount", 0),
        "conditions": old.get("conditions", []),
    }
    return status | cast("DaemonSetStatus", {key: value for key, value in more.items() if value})


def _phase(pod: Pod) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _is_running(pod: Pod) -> bool:
    return not is_terminating(pod) and _phase(pod) not in ENDED


def _age(pod: Pod) -> tuple[bool, str, str]:
    """Those that have a node first, then the oldest. (`podByCreationTimestampAndPhase`)"""
    return not pod["spec"].get("nodeName"), pod["metadata"].get("creationTimestamp") or "", name_of(pod)


def _is_ready(pod: Pod) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def seconds_until_change(owner: DaemonSet, pods: Mapping[str, Sequence[Pod]], now: float) -> float | None:
    """Return the seconds until the next Pod becomes available by time alone."""
    min_ready = owner["spec"].get("minReadySeconds") or 0
    waits = [seconds_until_available(pod, min_ready, now) for here in pods.values() for pod in here]
    return min((wait for wait in waits if wait), default=None)
