"""How long kubelets may cache Secrets, as an annotation of their Nodes (ttl_controller.go), beside an API."""

from collections.abc import Awaitable, Callable
from typing import Any

from fake_api import FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.resources import NODES
from lastcall.kube.controllers.manager import run_controllers
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

TTL = "node.alpha.kubernetes.io/ttl"


def run(test: Callable[[World, FakeAPI], Awaitable[None]]) -> FakeAPI:
    async def main(world: World) -> FakeAPI:
        api, recorder = FakeAPI(world), ListRecorder(world)
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world,
                client=api,
                recorder_for=lambda _: recorder,
                root_ca_pem=b"ca",
                names=["ttl-controller"],
            )
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(1)
            await test(world, api)
            tasks.cancel()
        return api

    return run_virtual(main)


def node(number: int, **annotations: Any) -> Any:
    return {"metadata": {"name": f"n{number}", "annotations": annotations}}


def said(api: FakeAPI) -> list[str | None]:
    return [(each["metadata"].get("annotations") or {}).get(TTL) for each in api.of(NODES)]


def test_nodes_of_a_small_cluster_may_cache_nothing_and_what_else_is_written_there_stays() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(NODES, node(1, own="x"))
        api.put(NODES, {"metadata": {"name": "n2"}})
        await world.clock.sleep(1)
        assert said(api) == ["0", "0"]
        assert api.of(NODES)[0]["metadata"]["annotations"] == {"own": "x", TTL: "0"}

    assert sum(verb == "patch" for verb, *_ in run(test).calls) == 2


def test_what_somebody_else_wrote_is_written_over() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(NODES, node(1))
        await world.clock.sleep(1)
        api.put(NODES, node(1, **{TTL: "3600"}))
        await world.clock.sleep(1)
        assert said(api) == ["0"]

    run(test)


def test_a_node_that_comes_when_there_are_more_than_a_hundred_is_told_fifteen_seconds() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        for number in range(102):
            api.put(NODES, node(number))
        await world.clock.sleep(1)
        api.put(NODES, node(102))
        await world.clock.sleep(1)
        assert said(api)[-1] == "15"

    run(test)


def test_a_refused_write_is_tried_again() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.fail_next("patch", "nodes", status_failure(500, "InternalError", "no"))
        api.put(NODES, node(1))
        await world.clock.sleep(30)
        assert said(api) == ["0"]

    run(test)
