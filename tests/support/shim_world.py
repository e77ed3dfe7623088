"""A small cluster without a cluster: namespaces as init makes them, a shim, a runtime, and a test inside.

`@inside` on `async def test_…(world: ShimWorld)` makes it a test that runs as every user it can, in a process that is
PID 1 of namespaces of its own: when it ends the kernel ends all of it, so no test can leave anything behind.
"""

import asyncio
import contextlib
import functools
import importlib.util
import json
import os
import signal
import stat
import subprocess
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE, until

sys.path.insert(0, str(Path(__file__).parent))

from ordinary_user import USERS, command_prefix, skip_without_newuidmap

from lastcall.kube.cri.api import (
    ContainerConfig,
    ContainerMetadata,
    ContainerState,
    ContainerStatus,
    NamespaceOption,
    PodSandboxConfig,
    PodSandboxMetadata,
    RuntimeServiceError,
)
from lastcall.kube.cri.sandbox.cgroups.place import make_place
from lastcall.kube.cri.sandbox.runtime import SandboxRuntime
from lastcall.kube.cri.sandbox.spec import ImageConfig, RootFilesystem
from lastcall.records.record import Record
from lastcall.records.ring import Ring, RingReader
from lastcall.world import linux
from lastcall.world.id_maps import write_id_maps
from lastcall.world.world import World

STATE = "/mnt"
APPLETS = "sh sleep cat echo ls id true false touch mkdir rm env kill ps hostname mount test readlink tr seq head stat"
NAMESPACES = (
    linux.CLONE_NEWUSER
    | linux.CLONE_NEWNS
    | linux.CLONE_NEWPID
    | linux.CLONE_NEWNET
    | linux.CLONE_NEWIPC
    | linux.CLONE_NEWUTS
)


class Images:
    """One image, `busybox`, and whatever a test adds."""

    def __init__(self) -> None:
        self.layer = Path(STATE, "image")
        (self.layer / "bin").mkdir(parents=True)
        Path(self.layer, "bin/busybox").write_bytes(Path("/bin/busybox").read_bytes())
        Path(self.layer, "bin/busybox").chmod(0o755)
        for applet in APPLETS.split():
            Path(self.layer, "bin", applet).symlink_to("busybox")
        for name in ("etc", "tmp", "proc", "lower"):
            Path(self.layer, name).mkdir()
        Path(self.layer, "etc/passwd").write_text(
            "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001:app:/home/app:/bin/sh\n"
        )
        Path(self.layer, "etc/group").write_text("root:x:0:\napp:x:1001:\nextra:x:1002:app\n")
        Path(self.layer, "lower/file").write_text("from the image\n")
        self.known = {"busybox": RootFilesystem((str(self.layer),), (), ImageConfig(cmd=("sh",)), "sha256:busybox")}

    def busybox_with(self, *applets: str) -> None:
        """More of busybox's programs in the image."""
        for applet in applets:
            Path(self.layer, "bin", applet).symlink_to("busybox")

    def rootfs(self, image: str) -> RootFilesystem:
        if image not in self.known:
            raise RuntimeServiceError(f"no image {image}", "ImageNotFound")
        return self.known[image]


class NoNetwork:
    """Hands out addresses and remembers them."""

    def __init__(self) -> None:
        self.attached: dict[str, str] = {}
        self.error: RuntimeServiceError | None = None

    async def status(self) -> str:
        return ""

    async def attach(self, sandbox_id: str, netns_fd: int, pod_uid: str, config: object = None) -> str:
        if self.error:
            raise self.error
        assert stat.S_ISREG(os.fstat(netns_fd).st_mode)
        self.attached[sandbox_id] = f"10.244.0.{len(self.attached) + 2}"
        return self.attached[sandbox_id]

    async def adopt(self, sandbox_id: str, ip: str, config: object = None) -> None:
        self.attached[sandbox_id] = ip

    async def detach(self, sandbox_id: str, ip: str) -> None:
        if self.error:
            raise self.error
        self.attached.pop(sandbox_id, None)


class ShimWorld:
    """What a test gets. `config` makes container configurations, `record` finds records of the shim's ring."""

    def __init__(self, shim_pid: int, ring: Ring) -> None:
        self.shim_pid = shim_pid
        self.ring = ring
        self.images = Images()
        self.network = NoNetwork()
        self.world = World()
        self._reader = RingReader(ring)
        self.records: list[Record] = []
        self.runtime = self.new_runtime()
        self.sandbox_config = PodSandboxConfig(
            PodSandboxMetadata("p", "uid-1", "default"), hostname="p", log_directory=f"{STATE}/logs"
        )

    def new_runtime(self) -> SandboxRuntime:
        return SandboxRuntime(self.world, self, f"{STATE}/shim.sock", f"{STATE}/containers", self.images, self.network)

    def record(self, *arguments: object, **more: Any) -> str:
        return ""

    async def sandbox(self, **options: Any) -> str:
        config = self.sandbox_config
        if options:
            config = self.sandbox_config = replace(config, namespace_options=NamespaceOption(**options))
        return await self.runtime.run_pod_sandbox(config)

    def config(self, *command: str, name: str = "c", **more: Any) -> ContainerConfig:
        return ContainerConfig(ContainerMetadata(name), "busybox", command=command, log_path=f"{name}/0.log", **more)

    async def create(self, sandbox: str, *command: str, **more: Any) -> str:
        return await self.runtime.create_container(sandbox, self.config(*command, **more), self.sandbox_config)

    async def start(self, sandbox: str, *command: str, **more: Any) -> str:
        """Create and start, and wait until its program has begun."""
        container = await self.create(sandbox, *command, **more)
        await self.runtime.start_container(container)
        await self.until(lambda: self._has_begun(container))
        return container

    def _has_begun(self, container: str) -> bool:
        """The runtime hears of an execve while the kernel is still at it: there is no command line until it is done."""
        started = [each for each in self.find("ProcessStarted") if each.facts["containerId"] == container]
        try:
            process = Path("/proc", str(started[-1].facts["pid"]))
            return bool((process / "cmdline").read_bytes()) or " Z " in (process / "stat").read_text()
        except OSError:
            return True  # it has ended

    async def ended(self, container: str, seconds: float = 60.0) -> ContainerStatus:
        async def status() -> ContainerStatus | None:
            found = await self.runtime.container_status(container)
            return found if found.state == ContainerState.CONTAINER_EXITED else None

        found = await until(status, f"the end of {container}", seconds, pause=0.002)
        assert found is not None
        return found

    async def run(self, *command: str, **more: Any) -> tuple[ContainerStatus, str]:
        """Start a container in a new sandbox and wait: its status, and its output without the log's prefixes."""
        container = await self.start(await self.sandbox(), *command, **more)
        status = await self.ended(container)
        return status, self.output(status)

    def output(self, status: ContainerStatus, stream: str = "") -> str:
        whole, _, _ = Path(status.log_path).read_bytes().rpartition(b"\n")  # the last line may be in the making
        lines = whole.decode().splitlines()
        parts = [line.split(" ", 3) for line in lines]
        return "\n".join(part[3] for part in parts if not stream or part[1] == stream)

    async def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        await until(condition, seconds=seconds, pause=0.002)

    async def printed(self, container: str, text: str) -> None:
        """Wait until the container's output holds `text`."""
        status = await self.runtime.container_status(container)
        await self.until(lambda: Path(status.log_path).exists() and text in self.output(status))

    def find(self, kind: str) -> list[Record]:
        self.records += self._reader.read_new()
        return [record for record in self.records if record.kind == kind]

    def sequence(self) -> list[str]:
        self.find("")
        return [record.kind for record in self.records]

    def processes(self) -> dict[int, str]:
        """Every living process of this PID namespace but its PID 1 and the shim, with its command line.

        One that is just executing its program has none yet, and is not among them; one that was killed is, until the
        kernel lets it end. So wait for what must be there or must be gone, but for what a call says it waited for.
        """
        found = {}
        for name in os.listdir("/proc"):
            if name.isdecimal() and int(name) not in (1, self.shim_pid):
                with contextlib.suppress(OSError):
                    found[int(name)] = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return {pid: command for pid, command in found.items() if command}


Scenario = Callable[[ShimWorld], Awaitable[None]]


def inside(scenario: Scenario) -> Callable[[str], None]:
    """See the module's docstring."""
    return inside_as(USERS)(scenario)


def inside_as(users: list[str]) -> Callable[[Scenario], Callable[[str], None]]:
    """`inside`, as these of `ordinary_user.EVERY_USER`."""
    return lambda scenario: _inside(scenario, users)


def _inside(scenario: Scenario, users: list[str]) -> Callable[[str], None]:
    @pytest.mark.real_kernel
    @pytest.mark.parametrize("user", users)
    def test(user: str) -> None:
        skip_without_newuidmap(user)
        path = sys.modules[scenario.__module__].__file__
        command = [*command_prefix(user), sys.executable, __file__, str(path), scenario.__name__]
        environment = {**os.environ, "LASTCALL_TEST_USER": user}
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=240 * PATIENCE, check=False, env=environment
        )
        assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"

    marked: Any = functools.update_wrapper(test, scenario)
    del marked.__wrapped__
    marked.scenario = scenario
    wrapped: Callable[[str], None] = marked
    return wrapped


# -- the other side ----------------------------------------------------------------------------------------------------


def main(path: str, name: str) -> int:
    ready, go = os.pipe()
    uid, gid = os.getuid(), os.getgid()
    place = make_place("test")
    pid = linux.clone3(NAMESPACES)
    if pid == 0:
        os.close(go)
        code = 1
        try:
            with open(ready) as told:
                os.environ["LASTCALL_TEST_CGROUPS"] = told.read()
            code = _as_init(path, name)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    write_id_maps(pid, uid, gid)
    place.settle(pid)
    place.create()
    os.write(go, json.dumps(place.facts()).encode())
    os.close(go)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if place.remove() else 99


def _as_init(path: str, name: str) -> int:
    linux.set_parent_death_signal(signal.SIGKILL)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    linux.mount("state", STATE, "tmpfs", 0, "mode=755")
    linux.bring_up_loopback()
    os.chdir("/")
    os.umask(0o022)
    ring = Ring.create("shim-ring")
    shim_pid = start_shim(ring)
    spec = importlib.util.spec_from_file_location("scenario", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["scenario"] = module
    spec.loader.exec_module(module)
    asyncio.run(_run(getattr(module, name).scenario, shim_pid, ring))
    return 0


def start_shim(ring: Ring) -> int:
    os.makedirs(f"{STATE}/shim", 0o700, exist_ok=True)
    pid = os.fork()
    if pid == 0:
        try:
            os.set_inheritable(ring.fd, True)
            import lastcall

            program = Path(lastcall.__file__).parent / "kube/cri/sandbox/shim/__main__.py"
            options = ["--socket", f"{STATE}/shim.sock", "--state", f"{STATE}/shim", "--ring-fd", str(ring.fd)]
            options += ["--cgroups", os.environ["LASTCALL_TEST_CGROUPS"]]
            os.execv(sys.executable, [sys.executable, "-I", "-S", str(program), *options])
        finally:
            os._exit(70)
    return pid


async def _run(scenario: Callable[[ShimWorld], Awaitable[None]], shim_pid: int, ring: Ring) -> None:
    world = ShimWorld(shim_pid, ring)
    await world.until(lambda: os.path.exists(f"{STATE}/shim.sock"))  # it may be slow; a runtime waits 10 s
    started = time.monotonic()
    try:
        await scenario(world)
    except BaseException:
        print(f"after {time.monotonic() - started:.3f} s; records:")
        world.find("")
        for record in world.records:
            print(" ", record.kind, record.container, record.facts)
        print("processes:", world.processes())
        frame = sys.exc_info()[2]
        assert frame is not None
        while frame.tb_next:
            frame = frame.tb_next
        print("locals:", {name: repr(value)[:300] for name, value in frame.tb_frame.f_locals.items()})
        raise
    await world.runtime.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
