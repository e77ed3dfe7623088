"""hostNetwork, hostPID, hostIPC, a shared PID namespace, terminals, standard input."""
# ruff: noqa: ASYNC240 - a scenario has its process to itself

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import LinuxContainerSecurityContext, NamespaceOption, PodSandboxState, RuntimeServiceError


def options(**modes: str) -> dict:
    return {"security_context": LinuxContainerSecurityContext(namespace_options=NamespaceOption(**modes))}


async def namespace(world: ShimWorld, container: str, name: str) -> str:
    answer = await world.runtime.exec_sync(container, ("readlink", f"/proc/self/ns/{name}"), 0)
    return answer.stdout.decode().strip()


@inside
async def test_host_network_and_ipc_are_the_node_s(world: ShimWorld):
    sandbox = await world.sandbox(network="NODE", ipc="NODE")
    container = await world.start(sandbox, "sleep", "100", **options(network="NODE", ipc="NODE"))
    for name in ("net", "ipc", "uts"):
        assert await namespace(world, container, name) == os.readlink(f"/proc/self/ns/{name}")
    assert await namespace(world, container, "pid") != os.readlink("/proc/self/ns/pid")
    assert (await world.runtime.pod_sandbox_status(sandbox)).ips == ()
    assert world.network.attached == {}
    await world.runtime.remove_pod_sandbox(sandbox)


@inside
async def test_with_the_node_s_pids_every_process_of_the_container_ends_with_it_and_no_other(world: ShimWorld):
    sandbox = await world.sandbox(pid="NODE")
    script = "sleep 301 & echo up; exec sleep 302"
    container = await world.start(sandbox, "sh", "-c", script, **options(pid="NODE"))
    bystander = await world.start(sandbox, "sleep", "303", name="other", **options(pid="NODE"))
    await world.printed(container, "up")
    assert await namespace(world, container, "pid") == os.readlink("/proc/self/ns/pid")
    await world.runtime.stop_container(container, 30)
    status = await world.runtime.container_status(container)
    assert (status.exit_code, status.reason) == (143, "Error")
    assert world.find("ProcessSignalState")[0].facts["disposition"] == "default"
    await world.until(lambda: list(world.processes().values()) == ["sleep 303 "])
    await world.runtime.remove_container(bystander)
    await world.until(lambda: not world.processes())


@inside
async def test_a_shared_pid_namespace_has_a_pause_process_that_reaps(world: ShimWorld):
    sandbox = await world.sandbox(pid="POD")
    first = await world.start(sandbox, "sleep", "100", name="a", **options(pid="POD"))
    second = await world.start(sandbox, "sleep", "200", name="b", **options(pid="POD"))
    assert await namespace(world, first, "pid") == await namespace(world, second, "pid")
    assert await namespace(world, first, "mnt") != await namespace(world, second, "mnt")
    answer = await world.runtime.exec_sync(first, ("sh", "-c", "(sleep 0.05 &) ; ps -o pid,args"), 0)
    commands = answer.stdout.decode()
    assert "sleep 100" in commands and "sleep 200" in commands
    assert "sleep 0.05" in commands or "[sleep]" in commands
    async with asyncio.timeout(60):
        while "[sleep]" in commands or "sleep 0.05" in commands:  # running, or a zombie that nobody has waited for
            answer = await world.runtime.exec_sync(first, ("ps", "-o", "stat,args"), 0)
            commands = answer.stdout.decode()
    await world.runtime.stop_container(first, 30)
    assert (await world.runtime.container_status(first)).exit_code == 143
    assert sorted(world.processes().values())[-1] == "sleep 200 "
    await world.runtime.stop_pod_sandbox(sandbox)
    assert world.processes() == {}


@pytest.mark.core
@inside
async def test_pause_exits_on_sigint_and_sigterm_and_the_kernel_ends_the_pod_s_containers(world: ShimWorld):
    """kubernetes build/pause/linux/pause.c:sigdown; containerd reports the sandbox as not ready then."""
    for number, sent in enumerate(("INT", "TERM")):
        sandbox = await world.sandbox(pid="POD")
        first = await world.start(sandbox, "sleep", "100", name=f"a-{number}", **options(pid="POD"))
        second = await world.start(sandbox, "sleep", "200", name=f"b-{number}", **options(pid="POD"))
        await world.runtime.exec_sync(first, ("kill", "-HUP", "1"), 0)
        assert (await world.runtime.pod_sandbox_status(sandbox)).state == PodSandboxState.SANDBOX_READY
        with suppress(RuntimeServiceError):  # the command is in that namespace, too
            await world.runtime.exec_sync(first, ("kill", f"-{sent}", "1"), 0)
        for container in (first, second):
            status = await world.ended(container)
            assert (status.exit_code, status.reason) == (137, "Error")

        await world.until(lambda: world.runtime._picture.sandboxes[sandbox].state == PodSandboxState.SANDBOX_NOTREADY)  # noqa: B023 - at once
        assert world.processes() == {}
        await world.runtime.remove_pod_sandbox(sandbox)
    assert os.listdir("/mnt/shim/sandboxes") == []


@inside
async def test_pause_is_the_user_of_its_pod_so_a_program_of_another_user_cannot_end_it(world: ShimWorld):
    """kubelet kuberuntime_sandbox.go:generatePodSandboxLinuxConfig; kubernetes build/pause/Dockerfile."""
    context = LinuxContainerSecurityContext(namespace_options=NamespaceOption(pid="POD"), run_as_user=1000)
    for of_the_pod in (1000, None):
        if of_the_pod is None and world.runtime._single_user_id():
            return  # of whom all processes are
        world.sandbox_config = replace(world.sandbox_config, run_as_user=of_the_pod)
        sandbox = await world.sandbox(pid="POD")
        container = await world.start(sandbox, "sleep", "100", name=f"c-{of_the_pod}", security_context=context)
        with suppress(RuntimeServiceError):
            await world.runtime.exec_sync(container, ("kill", "-TERM", "1"), 0)
        if of_the_pod is None:
            answer = await world.runtime.exec_sync(container, ("stat", "-c", "%u", "/proc/1"), 0)
            assert answer.stdout == b"65535\n"
        else:
            assert (await world.ended(container)).exit_code == 137
        await world.runtime.remove_pod_sandbox(sandbox)


@inside
async def test_a_group_of_the_pod_without_a_user_goes_with_the_user_of_the_pause_image(world: ShimWorld):
    world.sandbox_config = replace(world.sandbox_config, run_as_group=7)
    context = LinuxContainerSecurityContext(namespace_options=NamespaceOption(pid="POD"))
    container = await world.start(await world.sandbox(pid="POD"), "sleep", "100", security_context=context)
    answer = await world.runtime.exec_sync(container, ("stat", "-c", "%u:%g", "/proc/1"), 0)
    assert answer.stdout == b"65535:7\n" or world.runtime._single_user_id()  # of whom all processes are


@inside
async def test_a_sandbox_with_shared_pids_ends_though_an_exec_still_runs_in_them(world: ShimWorld):
    """The kernel waits for the exec before the first process may go, and nobody but the shim can wait for the exec."""
    for _ in range(10):
        sandbox = await world.sandbox(pid="POD")
        container = await world.start(sandbox, "sleep", "100", **options(pid="POD"))
        execs = [asyncio.ensure_future(world.runtime.exec_sync(container, ("sleep", "50"), 0)) for _ in range(3)]
        await asyncio.sleep(0.005)  # the execs are at different stages; any is right
        async with asyncio.timeout(60):
            await world.runtime.stop_container(container, 0)
            await world.runtime.stop_pod_sandbox(sandbox)
            await asyncio.gather(*execs, return_exceptions=True)
        assert world.processes() == {}
        await world.runtime.remove_pod_sandbox(sandbox)


@inside
async def test_a_terminal_is_the_container_s_own(world: ShimWorld):
    sandbox = await world.sandbox()
    container = await world.start(
        sandbox, "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo tty; echo $TERM", tty=True
    )
    status = await world.ended(container)
    assert world.output(status).split() == ["tty", "xterm"]
    assert status.exit_code == 0


@inside
async def test_open_standard_input_blocks_a_reader_and_closed_one_does_not(world: ShimWorld):
    sandbox = await world.sandbox()
    waiting = await world.start(sandbox, "cat", name="a", stdin=True)
    ending = await world.start(sandbox, "cat", name="b")
    assert (await world.ended(ending)).exit_code == 0
    assert (await world.runtime.container_status(waiting)).state.name == "CONTAINER_RUNNING"
    await world.runtime.stop_container(waiting, 0)


@inside
async def test_sysctls_of_the_pod_are_set_and_the_machine_s_are_refused(world: ShimWorld):
    world.sandbox_config = replace(world.sandbox_config, sysctls={"net.ipv4.ip_unprivileged_port_start": "80"})
    container = await world.start(await world.sandbox(), "cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start")
    assert world.output(await world.ended(container)) == "80"
    assert Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text() == "1024\n"
    for name in ("kernel.hostname", "vm.overcommit_memory", "net/../kernel/pid_max", "net.nosuch"):
        world.sandbox_config = replace(world.sandbox_config, sysctls={name: "1"})
        with pytest.raises(RuntimeServiceError):
            await world.sandbox()
    assert len(os.listdir("/mnt/shim/sandboxes")) == 1


@inside
async def test_a_container_that_starts_while_another_ends_is_not_taken_for_a_process_of_that_one(world: ShimWorld):
    """The kernel gives the number of a mount namespace that is gone to the next new one."""
    sandbox = await world.sandbox(pid="POD")
    for number in range(8):
        ending = await world.start(sandbox, "sleep", "100", name=f"ending-{number}", **options(pid="POD"))
        pid = world.find("ProcessStarted")[-1].facts["pid"]
        starting = await world.create(sandbox, "sleep", "200", name=f"starting-{number}", **options(pid="POD"))
        os.kill(world.shim_pid, signal.SIGSTOP)
        start = asyncio.create_task(world.runtime.start_container(starting))
        await asyncio.sleep(0.01)  # it is written; the shim reads it before it hears of the end
        os.kill(pid, signal.SIGKILL)
        await world.until(lambda pid=pid: not Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(world.shim_pid, signal.SIGCONT)
        await start
        await world.ended(ending)
        assert (await world.runtime.container_status(starting)).state.name == "CONTAINER_RUNNING"
        await world.runtime.stop_container(starting, 0)
    await world.runtime.stop_pod_sandbox(sandbox)
