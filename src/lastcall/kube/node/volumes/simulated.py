"""Volumes of the virtual world: nothing is mounted, everything takes virtual time."""

# check: predicts because what it records happened in no kernel

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.text.go_notation import go_list, go_quote
from lastcall.kube.cri.api import DNSConfig, Mount
from lastcall.kube.node.interfaces import EventRecorder, VolumeError
from lastcall.kube.node.volumes.manager import BACKOFF_INITIAL, BACKOFF_MAX, MOUNT_TIMEOUT
from lastcall.kube.node.volumes.pod_files import ClusterDNS, dns_config_of, hostname_of
from lastcall.records import kinds
from lastcall.records.record import Recorder
from lastcall.world.clock import monotonic
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod
    from lastcall.records.definitions.kubelet_end import VolumesUnmounted
    from lastcall.records.definitions.kubelet_start import VolumesMounted


class SimulatedVolumeManager:
    """Implements `interfaces.VolumeManager` without a file system.

    `failures` maps a volume name to the text of its FailedMount (the volume never mounts while it is there);
    `messages` maps (pod uid, container name, attempt) to a termination message. Both may be changed at any time.
    """

    def __init__(
        self,
        *,
        world: World,
        recorder: Recorder,
        events: EventRecorder,
        mount_seconds: float = 0.0,
        unmount_seconds: float = 0.0,
        failures: Mapping[str, str] | None = None,
    ) -> None:
        self._world = world
        self._recorder = recorder
        self._events = events
        self.mount_seconds = mount_seconds
        self.unmount_seconds = unmount_seconds
        self.failures: dict[str, str] = dict(failures or {})
        self.messages: dict[tuple[str, str, int], str] = {}
        self.mounted: dict[str, list[str]] = {}

    def prepare(self, pod: Pod) -> None:
        return

    async def wait_for_attach_and_mount(self, pod: Pod) -> None:
        names = [volume["name"] for volume in pod["spec"].get("volumes") or []]
        if uid_of(pod) in self.mounted:
            return
        deadline = monotonic(self._world.clock) + MOUNT_TIMEOUT
        await self._world.clock.sleep(self.mount_seconds)
        delay = BACKOFF_INITIAL
        while failing := [name for name in names if name in self.failures]:
            for name in failing:
                text = f"MountVolume.SetUp failed for volume {go_quote(name)} : {self.failures[name]}"
                self._events.event(pod, "Warning", "FailedMount", text)
            if monotonic(self._world.clock) + delay > deadline:
                raise VolumeError(
                    f"unmounted volumes={go_list(failing)}, unattached volumes=[], "
                    "failed to process volumes=[]: context deadline exceeded"
                )
            await self._world.clock.sleep(delay)
            delay = min(delay * 2, BACKOFF_MAX)
        self.mounted[uid_of(pod)] = names
        if names:
            facts: VolumesMounted = {"volumes": names}
            self._recorder.record(kinds.VOLUMES_MOUNTED, pod_uid=uid_of(pod), facts=facts, evidence="predicted")

    def mounts(
        self, pod: Pod, container: Container, pod_ips: tuple[str, ...], *, attempt: int = 0
    ) -> tuple[Mount, ...]:
        return ()

    def owners_can_be_mapped(self, pod: Pod) -> bool:
        return True

    def dns_config(self, pod: Pod) -> DNSConfig:
        return dns_config_of(pod, ClusterDNS())

    def hostname(self, pod: Pod) -> str:
        return hostname_of(pod, pod["spec"].get("nodeName", "node-1"))

    async def wait_for_unmount(self, pod: Pod) -> None:
        await self._world.clock.sleep(self.unmount_seconds)
        names = self.mounted.pop(uid_of(pod), [])
        facts: VolumesUnmounted = {"volumes": names, "seconds": self.unmount_seconds}
        self._recorder.record(kinds.VOLUMES_UNMOUNTED, pod_uid=uid_of(pod), facts=facts, evidence="predicted")

    async def remove_orphans(self, known_uids: set[str]) -> None:
        for uid in [uid for uid in self.mounted if uid not in known_uids]:
            del self.mounted[uid]

    def read_termination_message(self, pod_uid: str, container_name: str, attempt: int) -> str:
        return self.messages.get((pod_uid, container_name, attempt), "")
