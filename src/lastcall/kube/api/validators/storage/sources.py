"""Sources of volumes: what Pods and PersistentVolumes have in common, and what only one of them is asked.

Source: pkg/apis/core/validation/validation.go (validateVolumeSource, ValidatePersistentVolumeSpec and what they call).
"""

import re
from collections.abc import Callable
from typing import Any

from lastcall.kube.api.field import FieldError, each, invalid, not_supported, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import between, is_dns1123_label, is_dns1123_subdomain
from lastcall.kube.api.validators.common import driver_name, local_path, no_back_steps, one_of

Check = Callable[[Object, str], list[FieldError]]

HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
LARGEST_LUN = 255
LARGEST_PARTITION = 255
LONGEST_TENANT = 64
_CACHING = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
    "/subscriptions/",
)
_BLOB = ("https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd", "https://")
_REGISTRY = "must be a host:port pair or multiple pairs separated by commas"
_NAMES_OF_ISCSI = (
    ("iqn", re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9\-.]+)(:[^,;*&$|\s]+)$")),
    ("eui", re.compile(r"^eui.[A-Za-z0-9]{16}$")),
    ("naa", re.compile(r"^naa.[A-Za-z0-9]{32}$")),
)
_HOST_PORT = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*")


def host_path(source: Object, path: str) -> list[FieldError]:
    where = source.get("path") or ""
    if not where:
        return [required(f"{path}.path")]
    return no_back_steps(where, f"{path}.path") + one_of(source.get("type"), f"{path}.type", HOST_PATH_TYPES)


def needs(*keys: str) -> Check:
    """Return the check that each of `keys` is there."""

    def check(source: Object, path: str) -> list[FieldError]:
        return [required(f"{path}.{key}") for key in keys if not source.get(key)]

    return check


def _partition(key: str) -> Check:
    def check(source: Object, path: str) -> list[FieldError]:
        errors, number = needs(key)(source, path), source.get("partition") or 0
        if 0 <= number <= LARGEST_PARTITION:
            return errors
        return [*errors, invalid(f"{path}.partition", number, between(1, LARGEST_PARTITION))]

    return check


def _gce_disk(source: Object, path: str) -> list[FieldError]:
    """The path is written like this."""
    return _partition("pdName")(source, path.removesuffix("gcePersistentDisk") + "persistentDisk")


def _nfs(source: Object, path: str) -> list[FieldError]:
    errors, where = needs("server", "path")(source, path), source.get("path") or ""
    return errors if where.startswith("/") else [*errors, invalid(f"{path}.path", where, "must be an absolute path")]


def _iscsi_name(name: str, path: str) -> list[FieldError]:
    for prefix, form in _NAMES_OF_ISCSI:
        if name.startswith(prefix):
            return [] if form.search(name) else [invalid(path, name, "must be valid format")]
    return [invalid(path, name, "must be valid format")]


def _lun(value: Any, path: str) -> list[FieldError]:
    return [] if 0 <= value <= LARGEST_LUN else [invalid(path, value, between(0, LARGEST_LUN))]


def _iscsi(source: Object, path: str, *, of_volume: bool) -> list[FieldError]:
    errors, name = needs("targetPortal", "iqn")(source, path), source.get("iqn") or ""
    if name and not of_volume and not name.startswith(("iqn", "eui", "naa")):
        errors.append(invalid(f"{path}.iqn", name, "must be valid format starting with iqn, eui, or naa"))
    elif name:
        errors += _iscsi_name(name, f"{path}.iqn")
    errors += _lun(source.get("lun") or 0, f"{path}.lun")
    secret = source.get("secretRef")
    if secret is None:
        if source.get("chapAuthDiscovery") or source.get("chapAuthSession"):
            errors.append(required(f"{path}.secretRef"))
    elif of_volume and not secret.get("name"):
        errors.append(required(f"{path}.secretRef.name"))
    if source.get("initiatorName") is not None:
        errors += _iscsi_name(source["initiatorName"], f"{path}.initiatorname")
    return errors


def _fibre_channel(source: Object, path: str) -> list[FieldError]:
    targets, ids, lun = source.get("targetWWNs") or [], source.get("wwids") or [], source.get("lun")
    errors: list[FieldError] = []
    if not targets and not ids:
        errors.append(required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both"))
    if targets and ids:
        why = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(f"{path}.targetWWNs", targets, why))
    if targets and lun is None:
        errors.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif targets:
        errors += _lun(lun, f"{path}.lun")
    return errors


def _glusterfs(source: Object, path: str) -> list[FieldError]:
    errors, namespace = needs("endpoints", "path")(source, path), source.get("endpointsNamespace")
    at = f"{path}.endpointsNamespace"
    if namespace == "":
        why = "if the endpointnamespace is set, it must be a valid namespace name"
        return [*errors, invalid(at, namespace, why)]
    return errors if namespace is None else errors + each(at, namespace, is_dns1123_label(namespace))


def _flocker(source: Object, path: str) -> list[FieldError]:
    name, uuid = source.get("datasetName") or "", source.get("datasetUUID") or ""
    errors: list[FieldError] = []
    if not name and not uuid:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(invalid(path, "resource", why))
    if "/" in name:
        errors.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))
    return errors


def _quobyte(source: Object, path: str) -> list[FieldError]:
    registry = source.get("registry") or ""
    errors: list[FieldError] = []
    if not registry:
        errors.append(required(f"{path}.registry", _REGISTRY))
    elif len(source.get("tenant") or "") > LONGEST_TENANT:
        why = f"must be a UUID and may not exceed a length of {LONGEST_TENANT} characters"
        errors.append(required(f"{path}.tenant", why))
    else:
        wrong = sum(not _HOST_PORT.fullmatch(pair) for pair in registry.split(","))
        errors += [invalid(f"{path}.registry", registry, _REGISTRY)] * wrong
    return errors + needs("volume")(source, path)


def _azure_file_of_volume(source: Object, path: str) -> list[FieldError]:
    errors = needs("secretName", "shareName")(source, path)
    return [*errors, required(f"{path}.secretNamespace")] if source.get("secretNamespace") == "" else errors


def _azure_disk(source: Object, path: str) -> list[FieldError]:
    errors = needs("diskName", "diskURI")(source, path)
    uri, kind, caching = source.get("diskURI") or "", source.get("kind"), source.get("cachingMode")
    if caching is not None and caching not in _CACHING:
        errors.append(not_supported(f"{path}.cachingMode", caching, _CACHING))
    if kind is not None and kind not in _DISK_KINDS:
        errors.append(not_supported(f"{path}.kind", kind, _DISK_KINDS))
    if kind is not None:
        form, start = _MANAGED if kind == "Managed" else _BLOB
        if not uri.startswith(start):
            errors.append(not_supported(f"{path}.diskURI", uri, (form,)))
    return errors


def _flex_volume(source: Object, path: str) -> list[FieldError]:
    errors = needs("driver")(source, path)
    for key in sorted(source.get("options") or {}):
        domain = "." + key.split("/", 1)[0].lower() if "/" in key else "." + key.lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(f"{path}.options[{key}]", key, why))
    return errors


def _named_secret(source: Object, path: str) -> list[FieldError]:
    """A secret that is referred to has a name."""
    secret = source.get("secretRef")
    return needs("name")(secret, f"{path}.secretRef") if secret is not None else []


def _secret_somewhere(source: Object, path: str) -> list[FieldError]:
    """A PersistentVolume names the secret's namespace, too."""
    secret = source.get("secretRef")
    return needs("name", "namespace")(secret, f"{path}.secretRef") if secret is not None else []


def _cinder(secret: Check) -> Check:
    return lambda source, path: needs("volumeID")(source, path) + secret(source, path)


def _storage_os(secret: Check) -> Check:
    def check(source: Object, path: str) -> list[FieldError]:
        name, namespace = source.get("volumeName") or "", source.get("volumeNamespace") or ""
        at = f"{path}.volumeName"
        errors = each(at, name, is_dns1123_label(name)) if name else [required(at)]
        if namespace:
            errors += each(f"{path}.volumeNamespace", namespace, is_dns1123_label(namespace))
        return errors + secret(source, path)

    return check


def _csi_of_pod(source: Object, path: str) -> list[FieldError]:
    errors = driver_name(source.get("driver") or "", f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is None:
        return errors
    name, at = secret.get("name") or "", f"{path}.nodePublishSecretRef.name"
    return errors + (each(at, name, is_dns1123_subdomain(name)) if name else [required(at)])


def _csi_of_volume(source: Object, path: str) -> list[FieldError]:
    errors = driver_name(source.get("driver") or "", f"{path}.driver") + needs("volumeHandle")(source, path)
    for key in (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ):
        if (secret := source.get(key)) is None:
            continue
        for part, check in (("name", is_dns1123_subdomain), ("namespace", is_dns1123_label)):
            value, at = secret.get(part) or "", f"{path}.{key}.{part}"
            errors += each(at, value, check(value)) if value else [required(at)]
    return errors


def _git_repository(source: Object, path: str) -> list[FieldError]:
    return needs("repository")(source, path) + local_path(source.get("directory") or "", f"{path}.directory")


_SHARED: dict[str, Check] = {
    "hostPath": host_path,
    "gcePersistentDisk": _gce_disk,
    "awsElasticBlockStore": _partition("volumeID"),
    "nfs": _nfs,
    "flocker": _flocker,
    "rbd": needs("monitors", "image"),
    "cephfs": needs("monitors"),
    "quobyte": _quobyte,
    "fc": _fibre_channel,
    "flexVolume": _flex_volume,
    "vsphereVolume": needs("volumePath"),
    "photonPersistentDisk": needs("pdID"),
    "portworxVolume": needs("volumeID"),
    "azureDisk": _azure_disk,
    "scaleIO": needs("gateway", "system", "volumeName"),
}

OF_PODS: dict[str, Check] = {
    **_SHARED,
    "gitRepo": _git_repository,
    "iscsi": lambda source, path: _iscsi(source, path, of_volume=False),
    "glusterfs": needs("endpoints", "path"),
    "cinder": _cinder(_named_secret),
    "azureFile": needs("secretName", "shareName"),
    "storageos": _storage_os(_named_secret),
    "csi": _csi_of_pod,
}
"""By the name of the source; those that only Pods have to do with the cluster are in `pod_volumes`."""

OF_VOLUMES: dict[str, Check] = {
    **_SHARED,
    "iscsi": lambda source, path: _iscsi(source, path, of_volume=True),
    "glusterfs": _glusterfs,
    "cinder": _cinder(_secret_somewhere),
    "azureFile": _azure_file_of_volume,
    "storageos": _storage_os(_secret_somewhere),
    "csi": _csi_of_volume,
}
"""By the name of the source; `local` is in `kinds`."""


def first_of(order: tuple[str, ...], given: dict[str, Any]) -> list[str]:
    """Return the sources in the order in which Kubernetes looks: one too many is every one but the first."""
    return [key for key in order if given.get(key) is not None]
