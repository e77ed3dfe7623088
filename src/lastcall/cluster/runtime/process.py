"""The runtime process: the sandbox runtime on a keeper's shim, with CNI, served as CRI v1 on a Unix socket."""

import asyncio
import errno
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from lastcall import __version__
from lastcall.cluster.egress.dial_out import DialOutError, dial_out
from lastcall.cluster.egress.host_credentials import host_credentials
from lastcall.cluster.runtime import keeper
from lastcall.cluster.runtime.pod_files import PodFilesOnDisk
from lastcall.cluster.runtime.streaming import StreamingServer
from lastcall.cluster.runtime.two import TwoRuntimes
from lastcall.cri.api import AuthConfig
from lastcall.cri.sandbox.cni.network import DEFAULT_BIN_DIRS, CNINetwork
from lastcall.cri.sandbox.images.exports import ImageStore, Pulls, Reference
from lastcall.cri.sandbox.images.layout import ImageLayout
from lastcall.cri.sandbox.images.way_out import DialError
from lastcall.cri.sandbox.runtime import SandboxRuntime
from lastcall.cri.v1.needs import Facts, Filesystem
from lastcall.cri.v1.server import add_to, new_server
from lastcall.cri.v1.service import Service
from lastcall.timeline.memory import NoRecorder
from lastcall.world import walls
from lastcall.world.id_maps import why_not_id_mapped
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

BRIDGE = "lastcall0"
SUBNET = "10.89.128.0/20"
KEEPER_SECONDS = 1.0
"""How often it is looked whether a keeper lives."""
STOP_SECONDS = 2.0
"""For calls that are under way when the process is told to end."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line asked for. Directories are absolute; "" for `cni_conf_dir` is a bridge of its own, for
    `image_store` the user's own store.
    """

    socket: str
    root: str
    cni_conf_dir: str = ""
    cni_bin_dir: str = ""
    image_store: str = ""


async def serve(settings: Settings, say: Callable[[str], None]) -> None:
    """Until cancelled. Containers go on running then; where there is no sandbox any more, nothing is left.

    Raises OSError, RuntimeServiceError.
    """
    world, root = World(), settings.root
    network = CNINetwork(
        world,
        settings.cni_conf_dir or _own_network(root),
        f"{root}/cni",
        bin_dirs=(settings.cni_bin_dir,) if settings.cni_bin_dir else DEFAULT_BIN_DIRS,
    )
    store = settings.image_store or None
    host = f"{root}/host"
    images = ImageStore(store, unpacked=f"{root}/images", pulls=_pulls(world), owned=True)
    ordinary = _sandbox_runtime(world, root, images, network)
    owners_unmapped = why_not_id_mapped(root)  # while this process has one thread
    tasks = Tasks()

    def keep(name: str, run: Callable[[], Coroutine[None, None, None]]) -> None:
        tasks.spawn(walls.keep_running(name, run, world.clock), name=name)

    async def start_host() -> SandboxRuntime:
        found = _sandbox_runtime(world, host, images, network, kind=keeper.HOST, beside=ordinary)
        await found.adopt()
        await found.status()
        keep("host's shim connection", found.run)
        keep("host's keeper", partial(_see_to_keeper, world, host, keeper.HOST))
        return found

    await ordinary.adopt()
    await ordinary.status()  # there is a shim
    runtime = TwoRuntimes(ordinary, start_host, owners_unmapped)
    streams, server = StreamingServer(runtime, world.clock), new_server()
    await streams.start()
    facts, files = Facts("lastcall", __version__), PodFilesOnDisk(root)
    add_to(server, Service(runtime, images, world.clock, facts, streams, _Disk((root, host)), files, runtime))
    try:
        async with tasks:
            if await asyncio.to_thread(os.path.isdir, f"{host}/records"):
                await runtime.host()  # its containers went on
            await files.keep_only({each.id for each in await runtime.list_pod_sandbox()})
            keep("shim connection", ordinary.run)
            keep("keeper", partial(_see_to_keeper, world, root, ""))
            keep("CNI", network.run)
            listen(server, settings.socket)
            await server.start()
            os.chmod(settings.socket, 0o600)
            say(f"serves CRI v1 on unix://{settings.socket}; state in {root}")
            await asyncio.Event().wait()
    finally:
        await server.stop(STOP_SECONDS)
        await streams.close()
        empty = not await runtime.list_pod_sandbox()
        await runtime.close()
        with suppress(FileNotFoundError):
            os.unlink(settings.socket)
        if empty:
            for directory in (root, host):
                await asyncio.to_thread(end_keeper, directory)


def _sandbox_runtime(
    world: World,
    root: str,
    images: ImageStore,
    network: CNINetwork,
    kind: str = "",
    beside: SandboxRuntime | None = None,
) -> SandboxRuntime:
    """With a keeper that lives. Raises OSError."""
    for directory in (root, f"{root}/images", f"{root}/containers"):  # a kubelet asks how full they are
        os.makedirs(directory, 0o711, exist_ok=True)
    _start_keeper(root, kind)
    return SandboxRuntime(
        world=world,
        recorder=NoRecorder(),
        shim_socket=keeper.socket_path(root),
        state_dir=f"{root}/containers",
        images=images,
        network=network,
        records_dir=f"{root}/records",
        durable=True,
        beside=beside,
    )


async def _see_to_keeper(world: World, root: str, kind: str) -> None:
    """Start another keeper when it was killed: its containers have ended then. Until cancelled."""
    while True:
        await world.clock.sleep(KEEPER_SECONDS)
        await asyncio.to_thread(_start_keeper, root, kind)


def listen(server: object, path: str) -> None:
    """Raises OSError for a path that something else serves, and for one that is not a socket."""
    if os.path.lexists(path):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EEXIST, "is not a socket", path)  # and connecting to it would be refused, too
        probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)  # of a process that was killed
        else:
            raise OSError(errno.EADDRINUSE, "another process serves it", path)
        finally:
            probe.close()
    mask = os.umask(0o177)
    try:
        server.add_insecure_port(f"unix://{path}")  # type: ignore[attr-defined]  # grpc.aio.Server
    finally:
        os.umask(mask)


def _start_keeper(root: str, kind: str) -> None:
    """Unless one lives. Raises OSError."""
    try:
        os.close(keeper.lock(root))
    except BlockingIOError:
        return
    with suppress(FileNotFoundError):
        os.unlink(keeper.socket_path(root))
    with open(f"{root}/keeper.log", "ab") as log:
        subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            [sys.executable, "-I", "-m", keeper.__name__, root, kind],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def end_keeper(root: str) -> None:
    """End the shim and all of its containers, and wait for it. Idempotent."""
    if not os.path.exists(keeper.lock_path(root)):
        return
    try:
        os.close(keeper.lock(root))
        return  # no keeper lives
    except BlockingIOError:
        pass
    with open(keeper.lock_path(root)) as file:
        pid = int(file.read())
    with suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        with suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
        os.close(pidfd)


def _own_network(root: str) -> str:
    """A directory with a bridge of our own: what is there stays, so that it can be edited."""
    directory = f"{root}/cni-conf"
    os.makedirs(directory, 0o755, exist_ok=True)
    ranges = [[{"subnet": SUBNET}]]
    routes = [{"dst": "0.0.0.0/0"}]
    ipam = {"type": "host-local", "dataDir": f"{root}/cni/addresses", "ranges": ranges, "routes": routes}
    plugins = [
        {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "ipMasq": True, "hairpinMode": True, "ipam": ipam},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    with suppress(FileExistsError), open(f"{directory}/10-lastcall.conflist", "x") as file:
        json.dump({"cniVersion": "0.4.0", "name": "lastcall", "plugins": plugins}, file, indent=1)
    return directory


class _Disk:
    """`lastcall.cri.v1.needs.Disk`."""

    def __init__(self, roots: tuple[str, str]) -> None:
        """The first has the images, too."""
        self._roots = roots

    async def images(self) -> Filesystem:
        return await asyncio.to_thread(_measure, f"{self._roots[0]}/images")

    async def containers(self) -> Filesystem:
        found = [await asyncio.to_thread(_measure, f"{root}/containers") for root in self._roots]
        used, inodes = sum(each.used_bytes for each in found), sum(each.inodes_used for each in found)
        return Filesystem(found[0].mountpoint, used, inodes)

    async def writable_layer(self, container_id: str) -> Filesystem | None:
        uppers = [f"{root}/containers/{container_id}/upper" for root in self._roots]
        return await asyncio.to_thread(_measure, next(filter(os.path.isdir, uppers), uppers[0]))


def _measure(directory: str) -> Filesystem:
    """As `du`: blocks that are taken, and files."""
    used = inodes = 0
    seen: set[tuple[int, int]] = set()
    for path, _, names in os.walk(directory):
        for name in ("", *names):
            with suppress(OSError):
                found = os.lstat(os.path.join(path, name))
                if (key := (found.st_dev, found.st_ino)) not in seen:
                    seen.add(key)
                    used, inodes = used + found.st_blocks * 512, inodes + 1
    try:
        there = os.statvfs(directory)
    except OSError:
        return Filesystem(directory, used, inodes)
    return Filesystem(directory, used, inodes, there.f_blocks * there.f_frsize, there.f_files, there.f_ffree)


class _WayOut:
    """`lastcall.cri.sandbox.images.way_out.WayOut` from this process."""

    async def dial(self, host: str, port: int, *, tls: bool) -> socket.socket:
        try:
            sock = await asyncio.to_thread(partial(dial_out, host, port, tls=tls))
        except DialOutError as error:
            raise DialError(str(error)) from None
        sock.setblocking(False)
        return sock

    async def credentials(self, repository: str) -> AuthConfig | None:
        return await asyncio.to_thread(host_credentials, repository)


def _pulls(world: World) -> Pulls:
    async def pull(layout: ImageLayout, reference: Reference, auth: AuthConfig | None) -> object:
        # late: for the first pull only
        from lastcall.cri.sandbox.images.pull import ImagePuller

        return await ImagePuller(world, layout, _WayOut()).pull(reference, auth)

    return pull
