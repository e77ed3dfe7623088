"""What a container is to be. Pure.

What a message says that the structs cannot hold and that would change what runs is refused by `unsupported`, before
anything is made.
"""

from typing import Any

from lastcall.cri import api
from lastcall.cri.v1.messages import new
from lastcall.cri.v1.translate.images import image_spec
from lastcall.cri.v1.translate.mounts import asked_mount_of, mount_message
from lastcall.cri.v1.translate.parts import (
    container_metadata,
    namespaces_message,
    namespaces_of,
    resources_message,
    resources_of,
    word,
)
from lastcall.cri.v1.translate.signals import signal_name_of, signal_number

_PROFILES = ("RuntimeDefault", "Unconfined", "Localhost")
_POLICIES = ("Merge", "Strict")


def unsupported(message: Any) -> str:
    """What this ContainerConfig asks for that is not done here, "" for nothing."""
    context = message.linux.security_context
    asked = {
        "CDI devices": bool(message.CDI_devices),
        "ambient capabilities": bool(context.capabilities.add_ambient_capabilities),
        "an AppArmor profile": context.HasField("apparmor") and context.apparmor.profile_type == 2,
    }
    return ", ".join(name for name, is_asked in asked.items() if is_asked)


def container_config_of(message: Any) -> api.ContainerConfig:
    """Raises RuntimeServiceError, reason InvalidArgument."""
    return api.ContainerConfig(
        metadata=api.ContainerMetadata(message.metadata.name, message.metadata.attempt),
        image=message.image.image,
        command=tuple(message.command),
        args=tuple(message.args),
        working_dir=message.working_dir,
        envs=tuple((each.key, _env(each)) for each in message.envs),
        mounts=tuple(asked_mount_of(each) for each in message.mounts),
        log_path=message.log_path,
        stdin=message.stdin,
        stdin_once=message.stdin_once,
        tty=message.tty,
        stop_signal=signal_name_of(message.stop_signal),
        security_context=security_of(message.linux.security_context),
        resources=resources_of(message.linux.resources),
        labels=dict(message.labels),
        annotations=dict(message.annotations),
        devices=tuple(api.Device(each.container_path, each.host_path, each.permissions) for each in message.devices),
    )


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
        devices=[
            new("Device", container_path=each.container_path, host_path=each.host_path, permissions=each.permissions)
            for each in config.devices
        ],
        linux=new(
            "LinuxContainerConfig",
            resources=resources_message(config.resources),
            security_context=security_message(config.security_context),
        ),
    )


def _env(message: Any) -> str:
    try:
        return str(message.value.decode())
    except UnicodeDecodeError:
        text = f"environment variable {message.key!r}: its value is not UTF-8"
        raise api.RuntimeServiceError(text, "InvalidArgument") from None


def security_of(message: Any) -> api.LinuxContainerSecurityContext:
    """CRI's lists of paths cannot say "the runtime's own": what is not privileged has what the message lists."""
    user, group = message.HasField("run_as_user"), message.HasField("run_as_group")
    return api.LinuxContainerSecurityContext(
        privileged=message.privileged,
        capabilities=api.Capability(
            tuple(message.capabilities.add_capabilities), tuple(message.capabilities.drop_capabilities)
        ),
        run_as_user=message.run_as_user.value if user else None,
        run_as_group=message.run_as_group.value if group else None,
        run_as_username=message.run_as_username,
        supplemental_groups=tuple(message.supplemental_groups),
        supplemental_groups_policy=word(_POLICIES, message.supplemental_groups_policy, "supplemental groups policy"),
        readonly_rootfs=message.readonly_rootfs,
        no_new_privs=message.no_new_privs,
        masked_paths=tuple(message.masked_paths),
        readonly_paths=tuple(message.readonly_paths),
        namespace_options=namespaces_of(message.namespace_options),
        seccomp=_seccomp_of(message),
    )


def _seccomp_of(context: Any) -> api.SecurityProfile:
    """Nothing said is Unconfined, as containerd has it."""
    if not context.HasField("seccomp"):
        return api.SecurityProfile()
    profile = context.seccomp
    return api.SecurityProfile(word(_PROFILES, profile.profile_type, "seccomp profile type"), profile.localhost_ref)


def security_message(context: api.LinuxContainerSecurityContext) -> Any:
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
