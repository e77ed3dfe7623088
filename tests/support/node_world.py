"""A node in virtual time: the real kubelet on a simulated runtime, against a small API server in memory."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fake_api import FakeAPI, ListRecorder
from waiting import until

from lastcall.kube.api.meta import AnyObject, copy_object
from lastcall.kube.api.resources import PODS
from lastcall.kube.cri.simulated import Durations, SimulatedRuntime
from lastcall.kube.cri.simulated_dialer import SimulatedDialer
from lastcall.kube.cri.simulated_images import SimulatedImage
from lastcall.kube.cri.simulated_program import Programs
from lastcall.kube.node.interfaces import DialError, HTTPResponse
from lastcall.kube.node.kubelet import Kubelet, KubeletConfig
from lastcall.kube.node.parts.common import Given
from lastcall.kube.node.volumes.simulated import SimulatedVolumeManager
from lastcall.world.clock import now, rfc3339
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

INSTANT = Durations(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass
class ListEvents:
    """Keeps Events in a list."""

    world: World
    events: list[dict[str, Any]] = field(default_factory=list)

    def event(self, obj: AnyObject, event_type: str, reason: str, message: str, *, field_path: str = "") -> None:
        self.events.append(
            {
                "at": self.world.clock.monotonic_ns() / 1e9,
                "uid": obj["metadata"]["uid"],
                "type": event_type,
                "reason": reason,
                "message": message,
                "path": field_path,
            }
        )

    def reasons(self) -> list[str]:
        return [event["reason"] for event in self.events]

    def of(self, reason: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["reason"] == reason]


class Node:
    """What a scenario holds. `at` times are virtual seconds since the beginning."""

    def __init__(
        self,
        world: World,
        api: FakeAPI,
        runtime: SimulatedRuntime,
        recorder: ListRecorder,
        events: ListEvents,
        dialer: SimulatedDialer[HTTPResponse],
        volumes: SimulatedVolumeManager,
        version: str,
    ) -> None:
        self.world = world
        self.api = api
        self.runtime = runtime
        self.recorder = recorder
        self.events = events
        self.dialer = dialer
        self.volumes = volumes
        self.version = version
        self.tasks: Tasks
        self.kubelet: Kubelet
        self._running: Any = None

    @property
    def now(self) -> float:
        return self.world.clock.monotonic_ns() / 1e9

    def start_kubelet(self, **options: Any) -> None:
        self.kubelet = Kubelet(
            Given(
                world=self.world,
                client=self.api,
                runtime=self.runtime,
                images=self.runtime,
                volumes=self.volumes,
                dialer=self.dialer,
                recorder=self.recorder,
                events=self.events,
                config=KubeletConfig("node-1", "172.18.0.2", self.version, "/nonexistent/pods"),
                **options,
            )
        )
        self._running = self.tasks.spawn(self.kubelet.run(), name="kubelet")

    async def stop_kubelet(self) -> None:
        """As `kill -9` would: whatever it did is cut off."""
        self._running.cancel()
        await self.sleep(0.0)
        while not self._running.done():
            await self.sleep(0.001)

    async def sleep(self, seconds: float) -> None:
        await self.world.clock.sleep(seconds)

    def create(self, name: str = "p", **spec: Any) -> dict[str, Any]:
        annotations = spec.pop("annotations", None)
        body = {"terminationGracePeriodSeconds": 30, "restartPolicy": "Always", "nodeName": "node-1"}
        metadata: dict[str, Any] = {"name": name, "namespace": "default"}
        if annotations:
            metadata["annotations"] = annotations
        return self.api.put(PODS, {"metadata": metadata, "spec": {**body, **spec}, "status": {"phase": "Pending"}})

    def pod(self, name: str = "p") -> dict[str, Any] | None:
        return self.api.objects.get(("pods", "default", name))

    def delete(self, name: str = "p", grace: int | None = None) -> None:
        """What the API server does with a DELETE that is graceful."""
        stored = self.pod(name)
        assert stored is not None, name
        pod = copy_object(stored)
        period = pod["spec"]["terminationGracePeriodSeconds"] if grace is None else grace
        pod["metadata"]["deletionTimestamp"] = rfc3339(now(self.world.clock))
        pod["metadata"]["deletionGracePeriodSeconds"] = period
        pod["metadata"]["generation"] = pod["metadata"].get("generation", 1) + 1
        self.api.put(PODS, pod)

    def force_delete(self, name: str = "p") -> None:
        """gracePeriodSeconds 0 is two writes: MODIFIED with grace 0, then DELETED."""
        self.delete(name, 0)
        self.api.remove(PODS, name, "default")

    async def until(self, condition: Callable[[], Any], limit: float = 600.0) -> None:
        await until(condition, seconds=limit)

    async def until_running(self, name: str = "p") -> None:
        await self.until(lambda: (self.pod(name) or {}).get("status", {}).get("phase") == "Running")

    async def until_gone(self, name: str = "p", limit: float = 600.0) -> None:
        await self.until(lambda: self.pod(name) is None, limit)

    def records(self, kind: str, container: str = "") -> list[dict[str, Any]]:
        return [r for r in self.recorder.records if r["kind"] == kind and container in ("", r["container"])]

    def signals(self, container: str = "") -> list[tuple[float, str]]:
        return [(r["at"], r["facts"]["signal"]) for r in self.records("SignalSent", container)]

    def last_status(self, name: str = "p") -> dict[str, Any]:
        """The last stored status, also of a Pod that is gone."""
        states = [obj for _, _, resource, obj, _ in self.api.history if resource == PODS]
        status: dict[str, Any] = [obj for obj in states if obj["metadata"]["name"] == name][-1]["status"]
        return status


def on_node(
    scenario: Callable[[Node], Awaitable[Any]],
    programs: Programs,
    *,
    version: str = "1.36",
    images: Mapping[str, SimulatedImage] | None = None,
    durations: Durations = INSTANT,
    seed: int = 0,
    start: bool = True,
) -> Any:
    """Run `scenario(node)` in a fresh virtual world."""

    async def main(world: World) -> Any:
        api, recorder, events = FakeAPI(world), ListRecorder(world), ListEvents(world)
        async with SimulatedRuntime(world, recorder, programs, images=images, durations=durations) as runtime:
            dialer = SimulatedDialer(world, runtime, response=HTTPResponse, error=DialError)
            volumes = SimulatedVolumeManager(world=world, recorder=recorder, events=events)
            node = Node(world, api, runtime, recorder, events, dialer, volumes, version)
            async with Tasks() as tasks:
                node.tasks = tasks
                if start:
                    node.start_kubelet()
                    await node.sleep(0.5)
                try:
                    return await scenario(node)
                finally:
                    tasks.cancel()

    return run_virtual(main, seed=seed)


def container(name: str = "app", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox:1.36", **more}


def pre_stop(handler: dict[str, Any]) -> dict[str, Any]:
    return {"lifecycle": {"preStop": handler}}


def exec_hook(*command: str) -> dict[str, Any]:
    return {"exec": {"command": list(command)}}
