"""Probes and hooks against simulated programs, with Go's words."""

from dataclasses import dataclass

import pytest
from fake_api import ListRecorder

from lastcall.kube.cri.api import (
    ContainerConfig,
    ContainerMetadata,
    PodSandboxConfig,
    PodSandboxMetadata,
)
from lastcall.kube.cri.simulated import Durations, SimulatedRuntime
from lastcall.kube.cri.simulated_dialer import SimulatedDialer
from lastcall.kube.cri.simulated_program import HTTPAnswer, Listener, Program
from lastcall.world.clock import monotonic
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

IP = "10.244.0.2"


@dataclass
class Response:
    status: int
    body: bytes
    headers: dict


class DialError(Exception):
    pass


def with_dialer(program, test):
    async def main(world: World):
        durations = Durations(0, 0, 0, 0, 0, 0)
        async with SimulatedRuntime(world, ListRecorder(world), {"": program}, durations=durations) as runtime:
            sandbox = PodSandboxConfig(PodSandboxMetadata("web", "u", "default"))
            sandbox_id = await runtime.run_pod_sandbox(sandbox)
            config = ContainerConfig(ContainerMetadata("app"), "app")
            container = await runtime.create_container(sandbox_id, config, sandbox)
            await runtime.start_container(container)
            dialer = SimulatedDialer(world, runtime, response=Response, error=DialError)
            await test(world, runtime, dialer, sandbox_id, container)

    run_virtual(main)


WEB = Program(
    drain_seconds=20,
    ports={
        8080: Listener(
            paths={"/slow": HTTPAnswer(seconds=2), "/hang": HTTPAnswer(hangs=True), "/no": HTTPAnswer(503, b"no")},
            on_term=HTTPAnswer(503, b"draining"),
        ),
        9090: Listener(opens_after=5, closes_on_term=True),
    },
)


def test_paths_answer_as_the_program_says():
    async def test(world, runtime, dialer, sandbox, container):
        assert (await dialer.http_get(f"http://{IP}:8080/", [("A", "b")], 1)).status == 200
        assert await dialer.http_get(f"http://{IP}:8080/no", [], 1) == Response(503, b"no", {})
        assert (await dialer.http_get(f"http://{IP}:8080/slow", [], None)).status == 200
        assert monotonic(world.clock) == 2.0
        assert dialer.requests[0] == (f"http://{IP}:8080/", [("A", "b")])

    with_dialer(WEB, test)


def test_answers_change_and_ports_close_at_sigterm():
    async def test(world, runtime, dialer, sandbox, container):
        with pytest.raises(DialError, match="connection refused"):
            await dialer.tcp_connect(IP, 9090, 1)
        await world.clock.sleep(5)
        await dialer.tcp_connect(IP, 9090, 1)
        async with Tasks() as tasks:
            tasks.spawn(runtime.stop_container(container, 30), name="stop")
            await world.clock.sleep(1)
            assert (await dialer.http_get(f"http://{IP}:8080/", [], 1)).body == b"draining"
            with pytest.raises(DialError, match=f"dial tcp {IP}:9090: connect: connection refused"):
                await dialer.tcp_connect(IP, 9090, 1)

    with_dialer(WEB, test)


def test_what_takes_too_long_is_cut_at_the_timeout():
    async def test(world, runtime, dialer, sandbox, container):
        for path in ("/slow", "/hang"):
            start = monotonic(world.clock)
            with pytest.raises(DialError) as late:
                await dialer.http_get(f"http://{IP}:8080{path}", [], 1.0)
            assert str(late.value) == (
                f'Get "http://{IP}:8080{path}": context deadline exceeded '
                "(Client.Timeout exceeded while awaiting headers)"
            )
            assert monotonic(world.clock) - start == 1.0

    with_dialer(WEB, test)


def test_a_hook_that_hangs_breaks_when_the_container_ends():
    async def test(world, runtime, dialer, sandbox, container):
        async with Tasks() as tasks:
            tasks.spawn(runtime.stop_container(container, 3), name="stop")
            with pytest.raises(DialError, match="EOF"):
                await dialer.http_get(f"http://{IP}:8080/hang", [], None)
        assert monotonic(world.clock) == 3.0

    program = Program(on_term="ignore", ports={8080: Listener(default=HTTPAnswer(hangs=True))})
    with_dialer(program, test)


def test_a_port_nobody_listens_on_refuses_and_a_pod_that_is_gone_is_not_reached():
    async def test(world, runtime, dialer, sandbox, container):
        with pytest.raises(DialError) as refused:
            await dialer.http_get(f"http://{IP}:81/", [], 1)
        assert str(refused.value) == f'Get "http://{IP}:81/": dial tcp {IP}:81: connect: connection refused'
        await runtime.stop_pod_sandbox(sandbox)
        with pytest.raises(DialError, match="i/o timeout"):
            await dialer.tcp_connect(IP, 8080, 1)
        with pytest.raises(DialError, match="no route to host"):
            await dialer.tcp_connect(IP, 8080, None)
        assert monotonic(world.clock) == 4.0

    with_dialer(WEB, test)
