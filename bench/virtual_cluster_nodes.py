"""The nodes of the virtual cluster: stages, as KWOK plays them, or real kubelets on the simulated runtime.

Either way a node is a client of its own with a watch of its own (`spec.nodeName=<name>`), and registers, renews its
lease and writes its status by the kubelet's own code (`lastcall.kube.node.node_status`).
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import Object, is_terminating, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import PODS
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import Informer
from lastcall.kube.node.node_status import NodeConfig, NodeStatusManager
from lastcall.world.clock import rfc3339_now
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

ALLOCATABLE = {"cpu": "64", "memory": "256Gi", "pods": "250", "ephemeral-storage": "1Ti"}
STAGE_SECONDS = 1.0
"""Virtual seconds that a Pod takes to start, and to end; a node plays them in ticks of this length, at its phase."""
PHASES = 10
"""How many different phases the nodes have."""

ClientOf = Callable[[str], Client]


class VirtualNode(Protocol):
    """What a run needs of a node."""

    async def start(self, tasks: Tasks) -> None:
        """Register and go on in `tasks`."""
        ...


class StagesNode:
    """No kubelet and no runtime: a Pod of this node is Running and Ready after a tick; one that is being deleted is
    removed (grace 0, with its uid) after a tick. So do KWOK's stages pod-ready and pod-delete. With `last_status` its
    containers are reported as terminated first, as a kubelet does: one write more for each life."""

    def __init__(self, world: World, number: int, client_of: ClientOf, *, last_status: bool) -> None:
        self._world = world
        self._last_status = last_status
        self._name = f"node-{number}"
        self._ip = f"172.18.{number // 250}.{number % 250 + 1}"
        self._subnet = f"10.{number // 250}.{number % 250}"
        self._next_ip = 0
        self._phase = number % PHASES * STAGE_SECONDS / PHASES
        self._client = client_of(f"node:{self._name}")
        self._pods = Informer(self._client, PODS, field_selector=f"spec.nodeName={self._name}", world=world)
        self._pods.add_handler(self._seen, lambda _, new: self._seen(new), self._gone)
        self._due: deque[Object] = deque()
        self._ticking = False
        self._stages: dict[str, str] = {}
        self._tasks: Tasks

    async def start(self, tasks: Tasks) -> None:
        self._tasks = tasks
        config = NodeConfig(
            name=self._name,
            ip=self._ip,
            pod_cidr=f"{self._subnet}.0/24",
            kubelet_port=10250,
            kubernetes_version="1.36",
            capacity=ALLOCATABLE,
            allocatable=ALLOCATABLE,
            boot_id=self._name,
            system_uuid=self._name,
        )
        status = NodeStatusManager(world=self._world, client=self._client, config=config, not_ready=lambda: "")
        await status.register()
        tasks.spawn(status.run(), name=f"{self._name} status")
        tasks.spawn(self._pods.run(), name=f"{self._name} pods")

    def _seen(self, pod: Object) -> None:
        uid, stage = uid_of(pod), "end" if is_terminating(pod) else "start"
        if self._stages.get(uid) != stage:
            self._stages[uid] = stage
            self._later(pod)

    def _gone(self, pod: Object) -> None:
        self._stages.pop(uid_of(pod), None)

    def _later(self, pod: Object) -> None:
        self._due.append(pod)
        if not self._ticking:
            self._ticking = True
            self._tasks.spawn(self._tick(), name=f"{self._name} tick")

    async def _tick(self) -> None:
        """Everything that was seen before the tick is played in it."""
        past = (self._world.clock.monotonic_ns() / 1e9 - self._phase) % STAGE_SECONDS
        await self._world.clock.sleep(STAGE_SECONDS + (STAGE_SECONDS - past if past else 0.0))
        due, self._due = self._due, deque()
        self._ticking = False
        for pod in due:
            try:
                if is_terminating(pod):
                    await self._end(pod)
                else:
                    await self._run(pod)
            except StatusError as error:
                if not is_not_found(error) and not is_conflict(error):
                    raise

    async def _run(self, pod: Object) -> None:
        latest = self._pods.get(namespace_of(pod), name_of(pod))
        if latest is None or uid_of(latest) != uid_of(pod) or is_terminating(latest):
            return
        self._next_ip = self._next_ip % 253 + 1
        await self._write(pod, running(pod, f"{self._subnet}.{self._next_ip}", self._ip, self._moment()))

    async def _end(self, pod: Object) -> None:
        latest = self._pods.get(namespace_of(pod), name_of(pod))
        if latest is None or uid_of(latest) != uid_of(pod):
            return
        if self._last_status and (latest.get("status") or {}).get("phase") == "Running":
            await self._write(pod, ended(latest, self._moment()))
        await self._client.delete(PODS, name_of(pod), namespace_of(pod), grace_period_seconds=0, uid=uid_of(pod))

    async def _write(self, pod: Object, status: Object) -> None:
        patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
        await self._client.patch(PODS, name_of(pod), patch, namespace_of(pod), subresource="status")

    def _moment(self) -> str:
        return rfc3339_now(self._world.clock)


def _conditions(pod: Object, values: dict[str, tuple[str, str]], moment: str) -> list[Any]:
    """The Pod's conditions with `values` (status, reason) of this node's own in front."""
    others = [each for each in pod["status"].get("conditions") or () if each["type"] not in values]
    own = []
    for kind, (value, reason) in values.items():
        condition = {
            "type": kind,
            "observedGeneration": pod["metadata"].get("generation", 0),
            "status": value,
            "lastProbeTime": None,
            "lastTransitionTime": moment,
        }
        own.append({**condition, "reason": reason} if reason else condition)
    return [*own, *others]


def running(pod: Object, ip: str, host_ip: str, moment: str) -> Object:
    """Return the status of a Pod all of whose containers run."""
    true = ("True", "")
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    return {
        "phase": "Running",
        "observedGeneration": pod["metadata"].get("generation", 0),
        "conditions": _conditions(pod, dict.fromkeys(kinds, true), moment),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": moment,
        "containerStatuses": [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": f"{each['image']}@sha256:0",
                "containerID": f"stages://{uid_of(pod)}/{each['name']}",
                "state": {"running": {"startedAt": moment}},
                "lastState": {},
                "ready": True,
                "started": True,
                "restartCount": 0,
            }
            for each in pod["spec"]["containers"]
        ],
    }


def ended(pod: Object, moment: str) -> Object:
    """Return the last status of a Pod whose containers stopped by themselves when they were asked to."""
    old = pod["status"]
    done, failed = ("True", "PodCompleted"), ("False", "PodCompleted")
    values = {"Initialized": done, "Ready": failed, "ContainersReady": failed}
    return {
        "phase": "Succeeded",
        "conditions": _conditions(pod, values, moment),
        "containerStatuses": [
            {
                **each,
                "state": {
                    "terminated": {
                        "exitCode": 0,
                        "reason": "Completed",
                        "startedAt": each["state"]["running"]["startedAt"],
                        "finishedAt": moment,
                        "containerID": each["containerID"],
                    }
                },
                "ready": False,
                "started": False,
            }
            for each in old["containerStatuses"]
        ],
    }
