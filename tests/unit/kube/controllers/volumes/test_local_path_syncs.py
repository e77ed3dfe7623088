"""What local-path does for a claim and a released volume, beside an API: the directory, the volume, what it says."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import FakeAPI, ListRecorder

from lastcall.kube.api.claims import PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER
from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    EVENTS,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    STORAGECLASSES,
    Resource,
)
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.volumes.local_path import LocalPathProvisioner
from lastcall.kube.controllers.volumes.storage_class import PROVISIONER, STANDARD_CLASS, SimulatedDirectories
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


class Disk(SimulatedDirectories):
    """Directories that can be refused."""

    fails = 0

    async def make(self, name: str) -> None:
        self._refuse()
        await super().make(name)

    async def remove(self, name: str) -> None:
        self._refuse()
        await super().remove(name)

    def _refuse(self) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError(28, "No space left on device")


Test = Callable[[World, FakeAPI, Disk], Awaitable[None]]
NAME = "pvc-u_default_data"


def run(test: Test, *there: tuple[Resource, Object], node: str = "n") -> None:
    """Play a test with the class `standard`, one node and a provisioner."""

    async def main(world: World) -> None:
        api, disk = FakeAPI(world), Disk()
        api.put(NODES, {"metadata": {"name": node, "labels": {"kubernetes.io/hostname": f"host-{node}"}}})
        api.put(STORAGECLASSES, STANDARD_CLASS)
        for resource, obj in there:
            api.put(resource, obj)
        informers = Informers(world, api)
        provisioner = LocalPathProvisioner(world, api, informers, ListRecorder(world), disk)
        async with Tasks() as tasks:
            informers.spawn(tasks)
            tasks.spawn(provisioner.run(), name="provisioner")
            await world.clock.sleep(0.1)
            await test(world, api, disk)
            tasks.cancel()

    run_virtual(main)


def claim(*, marks: Object | None = None, **spec: Any) -> Object:
    """A claim that waits for local-path, with its node chosen."""
    known = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    annotations = {STORAGE_PROVISIONER: PROVISIONER, SELECTED_NODE: "n"} if marks is None else marks
    meta = {"name": "data", "namespace": "default", "uid": "u", "annotations": annotations}
    return {"metadata": meta, "spec": {**known, "storageClassName": "standard", **spec}}


def volume(phase: str = "Released", path: str = f"{Disk.root}/{NAME}", **meta: Any) -> Object:
    known = {"name": "pvc-u", "uid": "uid of pvc-u", "annotations": {PROVISIONED_BY: PROVISIONER}, **meta}
    spec = {"persistentVolumeReclaimPolicy": "Delete", "hostPath": {"path": path}}
    return {"metadata": known, "spec": spec, "status": {"phase": phase}}


def calls(api: FakeAPI) -> list[tuple[str, str]]:
    return [(verb, plural) for verb, plural, _ in api.calls if verb not in ("list", "watch") and plural != "events"]


def events(api: FakeAPI) -> list[tuple[str, str]]:
    return [(each["reason"], each["message"]) for each in api.of(EVENTS)]


CLAIM = (PERSISTENTVOLUMECLAIMS, claim())
PROVISIONING = ("Provisioning", 'External provisioner is provisioning volume for claim "default/data"')


def test_a_claim_gets_a_directory_and_a_volume_on_its_node() -> None:
    async def test(world: World, api: FakeAPI, disk: Disk) -> None:
        (made,) = api.of(PERSISTENTVOLUMES)
        assert list(disk.names) == [NAME] and made["spec"]["hostPath"]["path"] == f"{disk.root}/{NAME}"
        assert made["metadata"]["name"] == "pvc-u" and made["spec"]["claimRef"]["uid"] == "u"
        assert events(api) == [PROVISIONING, ("ProvisioningSucceeded", "Successfully provisioned volume pvc-u")]
        (latest,) = api.of(PERSISTENTVOLUMECLAIMS)
        api.put(PERSISTENTVOLUMECLAIMS, {**latest, "metadata": {**latest["metadata"], "labels": {"a": "b"}}})
        await world.clock.sleep(1)
        assert calls(api) == [("create", "persistentvolumes")], "one is enough"

    run(test, CLAIM)


@pytest.mark.parametrize(
    "of",
    [
        claim(marks={STORAGE_PROVISIONER: "example.com/disks", SELECTED_NODE: "n"}),
        claim(marks={STORAGE_PROVISIONER: PROVISIONER}),
        claim(volumeName="there"),
        claim(storageClassName="gone"),
        claim(storageClassName="others"),
    ],
)
def test_a_claim_that_is_not_its_own_or_not_ready_for_it_is_let_be(of: Object) -> None:
    async def test(_: World, api: FakeAPI, disk: Disk) -> None:
        assert calls(api) == [] and events(api) == [] and not disk.names

    others = {"metadata": {"name": "others"}, "provisioner": "example.com/disks"}
    run(test, (STORAGECLASSES, others), (PERSISTENTVOLUMECLAIMS, of))


def test_a_claim_whose_node_is_chosen_later_is_looked_at_then() -> None:
    async def test(world: World, api: FakeAPI, _: Disk) -> None:
        api.put(PERSISTENTVOLUMECLAIMS, claim())
        await world.clock.sleep(0.001)
        assert len(api.of(PERSISTENTVOLUMES)) == 1

    run(test, (PERSISTENTVOLUMECLAIMS, claim(marks={STORAGE_PROVISIONER: PROVISIONER})))


def test_a_node_that_is_gone_is_given_back_to_the_scheduler() -> None:
    async def test(world: World, api: FakeAPI, disk: Disk) -> None:
        assert events(api)[1:] == [("ProvisioningFailed", 'failed to get target node: node "n" not found')]
        marks = api.of(PERSISTENTVOLUMECLAIMS)[0]["metadata"]["annotations"]
        assert SELECTED_NODE not in marks and marks[STORAGE_PROVISIONER] == PROVISIONER
        await world.clock.sleep(100)
        assert calls(api) == [("patch", "persistentvolumeclaims")] and not disk.names

    run(test, CLAIM, node="other")


def test_what_cannot_be_made_is_said_and_tried_again() -> None:
    async def test(world: World, api: FakeAPI, disk: Disk) -> None:
        disk.fails = 1
        api.put(*CLAIM)
        await world.clock.sleep(5)
        why = 'failed to provision volume with StorageClass "standard": [Errno 28] No space left on device'
        assert ("ProvisioningFailed", why) in events(api)
        assert len(api.of(PERSISTENTVOLUMES)) == 1 and events(api)[-1][0] == "ProvisioningSucceeded"

    run(test)


def test_a_mode_that_a_directory_does_not_have_is_refused_for_good() -> None:
    async def test(world: World, api: FakeAPI, disk: Disk) -> None:
        await world.clock.sleep(10)
        why = "NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes"
        assert events(api)[-1][1] == f'failed to provision volume with StorageClass "standard": {why}'
        assert calls(api) == [] and not disk.names

    run(test, (PERSISTENTVOLUMECLAIMS, claim(accessModes=["ReadWriteMany"])))


@pytest.mark.parametrize(("code", "reason", "tries"), [(409, "AlreadyExists", 1), (403, "Forbidden", 2)])
def test_a_volume_that_is_there_already_is_as_good_as_made(code: int, reason: str, tries: int) -> None:
    async def test(world: World, api: FakeAPI, _: Disk) -> None:
        api.fail_next("create", "persistentvolumes", status_failure(code, reason, "x"))
        api.put(*CLAIM)
        await world.clock.sleep(5)
        assert calls(api) == [("create", "persistentvolumes")] * tries
        assert events(api)[-1][0] == "ProvisioningSucceeded"

    run(test)


def test_a_released_volume_goes_with_its_directory_which_goes_first() -> None:
    async def test(world: World, api: FakeAPI, disk: Disk) -> None:
        await disk.make(NAME)
        disk.fails = 1
        api.put(PERSISTENTVOLUMES, volume("Bound"))
        await world.clock.sleep(1)
        assert calls(api) == []
        api.put(PERSISTENTVOLUMES, volume())
        await world.clock.sleep(0.001)
        assert events(api) == [("VolumeFailedDelete", "[Errno 28] No space left on device")]
        assert list(disk.names) == [NAME] and len(api.of(PERSISTENTVOLUMES)) == 1
        await world.clock.sleep(1)
        assert not disk.names and api.of(PERSISTENTVOLUMES) == []

    run(test)


def test_a_directory_that_it_has_not_made_is_never_removed() -> None:
    async def test(world: World, api: FakeAPI, disk: Disk) -> None:
        await disk.make("etc")
        await world.clock.sleep(10)
        assert list(disk.names) == ["etc"] and calls(api) == []
        assert events(api)[0] == (
            "VolumeFailedDelete",
            f"/etc is not a directory that {PROVISIONER} has made for pvc-u",
        )

    run(test, (PERSISTENTVOLUMES, volume(path="/etc")))


@pytest.mark.parametrize(("code", "reason", "tries"), [(404, "NotFound", 1), (403, "Forbidden", 2)])
def test_a_volume_that_is_gone_already_is_not_deleted_again(code: int, reason: str, tries: int) -> None:
    async def test(world: World, api: FakeAPI, _: Disk) -> None:
        api.fail_next("delete", "persistentvolumes", status_failure(code, reason, "x"))
        api.put(PERSISTENTVOLUMES, volume())
        await world.clock.sleep(5)
        assert calls(api) == [("delete", "persistentvolumes")] * tries

    run(test)
