"""How a container is, and as lists show it. Pure."""

from typing import Any

from lastcall.cri import api
from lastcall.cri.v1.messages import new
from lastcall.cri.v1.translate.images import image_spec
from lastcall.cri.v1.translate.mounts import mount_message, mount_of
from lastcall.cri.v1.translate.parts import container_metadata, resources_message, resources_of
from lastcall.cri.v1.translate.signals import signal_name_of, signal_number


def container_status_of(message: Any, pod_sandbox_id: str = "") -> api.ContainerStatus:
    """The message does not carry its sandbox: the caller knows it."""
    return api.ContainerStatus(
        id=message.id,
        metadata=api.ContainerMetadata(message.metadata.name, message.metadata.attempt),
        pod_sandbox_id=pod_sandbox_id,
        state=api.ContainerState(message.state),
        image=message.image.image,
        image_ref=message.image_ref,
        created_at=message.created_at,
        started_at=message.started_at,
        finished_at=message.finished_at,
        exit_code=message.exit_code,
        reason=message.reason,
        message=message.message,
        log_path=message.log_path,
        mounts=tuple(map(mount_of, message.mounts)),
        labels=dict(message.labels),
        annotations=dict(message.annotations),
        stop_signal=signal_name_of(message.stop_signal),
        resources=resources_of(message.resources.linux),
        image_id=message.image_id,
        user=user_of(message.user),
    )


def container_status_message(status: api.ContainerStatus) -> Any:
    return new(
        "ContainerStatus",
        id=status.id,
        metadata=container_metadata(status.metadata),
        state=int(status.state),
        created_at=status.created_at,
        started_at=status.started_at,
        finished_at=status.finished_at,
        exit_code=status.exit_code,
        image=image_spec(status.image),
        image_ref=status.image_ref,
        reason=status.reason,
        message=status.message,
        labels=status.labels,
        annotations=status.annotations,
        mounts=[
            mount_message(each, recursive_read_only=each.readonly and not each.non_recursive) for each in status.mounts
        ],
        log_path=status.log_path,
        resources=new("ContainerResources", linux=resources_message(status.resources)),
        image_id=status.image_id or status.image_ref,
        user=None if status.user is None else user_message(status.user),
        stop_signal=signal_number(status.stop_signal),
    )


def container_item(status: api.ContainerStatus) -> Any:
    """As ListContainers shows one."""
    return new(
        "Container",
        id=status.id,
        pod_sandbox_id=status.pod_sandbox_id,
        metadata=container_metadata(status.metadata),
        image=image_spec(status.image),
        image_ref=status.image_ref,
        image_id=status.image_id or status.image_ref,
        state=int(status.state),
        created_at=status.created_at,
        labels=status.labels,
        annotations=status.annotations,
    )


def container_item_of(message: Any) -> api.ContainerStatus:
    return api.ContainerStatus(
        id=message.id,
        metadata=api.ContainerMetadata(message.metadata.name, message.metadata.attempt),
        pod_sandbox_id=message.pod_sandbox_id,
        state=api.ContainerState(message.state),
        image=message.image.image,
        image_ref=message.image_ref,
        created_at=message.created_at,
        labels=dict(message.labels),
        annotations=dict(message.annotations),
    )


def user_of(message: Any) -> api.LinuxContainerUser | None:
    """None when the runtime does not tell it."""
    if not message.HasField("linux"):
        return None
    return api.LinuxContainerUser(message.linux.uid, message.linux.gid, tuple(message.linux.supplemental_groups))


def user_message(user: api.LinuxContainerUser) -> Any:
    linux = new("LinuxContainerUser", uid=user.uid, gid=user.gid, supplemental_groups=user.supplemental_groups)
    return new("ContainerUser", linux=linux)
