"""A cluster that is none: the Client protocol in memory, and a node that writes what a script says."""

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_api import FakeAPI

from lastcall.kube.api.meta import copy_object
from lastcall.kube.api.resources import PODS
from lastcall.records import kinds as k
from lastcall.records.memory import MemoryRecorder
from lastcall.records.record import Record
from lastcall.world.clock import RealClock
from lastcall.world.world import World

STAGES = ("start", "connect", "node", "created", "deleted")


class _List(list[Record]):
    """Hands every record on as it comes."""

    def __init__(self, cluster: "FakeCluster") -> None:
        super().__init__()
        self._cluster = cluster

    def append(self, record: Record) -> None:
        super().append(record)
        for callback in self._cluster.on_records:
            callback(record)


class _API(FakeAPI):
    """Deletes as the real one does: marked first, removed when the node says so."""

    def __init__(self, cluster: "FakeCluster") -> None:
        super().__init__(World())
        self._cluster = cluster

    async def create(self, resource, obj, namespace="", **options):
        created = await super().create(resource, obj, namespace, **options)
        if resource == PODS:
            self._cluster.spawn(self._cluster.started(created))
        return created

    async def delete(self, resource, name, namespace="", *, grace_period_seconds=None, uid=None, **options):
        await self._called("delete", resource, name)
        pod = copy_object(self._existing(resource, name, namespace))
        grace = grace_period_seconds
        if grace is None:
            grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
        pod["metadata"] |= {"deletionTimestamp": "2030-01-01T00:00:30Z", "deletionGracePeriodSeconds": grace}
        pod = self.put(resource, pod)
        facts = {"gracePeriodSeconds": grace, "user": "admin", "resourceVersion": pod["metadata"]["resourceVersion"]}
        self._cluster.record("apiserver", k.DELETE_ACCEPTED, pod, **facts)
        self._cluster.spawn(self._cluster.ended(pod))
        return pod


@dataclass
class FakeCluster:
    """`ready` False leaves Pods Pending with `waiting`. `kill` ends them by SIGKILL. `interrupt_at` is a stage at which
    Ctrl-C comes, `die_at` one at which a process of the cluster dies, `fail_at` one that raises `error`."""

    ready: bool = True
    waiting: dict[str, str] = field(default_factory=dict)
    kill: bool = False
    hook: str = ""
    ends_by_itself: bool = False
    stuck: bool = False
    interrupt_at: str = ""
    die_at: str = ""
    death: tuple[int | None, int | None] = (None, signal.SIGKILL)
    words: str = ""
    hung: str = ""
    fail_at: str = ""
    error: Exception | None = None
    stopped: int = 0
    on_records: list[Callable[[Record], None]] = field(default_factory=list)
    on_deaths: list[Callable[..., None]] = field(default_factory=list)
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    client: Any = None

    def __post_init__(self) -> None:
        self._recorder = MemoryRecorder("front", RealClock(), records=_List(self))

    # -- what the command uses

    def at_start(self) -> "FakeCluster":
        self._stage("start")
        return self

    async def connect(self) -> None:
        self._stage("connect")
        self.client = _API(self)

    async def wait_node_ready(self) -> None:
        self._stage("node")
        await asyncio.sleep(0.01)  # virtual time

    def on_record(self, callback: Callable[[Record], None]) -> None:
        self.on_records.append(callback)

    def on_process_died(self, callback: Callable[..., None]) -> None:
        self.on_deaths.append(callback)

    def recorder(self, actor: str) -> MemoryRecorder:
        return self._recorder.for_actor(actor)

    def kubeconfig_path(self) -> str:
        return "/proc/1/fd/9"

    def why_it_hung(self, role: str) -> str:
        return self.hung

    def last_words(self, role: str, lines: int = 20) -> str:
        return self.words

    async def drain_records(self, seconds: float = 0.05) -> None:
        await asyncio.sleep(0)

    def stop(self) -> None:
        self.stopped += 1

    # -- what plays the node

    def spawn(self, coroutine) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(coroutine))

    def record(self, actor: str, kind: str, pod: dict, container: str = "", **facts: Any) -> None:
        self._recorder.for_actor(actor).record(kind, pod_uid=pod["metadata"]["uid"], container=container, facts=facts)

    async def started(self, pod: dict) -> None:
        await asyncio.sleep(0.005)  # virtual time
        self._stage("created")
        pod = copy_object(pod)
        name = pod["spec"]["containers"][0]["name"]
        pod["spec"]["nodeName"] = "node-1"
        if self.waiting:
            states = [{"name": name, "ready": False, "state": {"waiting": self.waiting}}]
            pod["status"] = {"phase": "Pending", "containerStatuses": states}
        elif self.ready:
            self.record("runtime", k.PROCESS_STARTED, pod, name, pid=7, containerPid=1, exe="/bin/busybox", argv=["sh"])
            pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        else:
            condition = {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "not yet"}
            pod["status"] = {"phase": "Pending", "conditions": [condition]}
        if self.ends_by_itself:
            self._exit(pod, name, 0)
            pod["status"] = {"phase": "Succeeded", "conditions": []}
        self.client.put(PODS, pod)

    async def ended(self, pod: dict) -> None:
        self._stage("deleted")
        name = pod["spec"]["containers"][0]["name"]
        if self.stuck:
            return
        if not self.ends_by_itself:
            if self.hook:
                self.record("kubelet", k.PRE_STOP_STARTED, pod, name, handler="exec", detail="true", budgetSeconds=30)
                facts = {"handler": "exec", "outcome": self.hook, "seconds": 0.01, "exitCode": 1}
                self.record("kubelet", k.PRE_STOP_FINISHED, pod, name, **facts)
            self.record("kubelet", k.STOP_REQUESTED, pod, name, timeoutSeconds=30, floor=False, deductedSeconds=0)
            self.record(
                "runtime", k.SIGNAL_SENT, pod, name, signal="SIGTERM", pid=7, containerPid=1, why="StopContainer"
            )
            await asyncio.sleep(0.01)  # virtual time
            if self.kill:
                self.record(
                    "runtime", k.SIGNAL_SENT, pod, name, signal="SIGKILL", pid=7, containerPid=1, why="grace over"
                )
            self._exit(pod, name, 137 if self.kill else 0)
        pod = copy_object(pod)
        pod["status"] = {"phase": "Failed" if self.kill else "Succeeded"}
        self.client.put(PODS, pod)
        self.client.remove(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])

    def _exit(self, pod: dict, name: str, code: int) -> None:
        self.record("runtime", k.PROCESS_EXITED, pod, name, pid=7, exitCode=code, signal=9 if code == 137 else None)

    def _stage(self, stage: str) -> None:
        assert stage in STAGES
        if self.interrupt_at == stage:
            os.kill(os.getpid(), signal.SIGINT)
        if self.die_at == stage:
            for callback in self.on_deaths:
                callback("node-1", 4, *self.death)
        if self.fail_at == stage and self.error is not None:
            raise self.error


POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
    - name: app
      image: busybox:1.36
      command: ["sleep", "600"]
"""


@pytest.fixture
def pod_file(tmp_path: Path) -> Path:
    path = tmp_path / "pod.yaml"
    path.write_text(POD)
    return path


@pytest.fixture
def new_cluster() -> type[FakeCluster]:
    return FakeCluster
