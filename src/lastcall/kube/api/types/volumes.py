"""Volumes of a Pod's spec, and what may be in them. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.container import ObjectFieldSelector, ResourceFieldSelector
from lastcall.kube.api.types.meta import LabelSelector, LocalObjectReference, ObjectMeta
from lastcall.kube.api.types.scalars import Quantity
from lastcall.kube.api.types.storage import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    FCVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    NFSVolumeSource,
    PersistentVolumeClaimSpec,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    VsphereVirtualDiskVolumeSource,
)


class Volume(TypedDict, total=False):
    """io.k8s.api.core.v1.Volume"""

    awsElasticBlockStore: AWSElasticBlockStoreVolumeSource
    azureDisk: AzureDiskVolumeSource
    azureFile: AzureFileVolumeSource
    cephfs: CephFSVolumeSource
    cinder: CinderVolumeSource
    configMap: ConfigMapVolumeSource
    csi: CSIVolumeSource
    downwardAPI: DownwardAPIVolumeSource
    emptyDir: EmptyDirVolumeSource
    ephemeral: EphemeralVolumeSource
    fc: FCVolumeSource
    flexVolume: FlexVolumeSource
    flocker: FlockerVolumeSource
    gcePersistentDisk: GCEPersistentDiskVolumeSource
    gitRepo: GitRepoVolumeSource
    glusterfs: GlusterfsVolumeSource
    hostPath: HostPathVolumeSource
    image: ImageVolumeSource
    iscsi: ISCSIVolumeSource
    name: str
    nfs: NFSVolumeSource
    persistentVolumeClaim: PersistentVolumeClaimVolumeSource
    photonPersistentDisk: PhotonPersistentDiskVolumeSource
    portworxVolume: PortworxVolumeSource
    projected: ProjectedVolumeSource
    quobyte: QuobyteVolumeSource
    rbd: RBDVolumeSource
    scaleIO: ScaleIOVolumeSource
    secret: SecretVolumeSource
    storageos: StorageOSVolumeSource
    vsphereVolume: VsphereVirtualDiskVolumeSource


class AzureFileVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.AzureFileVolumeSource"""

    readOnly: bool
    secretName: str
    shareName: str


class CephFSVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.CephFSVolumeSource"""

    monitors: list[str]
    path: str
    readOnly: bool
    secretFile: str
    secretRef: LocalObjectReference
    user: str


class CinderVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.CinderVolumeSource"""

    fsType: str
    readOnly: bool
    secretRef: LocalObjectReference
    volumeID: str


class ConfigMapVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.ConfigMapVolumeSource"""

    defaultMode: int
    items: list[KeyToPath]
    name: str
    optional: bool


class KeyToPath(TypedDict, total=False):
    """io.k8s.api.core.v1.KeyToPath"""

    key: str
    mode: int
    path: str


class CSIVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.CSIVolumeSource"""

    driver: str
    fsType: str
    nodePublishSecretRef: LocalObjectReference
    readOnly: bool
    volumeAttributes: dict[str, str]


class DownwardAPIVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.DownwardAPIVolumeSource"""

    defaultMode: int
    items: list[DownwardAPIVolumeFile]


class DownwardAPIVolumeFile(TypedDict, total=False):
    """io.k8s.api.core.v1.DownwardAPIVolumeFile"""

    fieldRef: ObjectFieldSelector
    mode: int
    path: str
    resourceFieldRef: ResourceFieldSelector


class EmptyDirVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.EmptyDirVolumeSource"""

    medium: str
    sizeLimit: Quantity


class EphemeralVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.EphemeralVolumeSource"""

    volumeClaimTemplate: PersistentVolumeClaimTemplate


class PersistentVolumeClaimTemplate(TypedDict, total=False):
    """io.k8s.api.core.v1.PersistentVolumeClaimTemplate"""

    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec


class FlexVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.FlexVolumeSource"""

    driver: str
    fsType: str
    options: dict[str, str]
    readOnly: bool
    secretRef: LocalObjectReference


class GitRepoVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.GitRepoVolumeSource"""

    directory: str
    repository: str
    revision: str


class GlusterfsVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.GlusterfsVolumeSource"""

    endpoints: str
    path: str
    readOnly: bool


class ImageVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.ImageVolumeSource"""

    pullPolicy: Literal["Always", "IfNotPresent", "Never"]
    reference: str


class ISCSIVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.ISCSIVolumeSource"""

    chapAuthDiscovery: bool
    chapAuthSession: bool
    fsType: str
    initiatorName: str
    iqn: str
    iscsiInterface: str
    lun: int
    portals: list[str]
    readOnly: bool
    secretRef: LocalObjectReference
    targetPortal: str


class PersistentVolumeClaimVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource"""

    claimName: str
    readOnly: bool


class ProjectedVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.ProjectedVolumeSource"""

    defaultMode: int
    sources: list[VolumeProjection]


class VolumeProjection(TypedDict, total=False):
    """io.k8s.api.core.v1.VolumeProjection"""

    clusterTrustBundle: ClusterTrustBundleProjection
    configMap: ConfigMapProjection
    downwardAPI: DownwardAPIProjection
    podCertificate: PodCertificateProjection
    secret: SecretProjection
    serviceAccountToken: ServiceAccountTokenProjection


class ClusterTrustBundleProjection(TypedDict, total=False):
    """io.k8s.api.core.v1.ClusterTrustBundleProjection"""

    labelSelector: LabelSelector
    name: str
    optional: bool
    path: str
    signerName: str


class ConfigMapProjection(TypedDict, total=False):
    """io.k8s.api.core.v1.ConfigMapProjection"""

    items: list[KeyToPath]
    name: str
    optional: bool


class DownwardAPIProjection(TypedDict, total=False):
    """io.k8s.api.core.v1.DownwardAPIProjection"""

    items: list[DownwardAPIVolumeFile]


class PodCertificateProjection(TypedDict, total=False):
    """io.k8s.api.core.v1.PodCertificateProjection"""

    certificateChainPath: str
    credentialBundlePath: str
    keyPath: str
    keyType: str
    maxExpirationSeconds: int
    signerName: str
    userAnnotations: dict[str, str]


class SecretProjection(TypedDict, total=False):
    """io.k8s.api.core.v1.SecretProjection"""

    items: list[KeyToPath]
    name: str
    optional: bool


class ServiceAccountTokenProjection(TypedDict, total=False):
    """io.k8s.api.core.v1.ServiceAccountTokenProjection"""

    audience: str
    expirationSeconds: int
    path: str


class RBDVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.RBDVolumeSource"""

    fsType: str
    image: str
    keyring: str
    monitors: list[str]
    pool: str
    readOnly: bool
    secretRef: LocalObjectReference
    user: str


class ScaleIOVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.ScaleIOVolumeSource"""

    fsType: str
    gateway: str
    protectionDomain: str
    readOnly: bool
    secretRef: LocalObjectReference
    sslEnabled: bool
    storageMode: str
    storagePool: str
    system: str
    volumeName: str


class SecretVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.SecretVolumeSource"""

    defaultMode: int
    items: list[KeyToPath]
    optional: bool
    secretName: str


class StorageOSVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.StorageOSVolumeSource"""

    fsType: str
    readOnly: bool
    secretRef: LocalObjectReference
    volumeName: str
    volumeNamespace: str
