"""The environment of a container (kubelet kubelet_pods.go:makeEnvironmentVariables, envvars/envvars.go)."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import Object, name_of, namespace_of
from lastcall.kube.api.resources import CONFIGMAPS, SECRETS, Resource
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.node.runtime.expansion import expand
from lastcall.kube.node.volumes.downward import field_value, resource_value

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import (
        ConfigMapEnvSource,
        ConfigMapKeySelector,
        Container,
        EnvFromSource,
        EnvVarSource,
        ResourceFieldSelector,
        SecretEnvSource,
        SecretKeySelector,
    )
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus
    from lastcall.kube.api.types.service import Service

MASTER_SERVICE_NAMESPACE = "default"
MASTER_SERVICES = ("kubernetes",)


class ContainerConfigError(Exception):
    """A container's configuration cannot be made: waiting reason CreateContainerConfigError, with this text."""


class Sources(Protocol):
    """Where values come from: the API objects a container refers to."""

    async def config_map(self, namespace: str, name: str) -> Object | None: ...
    async def secret(self, namespace: str, name: str) -> Object | None: ...
    def services(self) -> Iterable[Service]: ...


class APISources:
    """Read `Sources` from the API server; `services` is a cache that the caller keeps."""

    def __init__(self, client: Client, services: Callable[[], Iterable[Service]]) -> None:
        self._client = client
        self._services = services

    async def config_map(self, namespace: str, name: str) -> Object | None:
        return await self._get(CONFIGMAPS, namespace, name)

    async def secret(self, namespace: str, name: str) -> Object | None:
        return await self._get(SECRETS, namespace, name)

    def services(self) -> Iterable[Service]:
        return self._services()

    async def _get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        try:
            return await self._client.get(resource, name, namespace)
        except StatusError as error:
            if is_not_found(error):
                return None
            raise ContainerConfigError(f"failed to get {resource.singular} {namespace}/{name}: {error}") from error
        except ConnectionLost as error:
            raise ContainerConfigError(f"failed to get {resource.singular} {namespace}/{name}: {error}") from error


async def make_environment(
    pod: Pod,
    container: Container,
    *,
    sources: Sources,
    pod_ips: tuple[str, ...],
    host_ip: str,
    node_allocatable: Object,
) -> tuple[tuple[str, str], ...]:
    """Make all variables in order: envFrom and env (later ones win), then Services. Raises ContainerConfigError."""
    namespace = namespace_of(pod)
    service_env = service_variables(pod, sources.services())
    env: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        for key, text in (await _env_from(source, namespace, sources)).items():
            env[source.get("prefix", "") + key] = text
    for variable in container.get("env") or ():
        value: str | None = variable.get("value") or ""
        if value:
            value = expand(value, env, service_env)
        elif variable.get("valueFrom"):
            value = await _value_from(
                variable["valueFrom"], pod, container, sources, pod_ips, host_ip, node_allocatable
            )
        if value is not None:
            env[variable["name"]] = value
    return (*env.items(), *((name, value) for name, value in service_env.items() if name not in env))


_Get = Callable[[str, str], Awaitable[Object | None]]


async def _env_from(source: EnvFromSource, namespace: str, sources: Sources) -> dict[str, str]:
    getters: tuple[tuple[ConfigMapEnvSource | SecretEnvSource | None, str, _Get], ...] = (
        (source.get("configMapRef"), "configmap", sources.config_map),
        (source.get("secretRef"), "secret", sources.secret),
    )
    for reference, kind, get in getters:
        if not reference:
            continue
        obj = await get(namespace, reference["name"])
        if obj is None:
            if reference.get("optional"):
                return {}
            raise ContainerConfigError(f'{kind} "{reference["name"]}" not found')
        return _data_of(obj, kind)
    return {}


async def _value_from(
    source: EnvVarSource,
    pod: Pod,
    container: Container,
    sources: Sources,
    pod_ips: tuple[str, ...],
    host_ip: str,
    node_allocatable: Object,
) -> str | None:
    """The value; None when an optional source has none."""
    if field := source.get("fieldRef"):
        return pod_field_value(field["fieldPath"], pod, pod_ips, host_ip)
    if resource := source.get("resourceFieldRef"):
        try:
            own: ResourceFieldSelector = {
                **resource,
                "containerName": resource.get("containerName") or container["name"],
            }
            return resource_value(pod, own, node_allocatable)
        except ValueError as error:
            raise ContainerConfigError(str(error)) from error
    keys: tuple[tuple[ConfigMapKeySelector | SecretKeySelector | None, str, str, _Get], ...] = (
        (source.get("configMapKeyRef"), "configmap", "ConfigMap", sources.config_map),
        (source.get("secretKeyRef"), "secret", "Secret", sources.secret),
    )
    for reference, kind, title, get in keys:
        if not reference:
            continue
        namespace, name, key = namespace_of(pod), reference["name"], reference["key"]
        obj = await get(namespace, name)
        if obj is None:
            if reference.get("optional"):
                return None
            raise ContainerConfigError(f'{kind} "{name}" not found')
        data = _data_of(obj, kind)
        if key not in data:
            if reference.get("optional"):
                return None
            raise ContainerConfigError(f"couldn't find key {key} in {title} {namespace}/{name}")
        return data[key]
    return None


def _data_of(obj: Object, kind: str) -> dict[str, str]:
    data: dict[str, str] = obj.get("data") or {}
    if kind == "configmap":
        return data
    return {key: base64.b64decode(value).decode("utf-8", "surrogateescape") for key, value in data.items()}


def pod_field_value(path: str, pod: Pod, pod_ips: tuple[str, ...], host_ip: str) -> str:
    """Return a `fieldRef`'s value with the present addresses (kubelet_pods.go:podFieldSelectorRuntimeValue).

    Raises ContainerConfigError.
    """
    status: PodStatus = {
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": pod_ips[0] if pod_ips else "",
        "podIPs": [{"ip": ip} for ip in pod_ips],
    }
    try:
        return field_value({**pod, "status": status}, path)
    except ValueError as error:
        raise ContainerConfigError(str(error)) from error


def service_variables(pod: Pod, services: Iterable[Service]) -> dict[str, str]:
    """Return variables for Services of the Pod's namespace and `kubernetes` (kubelet_pods.go:getServiceEnvVarMap)."""
    enabled = pod.get("spec", {}).get("enableServiceLinks", True) is not False
    chosen: dict[str, Service] = {}
    for service in services:
        if not _has_cluster_ip(service):
            continue
        name, namespace = name_of(service), namespace_of(service)
        if namespace == MASTER_SERVICE_NAMESPACE and name in MASTER_SERVICES:
            chosen.setdefault(name, service)
        elif namespace == namespace_of(pod) and enabled:
            chosen[name] = service
    variables: dict[str, str] = {}
    for service in sorted(chosen.values(), key=name_of):
        variables.update(_variables_of(service))
    return variables


def _has_cluster_ip(service: Service) -> bool:
    return service.get("spec", {}).get("clusterIP", "") not in ("", "None")


def _variables_of(service: Service) -> dict[str, str]:
    """Kubernetes's and Docker-link variables of one Service (envvars/envvars.go:FromServices)."""
    prefix = name_of(service).replace("-", "_").upper()
    ip = service["spec"]["clusterIP"]
    shown = f"[{ip}]" if ":" in ip else ip
    ports = service["spec"].get("ports") or []
    variables = {f"{prefix}_SERVICE_HOST": ip}
    if not ports:
        return variables
    variables[f"{prefix}_SERVICE_PORT"] = str(ports[0]["port"])
    for port in ports:
        if port.get("name"):
            name = port["name"].replace("-", "_").upper()
            variables[f"{prefix}_SERVICE_PORT_{name}"] = str(port["port"])
    for index, port in enumerate(ports):
        protocol = port.get("protocol") or "TCP"
        url = f"{protocol.lower()}://{shown}:{port['port']}"
        if index == 0:
            variables[f"{prefix}_PORT"] = url
        link = f"{prefix}_PORT_{port['port']}_{protocol.upper()}"
        variables[link] = url
        variables[f"{link}_PROTO"] = protocol.lower()
        variables[f"{link}_PORT"] = str(port["port"])
        variables[f"{link}_ADDR"] = ip
    return variables
