"""The controllers of volumes start, and are imported, with the first claim: before, they cost nothing."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, PODS, VOLUMEATTRIBUTESCLASSES
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.volumes.storage_class import Directories
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

BINDER = "persistentvolume-binder-controller"
CLAIM_PROTECTION = "persistentvolumeclaim-protection-controller"
VOLUME_PROTECTION = "persistentvolume-protection-controller"
ATTRIBUTES_CLASS_PROTECTION = "volumeattributesclass-protection-controller"
EPHEMERAL = "ephemeral-volume-controller"
NAMES = (BINDER, CLAIM_PROTECTION, VOLUME_PROTECTION, ATTRIBUTES_CLASS_PROTECTION, EPHEMERAL)
PROVISIONER = "local-path-provisioner"


class VolumeControllers:
    """Those of `names`, and the provisioner where `directories` says where volumes are.

    `acting` gives the client of each controller by its name, `client` is the provisioner's.
    """

    def __init__(
        self,
        world: World,
        acting: Callable[[str], Client],
        client: Client,
        informers: Informers,
        recorder_for: Callable[[str], Recorder],
        names: list[str],
        directories: Directories | None,
    ) -> None:
        self._world, self._acting, self._client, self._informers = world, acting, client, informers
        self._recorder_for, self._names, self._directories = recorder_for, names, directories
        self._needed = asyncio.Event()
        for resource in (PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES):
            informers.get(resource).add_handler(lambda obj: self._needed.set())
        if ATTRIBUTES_CLASS_PROTECTION in names:
            informers.get(VOLUMEATTRIBUTESCLASSES).add_handler(lambda obj: self._needed.set())
        if EPHEMERAL in names:
            informers.get(PODS).add_handler(self._pod_seen)

    def _pod_seen(self, pod: Object) -> None:
        if not self._needed.is_set() and any("ephemeral" in each for each in pod["spec"].get("volumes") or ()):
            self._needed.set()

    async def run(self) -> None:
        """Work until cancelled."""
        await self._needed.wait()
        # late: 7 ms of the control plane's start
        from lastcall.kube.controllers.volumes.attributes_classes import AttributesClassProtectionController
        from lastcall.kube.controllers.volumes.binder import PersistentVolumeBinder
        from lastcall.kube.controllers.volumes.ephemeral import EphemeralVolumeController
        from lastcall.kube.controllers.volumes.local_path import LocalPathProvisioner
        from lastcall.kube.controllers.volumes.protection import ClaimProtectionController, VolumeProtectionController

        world, acting, informers, recorder_for = self._world, self._acting, self._informers, self._recorder_for
        runs: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {}
        for name, make in (
            (BINDER, PersistentVolumeBinder),
            (CLAIM_PROTECTION, ClaimProtectionController),
            (VOLUME_PROTECTION, VolumeProtectionController),
            (EPHEMERAL, EphemeralVolumeController),
        ):
            if name in self._names:
                runs[name] = make(world, acting(name), informers, recorder_for(name)).run
        if ATTRIBUTES_CLASS_PROTECTION in self._names:
            client = acting(ATTRIBUTES_CLASS_PROTECTION)
            runs[ATTRIBUTES_CLASS_PROTECTION] = AttributesClassProtectionController(world, client, informers).run
        if self._directories is not None:
            recorder = recorder_for(PROVISIONER)
            provisioner = LocalPathProvisioner(world, self._client, informers, recorder, self._directories)
            runs[PROVISIONER] = provisioner.run
        async with Tasks() as tasks:
            for name, run in runs.items():
                tasks.spawn(crash_guard.keep_running(name, run, world.clock), name=name)
