"""The controllers of volumes start with the first object that needs one, and ask for nothing before."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import FakeAPI, ListRecorder

from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, PODS, VOLUMEATTRIBUTESCLASSES
from lastcall.kube.controllers.manager import run_controllers
from lastcall.kube.controllers.volumes.first_claim import (
    ATTRIBUTES_CLASS_PROTECTION,
    CLAIM_PROTECTION,
    EPHEMERAL,
    NAMES,
    VOLUME_PROTECTION,
)
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def run(names: list[str], test: Callable[[World, FakeAPI], Awaitable[None]]) -> None:
    async def main(world: World) -> None:
        api, recorder = FakeAPI(world), ListRecorder(world)
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world,
                client=api,
                recorder_for=lambda _: recorder,
                root_ca_pem=b"ca",
                names=names,
            )
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(1)
            await test(world, api)
            tasks.cancel()

    run_virtual(main)


def watched(api: FakeAPI) -> set[str]:
    return {plural for verb, plural, _ in api.calls if verb == "watch"}


def pod(name: str, **volume: Any) -> Object:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"metadata": meta, "spec": {"containers": [], "volumes": [{"name": "v", **volume}]}}


CLAIM = {"metadata": {"name": "data", "namespace": "default"}, "spec": {}}
EPHEMERAL_CLAIM = {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}}


@pytest.mark.parametrize(
    ("name", "resource", "obj"),
    [
        (CLAIM_PROTECTION, PERSISTENTVOLUMECLAIMS, CLAIM),
        (VOLUME_PROTECTION, PERSISTENTVOLUMES, {"metadata": {"name": "pv"}, "spec": {}}),
        (ATTRIBUTES_CLASS_PROTECTION, VOLUMEATTRIBUTESCLASSES, {"metadata": {"name": "gold"}, "driverName": "d"}),
    ],
)
def test_the_first_object_of_a_kind_is_protected(name: str, resource: Any, obj: Object) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(resource, obj)
        await world.clock.sleep(1)
        assert len(api.of(resource)[0]["metadata"]["finalizers"]) == 1

    run([name], test)


def test_a_pod_with_an_ephemeral_volume_gets_its_claim_and_one_without_starts_nothing() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(PODS, pod("q", emptyDir={}))
        await world.clock.sleep(1)
        assert {verb for verb, plural, _ in api.calls if plural == "persistentvolumeclaims"} == {"list", "watch"}
        api.put(PODS, pod("p", ephemeral=EPHEMERAL_CLAIM))
        await world.clock.sleep(1)
        assert [each["metadata"]["name"] for each in api.of(PERSISTENTVOLUMECLAIMS)] == ["p-v"]

    run([EPHEMERAL], test)


def test_only_the_kinds_that_can_start_a_controller_are_watched() -> None:
    async def without_classes(world: World, api: FakeAPI) -> None:
        assert watched(api) == {"persistentvolumeclaims", "persistentvolumes"}

    run([CLAIM_PROTECTION], without_classes)

    async def all_of_them(world: World, api: FakeAPI) -> None:
        assert watched(api) == {"persistentvolumeclaims", "persistentvolumes", "volumeattributesclasses", "pods"}

    run(list(NAMES), all_of_them)
