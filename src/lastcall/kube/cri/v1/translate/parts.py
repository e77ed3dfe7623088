"""What messages of sandboxes and of containers share: resources, namespaces, metadata. Pure."""

from typing import Any

from lastcall.kube.cri import api
from lastcall.kube.cri.v1.messages import new

_MODES: tuple[api.NamespaceMode, ...] = ("POD", "CONTAINER", "NODE", "TARGET")


def word(words: tuple[Any, ...], number: int, what: str) -> Any:
    if not 0 <= number < len(words):
        raise api.RuntimeServiceError(f"{what} {number} is not known", "InvalidArgument")
    return words[number]


def resources_of(message: Any) -> api.LinuxContainerResources:
    return api.LinuxContainerResources(
        cpu_period=message.cpu_period,
        cpu_quota=message.cpu_quota,
        cpu_shares=message.cpu_shares,
        memory_limit_in_bytes=message.memory_limit_in_bytes,
        oom_score_adj=message.oom_score_adj,
        unified=dict(message.unified),
    )


def resources_message(resources: api.LinuxContainerResources) -> Any:
    return new(
        "LinuxContainerResources",
        cpu_period=resources.cpu_period,
        cpu_quota=resources.cpu_quota,
        cpu_shares=resources.cpu_shares,
        memory_limit_in_bytes=resources.memory_limit_in_bytes,
        oom_score_adj=resources.oom_score_adj,
        unified=resources.unified,
    )


def _mappings_of(messages: Any) -> tuple[api.IDMapping, ...]:
    return tuple(api.IDMapping(each.host_id, each.container_id, each.length) for each in messages)


def _mappings_message(mappings: tuple[api.IDMapping, ...]) -> list[Any]:
    return [
        new("IDMapping", host_id=each.host_id, container_id=each.container_id, length=each.length) for each in mappings
    ]


def namespaces_of(message: Any) -> api.NamespaceOption:
    users = api.UserNamespace()
    if message.HasField("userns_options"):
        mode = word(_MODES, message.userns_options.mode, "user namespace mode")
        options = message.userns_options
        users = api.UserNamespace(mode, _mappings_of(options.uids), _mappings_of(options.gids))
    return api.NamespaceOption(
        network=word(_MODES, message.network, "network namespace mode"),
        pid=word(_MODES, message.pid, "pid namespace mode"),
        ipc=word(_MODES, message.ipc, "ipc namespace mode"),
        target_id=message.target_id,
        userns_options=users,
    )


def namespaces_message(options: api.NamespaceOption) -> Any:
    users = options.userns_options
    return new(
        "NamespaceOption",
        network=_MODES.index(options.network),
        pid=_MODES.index(options.pid),
        ipc=_MODES.index(options.ipc),
        target_id=options.target_id,
        userns_options=new(
            "UserNamespace",
            mode=_MODES.index(users.mode),
            uids=_mappings_message(users.uids),
            gids=_mappings_message(users.gids),
        ),
    )


def metadata_of(message: Any) -> api.PodSandboxMetadata:
    return api.PodSandboxMetadata(message.name, message.uid, message.namespace, message.attempt)


def metadata_message(metadata: api.PodSandboxMetadata) -> Any:
    return new(
        "PodSandboxMetadata",
        name=metadata.name,
        uid=metadata.uid,
        namespace=metadata.namespace,
        attempt=metadata.attempt,
    )


def container_metadata(metadata: api.ContainerMetadata) -> Any:
    return new("ContainerMetadata", name=metadata.name, attempt=metadata.attempt)
