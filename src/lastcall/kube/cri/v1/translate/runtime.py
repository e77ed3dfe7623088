"""Translate the status of the runtime. Pure."""

from typing import Any

from lastcall.kube.cri import api


def runtime_status_of(message: Any) -> api.RuntimeStatus:
    return api.RuntimeStatus(
        tuple(api.RuntimeCondition(each.type, each.status, each.reason, each.message) for each in message.conditions)
    )
