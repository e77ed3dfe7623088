"""From CRI's ContainerConfig and the image's configuration to what the shim is asked to start. Pure.

The sandbox's `sandboxId`, the directories of `rootfs`, and every other key of the result are read in `shim/`.
"""

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from lastcall.kube.cri.api import (
    DEFAULT_MASKED_PATHS,
    DEFAULT_READONLY_PATHS,
    ContainerConfig,
    Mount,
    PodSandboxConfig,
    RuntimeServiceError,
    UserNamespace,
)
from lastcall.kube.cri.sandbox.cgroups.api import pids_limit
from lastcall.kube.cri.sandbox.seccomp.container import UNCONFINED, container_filter
from lastcall.kube.cri.sandbox.seccomp.profile import ProfileError
from lastcall.kube.cri.sandbox.shim.identity import capability_mask
from lastcall.kube.cri.sandbox.shim.procfs import signal_number
from lastcall.kube.cri.sandbox.shim.rootfs.confined import SetupError
from lastcall.kube.cri.sandbox.spec import ImageConfig, RootFilesystem
from lastcall.world import privileges

DEFAULT_STOP_SIGNAL = "SIGTERM"


def process_args(config: ContainerConfig, image: ImageConfig) -> tuple[str, ...]:
    """Return the command line: `command` replaces entrypoint and cmd, `args` alone replaces cmd.

    Raises RuntimeServiceError when nothing is left. Source: containerd pkg/cri/opts/spec_opts.go:WithProcessArgs.
    """
    entrypoint, cmd = config.command, config.args
    if not entrypoint:
        entrypoint = image.entrypoint
        if not cmd:
            cmd = image.cmd
    if not entrypoint and not cmd:
        raise RuntimeServiceError("failed to generate container spec: no command specified")
    return entrypoint + cmd


def stop_signal(config: ContainerConfig, image: ImageConfig) -> int:
    """Return the number of the signal that asks the container to end. Raises RuntimeServiceError for unknown names."""
    text = config.stop_signal or image.stop_signal or DEFAULT_STOP_SIGNAL
    try:
        return signal_number(text)
    except ValueError as error:
        raise RuntimeServiceError(f"failed to parse stop signal {text!r}: {error}") from error


def start_spec(
    container_id: str,
    sandbox_id: str,
    config: ContainerConfig,
    sandbox: PodSandboxConfig,
    root: RootFilesystem,
    directory: str,
    volumes: Mapping[str, RootFilesystem] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the shim's container spec; `directory` is its own, `volumes` are the images that it mounts, by name.

    Raises RuntimeServiceError for what cannot run.
    """
    security, image = config.security_context, root.config
    options = security.namespace_options
    hostname = [f"HOSTNAME={sandbox.hostname}"] if sandbox.hostname else []
    return {
        "id": container_id,
        "sandboxId": sandbox_id,
        "podUid": sandbox.metadata.uid,
        "name": config.metadata.name,
        "attempt": config.metadata.attempt,
        "argv": list(process_args(config, image)),
        "env": [*hostname, *image.env, *(f"{name}={value}" for name, value in config.envs)],
        "cwd": config.working_dir or image.working_dir or "/",
        "user": {
            "uid": security.run_as_user,
            "gid": security.run_as_group,
            "name": image.user,
            "groups": list(security.supplemental_groups),
            "strictGroups": security.supplemental_groups_policy == "Strict",
        },
        "rootfs": {
            "lowerdirs": list(root.lowerdirs),
            "upper": f"{directory}/upper",
            "work": f"{directory}/work",
            "mountpoint": f"{directory}/rootfs",
            "readonly": security.readonly_rootfs,
        },
        "mounts": [
            *(_mount(mount, owners_mapped=False) for mount in root.binds),
            *(_mount(mount, owners_mapped=not mount.image, volumes=volumes) for mount in config.mounts),
        ],
        "maskedPaths": DEFAULT_MASKED_PATHS if security.masked_paths is None else security.masked_paths,
        "readonlyPaths": DEFAULT_READONLY_PATHS if security.readonly_paths is None else security.readonly_paths,
        "privileged": security.privileged,
        "capabilities": {"add": list(security.capabilities.add), "drop": list(security.capabilities.drop)},
        "noNewPrivs": security.no_new_privs,
        "pid": options.pid,
        "pidTarget": options.target_id,
        "logPath": f"{sandbox.log_directory}/{config.log_path}" if sandbox.log_directory and config.log_path else "",
        "tty": config.tty,
        "stdin": config.stdin,
        "oomScoreAdj": config.resources.oom_score_adj,
        "cgroupParent": sandbox.cgroup_parent,
        "resources": asdict(config.resources),
        "maxProcesses": pids_limit(asdict(sandbox.resources)),
    }


def seccomp_filter(config: ContainerConfig, *, single_user_id: bool) -> dict[str, Any]:
    """Return the shim's `seccomp`. Raises RuntimeServiceError in containerd's words.

    Source: containerd internal/cri/server/container_create_linux.go:generateSeccompSpecOpts.
    """
    security = config.security_context
    if security.privileged or security.seccomp.profile_type == UNCONFINED:
        return {"name": UNCONFINED, "program": ""}
    add, drop = list(security.capabilities.add), list(security.capabilities.drop)
    try:
        mask = capability_mask({"privileged": False, "capabilities": {"add": add, "drop": drop}})
        names = frozenset(f"CAP_{name}" for name, number in privileges.CAPABILITIES.items() if mask >> number & 1)
        return container_filter(
            security.seccomp.profile_type, security.seccomp.localhost_ref, names, single_user_id=single_user_id
        )
    except (ProfileError, SetupError) as error:
        raise RuntimeServiceError(f"failed to create containerd container: {error}") from error


def _mount(
    mount: Mount, *, owners_mapped: bool, volumes: Mapping[str, RootFilesystem] = MappingProxyType({})
) -> dict[str, Any]:
    """The host's own directories stay as they are: in a Pod with user ids of its own they belong to the overflow id.

    So do those of images that are volumes.
    """
    source, target = mount.host_path, mount.container_path
    made = {"source": source, "target": target, "readonly": mount.readonly, "ownersMapped": owners_mapped}
    if mount.image:
        made |= {"source": mount.image, "image": list(volumes[mount.image].lowerdirs), "sub": mount.image_sub_path}
    return made


def users_of(options: UserNamespace) -> dict[str, int] | None:
    """Return the shim's `users`. Raises RuntimeServiceError for mappings that are not one range, the same for groups.

    Source: containerd internal/cri/server/podsandbox/sandbox_run_linux.go (parseUsernsIDMap, sameUsernsConfig).
    """
    if options.mode == "NODE":
        return None
    if options.mode != "POD":
        raise RuntimeServiceError(f"unsupported user namespace mode: {options.mode!r}")
    if len(options.uids) != 1 or options.uids != options.gids or options.uids[0].container_id != 0:
        raise RuntimeServiceError(
            "user namespace configuration invalid: it takes one range from 0, for users and groups"
        )
    return {"first": options.uids[0].host_id, "count": options.uids[0].length}
