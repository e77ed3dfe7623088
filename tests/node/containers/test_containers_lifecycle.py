"""A container from its start to its end: exit codes, signals, deadlines, leftovers."""
# ruff: noqa: ASYNC240 - a scenario has its process to itself

import pytest
from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import ContainerState

pytestmark = pytest.mark.core


@pytest.mark.rule("node-semantics 12.4/1, 17.2/path")
@inside
async def test_a_command_that_ends_by_itself_is_completed_with_its_output_in_the_log(world: ShimWorld):
    status, output = await world.run("sh", "-c", "echo hello; echo oops >&2")
    assert (status.exit_code, status.reason) == (0, "Completed")
    assert output.splitlines() == ["hello", "oops"]
    assert status.created_at <= status.started_at <= status.finished_at
    assert status.state == ContainerState.CONTAINER_EXITED
    sequence = world.sequence()
    assert sequence[0] == "ProcessStarted"
    assert sequence[-1] == "ProcessExited"
    assert sorted(sequence[1:-1]) == ["Output", "Output"]
    started = world.find("ProcessStarted")[0]
    assert started.facts["exe"] == "/bin/busybox"
    assert (started.pod_uid, started.container) == ("uid-1", "c")


@pytest.mark.rule("node-semantics 12.4/2")
@inside
async def test_the_exit_code_is_the_process_s_own_or_128_and_the_signal(world: ShimWorld):
    sandbox = await world.sandbox()
    for command, code, signal in (
        ("exit 3", 3, None),
        ("kill -9 $$; sleep 9", 137, "SIGKILL"),
        ("exit 255", 255, None),
    ):
        # PID 1 cannot kill itself: a process that shares the machine's PIDs can.
        container = await world.start(sandbox, "sh", "-c", command) if signal is None else None
        if container is None:
            container = await world.start(sandbox, "sleep", "100")
            await world.runtime.stop_container(container, 0)
        status = await world.ended(container)
        assert (status.exit_code, status.reason) == (code, "Error")
        exited = world.find("ProcessExited")[-1].facts
        assert (exited["exitCode"], exited["signal"], exited["containerId"]) == (code, signal, container)


@inside
async def test_a_handler_gets_the_stop_signal_and_its_mask_is_on_record_before_it(world: ShimWorld):
    sandbox = await world.sandbox()
    script = "trap 'echo bye; exit 7' TERM; echo up; while true; do sleep 0.05; done"
    container = await world.start(sandbox, "sh", "-c", script)
    await world.printed(container, "up")
    await world.runtime.stop_container(container, 30)
    status = await world.runtime.container_status(container)
    assert (status.exit_code, status.reason) == (7, "Error")
    state = world.find("ProcessSignalState")[0].facts
    assert state["disposition"] == "handled"
    assert "SIGTERM" in state["caught"]
    assert (state["signal"], state["exe"]) == ("SIGTERM", "/bin/busybox")
    sent = world.find("SignalSent")
    assert [(r.facts["signal"], r.facts["why"]) for r in sent] == [("SIGTERM", "StopContainer")]
    assert sent[0].facts["pid"] == world.find("ProcessStarted")[0].facts["pid"]
    # A child of the shell may have been ending at the last look: that is told after the exit, at any time.
    others = ("ProcessStarted", "ProcessesAtStop", "ProcessesLeft", "ChildEnded")
    ends = [kind for kind in world.sequence() if kind not in others]
    assert ends == ["Output", "ProcessSignalState", "SignalSent", "Output", "ProcessExited"]


@pytest.mark.rule("node-semantics 22.3/timeout")
@inside
async def test_a_pid_1_without_a_handler_is_deaf_and_is_killed_at_the_deadline_never_before(world: ShimWorld):
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "sleep", "100")
    await world.runtime.stop_container(container, 1)
    status = await world.runtime.container_status(container)
    assert (status.exit_code, status.reason) == (137, "Error")
    assert world.find("ProcessSignalState")[0].facts["disposition"] == "default"
    term, kill = world.find("SignalSent")
    assert (term.facts["signal"], kill.facts["signal"], kill.facts["why"]) == ("SIGTERM", "SIGKILL", "grace over")
    assert kill.at_ns - term.at_ns >= 1_000_000_000
    assert len(world.find("ProcessSignalState")) == 1


@inside
async def test_an_ignored_stop_signal_is_told_as_ignored(world: ShimWorld):
    container = await world.start(
        await world.sandbox(), "sh", "-c", "trap '' TERM; echo up; while true; do sleep 1; done"
    )
    await world.printed(container, "up")
    await world.runtime.stop_container(container, 1)
    state = world.find("ProcessSignalState")[0].facts
    assert state["disposition"] == "ignored"
    assert "SIGTERM" in state["ignored"]


@pytest.mark.rule("node-semantics 22.3/once")
@inside
async def test_the_stop_signal_is_sent_once_however_often_stop_is_called(world: ShimWorld):
    import asyncio

    container = await world.start(
        await world.sandbox(), "sh", "-c", "trap 'echo got' TERM; echo up; while true; do sleep 0.05; done"
    )
    await world.printed(container, "up")
    first = asyncio.create_task(world.runtime.stop_container(container, 30))
    await world.printed(container, "got")
    await world.runtime.stop_container(container, 1)
    await first
    sent = [r.facts["signal"] for r in world.find("SignalSent")]
    assert sent == ["SIGTERM", "SIGKILL"]
    status = await world.runtime.container_status(container)
    assert world.output(status).count("got") == 1
    await world.runtime.stop_container(container, 5)
    await world.runtime.stop_container("unknown", 5)


@pytest.mark.rule("node-semantics 22.3/cancelled, 20/8")
@inside
async def test_a_stop_whose_caller_has_gone_does_not_kill(world: ShimWorld):
    import asyncio

    container = await world.start(await world.sandbox(), "sleep", "100")
    task = asyncio.create_task(world.runtime.stop_container(container, 1))
    await world.until(lambda: world.find("SignalSent"))
    task.cancel()
    await asyncio.wait([task])
    await asyncio.sleep(1.2)  # longer than the grace period: no second signal comes
    assert (await world.runtime.container_status(container)).state == ContainerState.CONTAINER_RUNNING
    assert len(world.find("SignalSent")) == 1


@inside
async def test_a_stop_signal_of_the_container_s_own_is_used(world: ShimWorld):
    script = "trap 'exit 4' USR1; echo up; while true; do sleep 0.05; done"
    container = await world.start(await world.sandbox(), "sh", "-c", script, stop_signal="SIGUSR1")
    await world.printed(container, "up")
    await world.runtime.stop_container(container, 30)
    assert (await world.runtime.container_status(container)).exit_code == 4


@pytest.mark.rule("node-semantics 22.3/pid-1")
@inside
async def test_killing_pid_1_takes_every_process_of_the_container_along(world: ShimWorld):
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "sh", "-c", "sleep 100 & sleep 200 & echo up; wait")
    await world.printed(container, "up")
    # A process that is just executing has an empty command line: the shell's word may come before its children's.
    await world.until(lambda: len(world.processes()) == 3)
    await world.runtime.stop_container(container, 0)
    assert world.processes() == {}


@pytest.mark.rule("node-semantics 22.1/leftovers, 22.1/idempotent, 22.2/del")
@inside
async def test_stopping_the_sandbox_kills_what_is_left_and_detaches_the_network_and_can_be_repeated(world: ShimWorld):
    sandbox = await world.sandbox()
    assert (await world.runtime.pod_sandbox_status(sandbox)).ips == ("10.244.0.2",)
    containers = [await world.start(sandbox, "sleep", "100", name=name) for name in ("a", "b")]
    await world.runtime.stop_pod_sandbox(sandbox)
    for container in containers:
        assert (await world.runtime.container_status(container)).exit_code == 137
    assert {r.facts["why"] for r in world.find("SignalSent")} == {"StopPodSandbox"}
    status = await world.runtime.pod_sandbox_status(sandbox)
    assert (status.state.name, status.ips) == ("SANDBOX_NOTREADY", ())
    assert world.network.attached == {}
    await world.runtime.stop_pod_sandbox(sandbox)
    await world.runtime.remove_pod_sandbox(sandbox)
    await world.runtime.remove_pod_sandbox(sandbox)
    assert await world.runtime.list_pod_sandbox() == []
    assert await world.runtime.list_containers() == []


@inside
async def test_a_network_that_cannot_be_detached_fails_the_stop_until_it_can(world: ShimWorld):
    import pytest

    from lastcall.kube.cri.api import RuntimeServiceError

    sandbox = await world.sandbox()
    world.network.error = RuntimeServiceError("netlink says no")
    with pytest.raises(RuntimeServiceError, match="netlink says no"):
        await world.runtime.stop_pod_sandbox(sandbox)
    world.network.error = None
    await world.runtime.stop_pod_sandbox(sandbox)
    assert world.network.attached == {}


@pytest.mark.rule("node-semantics 22.2/add")
@inside
async def test_a_network_that_cannot_be_attached_leaves_no_sandbox_behind(world: ShimWorld):
    import os

    import pytest

    from lastcall.kube.cri.api import RuntimeServiceError

    world.network.error = RuntimeServiceError("no address left")
    with pytest.raises(RuntimeServiceError, match="no address left"):
        await world.sandbox()
    world.network.error = None
    assert await world.runtime.list_pod_sandbox() == []
    await world.until(lambda: os.listdir("/mnt/shim/sandboxes") == [])


@inside
async def test_events_tell_of_every_step(world: ShimWorld):
    events = world.runtime.get_container_events()
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "true")
    await world.ended(container)
    await world.runtime.stop_pod_sandbox(sandbox)
    await world.runtime.remove_pod_sandbox(sandbox)
    seen = []
    while len(seen) < 8:
        event = await anext(events)
        seen.append((event.container_id == sandbox, event.container_event_type.name.split("_")[1]))
        assert event.pod_uid == "uid-1"
    assert seen == [
        (True, "CREATED"),
        (True, "STARTED"),
        (False, "CREATED"),
        (False, "STARTED"),
        (False, "STOPPED"),
        (True, "STOPPED"),
        (False, "DELETED"),
        (True, "DELETED"),
    ]


@inside
async def test_a_removed_container_leaves_no_file_and_no_process(world: ShimWorld):
    import os

    sandbox = await world.sandbox()
    container = await world.start(
        sandbox, "sh", "-c", "mkdir -p /a/b; echo x > /a/b/c; rm -rf /lower; echo up; sleep 100"
    )
    await world.printed(container, "up")
    await world.runtime.remove_container(container)
    await world.runtime.remove_container(container)
    assert os.listdir("/mnt/containers") == ["records"]
    assert [name for name in os.listdir("/mnt/containers/records") if not name.startswith("sandbox-")] == []
    await world.until(lambda: os.listdir("/mnt/shim/processes") == [])
    assert world.processes() == {}


@pytest.mark.rule("node-semantics 17.2/lines")
@inside
async def test_long_and_unfinished_lines_are_split_as_containerd_splits_them(world: ShimWorld):
    from pathlib import Path

    status, _ = await world.run("sh", "-c", "head -c 20000 /dev/zero | tr '\\0' x; echo; echo -n end")
    lines = Path(status.log_path).read_bytes().decode().splitlines()
    parts = [line.split(" ", 3) for line in lines]
    assert [(part[2], len(part[3])) for part in parts] == [("P", 16384), ("F", 3616), ("P", 3)]
    assert all(part[0].endswith("Z") and "T" in part[0] for part in parts)


@inside
async def test_a_flood_of_output_reaches_the_log_whole_and_the_records_in_part(world: ShimWorld):
    status, output = await world.run("seq", "1", "30000")
    assert status.exit_code == 0
    assert output.split("\n") == [str(number) for number in range(1, 30001)]
    told = world.find("Output")
    assert 100 < len(told) < 5000
    assert world.find("ProcessExited")


@inside
async def test_ten_containers_start_at_once(world: ShimWorld):
    import asyncio

    sandbox = await world.sandbox()
    names = [f"c{number}" for number in range(10)]
    containers = await asyncio.gather(*(world.start(sandbox, "sh", "-c", f"echo {name}", name=name) for name in names))
    for name, container in zip(names, containers, strict=True):
        assert world.output(await world.ended(container)) == name


@inside
async def test_a_sandbox_stopped_while_its_container_starts_leaves_nothing_running(world: ShimWorld):
    import asyncio

    for pause in (0, 0, 0.001, 0.002, 0.003, 0.004):
        sandbox = await world.sandbox()
        good, bad = await world.create(sandbox, "sleep", "100"), await world.create(sandbox, "nosuch", name="bad")
        starts = [asyncio.create_task(world.runtime.start_container(container)) for container in (good, bad)]
        await asyncio.sleep(pause)  # cancel at different stages; any is right
        for start in starts:
            start.cancel()
        await world.runtime.stop_pod_sandbox(sandbox)
        await asyncio.wait(starts)
        assert world.processes() == {}
        await world.runtime.remove_pod_sandbox(sandbox)
    assert await world.runtime.list_containers() == []
