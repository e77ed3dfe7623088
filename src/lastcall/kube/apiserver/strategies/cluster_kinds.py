"""Kinds of storage drivers, devices, Service addresses, flow control, certificates and admission webhooks.

Sources: pkg/registry/storage/*/strategy.go, pkg/registry/resource/*/strategy.go,
pkg/registry/networking/{servicecidr,ipaddress}/strategy.go, pkg/registry/flowcontrol/*/strategy.go,
pkg/registry/certificates/certificates/strategy.go, pkg/registry/admissionregistration/*/strategy.go.
"""

from lastcall.kube.api import resources as kinds
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.strategies.base import Strategy, Undo, nothing
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.world.clock import Clock, rfc3339_now


class StatusStrategy(Strategy):
    """Whose status a create may not set, and whose metadata a write of the status may not."""

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = self.empty_status()

    @staticmethod
    def empty_status() -> Object:
        return {}

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        if subresource == "status":
            self.keep(new["metadata"], old["metadata"], *_METADATA)


_METADATA = ("deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences")
"""(`ResetObjectMetaForStatus`)"""


class StorageStrategy(Strategy):
    """A kind of storage.k8s.io: a DELETE answers the object, and updates name their version."""

    returns_deleted_object = True
    allow_unconditional_update = False


class CapacityStrategy(Strategy):
    allow_unconditional_update = False


class CSIDriverStrategy(StorageStrategy):
    """A new one has no generation; each change of its spec adds one.

    `preventPodSchedulingIfMissing` is dropped: the gate of the scheduler's part is off.
    """

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        obj["spec"].pop("preventPodSchedulingIfMissing", None)

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        if (old.get("spec") or {}).get("preventPodSchedulingIfMissing") is None:
            (new.get("spec") or {}).pop("preventPodSchedulingIfMissing", None)
        if self.spec_changed(new, old):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1


class VolumeAttachmentStrategy(StorageStrategy, StatusStrategy):
    @staticmethod
    def empty_status() -> Object:
        return {"attached": False}


class CertificateStrategy(Strategy):
    """A request for a certificate says who asks for it, and never changes but for its status and its approval."""

    def __init__(self, resource: Resource, clock: Clock) -> None:
        super().__init__(resource)
        self._clock = clock

    def check_write(self, subresource: str, gates: FeatureGates) -> None:
        if subresource != "approval":
            super().check_write(subresource, gates)

    def prepare_for_create(self, obj: Object) -> None:
        for key in ("username", "uid", "groups", "extra"):
            obj["spec"].pop(key, None)
        obj["status"] = {}

    def begin_create(self, obj: Object, context: RequestContext) -> Undo:
        user = context.user
        requester = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": dict(user.extra)}
        obj["spec"] |= {key: value for key, value in requester.items() if value}
        return nothing

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        self.keep(new, old, "spec")
        status, stored = dict(new.get("status") or {}), dict(old.get("status") or {})
        if not subresource:
            status = stored
        elif subresource == "approval":
            status, stored = stored, status
            self.keep(status, stored, "conditions")
        self._date(status, stored if subresource == "status" else old.get("status") or {})
        new["status"] = status

    def _date(self, status: Object, stored: Object) -> None:
        """(`populateConditionTimestamps`)"""
        known = {each.get("type"): each for each in stored.get("conditions") or ()}
        conditions = [dict(each) for each in status.get("conditions") or ()]
        for condition in conditions:
            before = known.get(condition.get("type"))
            if before == condition:
                continue
            if not condition.get("lastUpdateTime"):
                condition["lastUpdateTime"] = rfc3339_now(self._clock)
            if not condition.get("lastTransitionTime"):
                same = before is not None and before.get("status") == condition.get("status")
                had = (before or {}).get("lastTransitionTime") if same else None
                condition["lastTransitionTime"] = had or rfc3339_now(self._clock)
        if conditions:
            status["conditions"] = conditions


class AttributesClassStrategy(StorageStrategy):
    """pkg/registry/storage/volumeattributesclass: an update may leave out the version."""

    allow_unconditional_update = True


class DevicesStrategy(Strategy):
    """A kind of resource.k8s.io: a DELETE answers the object."""

    returns_deleted_object = True


class ClaimStrategy(DevicesStrategy, StatusStrategy):
    guards_admin_access = True


class ClaimTemplateStrategy(DevicesStrategy):
    guards_admin_access = True


class FlowControlStrategy(StatusStrategy):
    tracks_generation = True


class GenerationStrategy(Strategy):
    """A kind whose spec has a generation and which has no status."""

    tracks_generation = True


class DeviceGenerationStrategy(DevicesStrategy, GenerationStrategy):
    pass


class SliceStrategy(DeviceGenerationStrategy):
    """pkg/registry/resource/resourceslice: lists as attributes and mappings are dropped, their gates are off."""

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        self._drop_disabled(obj)

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        if self._drop_disabled(new):
            # The generation counts what was sent.
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    @staticmethod
    def _drop_disabled(resource_slice: Object) -> bool:
        devices = (resource_slice.get("spec") or {}).get("devices") or ()
        dropped = [device.pop("nodeAllocatableResourceMappings", None) for device in devices]
        dropped += [
            attribute.pop(key, None)
            for device in devices
            for attribute in (device.get("attributes") or {}).values()
            for key in ("bools", "ints", "strings", "versions")
        ]
        return any(each is not None for each in dropped)


class AdmissionStrategy(GenerationStrategy):
    """A kind of admissionregistration.k8s.io: updates name their version."""

    allow_unconditional_update = False


class ValidatingPolicyStrategy(FlowControlStrategy, AdmissionStrategy):
    """The only one of them with a status."""


class WebhookConfigurationStrategy(AdmissionStrategy):
    counts_empty = True

    def spec_changed(self, new: Object, old: Object) -> bool:
        return new.get("webhooks") != old.get("webhooks")


def cluster_strategies(clock: Clock) -> tuple[Strategy, ...]:
    """Make one strategy for each kind that this module knows."""
    return (
        CertificateStrategy(kinds.CERTIFICATESIGNINGREQUESTS, clock),
        CSIDriverStrategy(kinds.CSIDRIVERS),
        StorageStrategy(kinds.CSINODES),
        CapacityStrategy(kinds.CSISTORAGECAPACITIES),
        VolumeAttachmentStrategy(kinds.VOLUMEATTACHMENTS),
        AttributesClassStrategy(kinds.VOLUMEATTRIBUTESCLASSES),
        StatusStrategy(kinds.SERVICECIDRS),
        Strategy(kinds.IPADDRESSES),
        DeviceGenerationStrategy(kinds.DEVICECLASSES),
        ClaimStrategy(kinds.RESOURCECLAIMS),
        ClaimTemplateStrategy(kinds.RESOURCECLAIMTEMPLATES),
        SliceStrategy(kinds.RESOURCESLICES),
        FlowControlStrategy(kinds.FLOWSCHEMAS),
        FlowControlStrategy(kinds.PRIORITYLEVELCONFIGURATIONS),
        WebhookConfigurationStrategy(kinds.MUTATINGWEBHOOKCONFIGURATIONS),
        WebhookConfigurationStrategy(kinds.VALIDATINGWEBHOOKCONFIGURATIONS),
        ValidatingPolicyStrategy(kinds.VALIDATINGADMISSIONPOLICIES),
        AdmissionStrategy(kinds.VALIDATINGADMISSIONPOLICYBINDINGS),
        AdmissionStrategy(kinds.MUTATINGADMISSIONPOLICIES),
        AdmissionStrategy(kinds.MUTATINGADMISSIONPOLICYBINDINGS),
    )
