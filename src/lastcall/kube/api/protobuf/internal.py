"""A value as Kubernetes's messages show it: printed from its internal Go structs, every field of them, in their order.

Those have no JSON tags, so fields have their Go names, and what is not there is null, "" or 0. Most internal types have
the fields of v1 in the order of v1, which `protobuf.json` has; what differs is in the tables here, as the messages of
Kubernetes 1.36.2 show it. Types of apimachinery (label selectors, metadata) are printed as JSON.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from lastcall.kube.api.protobuf.decoding import fields_of
from lastcall.kube.api.protobuf.ordering import ordered
from lastcall.kube.api.schema.types import Field, struct

_WORDS: Mapping[str, str] = {
    "apiGroup": "APIGroup", "apiVersion": "APIVersion", "awsElasticBlockStore": "AWSElasticBlockStore", "cel": "CEL",
    "cephfs": "CephFS", "cephFS": "CephFS",
    "chapAuthDiscovery": "DiscoveryCHAPAuth", "chapAuthSession": "SessionCHAPAuth",
    "csi": "CSI", "diskURI": "DataDiskURI", "diskName": "DiskName", "dnsConfig": "DNSConfig", "dnsPolicy": "DNSPolicy",
    "fc": "FC", "fsGroup": "FSGroup", "fsGroupChangePolicy": "FSGroupChangePolicy", "fsType": "FSType",
    "gcePersistentDisk": "GCEPersistentDisk", "gmsaCredentialSpec": "GMSACredentialSpec",
    "gmsaCredentialSpecName": "GMSACredentialSpecName", "grpc": "GRPC", "hostIPC": "HostIPC", "hostPID": "HostPID",
    "httpGet": "HTTPGet", "httpHeaders": "HTTPHeaders", "image": "Image", "ip": "IP", "iqn": "IQN", "iscsi": "ISCSI",
    "iscsiInterface": "ISCSIInterface", "nfs": "NFS", "os": "OS", "pdID": "PdID", "pdName": "PDName", "rbd": "RBD",
    "scaleIO": "ScaleIO", "seLinuxChangePolicy": "SELinuxChangePolicy", "seLinuxOptions": "SELinuxOptions",
    "setHostnameAsFQDN": "SetHostnameAsFQDN", "sslEnabled": "SSLEnabled", "storageos": "StorageOS",
    "tcpSocket": "TCPSocket", "targetWWNs": "TargetWWNs", "tty": "TTY", "uid": "UID", "volumeID": "VolumeID",
    "wwids": "WWIDs", "pool": "RBDPool", "user": "RadosUser", "monitors": "CephMonitors", "keyring": "Keyring",
}  # fmt: skip
"""Go names that are not the JSON name with a large first letter."""
_NAMES: Mapping[tuple[str, str], str] = {
    ("core.v1.RBDVolumeSource", "image"): "RBDImage", ("core.v1.RBDPersistentVolumeSource", "image"): "RBDImage",
    ("core.v1.CephFSVolumeSource", "user"): "User", ("core.v1.CephFSPersistentVolumeSource", "user"): "User",
    ("core.v1.CephFSVolumeSource", "monitors"): "Monitors",
    ("core.v1.CephFSPersistentVolumeSource", "monitors"): "Monitors", ("core.v1.QuobyteVolumeSource", "user"): "User",
    ("core.v1.GlusterfsVolumeSource", "endpoints"): "EndpointsName",
    ("core.v1.GlusterfsPersistentVolumeSource", "endpoints"): "EndpointsName",
    ("resource.v1.DeviceRequestAllocationResult", "pool"): "Pool",
    ("core.v1.ScaleIOVolumeSource", "storagePool"): "StoragePool", ("core.v1.SELinuxOptions", "user"): "User",
}  # fmt: skip
_ORDER: Mapping[str, tuple[str, ...]] = {
    "core.v1.PodSpec": (
        "volumes", "initContainers", "containers", "ephemeralContainers", "restartPolicy",
        "terminationGracePeriodSeconds", "activeDeadlineSeconds", "dnsPolicy", "nodeSelector", "serviceAccountName",
        "automountServiceAccountToken", "nodeName", "securityContext", "imagePullSecrets", "hostname", "subdomain",
        "setHostnameAsFQDN", "affinity", "schedulerName", "tolerations", "hostAliases", "priorityClassName", "priority",
        "preemptionPolicy", "dnsConfig", "readinessGates", "runtimeClassName", "overhead", "enableServiceLinks",
        "topologySpreadConstraints", "os", "schedulingGates", "resourceClaims", "resources", "hostnameOverride",
        "schedulingGroup",
    ),
    "core.v1.VolumeSource": (
        "hostPath", "emptyDir", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "secret", "nfs", "iscsi",
        "glusterfs", "persistentVolumeClaim", "rbd", "quobyte", "flexVolume", "cinder", "cephfs", "flocker",
        "downwardAPI", "fc", "azureFile", "configMap", "vsphereVolume", "azureDisk", "photonPersistentDisk",
        "projected", "portworxVolume", "scaleIO", "storageos", "csi", "ephemeral", "image",
    ),
    "core.v1.PersistentVolumeSource": (
        "gcePersistentDisk", "awsElasticBlockStore", "hostPath", "glusterfs", "nfs", "rbd", "quobyte", "iscsi",
        "flexVolume", "cinder", "cephfs", "fc", "flocker", "azureFile", "vsphereVolume", "azureDisk",
        "photonPersistentDisk", "portworxVolume", "scaleIO", "local", "storageos", "csi",
    ),
    "core.v1.PodSecurityContext": (
        "shareProcessNamespace", "hostUsers", "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup",
        "runAsNonRoot", "supplementalGroups", "supplementalGroupsPolicy", "fsGroup", "fsGroupChangePolicy", "sysctls",
        "seccompProfile", "appArmorProfile", "seLinuxChangePolicy",
    ),
}  # fmt: skip
"""By the v1 type: the internal order of the fields, where it is another."""
_MOVED = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Fields of a Pod's spec that are in its security context internally."""
_OUTER: Mapping[str, str] = {"core.v1.PersistentVolumeSource": "core.v1.PersistentVolumeSpec"}
"""Embedded structs that are shown by themselves, and the type that has their fields in JSON."""
_NEVER_NULL: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("apps.v1.RollingUpdateDaemonSet", "apps.v1.RollingUpdateDeployment"), ("maxUnavailable", "maxSurge")
) | {"apps.v1.RollingUpdateStatefulSetStrategy": ("partition",)}
"""Fields that are pointers in v1 alone."""
_TEMPLATES = frozenset(
    {"core.v1.PodTemplateSpec", "resource.v1.ResourceClaimTemplateSpec", "core.v1.PersistentVolumeClaimTemplate"}
)


def as_internal(name: str, value: Any) -> Any:
    """Return `value`, JSON of the type `name` (`core.v1.PodSpec`), as its internal struct is printed, or None."""
    if isinstance(value, dict) and name == "meta.v1.LabelSelector":
        return {key: _sorted(each) for key, each in value.items() if each}
    if not isinstance(value, dict) or name.startswith(("meta.v1.", "runtime.")):
        return value
    if name in _TEMPLATES:
        meta = {key: each for key, each in (value.get("metadata") or {}).items() if each not in (None, "", {}, [])}
        return {**ordered("meta.v1.ObjectMeta", meta), "Spec": _of(struct(name).fields["spec"], value.get("spec"))}
    if name == "core.v1.PodSpec":
        context = {"securityContext": _security_context(value)}
        return {
            _go_name(name, key): context.get(key, _of(struct(name).fields[key], value.get(key))) for key in _ORDER[name]
        }
    fields = struct(_OUTER.get(name, name)).fields
    if name in _NEVER_NULL:
        value = {**dict.fromkeys(_NEVER_NULL[name], 0), **value}
    return {_go_name(name, key): _of(fields[key], value.get(key)) for key in _fields(name) if key in fields}


def _security_context(spec: Mapping[str, Any]) -> Any:
    context = spec.get("securityContext")
    moved = {key: spec[key] for key in _MOVED if spec.get(key) is not None}
    if context is None and not moved:
        return None
    fields = struct("core.v1.PodSpec").fields
    shown = {_go_name("core.v1.PodSpec", key): _of(fields[key], moved.get(key)) for key in _MOVED}
    own = struct("core.v1.PodSecurityContext").fields
    for key in _ORDER["core.v1.PodSecurityContext"]:
        if key not in _MOVED:
            shown[_go_name("core.v1.PodSecurityContext", key)] = _of(own[key], (context or {}).get(key))
    return shown


@cache
def _fields(name: str) -> tuple[str, ...]:
    """The JSON names of the fields, those of an embedded struct among them, in the internal order."""
    if name in _ORDER:
        return _ORDER[name]
    found = [_fields(each.type) if each.inline else (each.name,) for each in fields_of(name).values()]
    return tuple(key for each in found for key in each)


def as_json(name: str, value: Any) -> Any:
    """Return `value`, JSON of the type `name`, with the fields of each struct in the order in which Go writes them."""
    if not isinstance(value, dict):
        return value
    fields = struct(name).fields
    return {key: _json_of(fields[key], value[key]) for key in _fields(name) if key in value and key in fields}


def _json_of(field: Field, value: Any) -> Any:
    if field.shape == "struct" and field.ref:
        return as_json(field.ref, value)
    if field.shape == "list" and field.item is not None and isinstance(value, list):
        return [_json_of(field.item, each) for each in value]
    return _sorted(value)


def _sorted(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, dict) else value


def _go_name(name: str, key: str) -> str:
    return _NAMES.get((name, key)) or _WORDS.get(key) or key[:1].upper() + key[1:]


def _of(field: Field, value: Any) -> Any:
    """A field's value; what is not there is null behind a pointer, else the zero value."""
    match field.shape:
        case "list":
            if value is None or field.item is None:
                return None
            return [_of(field.item, each) for each in value]
        case "map":
            return _sorted(value)
        case "struct":
            if value is None and not field.always:
                return None
            return as_internal(field.ref, value or {})
    if value is not None:
        return value
    return (
        {"string": "", "integer": 0, "boolean": False}.get(field.shape)
        if field.omitted or field.default in ("", 0)
        else None
    )
