"""kill -9 of the shim, or of its node, at any time: what was acknowledged is on record, and nothing half-made runs."""
# ruff: noqa: ASYNC222, ASYNC240 - a scenario has its process to itself

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from shim_world import STATE, ShimWorld, inside

from lastcall.kube.cri.api import ContainerState, RuntimeServiceError
from lastcall.kube.cri.sandbox.shim import messages
from lastcall.kube.cri.sandbox.shim.procfs import start_time
from lastcall.world.messages import Message

pytestmark = pytest.mark.core


def journal(identity: str) -> list[dict]:
    return [json.loads(line) for line in Path(STATE, "shim/processes", identity).read_text().splitlines()]


def first_line(pid: int, sandbox: str) -> dict:
    about = {"podUid": "uid-1", "container": "c", "sandboxId": sandbox}
    return {"pid": pid, "startTime": start_time(pid), **about}


class Dance(Message, verb="dance"):
    pass


class StartOfNothing(Message, verb="start"):
    pass


@inside
async def test_pid_start_time_and_exit_are_on_record_before_they_are_announced(world: ShimWorld):
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "sh", "-c", "trap 'exit 9' TERM; echo up; while true; do sleep 0.05; done")
    await world.printed(container, "up")
    pid = world.find("ProcessStarted")[0].facts["pid"]
    assert journal(container) == [first_line(pid, sandbox)]
    await world.runtime.stop_container(container, 30)
    (end,) = journal(container)[1:]
    finished_at = (await world.runtime.container_status(container)).finished_at
    assert end == {"exitCode": 9, "signal": "", "finishedAt": finished_at}


@inside
async def test_containers_outlive_the_shim_and_fall_to_init_which_learns_how_they_end(world: ShimWorld):
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "sh", "-c", "trap 'exit 9' TERM; echo up; while true; do sleep 0.05; done")
    await world.printed(container, "up")
    pid = world.find("ProcessStarted")[0].facts["pid"]
    stop = asyncio.create_task(world.runtime.exec_sync(container, ("sleep", "100"), 0))
    await world.until(lambda: world.find("ExecStarted"))
    exec_pid = world.find("ExecStarted")[0].facts["pid"]
    os.kill(world.shim_pid, signal.SIGKILL)
    os.waitpid(world.shim_pid, 0)
    with pytest.raises(RuntimeServiceError, match="connection to the shim is gone"):
        await stop
    assert (await world.runtime.container_status(container)).state == ContainerState.CONTAINER_UNKNOWN
    with pytest.raises(RuntimeServiceError):
        await world.runtime.stop_pod_sandbox(sandbox)
    await world.until(lambda: {pid, exec_pid} <= set(world.processes()))
    assert journal(container) == [first_line(pid, sandbox)]
    os.kill(pid, signal.SIGTERM)
    statuses = {}
    while len(statuses) < 2:
        ended, status = os.waitpid(-1, 0)
        statuses[ended] = os.waitstatus_to_exitcode(status)
    assert statuses == {pid: 9, exec_pid: -9}
    # What the shim recorded before its end is there, too.
    assert [r.facts["pid"] for r in world.find("ProcessStarted")] == [pid]


@inside
async def test_a_shim_killed_while_containers_start_leaves_only_processes_that_are_on_record(world: ShimWorld):
    sandbox = await world.sandbox()
    containers = [await world.create(sandbox, "sleep", "1000", name=f"c{number}") for number in range(12)]
    starts = [asyncio.create_task(world.runtime.start_container(container)) for container in containers]
    await asyncio.sleep(0.012)  # the starts are at different stages; any is right
    os.kill(world.shim_pid, signal.SIGKILL)
    os.waitpid(world.shim_pid, 0)
    await asyncio.wait(starts)
    # What was being set up ends by itself when it hears nothing of the shim, or has been told to go on.
    await world.until(lambda: set(world.processes().values()) <= {"sleep 1000 "})
    started = [container for container, start in zip(containers, starts, strict=True) if start.exception() is None]
    await world.until(lambda: {journal(each)[0]["pid"] for each in started} <= set(world.processes()))
    recorded = {entry[0]["pid"] for name in os.listdir(f"{STATE}/shim/processes") if (entry := journal(name))}
    left = world.processes()
    assert set(left) <= recorded, (left, recorded)
    assert set(left.values()) <= {"sleep 1000 "}, "nothing that was still being set up"


@inside
async def test_nonsense_on_the_socket_ends_that_connection_and_nothing_else(world: ShimWorld):
    import socket
    import struct

    container = await world.start(await world.sandbox(), "sleep", "100")
    for junk in (
        b"\xff" * 64,
        struct.pack("=II", 4, 0) + b"nope",
        struct.pack("=II", 2, 0) + b"[]",
        b"\x02\0\0\0\0\0\0\0{}",
    ):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(f"{STATE}/shim.sock")
            sock.sendall(junk)
            sock.settimeout(60)
            assert sock.recv(100) == b""
    with pytest.raises(RuntimeServiceError, match="unknown verb"):
        await world.runtime._shim.call(Dance())
    with pytest.raises(RuntimeServiceError, match="KeyError"):
        await world.runtime._shim.call(messages.Start(container={}))
    with pytest.raises(RuntimeServiceError, match="signal must be int, not 'x'"):
        await world.runtime._shim.call(messages.Signal(id=container, signal="x", why="1"))  # type: ignore[arg-type]
    with pytest.raises(RuntimeServiceError, match="start needs container"):
        await world.runtime._shim.call(StartOfNothing())
    assert (await world.runtime.exec_sync(container, ("true",), 0)).exit_code == 0
    assert os.stat(f"{STATE}/shim.sock").st_mode & 0o777 == 0o600


@inside
async def test_the_shim_needs_nothing_but_the_standard_library_and_stays_small(world: ShimWorld):
    maps = Path(f"/proc/{world.shim_pid}/maps").read_text()
    assert "site-packages" not in maps
    assert "_ssl" not in maps and "_asyncio" not in maps
    for _ in range(3):
        sandbox = await world.sandbox()
        container = await world.start(sandbox, "sleep", "100")
        await world.runtime.exec_sync(container, ("true",), 0)
        await world.runtime.stop_pod_sandbox(sandbox)
        await world.runtime.remove_pod_sandbox(sandbox)
    await world.until(lambda: os.listdir(f"{STATE}/shim/processes") == [])
    assert os.listdir(f"{STATE}/shim/sandboxes") == []


@inside
async def test_a_thousand_steps_leak_no_descriptor(world: ShimWorld):
    def descriptors() -> int:
        return len(os.listdir(f"/proc/{world.shim_pid}/fd"))

    async def one_round() -> None:
        sandbox = await world.sandbox()
        container = await world.start(sandbox, "sleep", "100")
        failed = await world.create(sandbox, "nosuch", name="f")
        with pytest.raises(RuntimeServiceError):
            await world.runtime.start_container(failed)
        for command in (("true",), ("nosuch",)):
            with pytest.raises(RuntimeServiceError) if command == ("nosuch",) else _nothing():
                await world.runtime.exec_sync(container, command, 60)
        await world.runtime.remove_pod_sandbox(sandbox)

    await one_round()
    await world.runtime._shim.call(messages.ListAll())
    before, mine = descriptors(), len(os.listdir("/proc/self/fd"))
    for _ in range(40):
        await one_round()
    await world.runtime._shim.call(messages.ListAll())
    await world.until(lambda: descriptors() == before)
    await world.until(lambda: len(os.listdir("/proc/self/fd")) == mine)
    mounts = Path("/proc/self/mounts").read_text()
    assert "shm /mnt" not in mounts


def _nothing():
    import contextlib

    return contextlib.nullcontext()


@inside
async def test_nobody_can_write_to_the_interpreter_through_the_shim(world: ShimWorld):
    await world.sandbox()
    assert os.readlink(f"/proc/{world.shim_pid}/exe")
    assert os.statvfs(f"/proc/{world.shim_pid}/exe").f_flag & os.ST_RDONLY
