"""The volume manager: what a Pod mounts is there before its containers start and gone after they have ended.

Source: volumemanager/volume_manager.go, with its reconciler's back-off per volume. Directories, under `root`:

    pods/<uid>/volumes/kubernetes.io~<plugin>/<volume>   pods/<uid>/volume-subpaths/<volume>/<container>/<index>
    pods/<uid>/containers/<name>/<attempt>               the termination log
    pods/<uid>/etc-hosts, etc-hostname, resolv.conf

and an emptyDir that is on disk in `<uid>/<volume>` of another root (`disk.py`).
"""

# check: allow asyncio.to_thread because blocking work on files of the host runs off the event loop
# check: observes because it mounted and unmounted the volumes

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import Object, name_of, uid_of
from lastcall.kube.api.text.go_notation import go_list, go_quote
from lastcall.kube.client.api import Client
from lastcall.kube.cri.api import DNSConfig, Mount
from lastcall.kube.node.interfaces import EventRecorder, VolumeError
from lastcall.kube.node.pods.spec import all_containers_of, image_volumes_of
from lastcall.kube.node.pods.termination_message import DEFAULT_PATH, MAX_FILE_BYTES, read_at_most
from lastcall.kube.node.volumes.atomic_writer import write_payload
from lastcall.kube.node.volumes.claims import NotProcessed, claimed_volume, path_of
from lastcall.kube.node.volumes.disk import VolumesOnDisk
from lastcall.kube.node.volumes.downward import field_value
from lastcall.kube.node.volumes.holders import MOST_HOLDERS, holders_of
from lastcall.kube.node.volumes.host_volumes import check_host_path, set_up_empty_dir
from lastcall.kube.node.volumes.nested import nested_mount_points
from lastcall.kube.node.volumes.orphans import orphaned, take_down, tell, unmount_below
from lastcall.kube.node.volumes.pod_files import ClusterDNS, dns_config_of, hostname_of, hosts_file, resolv_conf
from lastcall.kube.node.volumes.sources import Files, PodTokens, VolumeSources
from lastcall.kube.node.volumes.subpath import bind_sub_path
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world import crash_guard, linux
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.remove_tree import remove_tree
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.volumes import Volume
    from lastcall.records.definitions.kubelet_end import VolumeBusy, VolumesUnmounted
    from lastcall.records.definitions.kubelet_start import VolumeFailed, VolumesMounted

log = logging.getLogger(__name__)

MOUNT_TIMEOUT = 123.0
"""Seconds one sync waits for its volumes (2 m 3 s)."""
BACKOFF_INITIAL, BACKOFF_MAX = 0.5, 122.0
"""Seconds between tries of one failing volume, doubling."""
REFRESH_SECONDS = 60.0
"""A mounted volume's sources are read again no sooner than this after the last time."""
MANY_FILES = 64
"""A volume with more entries than this is removed in a thread."""

CONTENT = ("configMap", "secret", "downwardAPI", "projected")
PLUGINS = {
    "emptyDir": "empty-dir",
    "configMap": "configmap",
    "secret": "secret",
    "downwardAPI": "downward-api",
    "projected": "projected",
}
CLAIMS = ("persistentVolumeClaim", "ephemeral")


@dataclass(slots=True)
class _PodVolumes:
    mounted: dict[str, Path] = field(default_factory=dict)
    read_only: set[str] = field(default_factory=set)
    tokens: PodTokens = field(default_factory=PodTokens)
    prefetched: dict[str, asyncio.Task[Files | VolumeError]] = field(default_factory=dict)
    backoff: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    refreshed_at: float = 0.0
    refreshing: bool = False


class HostVolumeManager:
    """Implements `interfaces.VolumeManager` on the node's file system under `root`."""

    def __init__(
        self,
        *,
        world: World,
        tasks: Tasks,
        client: Client,
        events: EventRecorder,
        recorder: Recorder,
        root: Path,
        node_name: str,
        allocatable: dict[str, str] | None = None,
        cluster_dns: ClusterDNS | None = None,
        node_hosts: Callable[[], str] = lambda: "127.0.0.1\tlocalhost\n",
        may_mount: bool = True,
        disk: VolumesOnDisk | None = None,
    ) -> None:
        """`may_mount` False: containers do not see what is mounted here, only what is written. `disk` None: all volumes
        are below `root`."""
        self._world = world
        self._tasks = tasks
        self._events = events
        self._recorder = recorder
        self._root = root
        self._may_mount = may_mount
        self._disk = disk
        self._node_name = node_name
        self._dns = cluster_dns or ClusterDNS()
        self._node_hosts = node_hosts
        self._sources = VolumeSources(client, world.clock, allocatable or {})
        self._pods: dict[str, _PodVolumes] = {}

    # Mounting

    def prepare(self, pod: Pod) -> None:
        known = self._known(pod)
        for volume in self._used_volumes(pod):
            name = volume["name"]
            if _kind(volume) in CONTENT and name not in known.mounted and name not in known.prefetched:
                known.prefetched[name] = self._tasks.spawn(
                    self._fetch(pod, volume, known), name=f"volume-{uid_of(pod)}-{name}"
                )

    async def wait_for_attach_and_mount(self, pod: Pod) -> None:
        known = self._known(pod)
        pending = [volume for volume in self._used_volumes(pod) if volume["name"] not in known.mounted]
        if not pending:
            self._refresh_later(pod, known)
            return
        volumes = await self._claimed(pod, pending)
        self._pod_dir(pod).mkdir(parents=True, exist_ok=True)
        try:
            async with asyncio.timeout(MOUNT_TIMEOUT), Tasks() as tasks:
                for volume in pending:
                    tasks.spawn(self._mount_until_done(pod, volume, known, volumes), name=f"mount-{volume['name']}")
        except TimeoutError:
            missing = [volume["name"] for volume in pending if volume["name"] not in known.mounted]
            raise VolumeError(
                f"unmounted volumes={go_list(missing)}, unattached volumes=[], "
                "failed to process volumes=[]: context deadline exceeded"
            ) from None
        known.refreshed_at = monotonic(self._world.clock)
        facts: VolumesMounted = {"volumes": [volume["name"] for volume in self._used_volumes(pod)]}
        self._recorder.record(
            kinds.VOLUMES_MOUNTED, pod_uid=uid_of(pod), rule=rules.WAIT_FOR_ATTACH_AND_MOUNT, facts=facts
        )

    async def _claimed(self, pod: Pod, pending: list[Volume]) -> dict[str, Object]:
        """The PersistentVolumes of the Pod's volumes that are claims. Raises VolumeError when one is not ready."""
        found: dict[str, Object] = {}
        errors: dict[str, str] = {}
        known = self._known(pod)
        for name in [volume["name"] for volume in pending if _kind(volume) in CLAIMS]:
            try:
                found[name], read_only = await claimed_volume(self._sources.client, pod, name)
            except NotProcessed as error:
                errors[name] = str(error)
            else:
                known.read_only |= {name} if read_only else set()
        if errors:
            raise VolumeError(
                f"unmounted volumes={go_list([volume['name'] for volume in pending])}, unattached volumes=[], "
                f"failed to process volumes={go_list(list(errors))}: {'; '.join(errors.values())}"
            )
        return found

    async def _mount_until_done(self, pod: Pod, volume: Volume, known: _PodVolumes, claimed: dict[str, Object]) -> None:
        name = volume["name"]
        while True:
            try:
                if name in claimed:
                    known.mounted[name] = path_of(claimed[name])
                else:
                    known.mounted[name] = await self._set_up(pod, volume, known)
            except VolumeError as error:
                shown = go_quote(name_of(claimed[name]) if name in claimed else name)
                self._events.event(
                    pod, "Warning", "FailedMount", f"MountVolume.SetUp failed for volume {shown} : {error}"
                )
                if known.errors.get(name) != str(error):
                    known.errors[name] = str(error)
                    facts: VolumeFailed = {"volume": name, "error": str(error)}
                    self._recorder.record(
                        kinds.VOLUME_FAILED, pod_uid=uid_of(pod), rule=rules.WAIT_FOR_ATTACH_AND_MOUNT, facts=facts
                    )
            else:
                known.backoff.pop(name, None)
                return
            delay = known.backoff.get(name, BACKOFF_INITIAL)
            known.backoff[name] = min(delay * 2, BACKOFF_MAX)
            await self._world.clock.sleep(delay)

    async def _set_up(self, pod: Pod, volume: Volume, known: _PodVolumes) -> Path:
        """Mount one volume. Raises VolumeError."""
        kind = _kind(volume)
        if kind == "hostPath":
            return check_host_path(volume["hostPath"])
        if kind == "image":
            return Path()  # the runtime mounts it; the image is there before its containers are made
        if kind not in PLUGINS:
            raise VolumeError(
                f"volume type {kind} is not supported by lastcall; "
                "use persistentVolumeClaim, ephemeral, emptyDir, hostPath, configMap, secret, downwardAPI, projected "
                "or image"
            )
        directory: Path = self._pod_dir(pod) / "volumes" / f"kubernetes.io~{PLUGINS[kind]}" / volume["name"]
        fs_group = _fs_group(pod)
        try:
            if kind == "emptyDir":
                if self._disk is not None and self._disk.takes(pod, volume["emptyDir"] or {}):
                    directory = self._disk.root / uid_of(pod) / volume["name"]
                set_up_empty_dir(directory, volume["emptyDir"] or {}, fs_group, may_mount=self._may_mount)
                return directory
            files = await self._fetched(pod, volume, known)
            write_payload(directory, files, self._world.clock.wall_ns(), fs_group)
            for inner in nested_mount_points(pod, volume["name"]):
                with suppress(FileExistsError):
                    (directory / inner).mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            raise VolumeError(error.strerror or str(error)) from None
        except ValueError as error:
            raise VolumeError(str(error)) from None
        return directory

    async def _fetched(self, pod: Pod, volume: Volume, known: _PodVolumes) -> Files:
        early = known.prefetched.pop(volume["name"], None)
        files = await early if early is not None else await self._fetch(pod, volume, known)
        if isinstance(files, VolumeError):
            raise files
        return files

    async def _fetch(self, pod: Pod, volume: Volume, known: _PodVolumes) -> Files | VolumeError:
        """Never raises: a prefetch that fails must not end the node."""
        try:
            return await self._sources.files(pod, volume, known.tokens)
        except VolumeError as error:
            return error
        except Exception as error:
            crash_guard.caught("kubelet volumes", f"{uid_of(pod)}/{volume['name']}", error)
            return VolumeError(crash_guard.text_of(error))

    def _refresh_later(self, pod: Pod, known: _PodVolumes) -> None:
        age = monotonic(self._world.clock) - known.refreshed_at
        content = [v for v in self._used_volumes(pod) if _kind(v) in CONTENT]
        if content and age >= REFRESH_SECONDS and not known.refreshing:
            known.refreshing = True
            known.refreshed_at = monotonic(self._world.clock)
            refresh = crash_guard.guarded("kubelet volumes", uid_of(pod), self._refresh(pod, content, known))
            self._tasks.spawn(refresh, name=f"refresh-{uid_of(pod)}")

    async def _refresh(self, pod: Pod, volumes: list[Volume], known: _PodVolumes) -> None:
        """Bring new contents of ConfigMaps, Secrets and tokens in; on any failure the old files stay."""
        try:
            for volume in volumes:
                files = await self._fetch(pod, volume, known)
                directory = known.mounted.get(volume["name"])
                if directory is None or self._pods.get(uid_of(pod)) is not known:
                    return
                if isinstance(files, VolumeError):
                    log.warning("volume %s of pod %s not refreshed: %s", volume["name"], uid_of(pod), files)
                    continue
                try:
                    write_payload(directory, files, self._world.clock.wall_ns(), _fs_group(pod))
                except (OSError, ValueError) as error:
                    log.warning("volume %s of pod %s not refreshed: %s", volume["name"], uid_of(pod), error)
        finally:
            known.refreshing = False

    # What a container sees

    def mounts(
        self, pod: Pod, container: Container, pod_ips: tuple[str, ...], *, attempt: int = 0
    ) -> tuple[Mount, ...]:
        directory = self._pod_dir(pod)
        known = self._known(pod)
        images = image_volumes_of(pod)
        # Of these nobody may write (their plugins' GetAttributes; kubelet_pods.go:makeMounts).
        contents = {volume["name"] for volume in pod["spec"].get("volumes") or [] if _kind(volume) in CONTENT}
        mounts: list[Mount] = []
        for index, mount in enumerate(container.get("volumeMounts") or []):
            volume = known.mounted.get(mount["name"])
            if volume is None:
                raise VolumeError(
                    f"cannot find volume {go_quote(mount['name'])} to mount into container "
                    f"{go_quote(container['name'])}"
                )
            sub_path = mount.get("subPath") or self._expand(pod, container, mount.get("subPathExpr") or "")
            if (image := images.get(mount["name"])) is not None:
                mounts.append(Mount(mount["mountPath"], "", True, image, sub_path))
                continue
            if sub_path:
                place = directory / "volume-subpaths" / mount["name"] / container["name"] / str(index)
                volume = bind_sub_path(volume, sub_path, place, may_mount=self._may_mount)
            read_only = bool(mount.get("readOnly")) or mount["name"] in known.read_only | contents
            mounts.append(Mount(mount["mountPath"], str(volume), read_only))
        taken = {mount.container_path for mount in mounts}
        files = {
            "/etc/hosts": ("etc-hosts", hosts_file(pod, pod_ips, self._node_hosts(), self._dns.domain)),
            "/etc/hostname": ("etc-hostname", self.hostname(pod) + "\n"),
            "/etc/resolv.conf": ("resolv.conf", resolv_conf(self.dns_config(pod))),
        }
        for path, (name, text) in files.items():
            if path not in taken:
                _write(directory / name, text)
                mounts.append(Mount(path, str(directory / name)))
        message_path = container.get("terminationMessagePath") or DEFAULT_PATH
        if message_path not in taken:
            file = self._termination_log(uid_of(pod), container["name"], attempt)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
            file.chmod(0o666)
            mounts.append(Mount(message_path, str(file)))
        return tuple(mounts)

    def owners_can_be_mapped(self, pod: Pod) -> bool:
        claims = [volume["name"] for volume in pod["spec"].get("volumes") or () if _kind(volume) in CLAIMS]
        own = os.stat(self._root).st_dev if claims else 0
        paths = [path for name, path in self._known(pod).mounted.items() if name in claims]
        mapped = self._disk.mapped if self._disk is not None else ()
        try:
            return all(path.stat().st_dev == own or path.parent in mapped for path in paths)
        except OSError:
            return False

    def dns_config(self, pod: Pod) -> DNSConfig:
        return dns_config_of(pod, self._dns)

    def hostname(self, pod: Pod) -> str:
        return hostname_of(pod, self._node_name)

    def read_termination_message(self, pod_uid: str, container_name: str, attempt: int) -> str:
        file = self._termination_log(pod_uid, container_name, attempt)
        return read_at_most(file, MAX_FILE_BYTES).decode("utf-8", "replace")

    def _expand(self, pod: Pod, container: Container, expression: str) -> str:
        """subPathExpr by the container's literal and fieldRef variables. Raises VolumeError for an unknown one."""
        out = expression
        for variable in container.get("env") or []:
            reference = f"$({variable['name']})"
            if reference in out:
                field_ref = (variable.get("valueFrom") or {}).get("fieldRef")
                value = field_value(pod, field_ref["fieldPath"]) if field_ref else variable.get("value", "")
                out = out.replace(reference, value)
        if "$(" in out:
            raise VolumeError(f"missing value for {go_quote(expression)}")
        return out

    # Unmounting

    async def wait_for_unmount(self, pod: Pod) -> None:
        """Unmount every volume of the Pod; its termination logs stay until the Pod is forgotten."""
        uid = uid_of(pod)
        began = monotonic(self._world.clock)
        known = self._pods.pop(uid, None)
        for task in (known.prefetched if known else {}).values():
            task.cancel()
        names: list[str] = []
        claimed = {volume["name"] for volume in pod["spec"].get("volumes") or () if _kind(volume) in CLAIMS}
        directory = self._root / "pods" / uid
        if (directory / "volume-subpaths").exists():
            unmount_below(str(directory / "volume-subpaths"))
            await self._remove(directory / "volume-subpaths")
        on_disk = [] if self._disk is None else [self._disk.root / uid]
        for plugin in (*_entries(directory / "volumes"), *on_disk):
            for volume in _entries(plugin):
                names.append(volume.name)
                if volume.is_mount():
                    await self._unmount(uid, volume)
                await self._remove(volume)
        for each in on_disk:
            with suppress(FileNotFoundError):
                each.rmdir()
        if known is not None:  # nothing of these is below the Pod's directory
            names += [name for name in known.mounted if name in claimed]
        seconds = monotonic(self._world.clock) - began
        facts: VolumesUnmounted = {"volumes": sorted(names), "seconds": seconds}
        self._recorder.record(kinds.VOLUMES_UNMOUNTED, pod_uid=uid, rule=rules.WAIT_FOR_UNMOUNT, facts=facts)

    async def _unmount(self, uid: str, volume: Path) -> None:
        """Raises OSError, after a record of who holds it when it is busy: the Pod waits for them."""
        try:
            linux.umount2(str(volume), linux.UMOUNT_NOFOLLOW)
        except OSError as error:
            if error.errno == errno.EBUSY:
                holders = await asyncio.to_thread(holders_of, str(volume))
                facts: VolumeBusy = {
                    "volume": volume.name,
                    "error": error.strerror,
                    "holders": [
                        {"pid": each.pid, "name": each.name, "how": each.how, "path": each.path}
                        for each in holders[:MOST_HOLDERS]
                    ],
                    "more": max(0, len(holders) - MOST_HOLDERS),
                }
                self._recorder.record(kinds.VOLUME_BUSY, pod_uid=uid, rule=rules.WAIT_FOR_UNMOUNT, facts=facts)
            raise

    async def remove_orphans(self, known_uids: set[str]) -> None:
        """Remove the directories of Pods that nobody knows any more (kubelet_volumes.go:cleanupOrphanedPodDirs)."""
        errors = []
        for pods in (self._root / "pods", *([] if self._disk is None else [self._disk.root])):
            for uid in orphaned(str(pods), known_uids | set(self._pods)):
                big = _count(pods / uid, MANY_FILES) >= MANY_FILES
                error = await asyncio.to_thread(take_down, str(pods), uid) if big else take_down(str(pods), uid)
                if error:
                    errors.append(error)
        tell(errors)
        for uid in [uid for uid in self._pods if uid not in known_uids]:
            for task in self._pods.pop(uid).prefetched.values():
                task.cancel()

    async def _remove(self, directory: Path) -> None:
        """Remove a tree; a big one in a thread, so that nobody waits for it on the loop."""
        if _count(directory, MANY_FILES) < MANY_FILES:
            remove_tree(str(directory))
        else:
            await asyncio.to_thread(remove_tree, str(directory))

    def _known(self, pod: Pod) -> _PodVolumes:
        return self._pods.setdefault(uid_of(pod), _PodVolumes())

    def _pod_dir(self, pod: Pod) -> Path:
        return self._root / "pods" / uid_of(pod)

    def _termination_log(self, uid: str, container: str, attempt: int) -> Path:
        return self._root / "pods" / uid / "containers" / container / str(attempt)

    def _used_volumes(self, pod: Pod) -> list[Volume]:
        """Volumes that some container mounts (desired_state_of_world_populator.go skips the others)."""
        used = {m["name"] for c in all_containers_of(pod) for m in c.get("volumeMounts") or []}
        return [volume for volume in pod["spec"].get("volumes") or [] if volume["name"] in used]


def _kind(volume: Volume) -> str:
    return next((key for key in volume if key != "name"), "emptyDir")


def _fs_group(pod: Pod) -> int | None:
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    return None if group is None else int(group)


def _write(path: Path, text: str) -> None:
    """Write in place: containers have the inode mounted."""
    data = text.encode()
    try:
        if path.read_bytes() == data:
            return
    except OSError:
        path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o644)


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _count(directory: Path, limit: int) -> int:
    """Entries of a tree, counted up to `limit`."""
    total = 0
    for _, directories, files in os.walk(directory):
        total += len(directories) + len(files)
        if total >= limit:
            return limit
    return total
