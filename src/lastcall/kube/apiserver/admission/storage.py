"""Admission of claims and volumes: DefaultStorageClass, StorageObjectInUseProtection, PersistentVolumeClaimResize.

Sources: plugin/pkg/admission/storage/{storageclass/setdefault,storageobjectinuseprotection,persistentvolume/resize}.
"""

# check: pure

from collections.abc import Iterable

from lastcall.kube.api.claims import (
    ATTRIBUTES_CLASS_PROTECTION,
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
    asked_size,
    class_of,
    default_class,
    names_a_class,
)
from lastcall.kube.api.errors import forbidden
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.resources import PERSISTENTVOLUMECLAIMS

NOT_RESIZABLE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


def set_default_class(claim: Object, classes: Iterable[Object]) -> None:
    """Give a claim that names no class, not even "", the default one. (`claimDefaulterPlugin.Admit`)"""
    if names_a_class(claim):
        return
    found = default_class(classes)
    if found is not None:
        claim["spec"]["storageClassName"] = name_of(found)


def protect(obj: Object, finalizer: str) -> None:
    """Add the finalizer that keeps an object in use from being removed. (`storageProtectionPlugin.Admit`)"""
    meta = obj["metadata"]
    if finalizer not in (meta.get("finalizers") or ()):
        meta["finalizers"] = [*(meta.get("finalizers") or ()), finalizer]


def protect_claim(claim: Object) -> None:
    protect(claim, CLAIM_PROTECTION)


def protect_volume(volume: Object) -> None:
    protect(volume, VOLUME_PROTECTION)


def protect_attributes_class(attributes_class: Object) -> None:
    protect(attributes_class, ATTRIBUTES_CLASS_PROTECTION)


def grows(new: Object, old: Object) -> bool:
    return asked_size(old) < asked_size(new)


def check_growth(new: Object, old: Object, storage_class: Object | None) -> None:
    """Raise the 403 StatusError for a claim that may not ask for more. (`persistentVolumeClaimResize.Validate`)"""
    if (old.get("status") or {}).get("phase") != "Bound":
        why = "Only bound persistent volume claims can be expanded"
        raise forbidden(PERSISTENTVOLUMECLAIMS, name_of(new), why)
    if not class_of(new) or storage_class is None or not storage_class.get("allowVolumeExpansion"):
        raise forbidden(PERSISTENTVOLUMECLAIMS, name_of(new), NOT_RESIZABLE)
