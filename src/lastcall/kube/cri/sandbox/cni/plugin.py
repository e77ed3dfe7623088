"""Runs one CNI plugin: no shell, few variables, a time limit, and a lock that it keeps when this process dies."""

import asyncio
import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lastcall.kube.cri.sandbox.cni.rules import CNIError, failure
from lastcall.world.clock import monotonic
from lastcall.world.world import World

PLUGIN_SECONDS = 60.0
"""How long a plugin may take. The kubelet gives a whole RunPodSandbox four minutes."""
_KILLED_SECONDS = 5.0
_LOCK_PAUSE = 0.01
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Plugins start iptables, ipset and the like."""


class Plugins:
    """The executables of some directories."""

    def __init__(self, world: World, bin_dirs: tuple[str, ...], seconds: float = PLUGIN_SECONDS) -> None:
        self._world = world
        self.bin_dirs = bin_dirs
        self._seconds = seconds

    def find(self, name: str) -> str:
        """Return the path of a plugin. Raises CNIError. Source: libcni pkg/invoke/find.go:FindInPath."""
        for directory in self.bin_dirs:
            path = os.path.join(directory, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        raise CNIError(f'failed to find plugin "{name}" in path [{" ".join(self.bin_dirs)}]')

    async def run(self, name: str, variables: dict[str, str], stdin: bytes, lock: int = -1) -> bytes:
        """Run a plugin and return its answer. Raises CNIError. If cancelled or too slow, the plugin is dead afterwards.

        `lock` is a descriptor that the plugin keeps open as long as it lives.
        """
        path = self.find(name)
        try:
            process = await asyncio.create_subprocess_exec(
                path,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={"PATH": _PATH, **variables},
                cwd="/",
                pass_fds=() if lock < 0 else (lock,),
                start_new_session=True,
            )
        except OSError as error:
            raise CNIError(f"netplugin cannot be started: {error}") from error
        try:
            async with asyncio.timeout(self._seconds):
                stdout, stderr = await process.communicate(stdin)
        except TimeoutError:
            raise CNIError(f"netplugin did not end within {self._seconds:g} s and was killed") from None
        finally:
            # Also what it left running of its own, when it had to be ended.
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_KILLED_SECONDS):
                        await process.wait()
        code = process.returncode
        if code:
            ended = f"signal: {signal.strsignal(-code) or -code}".lower() if code < 0 else f"exit status {code}"
            raise failure(ended, stdout, stderr)
        return stdout

    async def lock(self, fd: int) -> None:
        """Wait until no plugin that an earlier node process started for the same sandbox is alive.

        At most as long as a plugin may take: one that left a daemon behind must not hold up the next call forever.
        """
        deadline = monotonic(self._world.clock) + self._seconds
        while monotonic(self._world.clock) < deadline:
            with suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            await self._world.clock.sleep(_LOCK_PAUSE)


@contextmanager
def lock_file(path: str) -> Iterator[int]:
    """Open a file to lock; yield its descriptor."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)
