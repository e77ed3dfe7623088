"""Logs are rotated while containers write them: no line is lost, and no writer fills the node's memory."""

import asyncio
import os
from pathlib import Path

from shim_world import STATE, ShimWorld, inside_as
from shim_world import USERS as ALL_USERS

from lastcall.kube.cri.sandbox.runtime import SandboxRuntime
from lastcall.kube.node.logs.reader import LogOptions, read_logs
from lastcall.kube.node.logs.rotation import ContainerLogManager, ContainerLogPolicy
from lastcall.world.tasks import Tasks

KIB = 1 << 10
LINES = 4500
COUNT = f"i=0; while [ $i -lt {LINES} ]; do echo line $i {'x' * 90}; i=$((i+1)); done; echo done; sleep 600"

TOO_MUCH = 2000 * KIB
LONG_LINES = f"i=0; while [ $i -lt 2000 ]; do echo {'x' * KIB}; i=$((i+1)); done; exit 7"


def rotating(world: ShimWorld, max_size: int, max_files: int) -> ContainerLogManager:
    """A runtime and a manager for logs of this size."""
    world.runtime = SandboxRuntime(
        world.world,
        world,
        f"{STATE}/shim.sock",
        f"{STATE}/containers",
        world.images,
        world.network,
        log_max_size=max_size,
    )
    manager = ContainerLogManager(
        world=world.world,
        runtime=world.runtime,
        policy=ContainerLogPolicy(max_size, max_files),
        log_root=f"{STATE}/logs",
    )
    world.runtime.on_log_full = manager.full
    return manager


def log_files() -> dict[str, int]:
    directory = Path(STATE, "logs/c")
    return {each.name: each.stat().st_size for each in directory.iterdir()} if directory.exists() else {}


@inside_as(ALL_USERS[:1])
async def test_a_container_that_prints_without_end_does_not_fill_the_memory(world: ShimWorld):
    size, files = 128 * KIB, 3
    manager = rotating(world, size, files)
    largest, rotated = 0, set()
    async with Tasks() as tasks:
        tasks.spawn(manager.run(), name="logs")
        container = await world.start(await world.sandbox(), "sh", "-c", "while :; do echo a line of some length; done")
        async with asyncio.timeout(120):
            while len(rotated) < files + 1:
                await asyncio.sleep(0.01)  # pause of a poll
                try:
                    found = log_files()
                except FileNotFoundError:
                    continue  # renamed while it was listed
                largest = max(largest, sum(found.values()))
                rotated |= {name.removesuffix(".gz").removesuffix(".tmp") for name in found if name != "0.log"}
        await world.runtime.stop_container(container, 0)
        tasks.cancel()
    # The log and the one rotated last may have twice the size and what one read brings; the rest is compressed.
    assert largest < 2 * (2 * size + 200 * KIB) + size, largest
    assert len(log_files()) <= files + 1  # one may have been in the making
    assert (await world.ended(container)).exit_code == 137


@inside_as(ALL_USERS[:1])
async def test_a_follower_reads_on_over_rotations_and_misses_no_line(world: ShimWorld):
    manager = rotating(world, 64 * KIB, 10)
    async with Tasks() as tasks:
        tasks.spawn(manager.run(), name="logs")
        container = await world.start(await world.sandbox(), "sh", "-c", COUNT)
        path = Path((await world.runtime.container_status(container)).log_path)
        text = b""

        async def running() -> bool:
            return True

        async with asyncio.timeout(120):
            async for block in read_logs(path, LogOptions(follow=True), world=world.world, is_running=running):
                text += block
                if b"done" in text:
                    break
        tasks.cancel()
    assert text.decode().splitlines() == [*(f"line {number} {'x' * 90}" for number in range(LINES)), "done"]
    assert len(log_files()) > 2
    await world.runtime.stop_container(container, 0)


@inside_as(ALL_USERS[:1])
async def test_a_container_whose_log_nobody_rotates_waits_and_then_goes_on(world: ShimWorld):
    rotating(world, 16 * KIB, 3)  # and no manager runs
    container = await world.start(await world.sandbox(), "sh", "-c", LONG_LINES)
    status = await world.ended(container, 60)
    assert status.exit_code == 7
    assert os.stat(status.log_path).st_size < TOO_MUCH / 2
