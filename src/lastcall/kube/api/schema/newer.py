"""What Kubernetes 1.37 has more than the types of 1.36.2: fields, in the form of `schema.json`.

They are known on every version; where their gate is off, or not there, `kube/api/features/newer_fields.py` drops them.
OpenAPI documents have them from 1.37 on. Source: the schemas of kubernetes-validate 1.37.0. What only an alpha gate
fills is any JSON here (`{}`).
"""

# check: pure

from typing import Any

SINCE = 37

_USER = {"t": "integer", "f": "int64"}
_MODE = {"t": "integer", "f": "int32"}
_TEXT = {"t": "string"}
_FILES = (
    "core.v1.ClusterTrustBundleProjection",
    "core.v1.DownwardAPIVolumeFile",
    "core.v1.KeyToPath",
    "core.v1.PodCertificateProjection",
    "core.v1.ServiceAccountTokenProjection",
)
_SOURCES = (
    "core.v1.ConfigMapVolumeSource",
    "core.v1.DownwardAPIVolumeSource",
    "core.v1.ProjectedVolumeSource",
    "core.v1.SecretVolumeSource",
)

FIELDS: dict[str, dict[str, Any]] = {
    **{name: {"user": _USER} for name in _FILES},
    **{name: {"defaultUser": _USER} for name in _SOURCES},
    "authentication.v1.TokenRequestSpec": {"attestations": {"m": {"i": _TEXT}, "o": 1}},
    "autoscaling.v2.HorizontalPodAutoscalerCondition": {"observedGeneration": {"t": "integer", "f": "int64", "o": 1}},
    "batch.v1.JobSpec": {"scheduling": {}},
    "core.v1.EmptyDirVolumeSource": {"mode": _MODE},
    "core.v1.GRPCAction": {"mode": _TEXT},
    "core.v1.HTTPGetAction": {"protocol": _TEXT},
    "core.v1.NodeSpec": {"podPreemptionPolicy": {}},
    "core.v1.PersistentVolumeClaimStatus": {"healthStatus": {}},
    "core.v1.PodSpec": {
        "evictionResponders": {
            "i": {"r": "core.v1.EvictionResponder"},
            "lk": ["name"],
            "lt": "map",
            "mk": "name",
            "o": 1,
            "ps": "merge",
        }
    },
    "core.v1.PodStatus": {"volumeHealth": {}},
    "core.v1.VolumeMount": {"bindMountOptions": {"i": _TEXT, "lt": "set", "o": 1}},
}
"""Type: its new fields."""

TYPES: dict[str, Any] = {
    "core.v1.EvictionResponder": {
        "a": ["name", "priority"],
        "f": {"name": {**_TEXT, "d": ""}, "priority": {"t": "integer", "f": "int32", "d": 0}},
        "mt": "atomic",
        "req": ["name", "priority"],
    },
}
"""New types of new fields."""


KINDS = frozenset(
    (
        "certificates.k8s.io/v1/ClusterTrustBundle",
        "certificates.k8s.io/v1/PodCertificateRequest",
        "lifecycle.k8s.io/v1alpha1/Eviction",
        "lifecycle.k8s.io/v1alpha1/EvictionRequest",
        "resource.k8s.io/v1/DeviceTaintRule",
        "scheduling.k8s.io/v1alpha3/CompositePodGroup",
        "scheduling.k8s.io/v1alpha3/PodGroup",
        "scheduling.k8s.io/v1alpha3/Workload",
        "scheduling.k8s.io/v1beta1/PodGroup",
        "scheduling.k8s.io/v1beta1/Workload",
        "storagemigration.k8s.io/v1/StorageVersionMigration",
    )
)
"""Kinds that 1.37 has more, none of which is served here: `apiVersion/kind`."""


def add_to(types: dict[str, Any]) -> None:
    """Add the fields to the types of 1.36.2, in place; each says with `v` since which version it is there."""
    types.update(TYPES)
    for name, fields in FIELDS.items():
        known = types[name]["f"]
        types[name]["f"] = dict(
            sorted({**known, **{key: {**facts, "v": SINCE} for key, facts in fields.items()}}.items())
        )
