"""Whether a node is alive, and what its conditions say about it. Pure; times are seconds since the epoch.

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go (tryUpdateNodeHealth, doNoScheduleTaintingPass).
"""

# check: pure

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from lastcall.kube.api.meta import copy_object, labels_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.scheduling import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, UNSCHEDULABLE, taints_of
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Lease, Node, NodeCondition, NodeStatus
    from lastcall.kube.api.types.scheduling import Taint

MONITOR_PERIOD_SECONDS = 5.0
MONITOR_GRACE_SECONDS = 50.0
"""How long after its last sign of life a node counts as alive (`--node-monitor-grace-period`)."""
STARTUP_GRACE_SECONDS = 60.0
"""The same for a node that has never posted a status."""

MONITORED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that turn Unknown with the node."""

TAINT_OF_CONDITION: Mapping[str, Mapping[str, str]] = {
    "Ready": {"False": NOT_READY, "Unknown": UNREACHABLE},
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
}
"""Condition → its status → key of the NoSchedule taint."""
_CONDITION_TAINTS = tuple(key for keys in TAINT_OF_CONDITION.values() for key in keys.values())

NO_EXECUTE_OF_READY: Mapping[str, str] = {"False": NOT_READY, "Unknown": UNREACHABLE}


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """The last sign of life: `probed_at`, and by what it was noticed."""

    probed_at: float
    heartbeat: str | None
    """lastHeartbeatTime of the condition Ready, None without one."""
    renewed: str = ""
    """spec.renewTime of the lease."""


@dataclass(frozen=True, slots=True)
class Examination:
    """`observed` is the status of Ready before, `current` after; None without the condition.

    `status` is the Node's new status when it has to be written.
    """

    health: NodeHealth
    observed: str
    current: str | None
    status: NodeStatus | None = None


def examine(node: Node, lease: Lease | None, health: NodeHealth | None, now: float, moment: str) -> Examination:
    """Examine a node once (`tryUpdateNodeHealth`). `moment` is `now` as RFC 3339."""
    status: NodeStatus = node.get("status") or {}
    ready = get_condition(status, "Ready")
    heartbeat = None if ready is None else str(ready.get("lastHeartbeatTime"))
    if health is None:
        # Without a Ready condition its time runs from its creation.
        created = parse_rfc3339(node["metadata"]["creationTimestamp"]).timestamp()
        health = NodeHealth(created if ready is None else now, heartbeat)
    elif health.heartbeat != heartbeat:
        health = NodeHealth(now, heartbeat)
    renewed = str(((lease or {}).get("spec") or {}).get("renewTime") or "")
    if renewed and renewed > health.renewed:
        health = replace(health, renewed=renewed, probed_at=now)
    observed = "Unknown" if ready is None else str(ready.get("status"))
    grace = STARTUP_GRACE_SECONDS if ready is None else MONITOR_GRACE_SECONDS
    if now <= health.probed_at + grace:
        return Examination(health, observed, None if ready is None else observed)
    if ready is not None and observed == "Unknown":
        return Examination(health, observed, observed)
    lost = with_lost_conditions(status, node["metadata"]["creationTimestamp"], moment)
    written = get_condition(lost, "Ready") or {}
    return Examination(replace(health, heartbeat=str(written.get("lastHeartbeatTime"))), observed, "Unknown", lost)


def with_lost_conditions(status: NodeStatus, created: str | None, moment: str) -> NodeStatus:
    """Return the status of a node that gives no sign of life: what it reported about itself is unknown."""
    new = copy_object(status)
    conditions: list[NodeCondition] = new.setdefault("conditions", [])
    for kind in MONITORED:
        condition = get_condition(new, kind)
        if condition is None:
            conditions.append(
                {
                    "type": kind,
                    "status": "Unknown",
                    "lastHeartbeatTime": created,
                    "lastTransitionTime": moment,
                    "reason": "NodeStatusNeverUpdated",
                    "message": "Kubelet never posted node status.",
                }
            )
        elif condition.get("status") != "Unknown":
            condition |= {
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
                "lastTransitionTime": moment,
            }
    return new


def no_schedule_taints(node: Node) -> tuple[list[str], list[str]]:
    """Return (keys to add, keys to remove) of the NoSchedule taints by conditions and spec.unschedulable."""
    wanted = [
        key
        for condition in (node.get("status") or {}).get("conditions") or ()
        if (key := TAINT_OF_CONDITION.get(condition["type"], {}).get(condition["status"])) is not None
    ]
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.append(UNSCHEDULABLE)
    managed = (*_CONDITION_TAINTS, UNSCHEDULABLE)
    present = [t["key"] for t in taints_of(node) if t.get("effect") == NO_SCHEDULE and t.get("key") in managed]
    return [key for key in wanted if key not in present], [key for key in present if key not in wanted]


def has_taint(node: Node, key: str, effect: str = NO_EXECUTE) -> bool:
    return any((taint.get("key"), taint.get("effect")) == (key, effect) for taint in taints_of(node))


Effect = Literal["NoExecute", "NoSchedule"]


def swapped(
    taints: Sequence[Taint], effect: Effect, add: Sequence[str], remove: Sequence[str], moment: str
) -> list[Taint]:
    """Return the taints with `add` and without `remove`, all of one effect; existing taints keep their time."""
    kept = [taint for taint in taints if taint.get("effect") != effect or taint.get("key") not in remove]
    there = [taint.get("key") for taint in kept if taint.get("effect") == effect]
    new: list[Taint] = [{"key": key, "effect": effect, "timeAdded": moment} for key in add if key not in there]
    return kept + new


def zone_of(node: Node) -> str:
    """Return region and zone, "" for a node that has neither. (`GetZoneKey`)"""
    labels = labels_of(node)
    region = labels.get("topology.kubernetes.io/region") or labels.get("failure-domain.beta.kubernetes.io/region") or ""
    zone = labels.get("topology.kubernetes.io/zone") or labels.get("failure-domain.beta.kubernetes.io/zone") or ""
    return f"{region}:\x00:{zone}" if region or zone else ""
