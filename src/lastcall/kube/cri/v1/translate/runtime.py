"""Translate the status and the answers of the runtime. Pure."""

from typing import Any

from lastcall.kube.cri import api


def runtime_status_of(message: Any) -> api.RuntimeStatus:
    return api.RuntimeStatus(
        tuple(api.RuntimeCondition(each.type, each.status, each.reason, each.message) for each in message.conditions)
    )


def event_of(message: Any) -> api.ContainerEventResponse:
    return api.ContainerEventResponse(
        message.container_id,
        api.ContainerEventType(message.container_event_type),
        message.created_at,
        message.pod_sandbox_status.metadata.uid,
    )
