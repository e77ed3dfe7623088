"""Which other API objects a Pod, or a volume, makes a kubelet read. Pure.

Sources: pkg/api/pod/util.go (VisitPodSecretNames, VisitPodConfigmapNames, HasAPIObjectReference),
pkg/api/v1/persistentvolume/util.go (VisitPVSecretNames).
"""

# check: pure

from collections.abc import Iterator

from lastcall.kube.api.claims import claims_used_by
from lastcall.kube.api.meta import Object

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_SECRET_REFERENCES = ("secretRef", "nodePublishSecretRef")
_VOLUME_SECRETS = ("secretRef", "nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")
"""Of a PersistentVolume; what only a CSI controller reads is not the kubelet's."""


def secrets_of(pod: Object) -> Iterator[str]:
    """Yield the names of the Secrets in the Pod's namespace that it names."""
    spec = pod["spec"]
    yield from (each.get("name") or "" for each in spec.get("imagePullSecrets") or ())
    yield from _of_containers(spec, "secretKeyRef", "secretRef")
    for volume in spec.get("volumes") or ():
        for source in volume.values():
            if not isinstance(source, dict):
                continue
            if source.get("secretName"):
                yield source["secretName"]
            for key in _SECRET_REFERENCES:
                if source.get(key):
                    yield source[key].get("name") or ""
        yield from _projected(volume, "secret")


def configmaps_of(pod: Object) -> Iterator[str]:
    """Yield the names of the ConfigMaps in the Pod's namespace that it names."""
    spec = pod["spec"]
    yield from _of_containers(spec, "configMapKeyRef", "configMapRef")
    for volume in spec.get("volumes") or ():
        if volume.get("configMap") is not None:
            yield volume["configMap"].get("name") or ""
        yield from _projected(volume, "configMap")


def claims_of(pod: Object) -> Iterator[str]:
    """Return the names of its PersistentVolumeClaims, those that are made for it included."""
    return (use.claim for use in claims_used_by(pod))


def accounts_of(pod: Object) -> Iterator[str]:
    """Yield the name of its ServiceAccount."""
    if name := pod["spec"].get("serviceAccountName"):
        yield name


def resource_claims_of(pod: Object) -> Iterator[str]:
    """Yield the names of its ResourceClaims; those made of a template are in the status (resourceclaim.Name)."""
    status = pod.get("status") or {}
    yield from (each.get("resourceClaimName") or "" for each in pod["spec"].get("resourceClaims") or ())
    yield from (each.get("resourceClaimName") or "" for each in status.get("resourceClaimStatuses") or ())
    yield (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName") or ""


def volume_secrets(volume: Object) -> Iterator[tuple[str, str]]:
    """Yield (namespace, name) of the Secrets that a kubelet reads for a bound PersistentVolume."""
    spec = volume["spec"]
    namespace = (spec.get("claimRef") or {}).get("namespace") or ""
    for source in spec.values():
        if not isinstance(source, dict):
            continue
        if source.get("secretName"):
            yield source.get("secretNamespace") or namespace, source["secretName"]
        for key in _VOLUME_SECRETS:
            if reference := source.get(key):
                yield reference.get("namespace") or namespace, reference.get("name") or ""


def api_reference(pod: Object) -> str:
    """Return the first kind of API object that a Pod needs, "" for none (`HasAPIObjectReference`)."""
    spec = pod["spec"]
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    if any(True for _ in secrets_of(pod)):
        return "secrets"
    if any(True for _ in configmaps_of(pod)):
        return "configmaps"
    for volume in spec.get("volumes") or ():
        for kind, what in _VOLUME_KINDS.items():
            if volume.get(kind) is not None:
                return what
        for source in (volume.get("projected") or {}).get("sources") or ():
            for kind, what in _PROJECTED_KINDS.items():
                if source.get(kind) is not None:
                    return what
    return "resourceclaims" if spec.get("resourceClaims") else ""


_VOLUME_KINDS = {
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
}
_PROJECTED_KINDS = {
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def projects_token(pod: Object) -> bool:
    """Return whether a volume of the Pod is a ServiceAccount's token."""
    return any(True for _ in token_audiences(pod))


def token_audiences(pod: Object) -> Iterator[str]:
    """Yield the audiences of its volumes' tokens; "" is the API server."""
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                yield source["serviceAccountToken"].get("audience") or ""


def _of_containers(spec: Object, key: str, whole: str) -> Iterator[str]:
    for kind in _CONTAINERS:
        for container in spec.get(kind) or ():
            for source in container.get("envFrom") or ():
                if source.get(whole) is not None:
                    yield source[whole].get("name") or ""
            for variable in container.get("env") or ():
                if reference := (variable.get("valueFrom") or {}).get(key):
                    yield reference.get("name") or ""


def _projected(volume: Object, kind: str) -> Iterator[str]:
    for source in (volume.get("projected") or {}).get("sources") or ():
        if source.get(kind) is not None:
            yield source[kind].get("name") or ""
