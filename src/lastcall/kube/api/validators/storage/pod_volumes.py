"""Volumes of a Pod. Source: pkg/apis/core/validation/validation.go (ValidateVolumes, validateVolumeSource)."""

from collections.abc import Callable, Iterable
from typing import Any

from lastcall.kube.api.field import FieldError, duplicate, each, forbidden, invalid, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_label
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.validators.common import local_path, one_of
from lastcall.kube.api.validators.containers.environment import VOLUME_FIELDS, field_ref, resource_field_ref
from lastcall.kube.api.validators.containers.specs import PULL_POLICIES
from lastcall.kube.api.validators.metadata import template_metadata
from lastcall.kube.api.validators.storage.kinds import validate_claim_spec
from lastcall.kube.api.validators.storage.sources import OF_PODS, first_of

_MIN_EXPIRATION = 600
_MAX_EXPIRATION = 1 << 32


def validate_volumes(
    volumes: Iterable[Object], path: str = "spec.volumes", *, is_pod: bool = False
) -> tuple[list[FieldError], list[str]]:
    """Return the problems, and the names of the volumes that have none. `is_pod`: they are not of a template."""
    errors: list[FieldError] = []
    names: list[str] = []
    for index, volume in enumerate(volumes):
        at = f"{path}[{index}]"
        name = volume.get("name") or ""
        found = _source(volume, at, is_pod=is_pod)
        found += each(f"{at}.name", name, is_dns1123_label(name)) if name else [required(f"{at}.name")]
        if name in names:
            found.append(duplicate(f"{at}.name", name))
        if not found:
            names.append(name)
        errors += found
    return errors, names


def _source(volume: Object, path: str, *, is_pod: bool) -> list[FieldError]:
    given = first_of(_ORDER, volume)
    if not given:
        return [required(path, "must specify a volume type")]
    errors: list[FieldError] = []
    for position, kind in enumerate(given):
        if position:
            errors.append(forbidden(f"{path}.{kind}", "may not specify more than 1 volume type"))
        else:
            errors += _KINDS[kind](volume[kind], f"{path}.{kind}")
            if is_pod and kind == "image" and not volume[kind].get("reference"):
                errors.insert(0, required(f"{path}.image.reference"))
    return errors


def _empty_dir(source: Object, path: str) -> list[FieldError]:
    limit = source.get("sizeLimit")
    if limit is not None and parse_quantity(limit).value < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _mode(mode: Any, path: str) -> list[FieldError]:
    if mode is None or 0 <= mode <= 0o777:
        return []
    return [invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")]


def _key_paths(items: Iterable[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        if not item.get("key"):
            errors.append(required(f"{at}.key"))
        where = item.get("path") or ""
        errors += local_path(where, f"{at}.path", reserved=True) if where else [required(f"{at}.path")]
        errors += _mode(item.get("mode"), f"{at}.mode")
    return errors


def _named(name_key: str) -> Callable[[Object, str], list[FieldError]]:
    def check(source: Object, path: str) -> list[FieldError]:
        errors = [] if source.get(name_key) else [required(f"{path}.{name_key}")]
        errors += _mode(source.get("defaultMode"), f"{path}.defaultMode")
        return errors + _key_paths(source.get("items") or (), f"{path}.items")

    return check


def _downward_api(source: Object, path: str) -> list[FieldError]:
    errors = _mode(source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or ():
        # Kubernetes gives these paths without an index.
        where = item.get("path") or ""
        errors += local_path(where, f"{path}.path", reserved=True) if where else [required(f"{path}.path")]
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        if field is not None:
            errors += field_ref(field, f"{path}.fieldRef", VOLUME_FIELDS)
            if resource is not None:
                why = "fieldRef and resourceFieldRef can not be specified simultaneously"
                errors.append(invalid(path, "resource", why))
        elif resource is not None:
            errors += resource_field_ref(resource, f"{path}.resourceFieldRef", in_volume=True)
        else:
            errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
        errors += _mode(item.get("mode"), f"{path}.mode")
    return errors


_PROJECTED = ("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate")


def _projected(source: Object, path: str) -> list[FieldError]:
    errors = _mode(source.get("defaultMode"), f"{path}.defaultMode")
    for index, part in enumerate(source.get("sources") or ()):
        at = f"{path}.sources[{index}]"
        given = [kind for kind in _PROJECTED if part.get(kind) is not None]
        if not given:
            continue
        for kind in given[1:]:
            errors.append(forbidden(f"{at}.{kind}", "may not specify more than 1 volume type per source"))
        kind = given[0]
        if kind in ("secret", "configMap"):
            errors += _named("name")(part[kind], f"{at}.{kind}")
        elif kind == "downwardAPI":
            errors += _downward_api(part[kind], f"{at}.{kind}")
        elif kind == "serviceAccountToken":
            errors += _token(part[kind], f"{at}.{kind}", path)
    return errors


def _token(source: Object, path: str, volume: str) -> list[FieldError]:
    """Report a missing path at the volume."""
    errors: list[FieldError] = []
    seconds = source.get("expirationSeconds", 3600)
    if seconds < _MIN_EXPIRATION:
        errors.append(invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _MAX_EXPIRATION:
        why = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(f"{path}.expirationSeconds", seconds, why))
    where = source.get("path") or ""
    return errors + (local_path(where, f"{path}.path", reserved=True) if where else [required(f"{volume}.path")])


def _claim(source: Object, path: str) -> list[FieldError]:
    return [] if source.get("claimName") else [required(f"{path}.claimName")]


def _ephemeral(source: Object, path: str) -> list[FieldError]:
    """(`validateEphemeralVolumeSource`)"""
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    errors = template_metadata(template.get("metadata") or {}, f"{path}.volumeClaimTemplate.metadata")
    return errors + validate_claim_spec(template.get("spec") or {}, f"{path}.volumeClaimTemplate.spec")


def _image(source: Object, path: str) -> list[FieldError]:
    """(`validateImageVolumeSource`); only a Pod needs a reference."""
    policy = source.get("pullPolicy")
    return one_of(policy, f"{path}.pullPolicy", PULL_POLICIES)


_KINDS: dict[str, Callable[[Object, str], list[FieldError]]] = {
    **OF_PODS,
    "emptyDir": _empty_dir,
    "secret": _named("secretName"),
    "persistentVolumeClaim": _claim,
    "downwardAPI": _downward_api,
    "configMap": _named("name"),
    "projected": _projected,
    "ephemeral": _ephemeral,
    "image": _image,
}
_ORDER = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
