"""The Node object and its lease.

Sources: kubelet_node_status.go, nodestatus/setters.go, component-helpers apimachinery/lease.
"""

# check: repeats its folder because it is the status of a Node

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lastcall._version import __version__
from lastcall.kube.api.errors import StatusError, is_already_exists, is_conflict, is_not_found
from lastcall.kube.api.features.releases import DEFAULT_VERSION
from lastcall.kube.api.meta import Object, copy_object, name_of, uid_of
from lastcall.kube.api.resources import LEASES, NODES
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.node.interfaces import EventRecorder
from lastcall.world import crash_guard
from lastcall.world.clock import now, rfc3339, rfc3339_micro
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.meta import OwnerReference
    from lastcall.kube.api.types.node import Lease, Node, NodeCondition, NodeStatus, NodeSystemInfo

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
LEASE_DURATION_SECONDS = 40
RENEW_INTERVAL = 10.0
"""Seconds between lease renewals: a quarter of the lease's duration."""
STATUS_UPDATE_FREQUENCY = 10.0
STATUS_REPORT_FREQUENCY = 300.0
"""Seconds: an unchanged status is looked at every 10 s and written every 5 minutes."""
RETRY_SECONDS = 0.05
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


OWN_RUNTIME = f"lastcall://{__version__}"


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """`kubernetes_version` like `1.36`; `capacity` and `allocatable` are quantities as text.

    `boot_id` is another one after each start of the cluster, "" for the machine's own; `system_uuid` stays the same
    forever, "" for one that nobody has seen before.
    """

    name: str
    ip: str
    pod_cidr: str
    kubelet_port: int
    kubernetes_version: str = DEFAULT_VERSION
    capacity: dict[str, str] = field(default_factory=dict)
    allocatable: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    container_runtime: str = OWN_RUNTIME
    """Name and version as `containerRuntimeVersion` shows them."""
    boot_id: str = ""
    system_uuid: str = ""


def node_labels(config: NodeConfig) -> dict[str, str]:
    """Return the labels every node has, and the configured ones."""
    architecture = machine_architecture()
    return {
        "beta.kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        "kubernetes.io/hostname": config.name,
        "kubernetes.io/os": "linux",
        **config.labels,
    }


def node_object(config: NodeConfig, moment: str, not_ready: str, info: NodeSystemInfo) -> Node:
    """Return the Node to register. `moment` is RFC 3339, `not_ready` the reason for not being Ready or ""."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": config.name,
            "labels": node_labels(config),
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"podCIDR": config.pod_cidr, "podCIDRs": [config.pod_cidr]},
        "status": node_status(config, moment, not_ready, info, {}),
    }


PRESSURES = {
    "MemoryPressure": (
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"),
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory"),
    ),
    "DiskPressure": (
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"),
        ("KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"),
    ),
    "PIDPressure": (
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"),
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"),
    ),
}
"""Condition → (reason, message, Event's reason) without and with it (nodestatus/setters.go)."""


_EVENTS = {name: (words[0][2], words[1][2]) for name, words in PRESSURES.items()} | {
    "Ready": ("NodeNotReady", "NodeReady")
}
"""Condition → reasons of the Event when it went and when it came."""


def node_status(
    config: NodeConfig,
    moment: str,
    not_ready: str,
    info: NodeSystemInfo,
    old: NodeStatus,
    pressures: Collection[str] = (),
) -> NodeStatus:
    """Return the Node's status; transition times are kept from `old` where a condition has not changed."""
    conditions = [
        *((name, str(name in pressures), *words[name in pressures][:2]) for name, words in PRESSURES.items()),
        ("Ready", "False", "KubeletNotReady", not_ready)
        if not_ready
        else ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
    before = {condition["type"]: condition for condition in old.get("conditions") or []}
    own = {type_ for type_, *_ in conditions}
    made: list[NodeCondition] = [condition for type_, condition in before.items() if type_ not in own]
    for type_, status, reason, message in conditions:
        same = before.get(type_, {}).get("status") == status
        made.append(
            {
                "type": type_,
                "status": status,
                "lastHeartbeatTime": moment,
                "lastTransitionTime": before[type_].get("lastTransitionTime") if same else moment,
                "reason": reason,
                "message": message,
            }
        )
    return {
        "capacity": config.capacity,
        "allocatable": config.allocatable,
        "conditions": made,
        "addresses": [
            {"type": "InternalIP", "address": config.ip},
            {"type": "Hostname", "address": config.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": config.kubelet_port}},
        "nodeInfo": info,
        **({"declaredFeatures": list(DECLARED_FEATURES)} if _declares(config) else {}),
    }


DECLARED_FEATURES = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)
"""What this node can do that one of an older version could not (component-helpers nodedeclaredfeatures, 1.36)."""
_FIRST_DECLARED_FEATURES = 36


def _declares(config: NodeConfig) -> bool:
    return int(config.kubernetes_version.lstrip("v").split(".")[1]) >= _FIRST_DECLARED_FEATURES


def node_info(config: NodeConfig, system_uuid: str) -> NodeSystemInfo:
    """Return `status.nodeInfo` of this machine. Identities of the machine itself are not given away."""
    uname = os.uname()
    version = f"v{config.kubernetes_version.removeprefix('v')}"
    if version.count(".") == 1:
        version += ".0"
    return {
        "machineID": system_uuid.replace("-", ""),
        "systemUUID": system_uuid,
        "bootID": config.boot_id or _first_line("/proc/sys/kernel/random/boot_id"),
        "kernelVersion": uname.release,
        "osImage": _os_image(),
        "containerRuntimeVersion": config.container_runtime,
        "kubeletVersion": version,
        "kubeProxyVersion": version if int(version.split(".")[1]) < 33 else "",
        "operatingSystem": "linux",
        "architecture": machine_architecture(),
    }


def machine_architecture() -> str:
    """Return the machine's architecture as Go names it (`amd64`)."""
    machine = os.uname().machine
    return _ARCHITECTURES.get(machine, machine)


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _os_image() -> str:
    try:
        for line in Path("/etc/os-release").read_text().splitlines():
            if line.startswith("PRETTY_NAME="):
                return line.partition("=")[2].strip('"')
    except OSError:
        return "Linux"
    return "Linux"


class NodeStatusManager:
    """Registers the Node and keeps its lease and status fresh.

    `not_ready()` answers why the node is not Ready, "" when it is, `pressures()` which of `PRESSURES` hold. `events`
    hears of a reboot and of pressure.
    """

    def __init__(
        self,
        *,
        world: World,
        client: Client,
        config: NodeConfig,
        not_ready: Callable[[], str],
        events: EventRecorder | None = None,
        pressures: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._world = world
        self._client = client
        self._config = config
        self._not_ready = not_ready
        self._pressures = pressures
        self._events = events
        self._info = node_info(config, config.system_uuid or world.new_uid())
        self._node: Node = {}
        self._reported_ns = 0
        self._wanted = asyncio.Event()

    @property
    def node(self) -> Node:
        """Return the Node as last seen; `{}` before `register`."""
        return self._node

    async def register(self) -> Node:
        """Create or take over the Node object; tries until it works. Ready at once when `not_ready()` is ""."""
        delay = RETRY_SECONDS
        while True:
            try:
                self._node = await self._try_register()
                self._reported_ns = self._world.clock.monotonic_ns()
                return self._node
            except (StatusError, ConnectionLost) as error:
                log.warning("node %s not registered yet: %s", self._config.name, error)
            await self._world.clock.sleep(delay)
            delay = min(delay * 2, 7.0)

    async def run(self) -> None:
        """Renew the lease and update the status until cancelled. Call after `register`."""
        async with Tasks() as tasks:
            tasks.spawn(self._renew_lease_forever(), name="node-lease")
            tasks.spawn(self._update_status_forever(), name="node-status")

    async def update_status(self, *, force: bool = False) -> None:
        """Write the status when it is not what the API server has, or when `force`.

        Asked each time, for others write it, too: a node that was thought lost says that it is Ready.
        Source: kubelet_node_status.go:tryUpdateNodeStatus.
        """
        self._node = cast("Node", await self._client.get(NODES, self._config.name))
        old: NodeStatus = self._node.get("status") or {}
        fresh = node_status(self._config, self._now(), self._not_ready(), self._info, old, self._pressures())
        self._tell_changes(old, fresh)
        if not force and _without_heartbeats(fresh) == _without_heartbeats(old):
            return
        answer = await self._client.patch(NODES, self._config.name, {"status": fresh}, subresource="status")
        self._node = cast("Node", answer)
        self._reported_ns = self._world.clock.monotonic_ns()

    def update_soon(self) -> None:
        """Update the status soon: something in it has changed."""
        self._wanted.set()

    async def renew_lease(self) -> None:
        """Create or renew the Lease. Raises StatusError, ConnectionLost."""
        name = self._config.name
        renewed = rfc3339_micro(now(self._world.clock))
        try:
            await self._client.patch(LEASES, name, {"spec": {"renewTime": renewed}}, LEASE_NAMESPACE)
        except StatusError as error:
            if not is_not_found(error):
                raise
            await self._client.create(LEASES, self._lease(renewed), LEASE_NAMESPACE)

    async def _try_register(self) -> Node:
        wanted = node_object(self._config, self._now(), self._not_ready(), self._info)
        try:
            node = await self._client.create(NODES, wanted)
        except StatusError as error:
            if not is_already_exists(error):
                raise
            node = await self._client.get(NODES, self._config.name)
            labels = wanted["metadata"]["labels"]
            if any(node["metadata"].get("labels", {}).get(key) != value for key, value in labels.items()):
                node = await self._client.patch(NODES, self._config.name, {"metadata": {"labels": labels}})
        old: NodeStatus = node.get("status") or {}
        before: str = (old.get("nodeInfo") or {}).get("bootID", "")
        fresh = node_status(self._config, self._now(), self._not_ready(), self._info, old)
        if _without_heartbeats(fresh) != _without_heartbeats(old):
            node = await self._client.patch(NODES, self._config.name, {"status": fresh}, subresource="status")
            self._notice_reboot(before)
        return cast("Node", node)

    def _tell_changes(self, old: NodeStatus, fresh: NodeStatus) -> None:
        """kubelet_node_status.go:recordNodeStatusEvent, when a pressure or Ready came or went."""
        before = {each["type"]: each.get("status") for each in old.get("conditions") or []}
        for condition in fresh["conditions"]:
            type_, status = condition["type"], condition["status"]
            reasons = _EVENTS.get(type_)
            if reasons and before.get(type_, status) != status and self._events is not None:
                name, reason = self._config.name, reasons[status == "True"]
                node = {"kind": "Node", "apiVersion": "", "metadata": {"name": name, "uid": name}}
                self._events.event(node, "Normal", reason, f"Node {name} status is now: {reason}")

    def _notice_reboot(self, before: str) -> None:
        """`before` is the boot id that the API had, "" for none (nodestatus/setters.go:MachineInfo)."""
        boot = self._info["bootID"]
        if before and before != boot and self._events is not None:
            # The kubelet's reference to its Node has the name for a uid, and no apiVersion (kubelet.go:nodeRef).
            name = self._config.name
            node = {"kind": "Node", "apiVersion": "", "metadata": {"name": name, "uid": name}}
            self._events.event(node, "Warning", "Rebooted", f"Node {name} has been rebooted, boot id: {boot}")

    async def _update_status_forever(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(STATUS_UPDATE_FREQUENCY):
                    await self._wanted.wait()
            self._wanted.clear()
            age = (self._world.clock.monotonic_ns() - self._reported_ns) / 1e9
            try:
                await self.update_status(force=age >= STATUS_REPORT_FREQUENCY)
            except StatusError as error:
                log.warning("node status not written: %s", error.message)
                if is_not_found(error):
                    await self.register()
            except ConnectionLost as error:
                log.warning("node status not written: %s", error)
            except Exception as error:
                crash_guard.caught("kubelet node status", self._config.name, error)

    async def _renew_lease_forever(self) -> None:
        lost = False
        while True:
            try:
                await self.renew_lease()
                if lost:
                    lost = False
                    self.update_soon()
            except (StatusError, ConnectionLost) as error:
                if not (isinstance(error, StatusError) and (is_already_exists(error) or is_conflict(error))):
                    log.warning("lease of node %s not renewed: %s", self._config.name, error)
                    lost = True
            except Exception as error:
                crash_guard.caught("kubelet node lease", self._config.name, error)
                lost = True
            await self._world.clock.sleep(RENEW_INTERVAL)

    def _lease(self, renewed: str) -> Lease:
        owner: OwnerReference = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": name_of(self._node),
            "uid": uid_of(self._node),
        }
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._config.name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
            "spec": {
                "holderIdentity": self._config.name,
                "leaseDurationSeconds": LEASE_DURATION_SECONDS,
                "renewTime": renewed,
            },
        }

    def _now(self) -> str:
        return rfc3339(now(self._world.clock))


def _without_heartbeats(status: NodeStatus) -> Object:
    plain = copy_object(status)
    for condition in plain.get("conditions") or []:
        condition.pop("lastHeartbeatTime", None)
    wanted = ("capacity", "allocatable", "conditions", "addresses", "daemonEndpoints", "nodeInfo", "declaredFeatures")
    return {key: plain.get(key) for key in wanted}
