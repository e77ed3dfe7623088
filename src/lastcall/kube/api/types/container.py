"""Containers of a Pod's spec: probes, hooks, environment, resources, security. Made by tools/make_types.py."""

from __future__ import annotations

from typing import Literal, TypedDict

from lastcall.kube.api.types.scalars import IntOrString, Quantity


class Container(TypedDict, total=False):
    """io.k8s.api.core.v1.Container"""

    args: list[str]
    command: list[str]
    env: list[EnvVar]
    envFrom: list[EnvFromSource]
    image: str
    imagePullPolicy: Literal["Always", "IfNotPresent", "Never"]
    lifecycle: Lifecycle
    livenessProbe: Probe
    name: str
    ports: list[ContainerPort]
    readinessProbe: Probe
    resizePolicy: list[ContainerResizePolicy]
    resources: ResourceRequirements
    restartPolicy: str
    restartPolicyRules: list[ContainerRestartRule]
    securityContext: SecurityContext
    startupProbe: Probe
    stdin: bool
    stdinOnce: bool
    terminationMessagePath: str
    terminationMessagePolicy: Literal["FallbackToLogsOnError", "File"]
    tty: bool
    volumeDevices: list[VolumeDevice]
    volumeMounts: list[VolumeMount]
    workingDir: str


class EnvVar(TypedDict, total=False):
    """io.k8s.api.core.v1.EnvVar"""

    name: str
    value: str
    valueFrom: EnvVarSource


class EnvVarSource(TypedDict, total=False):
    """io.k8s.api.core.v1.EnvVarSource"""

    configMapKeyRef: ConfigMapKeySelector
    fieldRef: ObjectFieldSelector
    fileKeyRef: FileKeySelector
    resourceFieldRef: ResourceFieldSelector
    secretKeyRef: SecretKeySelector


class ConfigMapKeySelector(TypedDict, total=False):
    """io.k8s.api.core.v1.ConfigMapKeySelector"""

    key: str
    name: str
    optional: bool


class ObjectFieldSelector(TypedDict, total=False):
    """io.k8s.api.core.v1.ObjectFieldSelector"""

    apiVersion: str
    fieldPath: str


class FileKeySelector(TypedDict, total=False):
    """io.k8s.api.core.v1.FileKeySelector"""

    key: str
    optional: bool
    path: str
    volumeName: str


class ResourceFieldSelector(TypedDict, total=False):
    """io.k8s.api.core.v1.ResourceFieldSelector"""

    containerName: str
    divisor: Quantity
    resource: str


class SecretKeySelector(TypedDict, total=False):
    """io.k8s.api.core.v1.SecretKeySelector"""

    key: str
    name: str
    optional: bool


class EnvFromSource(TypedDict, total=False):
    """io.k8s.api.core.v1.EnvFromSource"""

    configMapRef: ConfigMapEnvSource
    prefix: str
    secretRef: SecretEnvSource


class ConfigMapEnvSource(TypedDict, total=False):
    """io.k8s.api.core.v1.ConfigMapEnvSource"""

    name: str
    optional: bool


class SecretEnvSource(TypedDict, total=False):
    """io.k8s.api.core.v1.SecretEnvSource"""

    name: str
    optional: bool


class Lifecycle(TypedDict, total=False):
    """io.k8s.api.core.v1.Lifecycle"""

    postStart: LifecycleHandler
    preStop: LifecycleHandler
    stopSignal: str


class LifecycleHandler(TypedDict, total=False):
    """io.k8s.api.core.v1.LifecycleHandler"""

    exec: ExecAction
    httpGet: HTTPGetAction
    sleep: SleepAction
    tcpSocket: TCPSocketAction


class ExecAction(TypedDict, total=False):
    """io.k8s.api.core.v1.ExecAction"""

    command: list[str]


class HTTPGetAction(TypedDict, total=False):
    """io.k8s.api.core.v1.HTTPGetAction"""

    host: str
    httpHeaders: list[HTTPHeader]
    path: str
    port: IntOrString
    scheme: Literal["HTTP", "HTTPS"]


class HTTPHeader(TypedDict, total=False):
    """io.k8s.api.core.v1.HTTPHeader"""

    name: str
    value: str


class SleepAction(TypedDict, total=False):
    """io.k8s.api.core.v1.SleepAction"""

    seconds: int


class TCPSocketAction(TypedDict, total=False):
    """io.k8s.api.core.v1.TCPSocketAction"""

    host: str
    port: IntOrString


class Probe(TypedDict, total=False):
    """io.k8s.api.core.v1.Probe"""

    exec: ExecAction
    failureThreshold: int
    grpc: GRPCAction
    httpGet: HTTPGetAction
    initialDelaySeconds: int
    periodSeconds: int
    successThreshold: int
    tcpSocket: TCPSocketAction
    terminationGracePeriodSeconds: int
    timeoutSeconds: int


class GRPCAction(TypedDict, total=False):
    """io.k8s.api.core.v1.GRPCAction"""

    port: int
    service: str


class ContainerPort(TypedDict, total=False):
    """io.k8s.api.core.v1.ContainerPort"""

    containerPort: int
    hostIP: str
    hostPort: int
    name: str
    protocol: Literal["SCTP", "TCP", "UDP"]


class ContainerResizePolicy(TypedDict, total=False):
    """io.k8s.api.core.v1.ContainerResizePolicy"""

    resourceName: str
    restartPolicy: str


class ResourceRequirements(TypedDict, total=False):
    """io.k8s.api.core.v1.ResourceRequirements"""

    claims: list[ResourceClaim]
    limits: dict[str, Quantity]
    requests: dict[str, Quantity]


class ResourceClaim(TypedDict, total=False):
    """io.k8s.api.core.v1.ResourceClaim"""

    name: str
    request: str


class ContainerRestartRule(TypedDict, total=False):
    """io.k8s.api.core.v1.ContainerRestartRule"""

    action: str
    exitCodes: ContainerRestartRuleOnExitCodes


class ContainerRestartRuleOnExitCodes(TypedDict, total=False):
    """io.k8s.api.core.v1.ContainerRestartRuleOnExitCodes"""

    operator: str
    values: list[int]


class SecurityContext(TypedDict, total=False):
    """io.k8s.api.core.v1.SecurityContext"""

    allowPrivilegeEscalation: bool
    appArmorProfile: AppArmorProfile
    capabilities: Capabilities
    privileged: bool
    procMount: Literal["Default", "Unmasked"]
    readOnlyRootFilesystem: bool
    runAsGroup: int
    runAsNonRoot: bool
    runAsUser: int
    seLinuxOptions: SELinuxOptions
    seccompProfile: SeccompProfile
    windowsOptions: WindowsSecurityContextOptions


class AppArmorProfile(TypedDict, total=False):
    """io.k8s.api.core.v1.AppArmorProfile"""

    localhostProfile: str
    type: Literal["Localhost", "RuntimeDefault", "Unconfined"]


class Capabilities(TypedDict, total=False):
    """io.k8s.api.core.v1.Capabilities"""

    add: list[str]
    drop: list[str]


class SELinuxOptions(TypedDict, total=False):
    """io.k8s.api.core.v1.SELinuxOptions"""

    level: str
    role: str
    type: str
    user: str


class SeccompProfile(TypedDict, total=False):
    """io.k8s.api.core.v1.SeccompProfile"""

    localhostProfile: str
    type: Literal["Localhost", "RuntimeDefault", "Unconfined"]


class WindowsSecurityContextOptions(TypedDict, total=False):
    """io.k8s.api.core.v1.WindowsSecurityContextOptions"""

    gmsaCredentialSpec: str
    gmsaCredentialSpecName: str
    hostProcess: bool
    runAsUserName: str


class VolumeDevice(TypedDict, total=False):
    """io.k8s.api.core.v1.VolumeDevice"""

    devicePath: str
    name: str


class VolumeMount(TypedDict, total=False):
    """io.k8s.api.core.v1.VolumeMount"""

    mountPath: str
    mountPropagation: Literal["Bidirectional", "HostToContainer", "None"]
    name: str
    readOnly: bool
    recursiveReadOnly: str
    subPath: str
    subPathExpr: str


class EphemeralContainer(TypedDict, total=False):
    """io.k8s.api.core.v1.EphemeralContainer"""

    args: list[str]
    command: list[str]
    env: list[EnvVar]
    envFrom: list[EnvFromSource]
    image: str
    imagePullPolicy: Literal["Always", "IfNotPresent", "Never"]
    lifecycle: Lifecycle
    livenessProbe: Probe
    name: str
    ports: list[ContainerPort]
    readinessProbe: Probe
    resizePolicy: list[ContainerResizePolicy]
    resources: ResourceRequirements
    restartPolicy: str
    restartPolicyRules: list[ContainerRestartRule]
    securityContext: SecurityContext
    startupProbe: Probe
    stdin: bool
    stdinOnce: bool
    targetContainerName: str
    terminationMessagePath: str
    terminationMessagePolicy: Literal["FallbackToLogsOnError", "File"]
    tty: bool
    volumeDevices: list[VolumeDevice]
    volumeMounts: list[VolumeMount]
    workingDir: str
