"""What a container is to be. Pure."""

from typing import Any

from lastcall.kube.cri import api
from lastcall.kube.cri.v1.messages import new
from lastcall.kube.cri.v1.translate.images import image_spec
from lastcall.kube.cri.v1.translate.mounts import mount_message
from lastcall.kube.cri.v1.translate.parts import container_metadata, namespaces_message, resources_message
from lastcall.kube.cri.v1.translate.signals import signal_number

_PROFILES = ("RuntimeDefault", "Unconfined", "Localhost")
_POLICIES = ("Merge", "Strict")


def container_config_message(config: api.ContainerConfig) -> Any:
    return new(
        "ContainerConfig",
        metadata=container_metadata(config.metadata),
        image=image_spec(config.image),
        command=config.command,
        args=config.args,
        working_dir=config.working_dir,
        envs=[new("KeyValue", key=key, value=value.encode()) for key, value in config.envs],
        mounts=list(map(mount_message, config.mounts)),
        log_path=config.log_path,
        stdin=config.stdin,
        stdin_once=config.stdin_once,
        tty=config.tty,
        stop_signal=signal_number(config.stop_signal),
        labels=config.labels,
        annotations=config.annotations,
        linux=new(
            "LinuxContainerConfig",
            resources=resources_message(config.resources),
            security_context=_security_message(config.security_context),
        ),
    )


def _security_message(context: api.LinuxContainerSecurityContext) -> Any:
    masked, readonly = context.masked_paths, context.readonly_paths
    return new(
        "LinuxContainerSecurityContext",
        capabilities=new(
            "Capability", add_capabilities=context.capabilities.add, drop_capabilities=context.capabilities.drop
        ),
        privileged=context.privileged,
        namespace_options=namespaces_message(context.namespace_options),
        run_as_user=None if context.run_as_user is None else new("Int64Value", value=context.run_as_user),
        run_as_group=None if context.run_as_group is None else new("Int64Value", value=context.run_as_group),
        run_as_username=context.run_as_username,
        readonly_rootfs=context.readonly_rootfs,
        supplemental_groups=context.supplemental_groups,
        supplemental_groups_policy=_POLICIES.index(context.supplemental_groups_policy),
        no_new_privs=context.no_new_privs,
        masked_paths=api.DEFAULT_MASKED_PATHS if masked is None else masked,
        readonly_paths=api.DEFAULT_READONLY_PATHS if readonly is None else readonly,
        seccomp=new(
            "SecurityProfile",
            profile_type=_PROFILES.index(context.seccomp.profile_type),
            localhost_ref=context.seccomp.localhost_ref,
        ),
    )
