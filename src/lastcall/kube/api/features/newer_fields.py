"""Fields that are new in Kubernetes 1.37, all behind gates that are off: the API server drops them from what it gets.

The gates, none of which can be switched on here: AtomicWriteVolumeUserFields, EmptyDirVolumeMode, EvictionRequestAPI,
InPlacePodVerticalScalingSchedulerPreemption, VolumeBindMountOptions, WorkloadWithJob, and those of `httpGet.protocol`
and `grpc.mode` (kubernetes#139429, #137762). Source: pkg/api/pod/util.go; kubernetes-validate 1.37.0.
"""

# check: pure

from collections.abc import Iterator
from typing import Any

from lastcall.kube.api.meta import Object

_HANDLERS = ("livenessProbe", "readinessProbe", "startupProbe")
_GROUPS = ("initContainers", "containers", "ephemeralContainers")
_FILES = ("configMap", "secret", "downwardAPI")
_TOKENS = ("serviceAccountToken", "clusterTrustBundle", "podCertificate")


def drop_newer_fields(spec: Object) -> None:
    """Drop the fields from the spec of a Pod, in place."""
    spec.pop("evictionResponders", None)
    for volume in _objects(spec.get("volumes")):
        _drop_of_volume(volume)
    for group in _GROUPS:
        for container in _objects(spec.get(group)):
            _drop_of_container(container)


def drop_newer_fields_of_kind(plural: str, obj: Object) -> None:
    """Drop the fields of a Job, a CronJob or a Node that are not of its Pods, in place."""
    spec = obj.get("spec")
    if plural == "cronjobs" and isinstance(spec, dict):
        spec = (spec.get("jobTemplate") or {}).get("spec")
    if isinstance(spec, dict):
        spec.pop({"nodes": "podPreemptionPolicy", "jobs": "scheduling", "cronjobs": "scheduling"}.get(plural, ""), None)


def _drop_of_volume(volume: Object) -> None:
    if (empty := _object(volume.get("emptyDir"))) is not None:
        empty.pop("mode", None)
    for kind in _FILES:
        if (source := _object(volume.get(kind))) is not None:
            source.pop("defaultUser", None)
            _drop_users(source)
    if (projected := _object(volume.get("projected"))) is None:
        return
    projected.pop("defaultUser", None)
    for source in _objects(projected.get("sources")):
        for kind in _FILES:
            if (files := _object(source.get(kind))) is not None:
                _drop_users(files)
        for kind in _TOKENS:
            if (token := _object(source.get(kind))) is not None:
                token.pop("user", None)


def _drop_users(source: Object) -> None:
    for item in _objects(source.get("items")):
        item.pop("user", None)


def _drop_of_container(container: Object) -> None:
    for mount in _objects(container.get("volumeMounts")):
        mount.pop("bindMountOptions", None)
    lifecycle = _object(container.get("lifecycle")) or {}
    for handler in (*(container.get(name) for name in _HANDLERS), lifecycle.get("postStart"), lifecycle.get("preStop")):
        for action, field in (("httpGet", "protocol"), ("grpc", "mode")):
            if (found := _object((_object(handler) or {}).get(action))) is not None:
                found.pop(field, None)


def _object(value: Any) -> Object | None:
    return value if isinstance(value, dict) else None


def _objects(value: Any) -> Iterator[Object]:
    return (each for each in value or () if isinstance(each, dict))
