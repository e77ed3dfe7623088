"""Where the runtime finds what the node calls by a path of its own. Pure.

The node's file system is the cluster's: its directories are directories of the machine under another name.
"""

from collections.abc import Sequence
from dataclasses import replace

from lastcall.kube.cri.api import (
    ContainerConfig,
    ContainerStatus,
    LinuxContainerSecurityContext,
    Mount,
    PodSandboxConfig,
    SecurityProfile,
)


class Paths:
    """`pairs` are (directory here, the same directory for the runtime), the longest first where one is in another."""

    def __init__(self, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self._pairs = tuple(sorted(pairs, key=lambda pair: -len(pair[0])))

    def there(self, path: str) -> str:
        """Return the runtime's path of ours; one that is the machine's own stays as it is."""
        for here, there in self._pairs:
            if path == here or path.startswith(f"{here}/"):
                return there + path[len(here) :]
        return path

    def here(self, path: str) -> str:
        """Return our path of the runtime's."""
        for here, there in sorted(self._pairs, key=lambda pair: -len(pair[1])):
            if path == there or path.startswith(f"{there}/"):
                return here + path[len(there) :]
        return path

    def sandbox(self, config: PodSandboxConfig) -> PodSandboxConfig:
        """Return the configuration with the paths that the runtime has to get."""
        return replace(config, log_directory=self.there(config.log_directory))

    def container(self, config: ContainerConfig) -> ContainerConfig:
        mounts = tuple(replace(each, host_path=self.there(each.host_path)) for each in config.mounts)
        return replace(config, mounts=mounts, security_context=self._security(config.security_context))

    def _security(self, context: LinuxContainerSecurityContext) -> LinuxContainerSecurityContext:
        profile = context.seccomp
        if not profile.localhost_ref:
            return context
        return replace(context, seccomp=SecurityProfile(profile.profile_type, self.there(profile.localhost_ref)))

    def status(self, status: ContainerStatus) -> ContainerStatus:
        """Return the status as the node knows it."""
        mounts = tuple(self._mount(each) for each in status.mounts)
        return replace(status, log_path=self.here(status.log_path), mounts=mounts)

    def _mount(self, mount: Mount) -> Mount:
        return replace(mount, host_path=self.here(mount.host_path))
