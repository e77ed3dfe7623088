"""Claims and volumes of the cluster. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.meta import LabelSelector, ObjectMeta, ObjectReference, TypedLocalObjectReference
from lastcall.kube.api.types.scalars import Quantity, Time
from lastcall.kube.api.types.scheduling import NodeSelector


class PersistentVolumeClaim(TypedDict, total=False):
    """io.k8s.api.core.v1.PersistentVolumeClaim"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec
    status: PersistentVolumeClaimStatus


class PersistentVolumeClaimSpec(TypedDict, total=False):
    """io.k8s.api.core.v1.PersistentVolumeClaimSpec"""

    accessModes: list[Literal["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]]
    dataSource: TypedLocalObjectReference
    dataSourceRef: TypedObjectReference
    resources: VolumeResourceRequirements
    selector: LabelSelector
    storageClassName: str
    volumeAttributesClassName: str
    volumeMode: Literal["Block", "Filesystem"]
    volumeName: str


class TypedObjectReference(TypedDict, total=False):
    """io.k8s.api.core.v1.TypedObjectReference"""

    apiGroup: str
    kind: str
    name: str
    namespace: str


class VolumeResourceRequirements(TypedDict, total=False):
    """io.k8s.api.core.v1.VolumeResourceRequirements"""

    limits: dict[str, Quantity]
    requests: dict[str, Quantity]


class PersistentVolumeClaimStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.PersistentVolumeClaimStatus"""

    accessModes: list[Literal["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]]
    allocatedResourceStatuses: dict[
        str,
        Literal[
            "ControllerResizeInProgress",
            "ControllerResizeInfeasible",
            "NodeResizeInProgress",
            "NodeResizeInfeasible",
            "NodeResizePending",
        ],
    ]
    allocatedResources: dict[str, Quantity]
    capacity: dict[str, Quantity]
    conditions: list[PersistentVolumeClaimCondition]
    currentVolumeAttributesClassName: str
    modifyVolumeStatus: ModifyVolumeStatus
    phase: Literal["Bound", "Lost", "Pending"]


class PersistentVolumeClaimCondition(TypedDict, total=False):
    """io.k8s.api.core.v1.PersistentVolumeClaimCondition"""

    lastProbeTime: Time | None
    lastTransitionTime: Time | None
    message: str
    reason: str
    status: str
    type: str


class ModifyVolumeStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.ModifyVolumeStatus"""

    status: Literal["InProgress", "Infeasible", "Pending"]
    targetVolumeAttributesClassName: str


class PersistentVolume(TypedDict, total=False):
    """io.k8s.api.core.v1.PersistentVolume"""

    apiVersion: str
    kind: str
    metadata: ObjectMeta
    spec: PersistentVolumeSpec
    status: PersistentVolumeStatus


class PersistentVolumeSpec(TypedDict, total=False):
    """io.k8s.api.core.v1.PersistentVolumeSpec"""

    accessModes: list[Literal["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]]
    awsElasticBlockStore: AWSElasticBlockStoreVolumeSource
    azureDisk: AzureDiskVolumeSource
    azureFile: AzureFilePersistentVolumeSource
    capacity: dict[str, Quantity]
    cephfs: CephFSPersistentVolumeSource
    cinder: CinderPersistentVolumeSource
    claimRef: ObjectReference
    csi: CSIPersistentVolumeSource
    fc: FCVolumeSource
    flexVolume: FlexPersistentVolumeSource
    flocker: FlockerVolumeSource
    gcePersistentDisk: GCEPersistentDiskVolumeSource
    glusterfs: GlusterfsPersistentVolumeSource
    hostPath: HostPathVolumeSource
    iscsi: ISCSIPersistentVolumeSource
    local: LocalVolumeSource
    mountOptions: list[str]
    nfs: NFSVolumeSource
    nodeAffinity: VolumeNodeAffinity
    persistentVolumeReclaimPolicy: Literal["Delete", "Recycle", "Retain"]
    photonPersistentDisk: PhotonPersistentDiskVolumeSource
    portworxVolume: PortworxVolumeSource
    quobyte: QuobyteVolumeSource
    rbd: RBDPersistentVolumeSource
    scaleIO: ScaleIOPersistentVolumeSource
    storageClassName: str
    storageos: StorageOSPersistentVolumeSource
    volumeAttributesClassName: str
    volumeMode: Literal["Block", "Filesystem"]
    vsphereVolume: VsphereVirtualDiskVolumeSource


class AWSElasticBlockStoreVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.AWSElasticBlockStoreVolumeSource"""

    fsType: str
    partition: int
    readOnly: bool
    volumeID: str


class AzureDiskVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.AzureDiskVolumeSource"""

    cachingMode: Literal["None", "ReadOnly", "ReadWrite"]
    diskName: str
    diskURI: str
    fsType: str
    kind: Literal["Dedicated", "Managed", "Shared"]
    readOnly: bool


class AzureFilePersistentVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.AzureFilePersistentVolumeSource"""

    readOnly: bool
    secretName: str
    secretNamespace: str
    shareName: str


class CephFSPersistentVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.CephFSPersistentVolumeSource"""

    monitors: list[str]
    path: str
    readOnly: bool
    secretFile: str
    secretRef: SecretReference
    user: str


class SecretReference(TypedDict, total=False):
    """io.k8s.api.core.v1.SecretReference"""

    name: str
    namespace: str


class CinderPersistentVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.CinderPersistentVolumeSource"""

    fsType: str
    readOnly: bool
    secretRef: SecretReference
    volumeID: str


class CSIPersistentVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.CSIPersistentVolumeSource"""

    controllerExpandSecretRef: SecretReference
    controllerPublishSecretRef: SecretReference
    driver: str
    fsType: str
    nodeExpandSecretRef: SecretReference
    nodePublishSecretRef: SecretReference
    nodeStageSecretRef: SecretReference
    readOnly: bool
    volumeAttributes: dict[str, str]
    volumeHandle: str


class FCVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.FCVolumeSource"""

    fsType: str
    lun: int
    readOnly: bool
    targetWWNs: list[str]
    wwids: list[str]


class FlexPersistentVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.FlexPersistentVolumeSource"""

    driver: str
    fsType: str
    options: dict[str, str]
    readOnly: bool
    secretRef: SecretReference


class FlockerVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.FlockerVolumeSource"""

    datasetName: str
    datasetUUID: str


class GCEPersistentDiskVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.GCEPersistentDiskVolumeSource"""

    fsType: str
    partition: int
    pdName: str
    readOnly: bool


class GlusterfsPersistentVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.GlusterfsPersistentVolumeSource"""

    endpoints: str
    endpointsNamespace: str
    path: str
    readOnly: bool


class HostPathVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.HostPathVolumeSource"""

    path: str
    type: Literal["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"]


class ISCSIPersistentVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.ISCSIPersistentVolumeSource"""

    chapAuthDiscovery: bool
    chapAuthSession: bool
    fsType: str
    initiatorName: str
    iqn: str
    iscsiInterface: str
    lun: int
    portals: list[str]
    readOnly: bool
    secretRef: SecretReference
    targetPortal: str


class LocalVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.LocalVolumeSource"""

    fsType: str
    path: str


class NFSVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.NFSVolumeSource"""

    path: str
    readOnly: bool
    server: str


class VolumeNodeAffinity(TypedDict, total=False):
    """io.k8s.api.core.v1.VolumeNodeAffinity"""

    required: NodeSelector


class PhotonPersistentDiskVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.PhotonPersistentDiskVolumeSource"""

    fsType: str
    pdID: str


class PortworxVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.PortworxVolumeSource"""

    fsType: str
    readOnly: bool
    volumeID: str


class QuobyteVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.QuobyteVolumeSource"""

    group: str
    readOnly: bool
    registry: str
    tenant: str
    user: str
    volume: str


class RBDPersistentVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.RBDPersistentVolumeSource"""

    fsType: str
    image: str
    keyring: str
    monitors: list[str]
    pool: str
    readOnly: bool
    secretRef: SecretReference
    user: str


class ScaleIOPersistentVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.ScaleIOPersistentVolumeSource"""

    fsType: str
    gateway: str
    protectionDomain: str
    readOnly: bool
    secretRef: SecretReference
    sslEnabled: bool
    storageMode: str
    storagePool: str
    system: str
    volumeName: str


class StorageOSPersistentVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.StorageOSPersistentVolumeSource"""

    fsType: str
    readOnly: bool
    secretRef: ObjectReference
    volumeName: str
    volumeNamespace: str


class VsphereVirtualDiskVolumeSource(TypedDict, total=False):
    """io.k8s.api.core.v1.VsphereVirtualDiskVolumeSource"""

    fsType: str
    storagePolicyID: str
    storagePolicyName: str
    volumePath: str


class PersistentVolumeStatus(TypedDict, total=False):
    """io.k8s.api.core.v1.PersistentVolumeStatus"""

    lastPhaseTransitionTime: Time
    message: str
    phase: Literal["Available", "Bound", "Failed", "Pending", "Released"]
    reason: str


class StorageClass(TypedDict, total=False):
    """io.k8s.api.storage.v1.StorageClass"""

    allowVolumeExpansion: bool
    allowedTopologies: list[TopologySelectorTerm]
    apiVersion: str
    kind: str
    metadata: ObjectMeta
    mountOptions: list[str]
    parameters: dict[str, str]
    provisioner: str
    reclaimPolicy: Literal["Delete", "Recycle", "Retain"]
    volumeBindingMode: Literal["Immediate", "WaitForFirstConsumer"]


class TopologySelectorTerm(TypedDict, total=False):
    """io.k8s.api.core.v1.TopologySelectorTerm"""

    matchLabelExpressions: list[TopologySelectorLabelRequirement]


class TopologySelectorLabelRequirement(TypedDict, total=False):
    """io.k8s.api.core.v1.TopologySelectorLabelRequirement"""

    key: str
    values: list[str]
