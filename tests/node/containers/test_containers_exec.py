"""ExecSync: inside all of the container, with its user and environment, ended by time, caller or container."""

import asyncio
import os
import signal
import time

import pytest
from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import LinuxContainerSecurityContext, RuntimeServiceError


@inside
async def test_an_exec_is_inside_and_answers_with_output_and_code(world: ShimWorld):
    container = await world.start(
        await world.sandbox(), "sleep", "100", working_dir="/tmp", envs=(("COLOUR", "blue"), ("PATH", "/bin"))
    )
    answer = await world.runtime.exec_sync(container, ("sh", "-c", "echo out; echo err >&2; exit 5"), 0)
    assert (answer.stdout, answer.stderr, answer.exit_code) == (b"out\n", b"err\n", 5)
    answer = await world.runtime.exec_sync(container, ("sh", "-c", "echo $COLOUR $HOSTNAME $HOME; hostname; pwd"), 60)
    assert answer.stdout == b"blue p /root\np\n/tmp\n"
    answer = await world.runtime.exec_sync(container, ("ps", "-o", "pid,args"), 0)
    lines = [line.split(None, 1) for line in answer.stdout.decode().splitlines()[1:]]
    assert lines[0] == ["1", "sleep 100"]
    assert len(lines) == 2, "nothing but the container's own processes"
    for name in ("mnt", "pid", "net", "ipc", "uts", "cgroup"):
        own, exec_ = await asyncio.gather(
            world.runtime.exec_sync(container, ("readlink", f"/proc/1/ns/{name}"), 0),
            world.runtime.exec_sync(container, ("readlink", f"/proc/self/ns/{name}"), 0),
        )
        assert own.stdout == exec_.stdout != b""
        assert own.stdout.decode().strip() != os.readlink(f"/proc/self/ns/{name}")
    started, ended = world.find("ExecStarted"), world.find("ExecExited")
    assert started[0].facts["argv"] == ["sh", "-c", "echo out; echo err >&2; exit 5"]
    assert started[0].facts["execId"] == ended[0].facts["execId"]
    assert (ended[0].facts["exitCode"], ended[0].facts["signal"], ended[0].facts["killedBecause"]) == (5, None, "")
    assert os.listdir("/mnt/shim/processes") == [container]


@inside
async def test_an_exec_has_the_container_s_user_and_no_more_capabilities(world: ShimWorld):
    context = LinuxContainerSecurityContext(run_as_user=1000, no_new_privs=True)
    container = await world.start(await world.sandbox(), "sleep", "100", security_context=context)
    for command in (("id", "-u"), ("sh", "-c", "id -u")):
        assert (await world.runtime.exec_sync(container, command, 0)).stdout == b"1000\n"
    own = (await world.runtime.exec_sync(container, ("cat", "/proc/1/status"), 0)).stdout.decode()
    mine = (await world.runtime.exec_sync(container, ("cat", "/proc/self/status"), 0)).stdout.decode()
    wanted = ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh", "NoNewPrivs", "SigIgn", "SigBlk", "Uid", "Gid")
    assert [line for line in own.splitlines() if line.startswith(wanted)] == [
        line for line in mine.splitlines() if line.startswith(wanted)
    ]
    assert "CapEff:\t0000000000000000" in mine


@inside
async def test_what_cannot_be_executed_is_told_in_runc_s_words(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    with pytest.raises(RuntimeServiceError) as caught:
        await world.runtime.exec_sync(container, ("nosuch",), 0)
    assert caught.value.reason == "StartError"
    assert 'exec: "nosuch": executable file not found in $PATH: unknown' in str(caught.value)
    assert str(caught.value).startswith("failed to exec in container: failed to start exec")
    assert world.find("ExecStarted") == []
    await world.runtime.stop_container(container, 0)
    with pytest.raises(RuntimeServiceError, match="container is in CONTAINER_EXITED state"):
        await world.runtime.exec_sync(container, ("true",), 0)
    with pytest.raises(RuntimeServiceError) as caught:
        await world.runtime.exec_sync("nosuch", ("true",), 0)
    assert caught.value.reason == "NotFound"


@inside
async def test_a_timeout_kills_the_command_and_what_it_started(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    started = time.monotonic()
    with pytest.raises(RuntimeServiceError) as caught:
        await world.runtime.exec_sync(container, ("sh", "-c", "sleep 201 & (sleep 202) & sleep 203; true"), 2)
    assert time.monotonic() - started >= 2
    assert caught.value.reason == "DeadlineExceeded"
    assert str(caught.value) == "failed to exec in container: timeout 2s exceeded: context deadline exceeded"
    await world.until(lambda: list(world.processes().values()) == ["sleep 100 "])
    assert world.find("ExecExited")[0].facts["killedBecause"] == "exec timeout"
    assert [r.facts["why"] for r in world.find("SignalSent")] == ["exec timeout"]
    assert (await world.runtime.exec_sync(container, ("true",), 0)).exit_code == 0


@inside
async def test_a_cancelled_call_kills_the_command(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    call = asyncio.create_task(world.runtime.exec_sync(container, ("sh", "-c", "sleep 201; true"), 0))
    await world.until(lambda: "sleep 201 " in world.processes().values())
    call.cancel()
    await world.until(lambda: list(world.processes().values()) == ["sleep 100 "])
    await world.until(lambda: world.find("ExecExited"))
    assert world.find("ExecExited")[0].facts["killedBecause"] == "caller gone"
    with pytest.raises(asyncio.CancelledError):
        await call


@inside
async def test_a_node_that_hangs_up_ends_its_execs_and_not_the_container(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    call = asyncio.create_task(world.runtime.exec_sync(container, ("sleep", "201"), 0))
    await world.until(lambda: "sleep 201 " in world.processes().values())
    await world.runtime.close()
    with pytest.raises(RuntimeServiceError, match="connection to the shim is gone"):
        await call
    await world.until(lambda: list(world.processes().values()) == ["sleep 100 "])


@inside
async def test_an_exec_dies_with_its_container(world: ShimWorld):
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "sleep", "100")
    call = asyncio.create_task(world.runtime.exec_sync(container, ("sh", "-c", "echo began; sleep 201"), 0))
    await world.until(lambda: "sleep 201 " in world.processes().values())
    await world.runtime.stop_container(container, 0)
    answer = await call
    assert (answer.stdout, answer.exit_code) == (b"began\n", 137)
    assert world.find("ExecExited")[0].facts["signal"] == "SIGKILL"


@inside
async def test_an_exec_is_over_when_nobody_holds_its_output_any_more(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    answer = await world.runtime.exec_sync(container, ("sh", "-c", "(sleep 0.3; echo late) & echo early"), 0)
    assert answer.stdout == b"early\nlate\n"
    with pytest.raises(RuntimeServiceError) as caught:
        await world.runtime.exec_sync(container, ("sh", "-c", "sleep 201 & echo early"), 0.3)
    assert caught.value.reason == "DeadlineExceeded"
    await world.until(lambda: list(world.processes().values()) == ["sleep 100 "])


@inside
async def test_output_beyond_16_mib_is_dropped_and_the_command_still_ends(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    answer = await world.runtime.exec_sync(container, ("head", "-c", str(17 << 20), "/dev/zero"), 0)
    assert (len(answer.stdout), answer.exit_code) == (16 << 20, 0)


@inside
async def test_thirty_execs_at_once_all_answer(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    calls = (world.runtime.exec_sync(container, ("echo", str(number)), 60) for number in range(30))
    answers = await asyncio.gather(*calls)
    assert [answer.stdout for answer in answers] == [f"{number}\n".encode() for number in range(30)]
    assert len(world.processes()) == 1


@inside
async def test_an_exec_killed_by_a_signal_answers_128_and_the_signal(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    call = asyncio.create_task(world.runtime.exec_sync(container, ("sleep", "201"), 0))
    await world.until(lambda: world.find("ExecStarted"))
    os.kill(world.find("ExecStarted")[0].facts["pid"], signal.SIGTERM)
    assert (await call).exit_code == 143


@inside
async def test_a_command_whose_time_is_over_before_it_begins_is_late_and_not_missing(world: ShimWorld):
    """A probe counts a timeout as a failure, and an error not at all."""
    container = await world.start(await world.sandbox(), "sleep", "100")
    for timeout in (1e-6, 0.0005, 0.001, 0.002, 0.004):
        with pytest.raises(RuntimeServiceError) as caught:
            await world.runtime.exec_sync(container, ("sleep", "201"), timeout)
        assert caught.value.reason == "DeadlineExceeded", caught.value
    await world.until(lambda: list(world.processes().values()) == ["sleep 100 "])
    assert len(world.find("ExecStarted")) == len(world.find("ExecExited"))
