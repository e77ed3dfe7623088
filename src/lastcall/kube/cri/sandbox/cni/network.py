"""The Pod network of one node by CNI plugins: `spec.Network` for the sandbox runtime.

A sandbox's network namespace gets a path, a bind mount in the cluster's mount namespace: it lives as long as the
plugins need it, also when the shim, which has it as a descriptor, or this process dies. The input of an ADD is on disk
before, so whatever dies in between is undone by the next node process (`collect`).
"""

# check: allow asyncio.to_thread because a thread enters the network namespace

import asyncio
import logging
import os
import threading
from contextlib import suppress
from dataclasses import replace

from lastcall.kube.cri.api import PodSandboxConfig, PodSandboxMetadata, RuntimeServiceError
from lastcall.kube.cri.sandbox.cni.attachments import Attachments
from lastcall.kube.cri.sandbox.cni.chain import Chain
from lastcall.kube.cri.sandbox.cni.conf import CNIConfigError, NetworkConfiguration, load
from lastcall.kube.cri.sandbox.cni.plugin import PLUGIN_SECONDS, Plugins, lock_file
from lastcall.kube.cri.sandbox.cni.rules import (
    Attachment,
    CNIError,
    addresses,
    pod_args,
    pod_capability_args,
)
from lastcall.kube.cri.sandbox.network import write_sysctl
from lastcall.world import crash_guard, linux
from lastcall.world.clock import monotonic
from lastcall.world.world import World

DEFAULT_BIN_DIRS = ("/opt/cni/bin", "/usr/lib/cni")
"""Where plugins are put by hand, and where Debian and its children have them."""
STATUS_SECONDS = 5.0
"""How old an answer to STATUS may be: runtimes are asked for their status with many Pods."""
RETRY_SECONDS = 10.0
"""Between two tries to delete what nobody asks for any more."""
_PORT_START = "net.ipv4.ip_unprivileged_port_start"

log = logging.getLogger(__name__)


def conf_dir_of(directory: str, node: str) -> str:
    """Return a node's own directory, where there is one named like it, else the one for all."""
    own = os.path.join(directory, node)
    return own if os.path.isdir(own) else directory


class CNINetwork:
    """`adopt` whatever the runtime knows, then `collect`; the runtime writes the records."""

    def __init__(
        self,
        world: World,
        conf_dir: str,
        directory: str,
        *,
        bin_dirs: tuple[str, ...] = DEFAULT_BIN_DIRS,
        records_dir: str = "",
        durable: bool = False,
        pod_cidr: str = "",
        plugin_seconds: float = PLUGIN_SECONDS,
    ) -> None:
        """`directory` is for the paths of network namespaces, `records_dir` (`directory` when empty) for what a next
        process has to know. `plugin_seconds` is each plugin's time limit.
        """
        self._world = world
        self._conf_dir = conf_dir
        self._netns_dir = f"{directory}/netns"
        self._attachments = Attachments(records_dir or f"{directory}/attachments", durable=durable)
        self._attachments.load()
        self._plugins = Plugins(world, bin_dirs, plugin_seconds)
        self._chain = Chain(self._plugins)
        self._pod_cidr = pod_cidr
        # Known to the runtime, which will ask for their end; all others are ours to delete.
        self._wanted: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._status: tuple[float, str] | None = None

    async def attach(self, sandbox_id: str, netns_fd: int, pod_uid: str, config: PodSandboxConfig | None = None) -> str:
        """Run ADD; return the Pod's address. Raises RuntimeServiceError; then what was added is deleted again.

        After a cancelled call `run` deletes it.
        """
        known = self._attachments.find(sandbox_id)
        if known is not None and known.result is not None:
            return addresses(known.result)[0]
        if config is None:
            config = PodSandboxConfig(PodSandboxMetadata("", pod_uid, ""))
        self._wanted[sandbox_id] = None
        try:
            return await self._add(sandbox_id, netns_fd, config)
        except asyncio.CancelledError:
            self._wanted.pop(sandbox_id, None)
            self._wake.set()
            raise
        except (CNIError, CNIConfigError, OSError) as error:
            await self._undo(sandbox_id)
            raise RuntimeServiceError(f'failed to setup network for sandbox "{sandbox_id}": {error}') from error

    async def _add(self, sandbox_id: str, netns_fd: int, config: PodSandboxConfig) -> str:
        network = load(self._conf_dir)
        attachment = Attachment(
            sandbox_id,
            f"{self._netns_dir}/{sandbox_id}",
            network,
            await self._chain.version(network),
            pod_args(sandbox_id, config),
            pod_capability_args(config, self._pod_cidr),
        )
        self._attachments.save(attachment)
        _give_path(netns_fd, attachment.netns)
        if _PORT_START not in config.sysctls:
            # containerd 2 enable_unprivileged_ports: a container without capabilities may listen on port 80.
            await asyncio.to_thread(_write_sysctl, netns_fd, _PORT_START, "0")
        with lock_file(self._attachments.lock_path(sandbox_id)) as lock:
            await self._plugins.lock(lock)
            result = await self._chain.add(attachment, lock)
        found = addresses(result, attachment.ifname)
        if not found:
            raise CNIError(f'failed to find network info for sandbox "{sandbox_id}": no plugin gave it an address')
        self._attachments.save(replace(attachment, result=result))
        return found[0]

    async def _undo(self, sandbox_id: str) -> None:
        """After an ADD that failed. What cannot be deleted now is tried again by `run`."""
        self._wanted.pop(sandbox_id, None)
        attachment = self._attachments.find(sandbox_id)
        if attachment is not None:
            await self._delete_or_tell(attachment)

    async def adopt(self, sandbox_id: str, ip: str, config: PodSandboxConfig | None = None) -> None:
        """Keep a sandbox that an earlier node process attached."""
        self._wanted[sandbox_id] = None

    async def detach(self, sandbox_id: str, ip: str = "") -> None:
        """Run DEL. Unknown, or deleted already, is a success. Raises RuntimeServiceError; repeat it then."""
        attachment = self._attachments.find(sandbox_id)
        if attachment is None:
            self._wanted.pop(sandbox_id, None)  # never attached, or deleted by a process that died then
            return
        if sandbox_id not in self._wanted:
            return  # `run` sees to it
        try:
            await self._delete(attachment)
        except (CNIError, OSError) as error:
            raise RuntimeServiceError(f'failed to destroy network for sandbox "{sandbox_id}": {error}') from error
        self._wanted.pop(sandbox_id, None)

    async def _delete(self, attachment: Attachment) -> None:
        identity = attachment.container_id
        with lock_file(self._attachments.lock_path(identity)) as lock:
            await self._plugins.lock(lock)
            if self._attachments.find(identity) is None:
                return  # another task was quicker
            await self._chain.delete(attachment, lock)
        _take_path(attachment.netns)
        self._attachments.forget(identity)

    async def _delete_or_tell(self, attachment: Attachment) -> None:
        try:
            await self._delete(attachment)
        except (CNIError, OSError) as error:
            log.warning("the network of sandbox %s cannot be destroyed yet: %s", attachment.container_id, error)

    async def collect(self) -> None:
        """Delete what belongs to no sandbox; then tell the plugins which attachments do (GC, from 1.1). Never raises.

        Once, when everything that the runtime knows has been adopted.
        """
        await self._delete_unwanted()
        valid = [each for each in self._attachments.all() if each.container_id in self._wanted]
        try:
            network = load(self._conf_dir)
            await self._chain.collect(network, await self._chain.version(network), valid)
        except (CNIError, CNIConfigError, OSError) as error:
            log.warning("CNI garbage collection: %s", error)

    async def run(self) -> None:
        """Run `collect`, and retry what could not be deleted, until cancelled."""
        await self.collect()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            await self._delete_unwanted()

    async def _delete_unwanted(self) -> None:
        for attachment in self._attachments.all():
            if attachment.container_id not in self._wanted:
                with crash_guard.Turn("CNI", attachment.container_id):
                    await self._delete_or_tell(attachment)

    async def status(self) -> str:
        """Return why no Pod could be attached, "" if one could; at most `STATUS_SECONDS` old."""
        now = monotonic(self._world.clock)
        if self._status is None or now - self._status[0] >= STATUS_SECONDS:
            self._status = now, await self._ask_status()
        return self._status[1]

    async def _ask_status(self) -> str:
        try:
            network = load(self._conf_dir)
            await self._chain.status(network, await self._chain.version(network))
        except (CNIError, CNIConfigError, OSError) as error:
            return str(error)
        return ""


def check(conf_dir: str, bin_dirs: tuple[str, ...] = DEFAULT_BIN_DIRS) -> NetworkConfiguration:
    """Return what a directory configures, with all its plugins there. Raises CNIConfigError."""
    network = load(conf_dir)
    plugins = Plugins(World(), bin_dirs)
    for plugin in network.plugins:
        ipam = plugin.get("ipam")
        try:
            plugins.find(plugin["type"])
            if isinstance(ipam, dict) and isinstance(ipam.get("type"), str):
                plugins.find(ipam["type"])  # the plugin will start it
        except CNIError as error:
            raise CNIConfigError(f"{network.file}: {error}") from error
    return network


def _give_path(netns_fd: int, path: str) -> None:
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    linux.mount(f"/proc/self/fd/{netns_fd}", path, None, linux.MS_BIND)


def _take_path(path: str) -> None:
    with suppress(OSError):
        linux.umount2(path, linux.MNT_DETACH)
    with suppress(FileNotFoundError):
        os.unlink(path)


def _write_sysctl(netns_fd: int, name: str, value: str) -> None:
    """In a thread of its own, which ends there: nobody else is ever in the Pod's network namespace."""
    errors: list[OSError] = []

    def write() -> None:
        try:
            linux.setns(netns_fd, linux.CLONE_NEWNET)
            write_sysctl(name.replace(".", "/"), value)
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=write, name="sysctl of a Pod")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
