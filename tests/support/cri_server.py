"""A container runtime that serves CRI v1 on a Unix socket: the simulated one. `async with serving(runtime, path):`.

The messages that it reads and writes are the other way round to `lastcall.kube.cri.v1.translate`.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from lastcall.kube.cri import api
from lastcall.kube.cri.simulated import SimulatedRuntime
from lastcall.kube.cri.v1 import messages
from lastcall.kube.cri.v1.messages import new
from lastcall.kube.cri.v1.translate.mounts import mount_message, mount_of
from lastcall.kube.cri.v1.translate.parts import (
    metadata_message,
    metadata_of,
    namespaces_message,
    namespaces_of,
    resources_message,
    resources_of,
)
from lastcall.kube.cri.v1.translate.signals import signal_name_of, signal_number

_CODES = {
    "NotFound": grpc.StatusCode.NOT_FOUND,
    "ImageNotFound": grpc.StatusCode.NOT_FOUND,
    "DeadlineExceeded": grpc.StatusCode.DEADLINE_EXCEEDED,
}
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_PROFILES = ("RuntimeDefault", "Unconfined", "Localhost")
_POLICIES = ("Merge", "Strict")


# -- what a client asks for --------------------------------------------------------------------------------------------


def sandbox_config_of(message: Any) -> api.PodSandboxConfig:
    linux, dns = message.linux, message.dns_config
    return api.PodSandboxConfig(
        metadata=metadata_of(message.metadata),
        hostname=message.hostname,
        log_directory=message.log_directory,
        dns_config=api.DNSConfig(tuple(dns.servers), tuple(dns.searches), tuple(dns.options)),
        port_mappings=tuple(
            api.PortMapping(each.host_port, each.container_port, _PROTOCOLS[each.protocol], each.host_ip)
            for each in message.port_mappings
        ),
        namespace_options=namespaces_of(linux.security_context.namespace_options),
        sysctls=dict(linux.sysctls),
        cgroup_parent=linux.cgroup_parent,
        resources=resources_of(linux.resources),
        labels=dict(message.labels),
        annotations=dict(message.annotations),
        privileged=linux.security_context.privileged,
    )


def container_config_of(message: Any) -> api.ContainerConfig:
    return api.ContainerConfig(
        metadata=api.ContainerMetadata(message.metadata.name, message.metadata.attempt),
        image=message.image.image,
        command=tuple(message.command),
        args=tuple(message.args),
        working_dir=message.working_dir,
        envs=tuple((each.key, each.value.decode()) for each in message.envs),
        mounts=tuple(map(mount_of, message.mounts)),
        log_path=message.log_path,
        stdin=message.stdin,
        stdin_once=message.stdin_once,
        tty=message.tty,
        stop_signal=signal_name_of(message.stop_signal),
        security_context=_security_of(message.linux.security_context),
        resources=resources_of(message.linux.resources),
        labels=dict(message.labels),
        annotations=dict(message.annotations),
    )


def _security_of(message: Any) -> api.LinuxContainerSecurityContext:
    capabilities, seccomp = message.capabilities, message.seccomp
    return api.LinuxContainerSecurityContext(
        privileged=message.privileged,
        capabilities=api.Capability(tuple(capabilities.add_capabilities), tuple(capabilities.drop_capabilities)),
        run_as_user=message.run_as_user.value if message.HasField("run_as_user") else None,
        run_as_group=message.run_as_group.value if message.HasField("run_as_group") else None,
        run_as_username=message.run_as_username,
        supplemental_groups=tuple(message.supplemental_groups),
        supplemental_groups_policy=_POLICIES[message.supplemental_groups_policy],  # type: ignore[arg-type]
        readonly_rootfs=message.readonly_rootfs,
        no_new_privs=message.no_new_privs,
        masked_paths=tuple(message.masked_paths),
        readonly_paths=tuple(message.readonly_paths),
        namespace_options=namespaces_of(message.namespace_options),
        seccomp=api.SecurityProfile(_PROFILES[seccomp.profile_type], seccomp.localhost_ref),  # type: ignore[arg-type]
    )


def auth_of(message: Any) -> api.AuthConfig:
    return api.AuthConfig(message.username, message.password, message.identity_token, message.registry_token)


# -- what a client is answered -----------------------------------------------------------------------------------------


def sandbox_item(status: api.PodSandboxStatus) -> Any:
    """As ListPodSandbox shows one."""
    return new("PodSandbox", **_sandbox(status))


def sandbox_status_message(status: api.PodSandboxStatus) -> Any:
    first, more = status.ips[:1], status.ips[1:]
    addresses = new("PodSandboxNetworkStatus", ip="".join(first), additional_ips=[new("PodIP", ip=ip) for ip in more])
    namespaces = new("Namespace", options=namespaces_message(status.namespace_options))
    linux = new("LinuxPodSandboxStatus", namespaces=namespaces)
    return new("PodSandboxStatus", **_sandbox(status), network=addresses, linux=linux)


def _sandbox(status: api.PodSandboxStatus) -> dict[str, Any]:
    return {
        "id": status.id,
        "metadata": metadata_message(status.metadata),
        "state": int(status.state),
        "created_at": status.created_at,
        "labels": status.labels,
        "annotations": status.annotations,
    }


def container_item(status: api.ContainerStatus) -> Any:
    """As ListContainers shows one."""
    return new("Container", **_container(status), pod_sandbox_id=status.pod_sandbox_id)


def container_status_message(status: api.ContainerStatus) -> Any:
    return new(
        "ContainerStatus",
        **_container(status),
        started_at=status.started_at,
        finished_at=status.finished_at,
        exit_code=status.exit_code,
        reason=status.reason,
        message=status.message,
        mounts=list(map(mount_message, status.mounts)),
        log_path=status.log_path,
        resources=new("ContainerResources", linux=resources_message(status.resources)),
        stop_signal=signal_number(status.stop_signal),
    )


def _container(status: api.ContainerStatus) -> dict[str, Any]:
    return {
        "id": status.id,
        "metadata": new("ContainerMetadata", name=status.metadata.name, attempt=status.metadata.attempt),
        "image": new("ImageSpec", image=status.image),
        "image_ref": status.image_ref,
        "state": int(status.state),
        "created_at": status.created_at,
        "labels": status.labels,
        "annotations": status.annotations,
    }


# -- the server --------------------------------------------------------------------------------------------------------


class Service:
    """A method for each call that clients make in tests."""

    def __init__(self, runtime: SimulatedRuntime, faults: "Faults") -> None:
        self._runtime, self._faults = runtime, faults

    async def version(self, request: Any) -> Any:
        return new(
            "VersionResponse", version="0.1.0", runtime_name="simulated", runtime_version="1", runtime_api_version="v1"
        )

    async def status(self, request: Any) -> Any:
        status = await self._runtime.status()
        conditions = [new("RuntimeCondition", type=each.type, status=each.status) for each in status.conditions]
        return new("StatusResponse", status=new("RuntimeStatus", conditions=conditions))

    async def run_pod_sandbox(self, request: Any) -> Any:
        identity = await self._runtime.run_pod_sandbox(sandbox_config_of(request.config), request.runtime_handler)
        return new("RunPodSandboxResponse", pod_sandbox_id=identity)

    async def stop_pod_sandbox(self, request: Any) -> Any:
        await self._runtime.stop_pod_sandbox(request.pod_sandbox_id)
        return new("StopPodSandboxResponse")

    async def remove_pod_sandbox(self, request: Any) -> Any:
        await self._runtime.remove_pod_sandbox(request.pod_sandbox_id)
        return new("RemovePodSandboxResponse")

    async def pod_sandbox_status(self, request: Any) -> Any:
        status = await self._runtime.pod_sandbox_status(request.pod_sandbox_id)
        return new("PodSandboxStatusResponse", status=sandbox_status_message(status))

    async def list_pod_sandbox(self, request: Any) -> Any:
        found = _labelled(await self._runtime.list_pod_sandbox(), request.filter)
        return new("ListPodSandboxResponse", items=list(map(sandbox_item, found)))

    async def create_container(self, request: Any) -> Any:
        config, sandbox = container_config_of(request.config), sandbox_config_of(request.sandbox_config)
        identity = await self._runtime.create_container(request.pod_sandbox_id, config, sandbox)
        return new("CreateContainerResponse", container_id=identity)

    async def start_container(self, request: Any) -> Any:
        await self._runtime.start_container(request.container_id)
        return new("StartContainerResponse")

    async def stop_container(self, request: Any) -> Any:
        await self._runtime.stop_container(request.container_id, request.timeout)
        return new("StopContainerResponse")

    async def remove_container(self, request: Any) -> Any:
        await self._runtime.remove_container(request.container_id)
        return new("RemoveContainerResponse")

    async def list_containers(self, request: Any) -> Any:
        found = _labelled(await self._runtime.list_containers(), request.filter)
        return new("ListContainersResponse", containers=list(map(container_item, found)))

    async def container_status(self, request: Any) -> Any:
        status = await self._runtime.container_status(request.container_id)
        return new("ContainerStatusResponse", status=container_status_message(status))

    async def exec_sync(self, request: Any) -> Any:
        answer = await self._runtime.exec_sync(request.container_id, tuple(request.cmd), request.timeout)
        return new("ExecSyncResponse", stdout=answer.stdout, stderr=answer.stderr, exit_code=answer.exit_code)

    async def image_status(self, request: Any) -> Any:
        image = await self._runtime.image_status(request.image.image)
        shown = None if image is None else new("Image", id=image.id, repo_tags=image.repo_tags)
        return new("ImageStatusResponse", image=shown)

    async def list_statuses(self, request: Any) -> Any:
        """containerd's own call: what is being downloaded."""
        layers = [("manifest-sha256:3", 7, 7), *self._faults.downloads]
        statuses = [new("ContentStatus", ref=ref, offset=offset, total=total) for ref, offset, total in layers]
        return new("ListContentStatusesResponse", statuses=statuses)

    async def pull_image(self, request: Any) -> Any:
        reference = await self._runtime.pull_image(request.image.image, auth_of(request.auth))
        return new("PullImageResponse", image_ref=reference)

    async def events(self) -> AsyncIterator[Any]:
        async for event in self._runtime.get_container_events():
            metadata = new("PodSandboxMetadata", uid=event.pod_uid)
            yield new(
                "ContainerEventResponse",
                container_id=event.container_id,
                container_event_type=int(event.container_event_type),
                created_at=event.created_at,
                pod_sandbox_status=new("PodSandboxStatus", metadata=metadata),
            )


def _labelled(found: list[Any], wanted: Any) -> list[Any]:
    return [each for each in found if wanted.label_selector.items() <= each.labels.items()]


@dataclass
class Faults:
    """What goes wrong; may change while the server runs. `hangs` and `errors` have names of methods."""

    hangs: set[str] = field(default_factory=set)
    errors: dict[str, tuple[grpc.StatusCode, str]] = field(default_factory=dict)
    only_for: str = ""
    """The uid of the Pod that they are for, "" for all."""
    asked: list[str] = field(default_factory=list)
    """Names of the methods that were called."""
    downloads: list[tuple[str, int, int]] = field(default_factory=list)
    """(name, bytes so far, bytes of all) of each layer that containerd downloads."""

    async def before(self, name: str, request: Any, context: Any) -> None:
        """Hang, or abort the call."""
        self.asked.append(name)
        if self.only_for and self.only_for not in str(request):
            return
        if name in self.hangs:
            await asyncio.Event().wait()
        if name in self.errors:
            await context.abort(*self.errors[name])


@asynccontextmanager
async def serving(runtime: SimulatedRuntime, path: str, faults: Faults | None = None) -> AsyncIterator[None]:
    """Answer at the Unix socket `path`."""
    server = grpc.aio.server()
    faults = faults or Faults()
    server.add_generic_rpc_handlers((_Handlers(Service(runtime, faults), faults),))
    server.add_insecure_port(f"unix://{path}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, service: Service, faults: Faults) -> None:
        self._service, self._faults = service, faults

    def service(self, details: Any) -> Any:
        name = details.method.rpartition("/")[2]
        if name == messages.EVENTS[0]:
            return self._stream()
        do = getattr(self._service, re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(), None)
        if do is None:
            return None  # UNIMPLEMENTED

        async def call(request: Any, context: Any) -> Any:
            await self._faults.before(name, request, context)
            try:
                return await do(request)
            except api.RuntimeServiceError as error:
                await context.abort(_CODES.get(error.reason, grpc.StatusCode.UNKNOWN), str(error))

        kind = messages.DOWNLOADS[1] if name == messages.DOWNLOADS[0] else f"{name}Request"
        return grpc.unary_unary_rpc_method_handler(call, messages.classes[kind].FromString, _written)

    def _stream(self) -> Any:
        async def call(request: Any, context: Any) -> AsyncIterator[Any]:
            await self._faults.before(messages.EVENTS[0], request, context)
            async for event in self._service.events():
                yield event

        return grpc.unary_stream_rpc_method_handler(call, messages.classes[messages.EVENTS[1]].FromString, _written)


def _written(message: Any) -> bytes:
    return bytes(message.SerializeToString())
