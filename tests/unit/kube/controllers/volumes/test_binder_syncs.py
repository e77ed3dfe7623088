"""What the binder writes for claims and volumes, in which order, and what it says, beside an API.

Source: pkg/controller/volume/persistentvolume/pv_controller.go (syncClaim, syncVolume, bind), pv_controller_base.go.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import FakeAPI, ListRecorder

from lastcall.kube.api.claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, STORAGE_PROVISIONER
from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    EVENTS,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    STORAGECLASSES,
    Resource,
)
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.volumes.binder import RESYNC_SECONDS, PersistentVolumeBinder
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

Test = Callable[[World, FakeAPI], Awaitable[None]]
CLAIMS, VOLUMES = PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES


def run(test: Test, *there: tuple[Resource, Object]) -> None:
    """Play a test with a binder that starts where some objects are there already."""

    async def main(world: World) -> None:
        api = FakeAPI(world)
        for resource, obj in there:
            api.put(resource, obj)
        informers = Informers(world, api)
        binder = PersistentVolumeBinder(world, api, informers, ListRecorder(world))
        async with Tasks() as tasks:
            informers.spawn(tasks)
            tasks.spawn(binder.run(), name="binder")
            await world.clock.sleep(0.1)
            await test(world, api)
            tasks.cancel()

    run_virtual(main)


def claim(name: str = "data", *, marks: Object | None = None, phase: str = "Pending", **spec: Any) -> Object:
    meta = {"name": name, "namespace": "default", "uid": f"uid of {name}", "annotations": marks or {}}
    known = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    return {"metadata": meta, "spec": known | spec, "status": {"phase": phase} if phase else {}}


def volume(name: str = "pv", *, of: str = "", marks: Object | None = None, phase: str = "", **spec: Any) -> Object:
    """A volume; `of`: the claim that its claimRef names."""
    known: Object = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, **spec}
    known.setdefault("persistentVolumeReclaimPolicy", "Retain")
    if of:
        known["claimRef"] = {"namespace": "default", "name": of, "uid": f"uid of {of}"}
    meta = {"name": name, "uid": f"uid of {name}", "annotations": marks or {}}
    return {"metadata": meta, "spec": known, "status": {"phase": phase} if phase else {}}


BOUND = {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}


def calls(api: FakeAPI) -> list[tuple[str, str]]:
    return [(verb, plural) for verb, plural, _ in api.calls if verb not in ("list", "watch") and plural != "events"]


def phases(api: FakeAPI) -> dict[str, str]:
    found = [*api.of(CLAIMS), *api.of(VOLUMES)]
    return {each["metadata"]["name"]: (each.get("status") or {}).get("phase", "") for each in found}


def events(api: FakeAPI) -> list[tuple[str, str]]:
    return [(each["reason"], each["involvedObject"]["name"]) for each in api.of(EVENTS)]


def test_a_claim_and_the_volume_that_fits_name_each_other_by_four_writes() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        assert calls(api)[-4:] == [
            ("update", kind) for kind in ("persistentvolumes",) * 2 + ("persistentvolumeclaims",) * 2
        ]
        (bound,), (whole,) = api.of(VOLUMES), api.of(CLAIMS)
        reference = bound["spec"]["claimRef"]
        assert (reference["namespace"], reference["name"], reference["uid"]) == ("default", "data", "uid of data")
        assert bound["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
        assert bound["status"]["phase"] == "Bound"
        assert whole["spec"]["volumeName"] == "pv" and whole["metadata"]["annotations"] == BOUND
        assert whole["status"] == {
            "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
        }  # fmt: skip
        before = len(api.calls)
        await world.clock.sleep(3 * RESYNC_SECONDS)
        assert len(api.calls) == before, "nothing is left to do"

    run(test, (CLAIMS, claim()), (VOLUMES, volume(phase="Available")))


@pytest.mark.parametrize("failing", [1, 2, 3, 4])
def test_after_any_of_the_four_writes_the_next_look_goes_on(failing: int) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        update, tried = api.update, []

        async def fails_once(resource: Resource, obj: Object, namespace: str = "", **more: str) -> Object:
            if resource in (CLAIMS, VOLUMES):
                tried.append(resource)
                if len(tried) == failing:
                    raise status_failure(409, "Conflict", "changed")
            return await update(resource, obj, namespace, **more)

        api.update = fails_once  # type: ignore[method-assign]
        api.put(CLAIMS, claim())
        await world.clock.sleep(5)
        assert phases(api) == {"data": "Bound", "pv": "Bound"}
        assert len(tried) == 5

    run(test, (VOLUMES, volume(phase="Available")))


def test_a_claim_waits_for_a_volume_and_takes_one_that_comes() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        assert phases(api) == {"data": "Pending"} and events(api) == [("FailedBinding", "data")]
        api.put(VOLUMES, volume())
        await world.clock.sleep(0.1)
        assert phases(api) == {"data": "Bound", "pv": "Bound"}

    run(test, (CLAIMS, claim(phase="")))


def test_a_waiting_claim_is_looked_at_every_fifteen_seconds_and_a_bound_or_ending_one_is_not() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        await world.clock.sleep(RESYNC_SECONDS * 2)
        assert {each["involvedObject"]["name"]: each.get("count", 1) for each in api.of(EVENTS)} == {
            "data": 3,
            "going": 1,
        }

    going = claim("going")
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    bound = claim("bound", marks=BOUND, volumeName="pv", phase="Bound")
    bound["status"] |= {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    assert RESYNC_SECONDS == 15.0
    run(test, (CLAIMS, claim()), (CLAIMS, going), (CLAIMS, bound), (VOLUMES, volume(of="bound", phase="Bound")))


def test_a_claim_without_a_class_gets_the_default_one_and_waits_for_its_provisioner() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        (found,) = api.of(CLAIMS)
        assert found["spec"]["storageClassName"] == "fast"
        assert found["metadata"]["annotations"][STORAGE_PROVISIONER] == "example.com/disks"
        assert ("ExternalProvisioning", "data") in events(api)
        writes = calls(api).count(("update", "persistentvolumeclaims"))
        await world.clock.sleep(2 * RESYNC_SECONDS)
        assert calls(api).count(("update", "persistentvolumeclaims")) == writes == 2

    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = {"metadata": {"name": "fast", "annotations": default}, "provisioner": "example.com/disks"}
    waiting = claim()
    del waiting["spec"]["storageClassName"]
    run(test, (STORAGECLASSES, classes), (CLAIMS, waiting))


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (None, "WaitForFirstConsumer"),
        ({"status": {"phase": "Pending"}}, "WaitForPodScheduled"),
        ({"spec": {"nodeName": "n"}}, "WaitForFirstConsumer"),
        ({"status": {"phase": "Failed"}}, "WaitForFirstConsumer"),
        ({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}, "WaitForFirstConsumer"),
    ],
)
def test_a_claim_that_waits_for_its_first_consumer_says_which_pod_it_waits_for(pod: Object | None, reason: str) -> None:
    async def test(_: World, api: FakeAPI) -> None:
        assert events(api) == [(reason, "data")] and phases(api) == {"data": "Pending"}

    late = {
        "metadata": {"name": "late"},
        "provisioner": "example.com/disks",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    there = [(STORAGECLASSES, late), (CLAIMS, claim(storageClassName="late"))]
    if pod is not None:
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        known = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"volumes": volumes}, "status": {}}
        there.insert(0, (PODS, {key: {**known[key], **pod.get(key, {})} for key in known}))
    run(test, *there)


def test_a_claim_whose_volume_is_gone_is_lost_and_says_it_once() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        assert phases(api)["data"] == "Bound"
        api.remove(VOLUMES, "pv")
        await world.clock.sleep(0.1)
        assert phases(api) == {"data": "Lost"} and events(api) == [("ClaimLost", "data")]
        assert "capacity" not in api.of(CLAIMS)[0]["status"]
        await world.clock.sleep(2 * RESYNC_SECONDS)
        (event,) = api.of(EVENTS)
        assert event.get("count", 1) == 1

    run(test, (CLAIMS, claim(marks=BOUND, volumeName="pv", phase="Bound")), (VOLUMES, volume(of="data", phase="Bound")))


def test_a_volume_whose_claim_is_deleted_is_released_at_once() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.remove(CLAIMS, "data", "default")
        await world.clock.sleep(0.1)
        assert phases(api) == {"pv": "Released"}
        assert calls(api)[-2:] == [("get", "persistentvolumeclaims"), ("update", "persistentvolumes")]
        assert events(api) == []

    run(test, (CLAIMS, claim(marks=BOUND, volumeName="pv", phase="Bound")), (VOLUMES, volume(of="data", phase="Bound")))


def test_a_volume_whose_claim_the_api_still_has_is_not_released() -> None:
    """A cache that is behind must not cost anybody data."""

    async def test(world: World, api: FakeAPI) -> None:
        api.objects[CLAIMS.plural, "default", "late"] = claim("late", volumeName="pv")  # told to nobody
        api.put(VOLUMES, volume(of="late", phase="Bound"))
        await world.clock.sleep(0.1)
        assert phases(api)["pv"] == "Bound" and ("get", "persistentvolumeclaims") in calls(api)

    run(test)


@pytest.mark.parametrize("phase", ["Released", "Failed"])
def test_of_a_volume_that_is_released_the_claim_is_not_asked_for(phase: str) -> None:
    async def test(_: World, api: FakeAPI) -> None:
        assert calls(api) == [] and phases(api) == {"pv": phase}

    run(test, (VOLUMES, volume(of="gone", phase=phase)))


def test_a_claim_that_cannot_be_asked_for_is_asked_for_again() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.fail_next("get", "persistentvolumeclaims", status_failure(500, "InternalError", "broken"))
        api.put(VOLUMES, volume(of="gone", phase="Bound"))
        await world.clock.sleep(0.001)
        assert phases(api) == {"pv": "Bound"}
        await world.clock.sleep(5)
        assert phases(api) == {"pv": "Released"}

    run(test)


@pytest.mark.parametrize(("policy", "reason"), [("Recycle", "VolumeFailedRecycle"), ("Delete", "VolumeFailedDelete")])
def test_a_released_volume_that_cannot_be_reclaimed_fails_and_says_why_once(policy: str, reason: str) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        assert phases(api) == {"pv": "Failed"} and events(api) == [(reason, "pv")]
        (found,) = api.of(VOLUMES)
        assert found["status"]["message"] == api.of(EVENTS)[0]["message"]
        api.put(VOLUMES, {**found, "metadata": {**found["metadata"], "labels": {"a": "b"}}})
        await world.clock.sleep(1)
        assert api.of(EVENTS)[0].get("count", 1) == 1

    run(test, (VOLUMES, volume(of="gone", phase="Bound", persistentVolumeReclaimPolicy=policy)))


def test_a_volume_that_another_claim_of_a_user_names_is_let_go_and_is_free() -> None:
    async def test(_: World, api: FakeAPI) -> None:
        assert phases(api)["pv"] == "Available" and "claimRef" not in api.of(VOLUMES)[1]["spec"]

    elsewhere = claim(marks=BOUND, volumeName="other", phase="Bound")
    mine = volume("other", of="data", phase="Bound")
    run(test, (CLAIMS, elsewhere), (VOLUMES, mine), (VOLUMES, volume(of="data", marks={BOUND_BY_CONTROLLER: "yes"})))


def test_a_volume_made_for_a_claim_that_took_another_is_released_for_its_provisioner() -> None:
    async def test(_: World, api: FakeAPI) -> None:
        assert phases(api)["pv"] == "Released" and events(api) == []

    elsewhere = claim(marks=BOUND, volumeName="other", phase="Bound")
    made = volume(
        of="data", marks={PROVISIONED_BY: "example.com/disks"}, persistentVolumeReclaimPolicy="Delete", phase="Bound"
    )
    run(test, (CLAIMS, elsewhere), (VOLUMES, volume("other", of="data", phase="Bound")), (VOLUMES, made))


def test_a_volume_that_names_a_claim_of_another_mode_says_so_on_both() -> None:
    async def test(_: World, api: FakeAPI) -> None:
        assert ("VolumeMismatch", "data") in events(api) and ("VolumeMismatch", "pv") in events(api)

    run(test, (CLAIMS, claim(volumeMode="Block")), (VOLUMES, volume(of="data")))


def test_a_volume_that_a_claim_is_to_have_brings_the_claim_to_it() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(VOLUMES, volume(of="data", accessModes=["ReadWriteOnce"]))
        await world.clock.sleep(0.1)
        assert phases(api) == {"data": "Bound", "pv": "Bound"}
        assert api.of(VOLUMES)[0]["metadata"]["annotations"] == {}, "who wrote the claimRef did so, not the binder"

    run(test, (CLAIMS, claim()))


@pytest.mark.parametrize(("error", "tries"), [(404, 1), (409, 2)])
def test_what_is_gone_meanwhile_is_not_tried_again(error: int, tries: int) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.fail_next(
            "update", "persistentvolumes", status_failure(error, "NotFound" if error == 404 else "Conflict", "x")
        )
        api.put(VOLUMES, volume())
        await world.clock.sleep(5)
        assert calls(api) == [("update", "persistentvolumes")] * tries

    run(test)
