"""Exec and attach with streams, and ports, on real containers."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest
from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import ContainerStreams, LinuxContainerSecurityContext, RuntimeServiceError


async def all_of(read) -> bytes:
    data = b""
    while piece := await read():
        data += piece
    return data


async def until_output(streams: ContainerStreams, text: bytes) -> bytes:
    data = b""
    async with asyncio.timeout(60):
        while text not in data:
            piece = await streams.read_stdout()
            assert piece, data
            data += piece
    return data


def open_fds(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def stat(world: ShimWorld, command: str) -> list[str]:
    """From the state on, of the process whose command line begins so; [] when there is none."""
    for pid, line in world.processes().items():
        if line.startswith(command):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


async def waits(world: ShimWorld, command: str) -> None:
    """Until a process sleeps, and has used no time for a while: it had its chance to go on."""
    used: list[list[str]] = []
    async with asyncio.timeout(60):
        while True:
            await asyncio.sleep(0.02)  # pause of a poll
            with contextlib.suppress(OSError):
                if found := stat(world, command):
                    used.append(found[11:13])
                    if found[0] == "S" and len(used) > 15 and all(each == used[-1] for each in used[-15:]):
                        return


@inside
async def test_a_command_s_streams_are_separate_and_its_exit_code_is_told(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    streams = await world.runtime.exec(
        container, ("sh", "-c", "read x; echo got $x; echo bad >&2; exit 3"), tty=False, stdin=True
    )
    await streams.write_stdin(b"hello\n")
    assert await all_of(streams.read_stdout) == b"got hello\n"
    assert await all_of(streams.read_stderr) == b"bad\n"
    assert await streams.wait() == 3
    await streams.close()


@inside
async def test_the_input_ends_when_the_client_s_does(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    streams = await world.runtime.exec(container, ("cat",), tty=False, stdin=True)
    await streams.write_stdin(b"one")
    await streams.close_stdin()
    assert await all_of(streams.read_stdout) == b"one"
    assert await streams.wait() == 0
    await streams.close()
    without = await world.runtime.exec(container, ("cat",), tty=False, stdin=False)
    assert await all_of(without.read_stdout) == b""
    assert await without.wait() == 0
    await without.close()


@inside
async def test_a_terminal_has_a_size_and_one_output(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    script = "echo out; echo err >&2; test -t 0 && test -t 2 && echo terminal; read x; stty size; exit 4"
    streams = await world.runtime.exec(container, ("busybox", "sh", "-c", script), tty=True, stdin=True)
    said = await until_output(streams, b"terminal")
    assert b"out\r\n" in said
    assert b"err\r\n" in said
    streams.resize(132, 43)
    await streams.write_stdin(b"\n")
    assert b"43 132" in await all_of(streams.read_stdout)
    assert await all_of(streams.read_stderr) == b""
    assert await streams.wait() == 4
    await streams.close()


@inside
async def test_ctrl_c_on_a_terminal_reaches_the_foreground_process(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    script = "trap 'echo interrupted; exit 7' INT; echo ready; while :; do sleep 1; done"
    streams = await world.runtime.exec(container, ("sh", "-c", script), tty=True, stdin=True)
    await until_output(streams, b"ready")
    await streams.write_stdin(b"\x03")
    assert b"interrupted" in await all_of(streams.read_stdout)
    assert await streams.wait() == 7
    await streams.close()


@inside
async def test_fifty_megabytes_go_in_and_come_out_unchanged(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    streams = await world.runtime.exec(container, ("cat",), tty=False, stdin=True)
    data = os.urandom(1 << 20)

    async def feed() -> None:
        for _ in range(50):
            await streams.write_stdin(data)
        await streams.close_stdin()

    feeder = asyncio.create_task(feed())
    size = 0
    while piece := await streams.read_stdout():
        at = size % len(data)
        assert piece == (data + data)[at : at + len(piece)]
        size += len(piece)
    await feeder
    assert (size, await streams.wait()) == (50 << 20, 0)
    await streams.close()


@inside
async def test_whoever_does_not_read_makes_the_command_wait(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    script = "cat /dev/zero | head -c 300000; touch /tmp/done; exit 0"
    streams = await world.runtime.exec(container, ("sh", "-c", script), tty=False, stdin=False)
    await waits(world, "cat /dev/zero")
    done = await world.runtime.exec_sync(container, ("test", "-e", "/tmp/done"), 60)
    assert done.exit_code == 1
    assert len(await all_of(streams.read_stdout)) == 300000
    assert await streams.wait() == 0
    await streams.close()


@inside
async def test_a_missing_command_is_told_in_runc_s_words(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    with pytest.raises(RuntimeServiceError) as caught:
        await world.runtime.exec(container, ("nosuchcmd",), tty=False, stdin=True)
    text = str(caught.value)
    assert text.startswith('failed to exec in container: failed to start exec "')
    assert text.endswith(
        '": OCI runtime exec failed: exec failed: unable to start container process: '
        'exec: "nosuchcmd": executable file not found in $PATH: unknown'
    )
    with pytest.raises(RuntimeServiceError):
        await world.runtime.exec(container, ("nosuchcmd",), tty=True, stdin=True)
    await world.runtime.stop_container(container, 0)
    with pytest.raises(RuntimeServiceError, match="CONTAINER_EXITED state"):
        await world.runtime.exec(container, ("true",), tty=False, stdin=False)


@inside
async def test_a_client_that_goes_away_leaves_the_command_running_as_containerd_does(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    for tty in (False, True):
        streams = await world.runtime.exec(container, ("sleep", "201"), tty=tty, stdin=True)
        await streams.close()
    ends = await world.runtime.exec(container, ("sh", "-c", "cat; sleep 202"), tty=False, stdin=True)
    await ends.close()
    await world.until(lambda: "sleep 202 " in world.processes().values())  # its input has ended
    await world.until(lambda: list(world.processes().values()).count("sleep 201 ") == 2)
    await world.runtime.stop_container(container, 0)
    await world.until(lambda: not world.processes())


@inside
async def test_an_exec_dies_with_its_container_and_says_137(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    streams = [
        await world.runtime.exec(container, ("sh", "-c", "echo on; sleep 201"), tty=tty, stdin=True)
        for tty in (False, True)
    ]
    for each in streams:
        await until_output(each, b"on")
    await world.runtime.stop_container(container, 0)
    for each in streams:
        assert await all_of(each.read_stdout) == b""
        assert await each.wait() == 137
        await each.close()


@inside
async def test_an_exec_killed_by_a_signal_says_128_and_the_signal(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    streams = await world.runtime.exec(container, ("sleep", "201"), tty=False, stdin=False)
    os.kill(world.find("ExecStarted")[0].facts["pid"], signal.SIGTERM)
    assert await streams.wait() == 143
    await streams.close()


@inside
async def test_output_that_a_child_still_holds_comes_after_the_exit(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    streams = await world.runtime.exec(
        container, ("sh", "-c", "(sleep 0.3; echo late) & echo early"), tty=False, stdin=False
    )
    assert await streams.wait() == 0
    assert await all_of(streams.read_stdout) == b"early\nlate\n"
    await streams.close()


@inside
async def test_forty_execs_at_once_leave_no_descriptor_behind(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    await world.runtime.exec_sync(container, ("true",), 60)
    before = open_fds(world.shim_pid), open_fds(os.getpid())

    async def one(number: int) -> bytes:
        streams = await world.runtime.exec(
            container, ("sh", "-c", f"cat; echo {number}"), tty=number % 4 == 0, stdin=True
        )
        if number % 5 == 0:
            await streams.close()
            return b""
        await streams.write_stdin(b"x\n\x04" if number % 4 == 0 else b"x\n")
        await streams.close_stdin()
        data = await all_of(streams.read_stdout)
        assert await streams.wait() == 0
        await streams.close()
        return data

    answers = await asyncio.gather(*(one(number) for number in range(40)))
    assert all(str(number).encode() in answers[number] for number in range(40) if number % 5)
    await world.runtime.stop_container(container, 0)
    await world.until(lambda: not world.processes())
    await world.until(lambda: open_fds(os.getpid()) == before[1])
    await world.until(lambda: open_fds(world.shim_pid) < before[0])


@inside
async def test_attached_clients_see_what_comes_from_now_on_and_the_log_has_all(world: ShimWorld):
    script = "echo before; read x; echo got $x; echo bad >&2; read y; echo bye"
    container = await world.start(await world.sandbox(), "sh", "-c", script, stdin=True)
    await world.printed(container, "before")
    one = await world.runtime.attach(container, stdin=True, stdout=True, stderr=True)
    two = await world.runtime.attach(container, stdin=False, stdout=True, stderr=False)
    await one.write_stdin(b"hello\n")
    for each in (one, two):
        assert await until_output(each, b"got hello\n") == b"got hello\n"
    assert await one.read_stderr() == b"bad\n"
    await one.write_stdin(b"\n")
    for each in (one, two):
        assert await all_of(each.read_stdout) == b"bye\n"
        assert await each.wait() == 0
        await each.close()
    status = await world.ended(container)
    assert world.output(status, "stdout") == "before\ngot hello\nbye"
    with pytest.raises(RuntimeServiceError, match="container is in CONTAINER_EXITED state"):
        await world.runtime.attach(container, stdin=True, stdout=True, stderr=True)


@inside
async def test_the_end_of_an_attached_input_detaches_unless_stdin_is_once(world: ShimWorld):
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "sh", "-c", "cat; echo over; sleep 100", stdin=True)
    first = await world.runtime.attach(container, stdin=True, stdout=True, stderr=True)
    await first.write_stdin(b"one\n")
    await until_output(first, b"one\n")
    await first.close_stdin()
    assert await all_of(first.read_stdout) == b""
    await first.close()
    second = await world.runtime.attach(container, stdin=True, stdout=True, stderr=True)
    await second.write_stdin(b"two\n")
    assert await until_output(second, b"two\n") == b"two\n"
    await second.close()
    once = await world.start(sandbox, "sh", "-c", "cat; echo over", name="once", stdin=True, stdin_once=True)
    third = await world.runtime.attach(once, stdin=True, stdout=True, stderr=True)
    await third.write_stdin(b"three\n")
    await third.close_stdin()
    assert await all_of(third.read_stdout) == b"three\nover\n"
    await third.close()
    gone = await world.start(sandbox, "sh", "-c", "cat; echo over", name="gone", stdin=True, stdin_once=True)
    fourth = await world.runtime.attach(gone, stdin=True, stdout=True, stderr=True)
    await fourth.close()
    assert (await world.ended(gone)).exit_code == 0


@inside
async def test_a_container_s_terminal_is_input_and_output(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sh", stdin=True, tty=True)
    streams = await world.runtime.attach(container, stdin=True, stdout=True, stderr=False)
    streams.resize(99, 33)
    await streams.write_stdin(b"busybox stty size; exit 5\n")
    assert b"33 99\r\n" in await all_of(streams.read_stdout)
    await streams.close()
    assert (await world.ended(container)).exit_code == 5


@inside
async def test_an_attached_client_that_does_not_read_makes_the_container_wait_and_one_that_goes_frees_it(
    world: ShimWorld,
):
    script = "read x; head -c 500000 /dev/zero | tr '\\0' 'a'; echo; touch /tmp/done; sleep 100"
    container = await world.start(await world.sandbox(), "sh", "-c", script, stdin=True)
    slow = await world.runtime.attach(container, stdin=True, stdout=True, stderr=True)
    quick = await world.runtime.attach(container, stdin=False, stdout=True, stderr=True)
    await slow.write_stdin(b"\n")
    await quick.read_stdout()
    await waits(world, "tr ")
    assert (await world.runtime.exec_sync(container, ("test", "-e", "/tmp/done"), 60)).exit_code == 1
    await slow.close()
    await until_output(quick, b"\n")
    await world.runtime.exec_sync(container, ("sh", "-c", "while ! test -e /tmp/done; do sleep 0.05; done"), 60)
    await quick.close()
    await world.runtime.stop_container(container, 0)


@inside
async def test_a_port_is_reached_on_the_pod_s_own_loopback(world: ShimWorld):
    sandbox = await world.sandbox()
    await world.start(sandbox, "busybox", "nc", "-l", "-p", "8080", "-e", "cat")

    async def connect():
        async with asyncio.timeout(60):
            while True:
                try:
                    return await world.runtime.port_forward(sandbox, 8080)
                except RuntimeServiceError:
                    await asyncio.sleep(0.02)  # pause of a retry

    stream = await connect()
    data = os.urandom(1 << 20)
    write = asyncio.create_task(stream.write(data))
    got = b""
    while len(got) < len(data):
        piece = await stream.read()
        assert piece
        got += piece
    await write
    assert got == data
    await stream.close_write()
    assert await stream.read() == b""
    await stream.close()


@inside
async def test_a_port_where_nobody_listens_is_refused_in_containerd_s_words(world: ShimWorld):
    sandbox = await world.sandbox()
    with pytest.raises(RuntimeServiceError) as caught:
        await world.runtime.port_forward(sandbox, 9999)
    text = str(caught.value)
    assert f'failed to connect to localhost:9999 inside namespace "{sandbox}", IPv4: ' in text
    assert "dial tcp4 127.0.0.1:9999: connect: connection refused IPv6 dial tcp6" in text
    await world.runtime.stop_pod_sandbox(sandbox)
    with pytest.raises(RuntimeServiceError, match="is not running"):
        await world.runtime.port_forward(sandbox, 9999)


@inside
async def test_execs_of_a_node_that_is_gone_are_killed(world: ShimWorld):
    container = await world.start(await world.sandbox(), "sleep", "100")
    await world.runtime.exec(container, ("sleep", "201"), tty=True, stdin=True)
    await world.runtime.close()
    await world.until(lambda: list(world.processes().values()) == ["sleep 100 "])


@inside
async def test_a_user_may_open_the_streams_it_was_given_once_more(world: ShimWorld):
    """As programs do that log to /dev/stdout. Source: runc init_linux.go:fixStdioPermissions."""
    context = LinuxContainerSecurityContext(run_as_user=1000)
    script = "echo out > /dev/stdout; echo err > /dev/stderr; test -O /dev/stdout && echo own"
    container = await world.start(await world.sandbox(), "sh", "-c", f"{script}; sleep 100", security_context=context)
    await world.printed(container, "own")
    for tty in (False, True):
        streams = await world.runtime.exec(container, ("sh", "-c", script), tty=tty, stdin=True)
        said = await all_of(streams.read_stdout)
        assert said.replace(b"\r", b"") == (b"out\nerr\nown\n" if tty else b"out\nown\n")
        await streams.close()
    await world.runtime.stop_container(container, 0)


@inside
async def test_the_next_node_process_enters_and_attaches_to_what_it_adopted(world: ShimWorld):
    container = await world.start(
        await world.sandbox(), "sh", "-c", "read x; echo got $x; cat; echo over", stdin=True, stdin_once=True
    )
    before = await world.runtime.attach(container, stdin=False, stdout=True, stderr=True)
    await world.runtime.close()
    await before.close()
    world.runtime = world.new_runtime()
    await world.runtime.adopt()
    inside_it = await world.runtime.exec(container, ("echo", "here"), tty=False, stdin=False)
    assert await all_of(inside_it.read_stdout) == b"here\n"
    assert await inside_it.wait() == 0
    await inside_it.close()
    streams = await world.runtime.attach(container, stdin=True, stdout=True, stderr=True)
    await streams.write_stdin(b"hello\n")
    await streams.close_stdin()
    assert await all_of(streams.read_stdout) == b"got hello\nover\n"
    await streams.close()
    assert (await world.ended(container)).exit_code == 0
