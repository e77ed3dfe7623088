"""Facts of an end that only the node sees: who was not told of it, and what became of the sockets.

The programs are the host's Python in a container: busybox has none that closes its listener and goes on.
"""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import Mount

pytestmark = [pytest.mark.real_kernel, pytest.mark.core]

PYTHON = ("chroot", "/host", sys.executable, "-S", "-c")
SERVER = """
import os, signal, socket, time
listener = socket.create_server(("127.0.0.1", 8080), backlog=8)
%s
print("ready", flush=True)
%s
"""
CLIENT = """
import os, socket, sys
if os.fork(): os._exit(0)
peer = socket.create_connection(("127.0.0.1", 8080))
peer.send(b"a request")
print("connected", flush=True)
peer.recv(100)
"""
SLEEPS = "\nwhile True: time.sleep(60)"


async def serve(world: ShimWorld, before: str, after: str = SLEEPS) -> str:
    applet = world.images.layer / "bin/chroot"
    if not applet.is_symlink():
        applet.symlink_to("busybox")
    (world.images.layer / "host").mkdir(exist_ok=True)
    container = await world.start(
        await world.sandbox(), *PYTHON, SERVER % (before, after), mounts=(Mount("/host", "/", True),)
    )
    await world.printed(container, "ready")
    return container


async def connect(world: ShimWorld, container: str) -> None:
    """A client that stays, in the Pod's network namespace."""
    client = ("sh", "-c", 'chroot /host "$@" >/tmp/out 2>&1 </dev/null', "sh", sys.executable, "-S", "-c", CLIENT)
    answer = await world.runtime.exec_sync(container, client, 60)
    assert answer.exit_code == 0
    cat = ("cat", "/tmp/out")
    async with asyncio.timeout(60):
        while b"connected" not in (await world.runtime.exec_sync(container, cat, 60)).stdout:
            pass


def one(world: ShimWorld, kind: str) -> dict[str, object]:
    (record,) = world.find(kind)
    return record.facts


@inside
async def test_a_child_that_was_never_told_lives_until_sigkill(world: ShimWorld) -> None:
    container = await world.start(await world.sandbox(), "sh", "-c", "sleep 300 & echo ready; wait")
    await world.printed(container, "ready")
    await world.until(lambda: "sleep 300 " in world.processes().values())
    await world.runtime.stop_container(container, 1)
    await world.ended(container)
    (record,) = world.find("ProcessesLeft")
    assert (record.facts["when"], record.evidence) == ("SIGKILL", "observed")
    (child,) = record.facts["processes"]
    assert (child["name"], child["disposition"], child["containerPid"] > 1) == ("sleep", "default", True)
    sequence = world.sequence()
    assert sequence.index("ProcessesLeft") > sequence.index("SignalSent")
    assert record.at_ns < world.find("SignalSent")[-1].at_ns, "who is there is seen before SIGKILL"


@inside
async def test_a_child_that_the_kernel_killed_with_pid_1_is_told_and_one_that_ended_well_is_not(
    world: ShimWorld,
) -> None:
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 15):
        return  # the kernel tells nobody but the parent how a process ended
    fork = """
children = []  # while it sleeps the shim looks at what lives, every 0.1 s
for _ in range(2):
    children.append(os.fork())
    if not children[-1]: time.sleep(300)
def stop(*_):
    os.kill(children[1], signal.SIGTERM); os.waitpid(children[1], 0); time.sleep(1.5); os._exit(0)
signal.signal(signal.SIGTERM, stop)
"""
    container = await serve(world, fork)
    await world.runtime.stop_container(container, 30)
    status = await world.ended(container)
    assert status.exit_code == 0
    await world.until(lambda: world.find("ProcessesLeft"))
    (record,) = world.find("ProcessesLeft")
    assert (record.facts["when"], record.evidence) == ("exit", "observed")
    assert [each["containerPid"] for each in record.facts["processes"]] == [2], "the first child, and not the second"


@inside
async def test_a_child_that_its_master_killed_is_seen_to_end_before_pid_1(world: ShimWorld) -> None:
    """As a process manager does whose own timeout is over: kill, wait, exit; ends within a moment have no order."""
    fork = """
deaf, ready = os.pipe()
child = os.fork()
if not child:
    signal.signal(signal.SIGTERM, lambda *_: None)
    os.write(ready, b".")
    while True: time.sleep(300)
os.read(deaf, 1)
def stop(*_):
    os.kill(child, signal.SIGTERM); time.sleep(0.5); os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0); time.sleep(0.5); sys.exit(0)
import sys; signal.signal(signal.SIGTERM, stop)
"""
    container = await serve(world, fork)
    await world.runtime.stop_container(container, 30)
    assert (await world.ended(container)).exit_code == 0
    await world.until(lambda: world.find("ChildEnded"))
    (record,) = world.find("ChildEnded")
    assert (record.facts["containerPid"], record.facts["disposition"]) == (2, "handled")
    if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 15):
        assert (record.facts["exitCode"], record.facts["signal"]) == (137, "SIGKILL")
    assert not world.find("ProcessesLeft"), "it had ended before PID 1"


@inside
async def test_who_runs_beside_pid_1_at_the_stop_signal_is_listed_with_its_parent(world: ShimWorld) -> None:
    container = await world.start(
        await world.sandbox(), "sh", "-c", "sh -c 'sleep 300 & sleep 0.1; echo ready; wait' & wait"
    )
    await world.printed(container, "ready")
    await world.until(lambda: "sleep 300 " in world.processes().values())
    await world.runtime.stop_container(container, 1)
    await world.ended(container)
    (record,) = world.find("ProcessesAtStop")
    shell, sleep = sorted(record.facts["processes"], key=lambda each: each["containerPid"])
    assert (shell["name"], shell["parent"], shell["disposition"]) == ("sh", 1, "default")
    assert (sleep["name"], sleep["parent"]) == ("sleep", shell["containerPid"])
    assert record.at_ns < world.find("SignalSent")[-1].at_ns


@inside
async def test_a_program_whose_handler_waits_for_itself_is_seen_to_wait_without_a_limit(world: ShimWorld) -> None:
    handler = """
import threading
never = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: never.wait())
"""
    container = await serve(world, handler)
    await world.runtime.stop_container(container, 1)
    await world.ended(container)
    (record,) = world.find("WaitsAtKill")
    (process,) = record.facts["processes"]
    assert process["waits"] == [{"call": "futex", "threads": 1, "limited": False, "own": True}]
    assert record.facts["cpuSeconds"] < record.facts["seconds"]
    assert record.at_ns < world.find("SignalSent")[-1].at_ns, "before SIGKILL"


@inside
async def test_a_program_whose_handler_works_is_not_seen_to_wait(world: ShimWorld) -> None:
    handler = """
def work(*_):
    while True: pass
signal.signal(signal.SIGTERM, work)
"""
    container = await serve(world, handler)
    await world.runtime.stop_container(container, 1)
    await world.ended(container)
    (record,) = world.find("WaitsAtKill")
    (process,) = record.facts["processes"]
    assert [each["call"] for each in process["waits"]] == [""]
    assert record.facts["cpuSeconds"] > 0


@inside
async def test_zombies_are_counted_and_told_from_the_living(world: ShimWorld) -> None:
    fork = """
for _ in range(3):
    child = os.fork()
    if not child: os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # it is a zombie, and stays one
"""
    container = await serve(world, fork)
    await world.runtime.stop_container(container, 1)
    facts = one(world, "ProcessesLeft")
    assert (facts["zombies"], facts["processes"]) == (3, [])


@inside
async def test_a_listener_that_closes_at_once_is_seen_to_have_been_there_at_the_signal(world: ShimWorld) -> None:
    at_once = """
def stop(*_):
    listener.close()
    while not os.path.exists("/mnt/end"): time.sleep(0.01)
    os._exit(0)
signal.signal(signal.SIGTERM, stop)
"""
    container = await serve(world, at_once)
    stopping = asyncio.create_task(world.runtime.stop_container(container, 120))
    await world.until(lambda: world.find("ListenerClosed"))
    Path("/mnt/end").touch()  # noqa: ASYNC240
    await stopping
    assert [each["port"] for each in one(world, "SocketsAtStop")["listeners"]] == [8080]
    assert one(world, "ListenerClosed")["port"] == 8080


@inside
async def test_a_listener_that_closes_and_a_connection_that_ends_are_seen_while_it_still_runs(world: ShimWorld) -> None:
    accept = """
def until(path):
    while not os.path.exists(path): time.sleep(0.01)
def stop(*_):
    time.sleep(0.4); listener.close(); until("/mnt/go"); peer.recv(100); peer.close(); until("/mnt/end"); os._exit(0)
peer = listener.accept()[0]
signal.signal(signal.SIGTERM, stop)
print("accepted", flush=True)
"""
    container = await serve(world, "", accept + SLEEPS)
    await connect(world, container)
    await world.printed(container, "accepted")
    stopping = asyncio.create_task(world.runtime.stop_container(container, 120))
    await world.until(lambda: world.find("ListenerClosed"))
    Path("/mnt/go").touch()  # noqa: ASYNC240
    await world.until(lambda: world.find("ConnectionsClosed"))
    Path("/mnt/end").touch()  # noqa: ASYNC240
    await stopping
    assert (await world.ended(container)).exit_code == 0
    stop = one(world, "SocketsAtStop")
    assert [each["port"] for each in stop["listeners"]] == [8080]
    assert stop["connections"] >= 1
    closed = one(world, "ListenerClosed")
    assert closed["port"] == 8080
    assert closed["notBefore"] < closed["seconds"]
    assert closed["seconds"] >= 0.1
    drained = one(world, "ConnectionsClosed")
    assert drained["seconds"] >= 0.4
    assert not world.find("SocketsAtExit")


@inside
async def test_what_nobody_accepted_and_nobody_read_is_reset_at_the_exit(world: ShimWorld) -> None:
    container = await serve(world, "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1), os._exit(0)))")
    await connect(world, container)
    await world.runtime.stop_container(container, 30)
    await world.ended(container)
    await world.until(lambda: world.find("SocketsAtExit"))
    facts = one(world, "SocketsAtExit")
    assert [each["port"] for each in facts["listeners"]] == [8080]
    assert facts["backlog"] == 1
    assert facts["resets"] >= 1, "the client's connection ended by a reset"
