"""Deleted claims and volumes wait for those who use them (pvc_protection_controller.go), beside an API."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import FakeAPI, ListRecorder, play

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, PODS
from lastcall.world.world import World

CLAIM_FINALIZER, VOLUME_FINALIZER = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"
DELETED = "2030-01-01T00:00:00Z"


def run(test: Callable[[World, FakeAPI, ListRecorder], Awaitable[None]]) -> None:
    play(test, ["persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller"], settle=1)


def claim(*finalizers: str, **meta: Any) -> Object:
    return {"metadata": {"name": "data", "namespace": "default", "finalizers": list(finalizers), **meta}, "spec": {}}


def pod(node: str = "n1", phase: str = "Running", **meta: Any) -> Object:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    return {
        "metadata": {"name": "p", "namespace": "default", **meta},
        "spec": {"nodeName": node, "containers": [], "volumes": [volume]},
        "status": {"phase": phase},
    }


def finalizers(api: FakeAPI, resource: Any = PERSISTENTVOLUMECLAIMS) -> list[str]:
    (found,) = api.of(resource)
    return list(found["metadata"].get("finalizers") or ())


def test_a_claim_is_protected_as_soon_as_it_is_there_and_keeps_what_others_added() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(PERSISTENTVOLUMECLAIMS, claim("example.com/own"))
        await world.clock.sleep(1)
        assert finalizers(api) == ["example.com/own", CLAIM_FINALIZER]

    run(test)


def test_a_deleted_claim_that_nobody_uses_is_let_go() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(PODS, pod(node=""))
        api.put(PERSISTENTVOLUMECLAIMS, claim("example.com/own", CLAIM_FINALIZER, deletionTimestamp=DELETED))
        await world.clock.sleep(1)
        assert finalizers(api) == ["example.com/own"], "a Pod without a node has nothing mounted"

    run(test)


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_deleted_claim_waits_until_the_last_pod_that_names_it_is_gone(phase: str) -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        api.put(PODS, pod(uid="first"))
        api.put(PODS, pod(name="q", uid="second"))
        api.put(PERSISTENTVOLUMECLAIMS, claim(CLAIM_FINALIZER, deletionTimestamp=DELETED))
        await world.clock.sleep(1)
        api.remove(PODS, "p", "default")
        api.put(PODS, pod(name="q", phase=phase))
        await world.clock.sleep(1)
        assert finalizers(api) == [CLAIM_FINALIZER]
        api.remove(PODS, "q", "default")
        await world.clock.sleep(0.1)
        assert finalizers(api) == []
        assert [each["pod_uid"] for each in recorder.records] == ["first", "second"], "each is named once"

    run(test)


def test_a_pod_that_the_cache_does_not_show_yet_holds_a_claim_too() -> None:
    """askAPIServer: a claim is let go only if the API knows of no Pod either."""

    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        api.put(PERSISTENTVOLUMECLAIMS, claim(CLAIM_FINALIZER))
        await world.clock.sleep(1)
        unseen = {**pod(uid="unseen"), "kind": "Pod", "apiVersion": "v1"}
        api.objects[("pods", "default", "p")] = unseen
        api.put(PERSISTENTVOLUMECLAIMS, claim(CLAIM_FINALIZER, deletionTimestamp=DELETED))
        await world.clock.sleep(1)
        assert finalizers(api) == [CLAIM_FINALIZER]

    run(test)


def test_a_claim_that_is_not_valid_any_more_is_let_go_by_a_patch_of_its_finalizers() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("update", "persistentvolumeclaims", status_failure(422, "Invalid", "spec: is immutable"))
        api.put(PERSISTENTVOLUMECLAIMS, claim(CLAIM_FINALIZER, deletionTimestamp=DELETED))
        await world.clock.sleep(1)
        assert finalizers(api) == []
        assert [verb for verb, plural, _ in api.calls if plural == "persistentvolumeclaims"][-2:] == ["update", "patch"]

    run(test)


@pytest.mark.parametrize(
    ("error", "again"), [(status_failure(404, "NotFound", "gone"), 0), (status_failure(409, "Conflict", "changed"), 1)]
)
def test_a_claim_that_changed_is_tried_again_and_one_that_went_is_not(error: Exception, again: int) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("update", "persistentvolumeclaims", error)
        api.put(PERSISTENTVOLUMECLAIMS, claim(CLAIM_FINALIZER, deletionTimestamp=DELETED))
        await world.clock.sleep(10)
        updates = [verb for verb, plural, _ in api.calls if plural == "persistentvolumeclaims" and verb == "update"]
        assert len(updates) == 1 + again

    run(test)


@pytest.mark.parametrize(("phase", "kept"), [("Bound", [VOLUME_FINALIZER]), ("Released", []), ("Available", [])])
def test_a_deleted_volume_waits_while_it_is_bound(phase: str, kept: list[str]) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        volume = {"metadata": {"name": "pv"}, "spec": {}, "status": {"phase": phase}}
        api.put(PERSISTENTVOLUMES, volume)
        await world.clock.sleep(1)
        assert finalizers(api, PERSISTENTVOLUMES) == [VOLUME_FINALIZER]
        (made,) = api.of(PERSISTENTVOLUMES)
        api.put(PERSISTENTVOLUMES, {**made, "metadata": {**made["metadata"], "deletionTimestamp": DELETED}})
        await world.clock.sleep(1)
        assert finalizers(api, PERSISTENTVOLUMES) == kept

    run(test)
