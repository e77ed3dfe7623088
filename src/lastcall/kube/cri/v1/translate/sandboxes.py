"""A sandbox: what it is to be, how it is, and as lists show it. Pure."""

from typing import Any

from lastcall.kube.cri import api
from lastcall.kube.cri.v1.messages import new
from lastcall.kube.cri.v1.translate.parts import (
    metadata_message,
    metadata_of,
    namespaces_message,
    namespaces_of,
    resources_message,
)

_PROTOCOLS = ("TCP", "UDP", "SCTP")


def sandbox_config_message(config: api.PodSandboxConfig) -> Any:
    dns = config.dns_config
    namespaces = namespaces_message(config.namespace_options)
    context = new(
        "LinuxSandboxSecurityContext",
        namespace_options=namespaces,
        privileged=config.privileged,
        run_as_user=None if config.run_as_user is None else new("Int64Value", value=config.run_as_user),
        run_as_group=None if config.run_as_group is None else new("Int64Value", value=config.run_as_group),
    )
    return new(
        "PodSandboxConfig",
        metadata=metadata_message(config.metadata),
        hostname=config.hostname,
        log_directory=config.log_directory,
        dns_config=new("DNSConfig", servers=dns.servers, searches=dns.searches, options=dns.options),
        port_mappings=[
            new(
                "PortMapping",
                protocol=_PROTOCOLS.index(each.protocol),
                container_port=each.container_port,
                host_port=each.host_port,
                host_ip=each.host_ip,
            )
            for each in config.port_mappings
        ],
        labels=config.labels,
        annotations=config.annotations,
        linux=new(
            "LinuxPodSandboxConfig",
            cgroup_parent=config.cgroup_parent,
            security_context=context,
            sysctls=config.sysctls,
            resources=resources_message(config.resources),
        ),
    )


def sandbox_status_of(message: Any) -> api.PodSandboxStatus:
    """Translate a sandbox's status. The message does not carry the limits."""
    first, more = message.network.ip, message.network.additional_ips
    return api.PodSandboxStatus(
        id=message.id,
        metadata=metadata_of(message.metadata),
        state=api.PodSandboxState(message.state),
        created_at=message.created_at,
        ips=(first, *(each.ip for each in more)) if first else (),
        namespace_options=namespaces_of(message.linux.namespaces.options),
        labels=dict(message.labels),
        annotations=dict(message.annotations),
    )


def sandbox_item_of(message: Any) -> api.PodSandboxStatus:
    return api.PodSandboxStatus(
        id=message.id,
        metadata=metadata_of(message.metadata),
        state=api.PodSandboxState(message.state),
        created_at=message.created_at,
        labels=dict(message.labels),
        annotations=dict(message.annotations),
    )
