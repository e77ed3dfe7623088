"""How a container is, as lists show it, and what it uses. Pure."""

from typing import Any

from lastcall.kube.cri import api
from lastcall.kube.cri.v1.translate.mounts import mount_of
from lastcall.kube.cri.v1.translate.parts import resources_of
from lastcall.kube.cri.v1.translate.signals import signal_name_of


def container_status_of(message: Any, pod_sandbox_id: str) -> api.ContainerStatus:
    """Translate a status. The message does not carry its sandbox: the caller knows it."""
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


def container_stats_of(message: Any) -> api.ContainerStats | None:
    if not message.HasField("cpu") and not message.HasField("memory"):
        return None
    return api.ContainerStats(
        cpu_usage_core_nano_seconds=message.cpu.usage_core_nano_seconds.value,
        memory_usage_bytes=message.memory.usage_bytes.value,
        memory_working_set_bytes=message.memory.working_set_bytes.value,
    )
