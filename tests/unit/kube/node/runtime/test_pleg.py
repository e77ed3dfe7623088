"""The Pod lifecycle event generator at work, in virtual time (pleg/generic.go, evented.go)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from lastcall.kube.cri.api import (
    ContainerEventResponse,
    ContainerMetadata,
    ContainerState,
    ContainerStatus,
    PodSandboxMetadata,
    PodSandboxState,
    PodSandboxStatus,
    RuntimeServiceError,
)
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.runtime.pleg import (
    RELIST_SECONDS,
    RESUBSCRIBE_SECONDS,
    PodLifecycleEventGenerator,
    generate_events,
)
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

RUNNING, EXITED = ContainerState.CONTAINER_RUNNING, ContainerState.CONTAINER_EXITED


def container(pod: str, state: ContainerState = RUNNING, **more: Any) -> ContainerStatus:
    labels = {"io.kubernetes.pod.uid": pod, "io.kubernetes.pod.name": f"name-{pod}", "io.kubernetes.pod.namespace": "n"}
    return ContainerStatus(f"c-{pod}", ContainerMetadata("app"), "s", state, "i", "i", 1, labels=labels, **more)


def sandbox(pod: str, *ips: str) -> PodSandboxStatus:
    metadata = PodSandboxMetadata(f"name-{pod}", pod, "n")
    state = PodSandboxState.SANDBOX_READY if ips else PodSandboxState.SANDBOX_NOTREADY
    return PodSandboxStatus(f"s-{pod}", metadata, state, 1, ips)


class Runtime:
    """Lists what the test puts there. A listing takes `takes` seconds; its errors are raised before that."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.takes = 1.0
        self.containers: dict[str, ContainerStatus] = {}
        self.sandboxes: dict[str, PodSandboxStatus] = {}
        self.errors: list[str] = []
        self.listed: list[tuple[float, str]] = []
        self.streams: list[float] = []
        self.events: asyncio.Queue[ContainerEventResponse | None] = asyncio.Queue()
        self.began = world.clock.monotonic_ns()

    @property
    def seconds(self) -> float:
        return round((self.world.clock.monotonic_ns() - self.began) / 1e9, 6)

    async def list_pod_sandbox(self, uid: str = "") -> list[PodSandboxStatus]:
        self.listed.append((self.seconds, uid))
        if self.errors:
            raise RuntimeServiceError(self.errors.pop(0))
        return [each for pod, each in self.sandboxes.items() if uid in ("", pod)]

    async def list_containers(self, uid: str = "") -> list[ContainerStatus]:
        found = [each for pod, each in self.containers.items() if uid in ("", pod)]
        await self.world.clock.sleep(self.takes)
        return found

    async def get_container_events(self) -> AsyncIterator[ContainerEventResponse]:
        self.streams.append(self.seconds)
        while (event := await self.events.get()) is not None:
            yield event
        raise RuntimeServiceError("the stream broke")

    def says(self, pod: str) -> None:
        self.events.put_nowait(ContainerEventResponse(f"c-{pod}", 1, 0, pod))


Scenario = Callable[[Runtime, PodLifecycleEventGenerator, list[str]], Awaitable[None]]


def follow(scenario: Scenario) -> tuple[Runtime, list[str]]:
    """Play a scenario while the generator runs, and answer the events as `TYPE POD`."""
    told: list[str] = []

    async def main(world: World) -> Runtime:
        runtime = Runtime(world)
        pleg = PodLifecycleEventGenerator(
            world,
            runtime,  # type: ignore[arg-type]
            lambda events: told.extend(f"{each.type} {each.uid}" for each in events),
        )
        async with Tasks() as tasks:
            tasks.spawn(pleg.run(), name="pleg")
            await world.clock.sleep(0)
            await scenario(runtime, pleg, told)
            tasks.cancel()
        return runtime

    return run_virtual(main), told


def test_everything_is_listed_every_five_minutes_and_what_no_event_told_is_found() -> None:
    async def scenario(runtime: Runtime, pleg: PodLifecycleEventGenerator, told: list[str]) -> None:
        runtime.containers["a"] = container("a")
        await runtime.world.clock.sleep(RELIST_SECONDS - 1)
        assert told == []
        await runtime.world.clock.sleep(3)
        assert told == ["ContainerStarted a"]
        found = pleg.get("a")
        assert found is not None and (found.name, found.namespace) == ("name-a", "n")
        del runtime.containers["a"]
        await runtime.world.clock.sleep(RELIST_SECONDS + 1)

    runtime, told = follow(scenario)
    assert told == ["ContainerStarted a", "ContainerDied a", "ContainerRemoved a"]
    assert [at for at, uid in runtime.listed if not uid] == pytest.approx([300, 601])


def test_a_stream_that_broke_is_opened_again_after_a_look_at_everything() -> None:
    async def scenario(runtime: Runtime, pleg: PodLifecycleEventGenerator, told: list[str]) -> None:
        runtime.containers["a"] = container("a")
        runtime.events.put_nowait(None)
        await runtime.world.clock.sleep(2)
        assert told == ["ContainerStarted a"], "what happened meanwhile is not lost"
        runtime.containers["a"] = container("a", EXITED)
        runtime.says("a")
        await runtime.world.clock.sleep(2)

    runtime, told = follow(scenario)
    assert told == ["ContainerStarted a", "ContainerDied a"]
    assert runtime.streams == pytest.approx([0.0, 1 + RESUBSCRIBE_SECONDS])


def test_a_runtime_that_cannot_answer_is_asked_again() -> None:
    async def scenario(runtime: Runtime, pleg: PodLifecycleEventGenerator, told: list[str]) -> None:
        runtime.containers["a"] = container("a")
        runtime.errors = ["an event's look", "the regular look"]
        runtime.says("a")
        await runtime.world.clock.sleep(RELIST_SECONDS + 1)
        assert told == []
        runtime.says("a")
        await runtime.world.clock.sleep(2)

    assert follow(scenario)[1] == ["ContainerStarted a"]


def test_the_name_of_a_pod_comes_from_its_sandbox_if_nobody_knows_it() -> None:
    async def scenario(runtime: Runtime, pleg: PodLifecycleEventGenerator, told: list[str]) -> None:
        runtime.sandboxes["a"] = sandbox("a", "10.0.0.1")
        runtime.says("a")
        await runtime.world.clock.sleep(2)
        found = pleg.get("a")
        assert found is not None and (found.name, found.namespace, found.ips) == ("name-a", "n", ("10.0.0.1",))

    follow(scenario)


def test_addresses_outlive_the_sandbox_whoever_looks() -> None:
    """pleg/generic.go:getPodIPs, after an event and after a listing of everything."""

    async def scenario(runtime: Runtime, pleg: PodLifecycleEventGenerator, told: list[str]) -> None:
        runtime.sandboxes["a"] = sandbox("a", "10.0.0.1")
        runtime.says("a")
        await runtime.world.clock.sleep(2)
        runtime.sandboxes["a"] = sandbox("a")
        runtime.says("a")
        await runtime.world.clock.sleep(2)
        assert (found := pleg.get("a")) is not None and found.ips == ("10.0.0.1",)
        await pleg.relist()
        assert (found := pleg.get("a")) is not None and found.ips == ("10.0.0.1",)
        del runtime.sandboxes["a"]
        await pleg.relist()
        assert (found := pleg.get("a")) is not None and found.ips == ("10.0.0.1",)
        assert (found.name, found.sandbox_statuses) == ("name-a", ())

    follow(scenario)


def test_a_listing_of_everything_does_not_overwrite_what_was_read_after_it_began() -> None:
    async def scenario(runtime: Runtime, pleg: PodLifecycleEventGenerator, told: list[str]) -> None:
        runtime.containers["a"] = container("a")
        runtime.takes = 3.0
        everything = asyncio.ensure_future(pleg.relist())
        await runtime.world.clock.sleep(0.5)
        runtime.takes = 1.0
        del runtime.containers["a"]
        newer = await pleg.get_newer_than("a", "name-a", "n", pleg.now())
        await everything
        assert pleg.get("a") is newer and newer.container_statuses == ()

    assert follow(scenario)[1] == []


def test_a_pod_that_was_forgotten_is_not_known() -> None:
    async def scenario(runtime: Runtime, pleg: PodLifecycleEventGenerator, told: list[str]) -> None:
        for pod in ("a", "b"):
            runtime.containers[pod] = container(pod)
        await pleg.relist()
        assert pleg.known_uids() == ["a", "b"] and pleg.refreshed_at("a") == 1
        pleg.forget("a")
        pleg.forget("nobody")
        assert (pleg.known_uids(), pleg.get("a"), pleg.refreshed_at("a")) == (["b"], None, 0)

    follow(scenario)


def test_metrics_say_how_long_listings_take_and_how_far_apart_they_began() -> None:
    """pkg/kubelet/metrics/metrics.go: PLEGRelistDuration, PLEGRelistInterval, PLEGLastSeen."""

    async def scenario(runtime: Runtime, pleg: PodLifecycleEventGenerator, told: list[str]) -> None:
        await runtime.world.clock.sleep(9)
        await pleg.relist()
        (_, ((_, interval),)) = list(pleg.families())[1]
        assert interval.count == 0
        await runtime.world.clock.sleep(4)
        await pleg.relist()
        families = {name: list(samples) for name, samples in pleg.families()}
        ((_, duration),) = families["kubelet_pleg_relist_duration_seconds"]
        ((_, interval),) = families["kubelet_pleg_relist_interval_seconds"]
        ((_, seen),) = families["kubelet_pleg_last_seen_seconds"]
        assert (duration.count, duration.sum) == (2, pytest.approx(2.0))
        assert (interval.count, interval.sum) == (1, pytest.approx(5.0))
        assert seen == runtime.world.clock.wall_ns() // 10**9 - 1

    follow(scenario)


def test_what_a_runtime_says_about_a_container_that_goes_on_is_a_change() -> None:
    def status(**info: str) -> PodStatus:
        return PodStatus("a", "name-a", "n", (), (container("a", info=info),))

    assert [each.type for each in generate_events("a", status(), status(why="x"))] == ["ContainerChanged"]
    assert generate_events("a", status(why="x"), status(why="x")) == []
