"""The kinds with few rules of their own."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, forbidden
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.deletion import (
    Decision,
    DeleteOptions,
    GarbageCollectionPolicy,
    decide_namespace_delete,
    should_delete_namespace_during_update,
)
from lastcall.kube.apiserver.strategies.base import Strategy

if TYPE_CHECKING:
    from lastcall.kube.api.types.cluster import Namespace

_HOSTNAME = "kubernetes.io/hostname"


class NamespaceStrategy(Strategy):
    """pkg/registry/core/namespace: spec.finalizers hold a Namespace until its content is gone."""

    is_namespace = True
    returns_deleted_object = True
    allow_delete_collection = False
    IMMORTAL = ("default", "kube-system", "kube-public")

    def check_write(self, subresource: str, gates: FeatureGates) -> None:
        if subresource != "finalize":
            super().check_write(subresource, gates)

    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Active"}
        finalizers = (obj.get("spec") or {}).get("finalizers") or []
        if "kubernetes" not in finalizers:
            finalizers = [*finalizers, "kubernetes"]
        obj["spec"] = {"finalizers": finalizers}
        self._label(obj)

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource == "finalize":
            # Only spec.finalizers may change here.
            self.keep(new, old, "status")
        else:
            super().prepare_for_update(new, old, subresource)
            # spec has nothing but the finalizers, and those belong to /finalize.
            self.keep(new, old, "spec")
        self._label(new)

    @staticmethod
    def _label(obj: Object) -> None:
        meta = obj["metadata"]
        if meta.get("name"):
            meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}

    def check_delete(self, name: str) -> StatusError | None:
        if name not in self.IMMORTAL:
            return None
        return forbidden(self.resource, name, "this namespace may not be deleted")

    def decide_delete(self, obj: Object, options: DeleteOptions, now: datetime) -> Decision:
        return decide_namespace_delete(cast("Namespace", obj), options, now)

    def should_delete_during_update(self, new: Object, old: Object) -> bool:
        return should_delete_namespace_during_update(cast("Namespace", new), cast("Namespace", old))


class NodeStrategy(Strategy):
    """pkg/registry/core/node: `configSource` and `status.config` are dropped where they are not in use."""

    is_made_anew = True

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        (obj.get("spec") or {}).pop("configSource", None)
        (obj.get("status") or {}).pop("config", None)

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        if (old.get("spec") or {}).get("configSource") is None and new.get("spec"):
            new["spec"] = {key: value for key, value in new["spec"].items() if key != "configSource"}
        if (old.get("status") or {}).get("config") is None and new.get("status"):
            new["status"] = {key: value for key, value in new["status"].items() if key != "config"}


class ConfigMapStrategy(Strategy):
    """pkg/registry/core/configmap."""


class SecretStrategy(Strategy):
    """pkg/registry/core/secret: stringData is folded into data, the type never changes."""

    def prepare_for_create(self, obj: Object) -> None:
        fold_string_data(obj)

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        fold_string_data(new)
        if not new.get("type"):
            new["type"] = old.get("type", "Opaque")


def fold_string_data(secret: Object) -> None:
    """Move stringData into data (Convert_v1_Secret_To_core_Secret)."""
    plain = secret.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


class ServiceAccountStrategy(Strategy):
    """pkg/registry/core/serviceaccount: of a secret only the name is kept."""

    returns_deleted_object = True

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        _clean_secrets(obj)

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        _clean_secrets(new)


def _clean_secrets(account: Object) -> None:
    """(`cleanSecretReferences`)"""
    if account.get("secrets"):
        account["secrets"] = [{key: each[key] for key in ("name",) if key in each} for each in account["secrets"]]


class LeaseStrategy(Strategy):
    """pkg/registry/coordination/lease: compare-and-swap is the point of a Lease, so updates name their version.

    Fields of the gate CoordinatedLeaderElection, which is off, are dropped where they are not in use.
    (asked of 1.36.2)
    """

    is_made_anew = True

    allow_create_on_update = True
    allow_unconditional_update = False

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        self._drop(obj, {})

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        self._drop(new, old.get("spec") or {})

    @staticmethod
    def _drop(obj: Object, in_use: Object) -> None:
        spec = obj.get("spec") or {}
        for name in ("strategy", "preferredHolder"):
            if not in_use.get(name):
                spec.pop(name, None)


class EndpointSliceStrategy(Strategy):
    """pkg/registry/discovery/endpointslice: everything but metadata counts as spec."""

    tracks_generation = True

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        _drop_topology(obj, None)

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        _drop_topology(new, old)

    def spec_changed(self, new: Object, old: Object) -> bool:
        def content(obj: Object) -> Object:
            meta = obj.get("metadata", {})
            shown = {key: obj.get(key) for key in ("addressType", "endpoints", "ports")}
            return {**shown, "labels": meta.get("labels"), "annotations": meta.get("annotations")}

        return content(new) != content(old)


def _drop_topology(new: Object, old: Object | None) -> None:
    """The topology of v1beta1 goes as soon as endpoints change; the name of a node that was in it stays.

    (strategy.go:dropTopologyOnV1)
    """
    endpoints, before = new.get("endpoints") or [], (old or {}).get("endpoints") or []
    if old is not None and endpoints == before:
        return
    known = {name for each in before if (name := (each.get("deprecatedTopology") or {}).get(_HOSTNAME))}
    for index, endpoint in enumerate(endpoints):
        if "deprecatedTopology" in endpoint:
            kept = {key: value for key, value in endpoint.items() if key != "deprecatedTopology"}
            name = (endpoint["deprecatedTopology"] or {}).get(_HOSTNAME)
            if name in known and kept.get("nodeName") is None:
                kept["nodeName"] = name
            endpoints[index] = kept


class EventStrategy(Strategy):
    """pkg/registry/core/event: outside garbage collection, kept for an hour."""

    allow_create_on_update = True
    garbage_collection = GarbageCollectionPolicy.UNSUPPORTED
