"""A node process that starts after another one, or beside a new shim: what it finds is what there is."""
# ruff: noqa: ASYNC222, ASYNC240 - a scenario has its process to itself

import asyncio
import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from shim_world import STATE, ShimWorld, inside, start_shim
from waiting import until

from lastcall.kube.cri.api import (
    ContainerState,
    LinuxContainerSecurityContext,
    NamespaceOption,
    PodSandboxState,
    RuntimeServiceError,
)
from lastcall.kube.cri.sandbox.runtime import SandboxRuntime
from lastcall.kube.cri.sandbox.shim import messages
from lastcall.kube.cri.sandbox.shim.past import read_journals

pytestmark = pytest.mark.core

LOOP = "trap 'exit 9' TERM; echo up; while true; do sleep 0.02; done"


async def next_node(world: ShimWorld) -> SandboxRuntime:
    """The node process dies, as far as the shim can see, and another one starts."""
    await world.runtime.close()
    world.network.attached.clear()
    world.runtime = world.new_runtime()
    await world.runtime.adopt()
    return world.runtime


async def next_shim(world: ShimWorld) -> None:
    """The shim dies, everything of it is ended by this PID 1 as init does it, and another shim starts."""
    os.kill(world.shim_pid, signal.SIGKILL)
    os.waitpid(world.shim_pid, 0)
    for past in read_journals(f"{STATE}/shim/processes"):
        if not past.over:
            os.kill(past.pid, signal.SIGKILL)
            os.waitpid(past.pid, 0)
            past.ended(137, "SIGKILL", 77_000_000_000)
    world.shim_pid = start_shim(world.ring)


@inside
async def test_everything_of_a_running_container_is_known_to_the_next_node(world: ShimWorld):
    sandbox = await world.sandbox()
    more = {"labels": {"a": "b"}, "annotations": {"hash": "77"}}
    container = await world.start(sandbox, "sh", "-c", LOOP, envs=(("SECRET", "hunter2"),), **more)
    await world.printed(container, "up")
    before = await world.runtime.container_status(container), await world.runtime.pod_sandbox_status(sandbox)
    records = list(Path(STATE, "containers/records").iterdir())
    assert all("hunter2" not in file.read_text() and file.stat().st_mode & 0o777 == 0o600 for file in records)
    runtime = await next_node(world)
    assert (await runtime.container_status(container), await runtime.pod_sandbox_status(sandbox)) == before
    assert await runtime.list_containers() == [before[0]]
    assert world.network.attached == {sandbox: before[1].ips[0]}
    assert (await runtime.exec_sync(container, ("true",), 0)).exit_code == 0
    await runtime.stop_container(container, 10)
    assert (await runtime.container_status(container)).exit_code == 9
    await runtime.remove_pod_sandbox(sandbox)
    assert (world.network.attached, world.processes()) == ({}, {})
    assert os.listdir(f"{STATE}/containers") == ["records"]
    assert os.listdir(f"{STATE}/containers/records") == []


@inside
async def test_an_end_while_no_node_looked_is_told_to_the_next_one(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sh", "-c", "sleep 0.2; exit 3")
    await world.runtime.close()
    await world.until(lambda: world.find("ProcessExited"))
    runtime = await next_node(world)
    status = await runtime.container_status(container)
    assert (status.state, status.exit_code, status.reason) == (ContainerState.CONTAINER_EXITED, 3, "Error")
    assert 0 < status.started_at < status.finished_at


@inside
async def test_a_pause_process_that_ended_while_no_node_looked_is_told_to_the_next_one(world: ShimWorld):
    shared = LinuxContainerSecurityContext(namespace_options=NamespaceOption(pid="POD"))
    sandbox = await world.sandbox(pid="POD")
    script = "trap '' TERM; sleep 0.3; kill -TERM 1; sleep 100"
    container = await world.start(sandbox, "sh", "-c", script, security_context=shared)
    await world.runtime.close()
    await world.until(lambda: world.find("PauseEnded"))
    assert world.find("PauseEnded")[0].facts == {"exitCode": 0, "signal": ""}
    runtime = await next_node(world)
    assert (await runtime.container_status(container)).exit_code == 137
    await world.until(lambda: runtime._picture.sandboxes[sandbox].state == PodSandboxState.SANDBOX_NOTREADY)
    await runtime.remove_pod_sandbox(sandbox)
    assert world.processes() == {}


@inside
async def test_the_stop_signal_is_sent_once_in_a_life_whichever_node_asks(world: ShimWorld):
    count = "n=0; trap 'n=$((n+1)); echo term $n' TERM; echo up; while true; do sleep 0.02; done"
    container = await world.start(await world.sandbox(), "sh", "-c", count)
    await world.printed(container, "up")
    stop = asyncio.create_task(world.runtime.stop_container(container, 60))
    await world.printed(container, "term 1")
    stop.cancel()
    runtime = await next_node(world)
    await runtime.stop_container(container, 1)
    assert (await runtime.container_status(container)).exit_code == 137
    sent = [record.facts["signal"] for record in world.find("SignalSent")]
    assert sent == ["SIGTERM", "SIGKILL"], sent


@pytest.mark.rule("node-semantics 20/7")
@inside
async def test_a_hook_of_the_node_before_is_dead_when_the_next_node_hears_of_anything(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sh", "-c", LOOP)
    hook = "touch /in; sleep 100; rm /in"
    running = asyncio.create_task(world.runtime.exec_sync(container, ("sh", "-c", hook), 0))
    await world.until(lambda: world.find("ExecStarted") and "sleep 100 " in world.processes().values())
    await next_node(world)
    await world.until(lambda: not [command for command in world.processes().values() if "sleep 100" in command])
    (ended,) = world.find("ExecExited")
    assert (ended.facts["killedBecause"], ended.facts["signal"]) == ("caller gone", "SIGKILL")
    with pytest.raises(RuntimeServiceError, match="gone"):
        await running


@inside
async def test_calls_that_a_dead_node_had_still_written_come_before_the_next_node(world: ShimWorld):
    """Its exec begins after the next node has said hello to the kernel, and before the shim has read that."""
    container = await world.start(await world.sandbox(), "sh", "-c", LOOP)
    os.kill(world.shim_pid, signal.SIGSTOP)
    running = asyncio.create_task(world.runtime.exec_sync(container, ("sleep", "100"), 0))
    await asyncio.sleep(0.01)  # the request is written; the stopped shim does not answer
    await world.runtime.close()
    world.runtime = world.new_runtime()
    adopting = asyncio.create_task(world.runtime.adopt())
    await asyncio.sleep(0.05)  # the request is written; the stopped shim does not answer
    os.kill(world.shim_pid, signal.SIGCONT)
    await adopting
    assert len(world.find("ExecExited")) == len(world.find("ExecStarted"))
    assert "sleep 100 " not in world.processes().values()
    with pytest.raises(RuntimeServiceError):
        await running


@inside
async def test_a_container_that_nobody_asked_to_start_is_rolled_back(world: ShimWorld):
    sandbox = await world.sandbox()
    created = await world.create(sandbox, "true")
    runtime = await next_node(world)
    assert await runtime.list_containers() == []
    assert os.listdir(f"{STATE}/containers") == ["records"]
    assert created not in " ".join(os.listdir(f"{STATE}/containers/records"))
    assert [s.id for s in await runtime.list_pod_sandbox()] == [sandbox]


@inside
async def test_a_start_under_way_is_finished(world: ShimWorld):
    sandbox = await world.sandbox()
    containers = [await world.create(sandbox, "sleep", "100", name=f"c{number}") for number in range(8)]
    starts = [asyncio.create_task(world.runtime.start_container(container)) for container in containers]
    await asyncio.sleep(0.005)  # the starts are at different stages; any is right
    runtime = await next_node(world)
    listed = await runtime.list_containers()  # a kubelet makes another container for one that is only created
    assert listed and all(c.state == ContainerState.CONTAINER_RUNNING for c in listed)
    await world.until(lambda: list(world.processes().values()).count("sleep 100 ") == len(listed))
    await asyncio.gather(*starts, return_exceptions=True)
    await runtime.remove_pod_sandbox(sandbox)
    assert world.processes() == {}


@inside
async def test_a_start_that_failed_while_no_node_looked_is_a_start_error_for_the_next_one(world: ShimWorld):
    sandbox = await world.sandbox()
    container = await world.create(sandbox, "nosuch")
    os.kill(world.shim_pid, signal.SIGSTOP)
    start = asyncio.create_task(world.runtime.start_container(container))
    await asyncio.sleep(0.01)  # the request is written; the stopped shim does not answer
    await world.runtime.close()
    os.kill(world.shim_pid, signal.SIGCONT)
    with pytest.raises(RuntimeServiceError):
        await start
    runtime = await next_node(world)
    await world.until(lambda: runtime._picture.containers[container].ended.is_set())
    status = await runtime.container_status(container)
    assert (status.exit_code, status.reason) == (128, "StartError")
    assert '"nosuch": executable file not found' in status.message


@inside
async def test_a_sandbox_whose_making_was_cut_off_is_taken_away(world: ShimWorld):
    kept = await world.sandbox()
    shutil.copytree(f"{STATE}/containers/records", f"{STATE}/saved")
    cut = await world.sandbox()
    shutil.rmtree(f"{STATE}/containers/records")
    os.rename(f"{STATE}/saved", f"{STATE}/containers/records")
    runtime = await next_node(world)
    answer = await runtime._shim.call(messages.ListAll())
    assert answer.fields["sandboxes"] == [kept] and kept != cut
    assert [s.id for s in await runtime.list_pod_sandbox()] == [kept]


@inside
async def test_a_container_whose_record_is_damaged_is_ended(world: ShimWorld):
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "sleep", "100")
    for record in Path(STATE, "containers/records").iterdir():
        record.write_text('{"config": 7}' if "sandbox" in record.name else "{")
    runtime = await next_node(world)
    assert (await runtime.list_containers(), await runtime.list_pod_sandbox()) == ([], [])
    await world.until(lambda: not world.processes())

    async def empty() -> bool:
        answer = await runtime._shim.call(messages.ListAll())
        return not answer.fields["containers"] and not answer.fields["sandboxes"]

    await until(empty, f"an empty shim, without {container}")


@inside
async def test_a_new_shim_tells_how_the_containers_of_the_dead_one_ended(world: ShimWorld):
    sandbox = await world.sandbox()
    ended = await world.start(sandbox, "sh", "-c", "exit 4", name="ended")
    await world.ended(ended)
    running = await world.start(sandbox, "sh", "-c", LOOP, name="running")
    await world.printed(running, "up")
    following = asyncio.create_task(world.runtime.run())
    await next_shim(world)
    status = await world.ended(running)
    assert (status.exit_code, status.reason, status.finished_at) == (137, "Error", 77_000_000_000)
    assert (await world.runtime.container_status(ended)).exit_code == 4
    assert (await world.runtime.pod_sandbox_status(sandbox)).state == PodSandboxState.SANDBOX_NOTREADY
    assert sandbox in world.network.attached, "it is let go of like any other"
    again = await world.sandbox()
    new = await world.start(again, "sh", "-c", LOOP)
    await world.printed(new, "up")
    for each in (again, sandbox):
        await world.runtime.stop_pod_sandbox(each)
        await world.runtime.remove_pod_sandbox(each)
    assert (world.network.attached, world.processes()) == ({}, {})
    assert "shm /mnt" not in Path("/proc/self/mounts").read_text()
    await world.runtime._shim.call(messages.ListAll())
    assert os.listdir(f"{STATE}/shim/processes") == []
    assert os.listdir(f"{STATE}/shim/sandboxes") == []
    following.cancel()


@inside
async def test_node_and_shim_killed_together_are_understood_too(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sh", "-c", LOOP)
    await world.printed(container, "up")
    await next_shim(world)
    runtime = await next_node(world)
    assert (await runtime.container_status(container)).exit_code == 137


@pytest.mark.rule("node-semantics 12.4/8")
@inside
async def test_records_that_outlive_the_machine_say_that_containers_ended_unseen(world: ShimWorld):
    sandbox = await world.sandbox()
    ended = await world.start(sandbox, "sh", "-c", "exit 4", name="ended")
    await world.ended(ended)
    running = await world.start(sandbox, "sleep", "100", name="running")
    before = await world.runtime.container_status(running)
    await next_shim(world)
    for journal in Path(STATE, "shim/processes").iterdir():
        journal.unlink()
    os.kill(world.shim_pid, signal.SIGKILL)
    os.waitpid(world.shim_pid, 0)
    world.shim_pid = start_shim(world.ring)
    runtime = await next_node(world)
    status = await runtime.container_status(running)
    assert (status.state, status.exit_code, status.reason) == (ContainerState.CONTAINER_EXITED, 255, "Unknown")
    assert status.started_at == before.started_at
    assert (await runtime.container_status(ended)).exit_code == 4


@inside
async def test_output_between_two_nodes_is_in_the_log(world: ShimWorld):
    counts = "i=0; while true; do i=$((i+1)); echo $i; sleep 0.002; done"
    container = await world.start(await world.sandbox(), "sh", "-c", counts)
    await world.until(lambda: "20" in world.output(world.runtime._picture.containers[container].status()).splitlines())
    for _ in range(5):
        before = len(world.output(world.runtime._picture.containers[container].status()).splitlines())
        await world.runtime.close()
        await asyncio.sleep(0.02)  # how long no node is there
        await next_node(world)
        status = await world.runtime.container_status(container)
        await world.until(lambda: len(world.output(status).splitlines()) > before)  # noqa: B023
    await world.runtime.stop_container(container, 0)
    status = await world.runtime.container_status(container)
    numbers = [int(line) for line in world.output(status).splitlines()]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 25


@inside
async def test_a_record_of_an_unknown_kind_of_time_is_no_reason_to_stop(world: ShimWorld):
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "sleep", "100")
    path = Path(STATE, "containers/records", f"container-{container}.json")
    value = json.loads(path.read_text().partition("\n")[0])
    value["config"]["fromTheFuture"] = 1
    path.write_text(json.dumps(value))
    runtime = await next_node(world)
    assert (await runtime.container_status(container)).state == ContainerState.CONTAINER_RUNNING
