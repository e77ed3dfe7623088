"""RuntimeService and ImageService of CRI v1 over gRPC, on the internal CRI.

Each call is a method named like it, of `Service` or of its parts for stats and images; `server.py` serves them. What is
idempotent follows containerd (internal/cri/server); short ids are found as there, by an unambiguous beginning.
"""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

from lastcall.cri import api
from lastcall.cri.api import ContainerStatus, ImageService, PodSandboxStatus, RuntimeServiceError
from lastcall.cri.v1.filters import containers_that_match, sandboxes_that_match
from lastcall.cri.v1.image_calls import ImageCalls
from lastcall.cri.v1.messages import new
from lastcall.cri.v1.needs import Counting, Disk, Facts, PodFiles, Streams
from lastcall.cri.v1.requests import Ids, demand
from lastcall.cri.v1.stats_calls import StatsCalls
from lastcall.cri.v1.translate.container_config import container_config_of, unsupported
from lastcall.cri.v1.translate.container_status import container_item, container_status_message
from lastcall.cri.v1.translate.parts import resources_of
from lastcall.cri.v1.translate.runtime import runtime_status_message
from lastcall.cri.v1.translate.sandboxes import sandbox_config_of, sandbox_item, sandbox_status_message
from lastcall.world.clock import Clock

_IMAGE_ID = re.compile(r"(sha256:)?[0-9a-f]{64}")


class Service:
    def __init__(
        self,
        runtime: api.RuntimeService,
        images: ImageService,
        clock: Clock,
        facts: Facts,
        streams: Streams | None = None,
        disk: Disk | None = None,
        files: PodFiles | None = None,
        counting: Counting | None = None,
    ) -> None:
        """Without `streams` or `disk` what needs them is answered with Unimplemented, without `counting` there are no
        metrics."""
        self._runtime, self._images, self._clock, self._facts = runtime, images, clock, facts
        self._streams, self._files, self._ids = streams, files, Ids(runtime)
        self._parts = (self, StatsCalls(runtime, clock, disk, counting), ImageCalls(images, clock, disk))

    def method(self, name: str) -> Callable[[Any], Awaitable[Any]]:
        """What does the call of that name, `run_pod_sandbox`."""
        found: Callable[[Any], Awaitable[Any]] = next(
            getattr(part, name) for part in self._parts if hasattr(part, name)
        )
        return found

    # -- the runtime itself --------------------------------------------------------------------------------------------

    async def version(self, request: Any) -> Any:
        return new(
            "VersionResponse",
            version="0.1.0",  # kubelet's own, of its runtime API: containerd internal/cri/server/version.go
            runtime_name=self._facts.name,
            runtime_version=self._facts.version,
            runtime_api_version="v1",
        )

    async def status(self, request: Any) -> Any:
        status = await self._runtime.status()
        users = status.find(api.USER_NAMESPACES)
        features = new(
            "RuntimeHandlerFeatures",
            recursive_read_only_mounts=True,
            user_namespaces=users is not None and users.status,
        )
        return new(
            "StatusResponse",
            status=runtime_status_message(status),
            info={"config": json.dumps({"runtimeHandlers": api.RUNTIME_HANDLERS})} if request.verbose else {},
            runtime_handlers=[new("RuntimeHandler", name=name, features=features) for name in api.RUNTIME_HANDLERS],
            features=new("RuntimeFeatures", supplemental_groups_policy=True),
        )

    async def runtime_config(self, request: Any) -> Any:
        return new("RuntimeConfigResponse", linux=new("LinuxRuntimeConfiguration", cgroup_driver=1))

    async def update_runtime_config(self, request: Any) -> Any:
        """The Pods' range is the CNI configuration's own: as containerd without a template for it, nothing changes."""
        return new("UpdateRuntimeConfigResponse")

    # -- sandboxes -----------------------------------------------------------------------------------------------------

    async def run_pod_sandbox(self, request: Any) -> Any:
        demand(request.config.HasField("metadata"), "sandbox config must include metadata")
        config = sandbox_config_of(request.config)
        identity = await self._runtime.run_pod_sandbox(config, request.runtime_handler)
        return new("RunPodSandboxResponse", pod_sandbox_id=identity)

    async def stop_pod_sandbox(self, request: Any) -> Any:
        await self._runtime.stop_pod_sandbox(await self._ids.sandbox(request.pod_sandbox_id))
        return new("StopPodSandboxResponse")

    async def remove_pod_sandbox(self, request: Any) -> Any:
        identity = await self._ids.sandbox(request.pod_sandbox_id)
        await self._runtime.remove_pod_sandbox(identity)
        if self._files is not None:
            await self._files.remove(identity)
        return new("RemovePodSandboxResponse")

    async def pod_sandbox_status(self, request: Any) -> Any:
        status = await self._runtime.pod_sandbox_status(await self._ids.sandbox(request.pod_sandbox_id))
        containers = [each for each in await self._runtime.list_containers() if each.pod_sandbox_id == status.id]
        return new(
            "PodSandboxStatusResponse",
            status=sandbox_status_message(status),
            info={"info": "{}"} if request.verbose else {},
            containers_statuses=[await self._status_message(each) for each in containers],
            timestamp=self._clock.wall_ns(),
        )

    async def list_pod_sandbox(self, request: Any) -> Any:
        found = sandboxes_that_match(await self._runtime.list_pod_sandbox(), request.filter)
        return new("ListPodSandboxResponse", items=list(map(sandbox_item, found)))

    async def update_pod_sandbox_resources(self, request: Any) -> Any:
        identity = await self._ids.sandbox(request.pod_sandbox_id)
        await self._runtime.update_pod_sandbox_resources(identity, resources_of(request.resources))
        return new("UpdatePodSandboxResourcesResponse")

    # -- containers ----------------------------------------------------------------------------------------------------

    async def create_container(self, request: Any) -> Any:
        demand(request.config.HasField("metadata"), "container config must include metadata")
        if asked := unsupported(request.config):
            raise RuntimeServiceError(
                f"failed to create container: {asked}: not supported by lastcall", "Unimplemented"
            )
        config, sandbox_config = (
            container_config_of(request.config),
            sandbox_config_of(request.sandbox_config),
        )
        user, group = config.security_context.run_as_user, config.security_context.run_as_group
        # containerd internal/cri/util/util.go:GenerateUserString
        name = config.security_context.run_as_username
        demand(user is not None or group is None or name != "", "user group is specified without user")
        for each in request.config.mounts:
            _check_read_only(each)
            demand(not each.image.image or each.readonly, "an image volume must be read-only")
        sandbox = await self._ids.sandbox(request.pod_sandbox_id)
        if self._files is not None:
            await self._runtime.pod_sandbox_status(sandbox)  # it is there
            taken = {each.container_path for each in config.mounts}
            more = await self._files.mounts(sandbox, sandbox_config)
            mounts = (*(each for each in more if each.container_path not in taken), *config.mounts)
            config = replace(config, mounts=mounts)
        identity = await self._runtime.create_container(sandbox, config, sandbox_config)
        return new("CreateContainerResponse", container_id=identity)

    async def start_container(self, request: Any) -> Any:
        await self._runtime.start_container(await self._ids.container(request.container_id))
        return new("StartContainerResponse")

    async def stop_container(self, request: Any) -> Any:
        await self._runtime.stop_container(await self._ids.container(request.container_id), request.timeout)
        return new("StopContainerResponse")

    async def remove_container(self, request: Any) -> Any:
        await self._runtime.remove_container(await self._ids.container(request.container_id))
        return new("RemoveContainerResponse")

    async def list_containers(self, request: Any) -> Any:
        found = containers_that_match(await self._runtime.list_containers(), request.filter)
        return new("ListContainersResponse", containers=list(map(container_item, found)))

    async def container_status(self, request: Any) -> Any:
        status = await self._runtime.container_status(await self._ids.container(request.container_id))
        info = {"info": json.dumps({"sandboxID": status.pod_sandbox_id, **status.info})} if request.verbose else {}
        return new("ContainerStatusResponse", status=await self._status_message(status), info=info)

    async def _status_message(self, status: ContainerStatus) -> Any:
        """An image that was asked for by its id has its name.

        Source: containerd internal/cri/server/container_status.go:toCRIContainerStatus.
        """
        if _IMAGE_ID.fullmatch(status.image) and (image := await self._images.image_status(status.image)) is not None:
            status = replace(status, image=next(iter(image.repo_tags), status.image))
        if self._files is not None:
            asked = tuple(each for each in status.mounts if not self._files.owns(each.host_path))
            status = replace(status, mounts=asked)
        message = container_status_message(status)
        for mount in message.mounts:
            if mount.image.image and (held := await self._images.image_status(mount.image.image)) is not None:
                mount.image.image_ref = held.id
        return message

    async def update_container_resources(self, request: Any) -> Any:
        identity = await self._ids.container(request.container_id)
        await self._runtime.update_container_resources(identity, resources_of(request.linux))
        return new("UpdateContainerResourcesResponse")

    async def reopen_container_log(self, request: Any) -> Any:
        await self._runtime.reopen_container_log(await self._ids.container(request.container_id))
        return new("ReopenContainerLogResponse")

    async def checkpoint_container(self, request: Any) -> Any:
        """As containerd where there is no CRIU. Raises RuntimeServiceError."""
        raise RuntimeServiceError("method CheckpointContainer not implemented", "Unimplemented")

    async def exec_sync(self, request: Any) -> Any:
        identity = await self._ids.container(request.container_id)
        demand(len(request.cmd) > 0, "exec command must not be empty")
        answer = await self._runtime.exec_sync(identity, tuple(request.cmd), max(request.timeout, 0))
        return new("ExecSyncResponse", stdout=answer.stdout, stderr=answer.stderr, exit_code=answer.exit_code)

    # -- streams -------------------------------------------------------------------------------------------------------

    async def exec(self, request: Any) -> Any:
        status = await self._running(request.container_id, "exec")
        demand(len(request.cmd) > 0, "exec command must not be empty")
        wanted = _wanted(request)
        return new(
            "ExecResponse",
            url=self._stream_server().exec(status.id, tuple(request.cmd), tty=request.tty, streams=wanted),
        )

    async def attach(self, request: Any) -> Any:
        status = await self._running(request.container_id, "attach")
        url = self._stream_server().attach(status.id, tty=request.tty, streams=_wanted(request))
        return new("AttachResponse", url=url)

    async def port_forward(self, request: Any) -> Any:
        status = await self._runtime.pod_sandbox_status(await self._ids.sandbox(request.pod_sandbox_id))
        if status.state != api.PodSandboxState.SANDBOX_READY:
            raise RuntimeServiceError("sandbox container is not running")
        return new("PortForwardResponse", url=self._stream_server().port_forward(status.id))

    def _stream_server(self) -> Streams:
        if self._streams is None:
            raise RuntimeServiceError("streams are not served", "Unimplemented")
        return self._streams

    async def _running(self, container_id: str, what: str) -> ContainerStatus:
        status = await self._runtime.container_status(await self._ids.container(container_id))
        if status.state != api.ContainerState.CONTAINER_RUNNING:
            raise RuntimeServiceError(f"failed to {what}: container is in {status.state.name} state")
        return status

    # -- events --------------------------------------------------------------------------------------------------------

    async def get_container_events(self, request: Any) -> AsyncIterator[Any]:
        """With the state of the sandbox and its containers when the event is told."""
        async for event in self._runtime.get_container_events():
            sandboxes = {each.id: each for each in await self._runtime.list_pod_sandbox(event.pod_uid)}
            containers = await self._runtime.list_containers(event.pod_uid)
            of_event = [each.pod_sandbox_id for each in containers if each.id == event.container_id]
            sandbox = sandboxes.get(of_event[0] if of_event else event.container_id)
            if sandbox is None:  # deleted: what is left to say is whose it was
                own = next(iter(sandboxes.values()), None)
                sandbox = own or PodSandboxStatus(
                    "", api.PodSandboxMetadata("", event.pod_uid, ""), api.PodSandboxState.SANDBOX_NOTREADY, 0
                )
            yield new(
                "ContainerEventResponse",
                container_id=event.container_id,
                container_event_type=int(event.container_event_type),
                created_at=event.created_at,
                pod_sandbox_status=sandbox_status_message(sandbox),
                containers_statuses=[
                    await self._status_message(each) for each in containers if each.pod_sandbox_id == sandbox.id
                ],
            )


def _check_read_only(mount: Any) -> None:
    """Source: containerd internal/cri/opts/spec_linux_opts.go:WithMounts."""
    if mount.recursive_read_only:
        demand(mount.readonly, "recursive read-only mount conflicts with read-write mount")
        demand(mount.propagation == 0, "recursive read-only mount conflicts with mount propagation")


def _wanted(request: Any) -> frozenset[str]:
    """Raises RuntimeServiceError. Source: kubelet pkg/cri/streaming/server.go:GetExec, validateExecRequest."""
    found = frozenset(name for name in ("stdin", "stdout", "stderr") if getattr(request, name))
    demand(not (request.tty and "stderr" in found), "tty and stderr cannot both be true")
    demand(bool(found), "one of stdin, stdout, or stderr must be set")
    return found
