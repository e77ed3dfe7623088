"""The runtime itself: what it can do here, and its events."""

from enum import IntEnum

from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RuntimeCondition:
    """`type` is RuntimeReady, NetworkReady, or one of LIMITS_ENFORCED, USER_IDS_MAPPED and USER_NAMESPACES."""

    type: str
    status: bool
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    conditions: tuple[RuntimeCondition, ...] = ()

    def find(self, condition_type: str) -> RuntimeCondition | None:
        return next((condition for condition in self.conditions if condition.type == condition_type), None)


LIMITS_ENFORCED = "lastcall.dev/LimitsEnforced"
USER_IDS_MAPPED = "lastcall.dev/UserIDsMapped"
USER_NAMESPACES = "lastcall.dev/UserNamespaces"
"""Whether a sandbox can have a user namespace of mode POD."""


class ContainerEventType(IntEnum):
    CONTAINER_CREATED_EVENT = 0
    CONTAINER_STARTED_EVENT = 1
    CONTAINER_STOPPED_EVENT = 2
    CONTAINER_DELETED_EVENT = 3


@dataclass(frozen=True, slots=True)
class ContainerEventResponse:
    """`pod_uid` is the sandbox metadata's uid; `container_id` is the sandbox id for sandbox events."""

    container_id: str
    container_event_type: ContainerEventType
    created_at: int
    pod_uid: str
