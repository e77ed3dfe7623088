"""The volumeattributesclass-protection controller: a class stays until no claim and no volume names it.

Source: pkg/controller/volume/vacprotection/vac_protection_controller.go.
"""

from collections.abc import Iterable

from lastcall.kube.api.claims import ATTRIBUTES_CLASS_PROTECTION
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.resources import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, VOLUMEATTRIBUTESCLASSES
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.volumes.protection import (
    is_held,
    needs,
    with_finalizer,
    without_finalizer,
    write_finalizers,
)
from lastcall.kube.controllers.worker import Worker
from lastcall.world.world import World

COMPONENT = "volumeattributesclass-protection-controller"


def classes_of_claim(claim: Object) -> set[str]:
    """Return the class asked for, the one in force and the one on its way. (`getPVCReferencedVACNames`)"""
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    named = (spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), target)
    return {name for name in named if name}


def classes_of_volume(volume: Object) -> set[str]:
    name = (volume.get("spec") or {}).get("volumeAttributesClassName")
    return {name} if name else set()


def is_used(name: str, claims: Iterable[Object], volumes: Iterable[Object]) -> bool:
    """Return True if a claim or a volume uses the class. (`isBeingUsed`)"""
    return any(name in classes_of_claim(each) for each in claims) or any(
        name in classes_of_volume(each) for each in volumes
    )


class AttributesClassProtectionController:
    def __init__(self, world: World, client: Client, informers: Informers) -> None:
        self._client = client
        self._classes = informers.get(VOLUMEATTRIBUTESCLASSES)
        self._claims, self._volumes = informers.get(PERSISTENTVOLUMECLAIMS), informers.get(PERSISTENTVOLUMES)
        self._worker = Worker(world, COMPONENT, self._sync, workers=1, client=client)
        self._classes.add_handler(self._seen, lambda _, each: self._seen(each))
        self._claims.add_handler(
            None,
            lambda old, new: self._let_go(classes_of_claim(old) - classes_of_claim(new)),
            lambda claim: self._let_go(classes_of_claim(claim)),
        )
        self._volumes.add_handler(
            None,
            lambda old, new: self._let_go(classes_of_volume(old) - classes_of_volume(new)),
            lambda volume: self._let_go(classes_of_volume(volume)),
        )

    async def run(self) -> None:
        """Work until cancelled."""
        await self._worker.run([self._classes, self._claims, self._volumes])

    def _seen(self, attributes_class: Object) -> None:
        if is_held(attributes_class, ATTRIBUTES_CLASS_PROTECTION) or needs(
            attributes_class, ATTRIBUTES_CLASS_PROTECTION
        ):
            self._worker.queue.add(name_of(attributes_class))

    def _let_go(self, names: Iterable[str]) -> None:
        for name in names:
            if (found := self._classes.get("", name)) is not None:
                self._seen(found)

    async def _sync(self, name: str) -> None:
        """(`processVAC`)"""
        found = self._classes.get("", name)
        if found is None:
            return
        if needs(found, ATTRIBUTES_CLASS_PROTECTION):
            await self._write(with_finalizer(found, ATTRIBUTES_CLASS_PROTECTION))
        elif is_held(found, ATTRIBUTES_CLASS_PROTECTION) and not is_used(
            name, self._claims.items(), self._volumes.items()
        ):
            await self._write(without_finalizer(found, ATTRIBUTES_CLASS_PROTECTION))

    async def _write(self, attributes_class: Object) -> None:
        await write_finalizers(self._client, VOLUMEATTRIBUTESCLASSES, attributes_class)
