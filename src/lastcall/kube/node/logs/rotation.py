"""Container log rotation. Sources: logs/container_log_manager.go, apis/config/v1beta1/defaults.go.

A log that has grown to `max_size` is renamed to `<n>.log.<YYYYMMDD-HHMMSS>` and the runtime opens a new one; what was
rotated before is compressed to `.gz`, and the oldest go, so that at most `max_files` are there. Beyond the kubelet's
look every 10 s the runtime may say that a log is full (`full`): the logs lie in memory here, and a container which
writes without end is not to fill it until the next look.
"""

# check: allow asyncio.to_thread because blocking work on files of the host runs off the event loop

import asyncio
import gzip
import logging
import os
import shutil
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.cri.api import ContainerState, RuntimeService, RuntimeServiceError
from lastcall.world import crash_guard
from lastcall.world.clock import now
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

MONITOR_SECONDS = 10.0
"""containerLogMonitorInterval."""
SAME_SECOND = 0.1
"""Seconds until a full log is looked at again that cannot be rotated twice within one second of the clock."""
COMPRESSED, TEMPORARY = ".gz", ".tmp"

log = logging.getLogger(__name__)

Compress = Callable[[str], Awaitable[None]]
"""Turns the file `path` into `path`.gz. Raises OSError; nothing new is left then."""


@dataclass(frozen=True, slots=True)
class ContainerLogPolicy:
    """`max_size` in bytes (containerLogMaxSize), 0 for no rotation; `max_files` counts the log itself
    (containerLogMaxFiles). Raises ValueError."""

    max_size: int = 10 << 20
    max_files: int = 5

    def __post_init__(self) -> None:
        if self.max_files < 2:
            raise ValueError(f"containerLogMaxFiles: {self.max_files} must be greater than 1")


def parse_log_policy(max_size: str, max_files: int) -> ContainerLogPolicy:
    """Parse KubeletConfiguration's values; a size below 0 means no rotation. Raises ValueError."""
    try:
        size = parse_quantity(max_size).whole
    except ValueError as error:
        raise ValueError(f"containerLogMaxSize: {max_size!r} is not a quantity such as 10Mi ({error})") from None
    if size == 0:
        raise ValueError(f"containerLogMaxSize: {max_size!r} must not be 0; a negative one turns rotation off")
    return ContainerLogPolicy(max(0, size), max_files)


@dataclass(frozen=True, slots=True)
class Rotation:
    """What is done before a log is renamed: files to remove, then files to compress."""

    remove: tuple[str, ...]
    compress: tuple[str, ...]


def plan_rotation(rotated: Sequence[str], max_files: int) -> Rotation:
    """Plan a rotation. `rotated` are the names beside the log that begin with its name and a dot.

    Left-overs of a compression that was interrupted are removed, and what a compression has finished with; then the
    oldest, so that `max_files` - 2 are left beside the log that is rotated now and the new one; these are compressed.
    Source: container_log_manager.go:{filterUnusedLogs,removeExcessLogs,compressLog}.
    """
    names = sorted(rotated)
    unused = [n for n in names if n.endswith(TEMPORARY) or f"{n}{COMPRESSED}" in names]
    used = [n for n in names if n not in unused]
    excess = used[: max(0, len(used) - max(0, max_files - 2))]
    kept = used[len(excess) :]
    return Rotation((*unused, *excess), tuple(n for n in kept if not n.endswith(COMPRESSED)))


class ContainerLogManager:
    """`run` until cancelled; `full(container id)` asks for a look at one log now."""

    def __init__(
        self,
        *,
        world: World,
        runtime: RuntimeService,
        policy: ContainerLogPolicy,
        log_root: str,
        compress: Compress | None = None,
    ) -> None:
        self._world = world
        self._runtime = runtime
        self._policy = policy
        self._log_root = log_root
        self._compress = compress or compress_in_thread
        self._full: dict[str, None] = {}
        self._wake = asyncio.Event()

    def full(self, container_id: str) -> None:
        """Note that a log has reached `max_size`, as the runtime sees it."""
        self._full[container_id] = None
        self._wake.set()

    async def run(self) -> None:
        """Check all logs every 10 s, and full ones at once."""
        if not self._policy.max_size:
            return
        while True:
            await self._look_at_all()
            deadline = self._world.clock.monotonic_ns() + int(MONITOR_SECONDS * 1e9)
            while (left := deadline - self._world.clock.monotonic_ns()) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(left / 1e9):
                        await self._wake.wait()
                self._wake.clear()
                await self._look_at_full()

    async def _look_at_all(self) -> None:
        try:
            os.stat(self._log_root)  # without it there are no logs
            containers = await self._runtime.list_containers()
        except OSError:
            return
        except RuntimeServiceError as error:
            log.warning("logs are not rotated: %s", error)
            return
        for container in containers:
            if container.state == ContainerState.CONTAINER_RUNNING and container.log_path:
                with crash_guard.Turn("kubelet container logs", container.id):
                    await self._process(container.id, container.log_path)

    async def _look_at_full(self) -> None:
        full, self._full = self._full, {}
        for container_id in full:
            try:
                status = await self._runtime.container_status(container_id)
            except RuntimeServiceError:
                continue
            if status.state == ContainerState.CONTAINER_RUNNING and status.log_path:
                with crash_guard.Turn("kubelet container logs", container_id):
                    await self._process(container_id, status.log_path)

    async def _process(self, container_id: str, path: str) -> None:
        """container_log_manager.go:processContainer."""
        try:
            try:
                size = os.stat(path, follow_symlinks=False).st_size
            except FileNotFoundError:
                await self._runtime.reopen_container_log(container_id)
                size = os.stat(path, follow_symlinks=False).st_size
            if size >= self._policy.max_size:
                await self.rotate(container_id, path)
        except (OSError, RuntimeServiceError) as error:
            log.warning("the log %s of container %s is not rotated: %s", path, container_id, error)

    async def rotate(self, container_id: str, path: str) -> None:
        """Rotate a log once. Raises OSError, RuntimeServiceError; then the log is where it was."""
        directory, name = os.path.split(path)
        plan = plan_rotation([n for n in os.listdir(directory) if n.startswith(f"{name}.")], self._policy.max_files)
        for each in plan.remove:
            os.unlink(f"{directory}/{each}")
        for each in plan.compress:
            await self._compress(f"{directory}/{each}")
        while _exists(rotated := f"{path}.{now(self._world.clock):%Y%m%d-%H%M%S}") or _exists(rotated + COMPRESSED):
            await self._world.clock.sleep(SAME_SECOND)
        os.rename(path, rotated)
        try:
            await self._runtime.reopen_container_log(container_id)
        except BaseException:
            with suppress(OSError):
                os.rename(rotated, path)  # so that it is tried again
            raise


def _exists(path: str) -> bool:
    return os.path.lexists(path)


async def compress_in_thread(path: str) -> None:
    """Compress a log with gzip, as the kubelet does. Raises OSError."""
    await asyncio.to_thread(compress_log, path)


def compress_log(path: str) -> None:
    """Compress `path` into `path`.gz by way of `path`.tmp (container_log_manager.go:compressLog). Raises OSError."""
    temporary = path + TEMPORARY
    try:
        source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(source, "rb") as plain, gzip.open(temporary, "wb", compresslevel=1) as packed:
            os.chmod(temporary, os.fstat(source).st_mode & 0o777)
            shutil.copyfileobj(plain, packed, 1 << 20)
        os.rename(temporary, path + COMPRESSED)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    os.unlink(path)
