"""The simulated runtime: CRI's semantics in virtual time."""

import asyncio
import inspect
from dataclasses import replace

import pytest
from fake_api import ListRecorder

from lastcall.kube.cri.api import (
    ContainerConfig,
    ContainerEventType,
    ContainerMetadata,
    ContainerState,
    ImageService,
    NamespaceOption,
    PodSandboxConfig,
    PodSandboxMetadata,
    PodSandboxState,
    RuntimeService,
    RuntimeServiceError,
)
from lastcall.kube.cri.sandbox.images.store import ImageStore
from lastcall.kube.cri.sandbox.runtime import SandboxRuntime
from lastcall.kube.cri.simulated import Durations, SimulatedImage, SimulatedRuntime
from lastcall.kube.cri.simulated_program import ExecResult, Program
from lastcall.world.clock import monotonic
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

INSTANT = Durations(0, 0, 0, 0, 0, 0)


def sandbox_config(uid="u-1", network="POD", **annotations) -> PodSandboxConfig:
    return PodSandboxConfig(
        PodSandboxMetadata("web", uid, "default"),
        log_directory="/log",
        namespace_options=NamespaceOption(network=network),
        annotations=annotations,
    )


def container_config(name="app", image="app:1", attempt=0, **fields) -> ContainerConfig:
    return ContainerConfig(ContainerMetadata(name, attempt), image, log_path=f"{name}/{attempt}.log", **fields)


def with_runtime(test, programs=None, durations=INSTANT, **options):
    async def main(world: World):
        recorder = ListRecorder(world)
        runtime = SimulatedRuntime(world, recorder, programs or {}, durations=durations, **options)
        async with runtime:
            return await test(world, runtime, recorder)

    return run_virtual(main)


async def started(runtime: SimulatedRuntime, config: ContainerConfig | None = None) -> tuple[str, str]:
    sandbox = sandbox_config()
    sandbox_id = await runtime.run_pod_sandbox(sandbox)
    container_id = await runtime.create_container(sandbox_id, config or container_config(), sandbox)
    await runtime.start_container(container_id)
    return sandbox_id, container_id


def differences(service: type, offered: type) -> list[str]:
    """How a class is not what a Protocol asks for: methods that it lacks, that are asynchronous or not, parameters."""
    found = []
    for name, asked in vars(service).items():
        if name.startswith("_") or not inspect.isfunction(asked):
            continue
        method = getattr(offered, name, None)
        if not inspect.isfunction(method):
            found.append(f"{name} is missing")
            continue
        if inspect.iscoroutinefunction(asked) != inspect.iscoroutinefunction(method):
            found.append(f"{name}: asynchronous or not")
        wanted, has = (
            [(each.name, each.kind, each.default) for each in inspect.signature(function).parameters.values()]
            for function in (asked, method)
        )
        if wanted != has:
            found.append(f"{name}{inspect.signature(method)} in place of {inspect.signature(asked)}")
    return found


@pytest.mark.parametrize("runtime", [SimulatedRuntime, SandboxRuntime])
def test_a_runtime_is_a_runtime_service(runtime: type) -> None:
    assert differences(RuntimeService, runtime) == []


@pytest.mark.parametrize("images", [SimulatedRuntime, ImageStore])
def test_images_are_an_image_service(images: type) -> None:
    assert differences(ImageService, images) == []


def test_a_class_that_is_no_runtime_service_is_told_from_one() -> None:
    class Almost(SimulatedRuntime):
        version = None

        async def stop_container(self, container_id: str, timeout: float, signal: int) -> None: ...

        def start_container(self, container_id: str) -> None: ...

    told = differences(RuntimeService, Almost)
    assert [each.split("(")[0].split(":")[0] for each in told] == ["start_container", "stop_container"]


def test_a_program_that_exits_on_term_drains_and_gives_its_exit_code():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        await runtime.stop_container(container, 30)
        status = await runtime.container_status(container)
        assert monotonic(world.clock) == 3.0
        assert (status.state, status.exit_code, status.reason) == (ContainerState.CONTAINER_EXITED, 7, "Error")
        assert recorder.kinds() == [
            "NetworkAttached",
            "ProcessStarted",
            "ProcessSignalState",
            "SignalSent",
            "Output",
            "ProcessExited",
        ]
        assert {r["evidence"] for r in recorder.records} == {"predicted"}

    program = Program(drain_seconds=3, exit_code=7, term_output=((1.0, "draining"),))
    with_runtime(test, {"app": program})


@pytest.mark.parametrize(("on_term", "disposition"), [("ignore", "handled"), ("default", "default")])
def test_a_program_that_does_not_end_is_killed_exactly_when_the_timeout_is_over(on_term, disposition):
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        await runtime.stop_container(container, 4)
        status = await runtime.container_status(container)
        assert (monotonic(world.clock), status.exit_code, status.reason) == (4.0, 137, "Error")
        signals = [(r["facts"]["signal"], r["facts"]["why"]) for r in recorder.records if r["kind"] == "SignalSent"]
        assert signals == [("SIGTERM", "StopContainer"), ("SIGKILL", "grace over")]
        state = next(r for r in recorder.records if r["kind"] == "ProcessSignalState")
        assert state["facts"]["disposition"] == disposition

    with_runtime(test, {"app": Program(on_term=on_term)})


@pytest.mark.rule("node-semantics 22.3/zero")
def test_timeout_0_kills_at_once_without_the_stop_signal():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        await runtime.stop_container(container, 0)
        assert [r["facts"]["signal"] for r in recorder.records if r["kind"] == "SignalSent"] == ["SIGKILL"]
        assert (await runtime.container_status(container)).exit_code == 137

    with_runtime(test, {"app": Program(drain_seconds=5)})


@pytest.mark.rule("node-semantics 22.3/once, 22.3/cancelled")
def test_the_stop_signal_is_sent_once_and_a_caller_who_goes_away_leaves_no_kill_behind():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await runtime.stop_container(container, 10)
        await world.clock.sleep(100)
        assert (await runtime.container_status(container)).state == ContainerState.CONTAINER_RUNNING
        await runtime.stop_container(container, 5)
        assert monotonic(world.clock) == 107.0
        signals = [r["facts"]["signal"] for r in recorder.records if r["kind"] == "SignalSent"]
        assert signals == ["SIGTERM", "SIGKILL"]

    with_runtime(test, {"app": Program(on_term="ignore")})


def test_a_sigkill_that_was_sent_ends_its_process_also_when_the_caller_goes_away():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await runtime.stop_container(container, 0)
        assert [r["facts"]["signal"] for r in recorder.records if r["kind"] == "SignalSent"] == ["SIGKILL"]
        assert (await runtime.container_status(container)).exit_code == 137

    with_runtime(test, {"app": Program(drain_seconds=5)}, replace(INSTANT, signal=1.0))


@pytest.mark.rule("node-semantics 22.3/not-running, 22.1/idempotent")
def test_stopping_what_is_unknown_or_not_running_succeeds():
    async def test(world, runtime, recorder):
        await runtime.stop_container("unknown", 10)
        await runtime.remove_container("unknown")
        await runtime.stop_pod_sandbox("unknown")
        await runtime.remove_pod_sandbox("unknown")
        _, container = await started(runtime)
        await world.clock.sleep(2)
        await runtime.stop_container(container, 10)
        assert monotonic(world.clock) == 2.0

    with_runtime(test, {"app": Program(exits_after=1)})


def test_the_stop_signal_of_the_config_is_used():
    async def test(world, runtime, recorder):
        _, container = await started(runtime, container_config(stop_signal="SIGUSR1"))
        await runtime.stop_container(container, 10)
        assert [r["facts"]["signal"] for r in recorder.records if r["kind"] == "SignalSent"] == ["SIGUSR1"]

    with_runtime(test)


def test_a_program_ends_by_itself_and_a_term_before_does_not_postpone_that():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        await world.clock.sleep(4)
        await runtime.stop_container(container, 30)
        status = await runtime.container_status(container)
        assert (monotonic(world.clock), status.exit_code) == (5.0, 3)

    with_runtime(test, {"app": Program(exits_after=5, natural_exit_code=3, drain_seconds=20)})


def test_a_foreign_kill_and_the_oom_killer_are_seen():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        runtime.kill(container, oom=True)
        status = await runtime.container_status(container)
        assert (status.exit_code, status.reason) == (137, "OOMKilled")
        assert recorder.records[-1]["facts"]["oomKilled"] is True

    with_runtime(test)


@pytest.mark.rule("node-semantics 12.4/4")
def test_a_process_that_cannot_be_executed_is_a_start_error_with_128():
    async def test(world, runtime, recorder):
        sandbox = sandbox_config()
        sandbox_id = await runtime.run_pod_sandbox(sandbox)
        container = await runtime.create_container(sandbox_id, container_config(), sandbox)
        with pytest.raises(RuntimeServiceError) as refused:
            await runtime.start_container(container)
        assert refused.value.reason == "StartError"
        status = await runtime.container_status(container)
        assert (status.state, status.exit_code, status.reason, status.message, status.started_at) == (
            ContainerState.CONTAINER_EXITED,
            128,
            "StartError",
            "no such file",
            0,
        )

    with_runtime(test, {"app": Program(start_error="no such file")})


# exec


def test_an_exec_takes_its_time_and_answers():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        answer = await runtime.exec_sync(container, ("sh", "-c", "sleep 3; echo done"), 0)
        assert (answer.stdout, answer.exit_code, monotonic(world.clock)) == (b"done\n", 0, 3.0)
        assert recorder.kinds()[-2:] == ["ExecStarted", "ExecExited"]

    with_runtime(test)


@pytest.mark.parametrize(
    ("cmd", "code"),
    [(("true",), 0), (("/bin/false",), 1), (("sh", "-c", "exit 4"), 4), (("sh", "-c", "nothing"), 127)],
)
def test_well_known_commands_do_what_they_say(cmd, code):
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        assert (await runtime.exec_sync(container, cmd, 0)).exit_code == code

    with_runtime(test)


def test_an_exec_answers_one_call_after_the_other_and_the_last_answer_for_ever():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        codes = [(await runtime.exec_sync(container, ("check",), 1)).exit_code for _ in range(4)]
        assert codes == [1, 0, 2, 2]

    results = (ExecResult(exit_code=1), ExecResult(), ExecResult(exit_code=2))
    with_runtime(test, {"app": Program(execs={"check": results})})


def test_an_exec_dies_with_its_container():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        answer = await runtime.exec_sync(container, ("sleep", "60"), 0)
        assert (answer.exit_code, monotonic(world.clock)) == (137, 2.0)
        assert recorder.records[-1]["facts"]["killedBecause"] == "container exited"

    with_runtime(test, {"app": Program(exits_after=2)})


def test_an_exec_that_comes_as_its_container_ends_is_refused():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        await world.clock.sleep(1.9)
        with pytest.raises(RuntimeServiceError, match="CONTAINER_EXITED"):
            await runtime.exec_sync(container, ("true",), 0)
        assert recorder.kinds()[-1] == "ProcessExited"

    with_runtime(test, {"app": Program(exits_after=2)}, durations=Durations(exec_start=0.2))


def test_an_exec_over_its_timeout_is_killed():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        with pytest.raises(RuntimeServiceError) as late:
            await runtime.exec_sync(container, ("sleep", "60"), 1.5)
        assert (late.value.reason, monotonic(world.clock)) == ("DeadlineExceeded", 1.5)
        assert recorder.records[-1]["facts"]["killedBecause"] == "exec timeout"

    with_runtime(test)


def test_cancelling_an_exec_kills_it():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        async with Tasks() as tasks:
            exec_ = tasks.spawn(runtime.exec_sync(container, ("sleep", "60"), 0), name="exec")
            await world.clock.sleep(1)
            exec_.cancel()
        assert recorder.records[-1]["facts"]["killedBecause"] == "caller gone"

    with_runtime(test)


def test_an_exec_of_a_missing_binary_or_in_a_dead_container_is_refused():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        with pytest.raises(RuntimeServiceError, match="executable file not found"):
            await runtime.exec_sync(container, ("no-such-binary",), 0)
        await runtime.stop_container(container, 1)
        with pytest.raises(RuntimeServiceError, match="CONTAINER_EXITED"):
            await runtime.exec_sync(container, ("true",), 0)

    with_runtime(test)


# sandboxes


def test_stopping_a_sandbox_kills_what_is_left_then_takes_the_network_away():
    async def test(world, runtime, recorder):
        sandbox, container = await started(runtime)
        assert (await runtime.pod_sandbox_status(sandbox)).ips == ("10.244.0.2",)
        await runtime.stop_pod_sandbox(sandbox)
        await runtime.stop_pod_sandbox(sandbox)
        assert (await runtime.container_status(container)).exit_code == 137
        assert (await runtime.pod_sandbox_status(sandbox)).state == PodSandboxState.SANDBOX_NOTREADY
        assert recorder.kinds()[-3:] == ["SignalSent", "ProcessExited", "NetworkDetached"]
        await runtime.remove_pod_sandbox(sandbox)
        assert await runtime.list_pod_sandbox() == []
        assert await runtime.list_containers() == []

    with_runtime(test)


def test_a_failing_cni_del_leaves_the_sandbox_ready_until_it_succeeds():
    async def test(world, runtime, recorder):
        sandbox, container = await started(runtime)
        runtime.fail_next("cni_del", "plugin bridge failed", times=2)
        for _ in range(2):
            with pytest.raises(RuntimeServiceError, match="plugin bridge failed"):
                await runtime.stop_pod_sandbox(sandbox)
            assert (await runtime.pod_sandbox_status(sandbox)).state == PodSandboxState.SANDBOX_READY
        await runtime.stop_pod_sandbox(sandbox)
        detached = [r["facts"]["error"] for r in recorder.records if r["kind"] == "NetworkDetached"]
        assert detached == ["plugin bridge failed", "plugin bridge failed", ""]
        assert (await runtime.container_status(container)).state == ContainerState.CONTAINER_EXITED

    with_runtime(test)


def test_a_sandbox_in_the_nodes_network_has_no_address():
    async def test(world, runtime, recorder):
        sandbox = await runtime.run_pod_sandbox(sandbox_config(network="NODE"))
        assert (await runtime.pod_sandbox_status(sandbox)).ips == ()
        await runtime.stop_pod_sandbox(sandbox)
        assert recorder.kinds() == []

    with_runtime(test)


def test_lists_have_the_newest_first_and_can_be_of_one_pod():
    async def test(world, runtime, recorder):
        one, two = sandbox_config("u-1"), sandbox_config("u-2")
        first = await runtime.run_pod_sandbox(one)
        second = await runtime.run_pod_sandbox(two)
        a = await runtime.create_container(first, container_config(attempt=0), one)
        b = await runtime.create_container(first, container_config(attempt=1), one)
        c = await runtime.create_container(second, container_config(), two)
        assert [s.id for s in await runtime.list_pod_sandbox()] == [second, first]
        assert [s.id for s in await runtime.list_containers()] == [c, b, a]
        assert [s.id for s in await runtime.list_containers("u-1")] == [b, a]
        assert (await runtime.container_status(b)).log_path == "/log/app/1.log"

    with_runtime(test)


def test_unknown_ids_are_not_found():
    async def test(world, runtime, recorder):
        for call in (runtime.pod_sandbox_status("x"), runtime.container_status("x"), runtime.start_container("x")):
            with pytest.raises(RuntimeServiceError) as refused:
                await call
            assert refused.value.reason == "NotFound"

    with_runtime(test)


# events, images, failures


def test_every_step_is_on_the_event_stream_from_the_call_on():
    async def test(world, runtime, recorder):
        early = runtime.get_container_events()
        sandbox, container = await started(runtime)
        late = runtime.get_container_events()
        await runtime.stop_container(container, 5)
        await runtime.remove_container(container)
        await runtime.close()
        kinds = [(e.container_id, e.container_event_type) async for e in early]
        E = ContainerEventType
        assert kinds == [
            (sandbox, E.CONTAINER_CREATED_EVENT),
            (sandbox, E.CONTAINER_STARTED_EVENT),
            (container, E.CONTAINER_CREATED_EVENT),
            (container, E.CONTAINER_STARTED_EVENT),
            (container, E.CONTAINER_STOPPED_EVENT),
            (container, E.CONTAINER_DELETED_EVENT),
        ]
        assert [e.container_event_type async for e in late] == [
            E.CONTAINER_STOPPED_EVENT,
            E.CONTAINER_DELETED_EVENT,
        ]

    with_runtime(test)


def test_images_are_present_unless_said_otherwise_and_pulls_take_time_or_fail():
    async def test(world, runtime, recorder):
        assert await runtime.image_status("busybox:1.36") is not None
        assert await runtime.image_status("slow") is None
        ref = await runtime.pull_image("slow")
        assert (monotonic(world.clock), (await runtime.image_status("slow")).id) == (6.0, ref)
        with pytest.raises(RuntimeServiceError) as refused:
            await runtime.pull_image("missing")
        assert refused.value.reason == "ImageNotFound"
        assert [i.repo_tags for i in await runtime.list_images()] == [("slow",)]
        await runtime.remove_image("slow")
        assert await runtime.image_status("slow") is None

    images = {
        "slow": SimulatedImage(present=False, pull_seconds=6),
        "missing": SimulatedImage(present=False, error="not found"),
    }
    with_runtime(test, images=images)


def test_any_verb_can_be_made_to_fail_and_to_take_its_time():
    async def test(world, runtime, recorder):
        _, container = await started(runtime)
        runtime.fail_next("stop_container", "deadline exceeded", seconds=3)
        with pytest.raises(RuntimeServiceError, match="deadline exceeded"):
            await runtime.stop_container(container, 30)
        assert monotonic(world.clock) == 3.0
        await runtime.stop_container(container, 30)
        assert (await runtime.container_status(container)).exit_code == 0

    with_runtime(test)


def test_programs_are_chosen_by_annotation_image_name_container_name_or_default():
    async def test(world, runtime, recorder):
        async def exit_code(config, **annotations):
            sandbox = sandbox_config(**annotations)
            sandbox_id = await runtime.run_pod_sandbox(sandbox)
            container = await runtime.create_container(sandbox_id, config, sandbox)
            await runtime.start_container(container)
            await runtime.stop_container(container, 1)
            return (await runtime.container_status(container)).exit_code

        assert await exit_code(container_config(image="host:5000/web:2")) == 1
        assert await exit_code(container_config(image="host:5000/web@sha256:00")) == 1
        assert await exit_code(container_config(name="side", image="x")) == 2
        assert await exit_code(container_config(image="x")) == 3
        named = {"lastcall.dev/program": "by-annotation"}
        assert await exit_code(container_config(image="host:5000/web"), **named) == 4
        with pytest.raises(RuntimeServiceError, match="no program 'nowhere'; there are:"):
            await exit_code(container_config(), **{"lastcall.dev/program.app": "nowhere"})

    programs = {
        "host:5000/web": Program(exit_code=1),
        "side": Program(exit_code=2),
        "": Program(exit_code=3),
        "by-annotation": Program(exit_code=4),
    }
    with_runtime(test, programs)


def test_outside_async_with_nothing_is_started_silently():
    async def main(world: World):
        runtime = SimulatedRuntime(world, ListRecorder(world), {"app": Program(exits_after=1)}, durations=INSTANT)
        with pytest.raises(RuntimeError, match="async with"):
            await started(runtime)

    run_virtual(main)


def test_a_thousand_pods_of_thirty_seconds_cost_no_real_time_and_two_runs_are_alike():
    async def test(world, runtime, recorder):
        async with Tasks() as tasks:
            for number in range(1000):
                sandbox = sandbox_config(f"u-{number}")
                sandbox_id = await runtime.run_pod_sandbox(sandbox)
                container = await runtime.create_container(sandbox_id, container_config(), sandbox)
                await runtime.start_container(container)
                tasks.spawn(runtime.stop_container(container, 30), name=f"stop {number}")
        return recorder.records

    first = with_runtime(test, {"app": Program(on_term="ignore")}, durations=Durations())
    assert first == with_runtime(test, {"app": Program(on_term="ignore")}, durations=Durations())
    assert sum(1 for r in first if r["kind"] == "ProcessExited") == 1000
