"""CRI's RuntimeStatus from what the shim says of the machine. Pure."""

# check: pure

from typing import Any

from lastcall.kube.cri.api import LIMITS_ENFORCED, USER_IDS_MAPPED, USER_NAMESPACES, RuntimeCondition, RuntimeStatus


def runtime_status(machine: dict[str, Any], network: str = "") -> RuntimeStatus:
    """Return the status of the runtime. `network` says why it is not ready.

    `machine`: `uids` and `gids` (how many), `cgroups` (mode), `cgroupsWhy`, `ownersUnmapped` (why mounts cannot be
    idmapped, "" if they can). Source of the network's words: containerd internal/cri/server/status.go:Status.
    """
    limits, single = machine["cgroups"] != "none", machine["uids"] <= 1
    return RuntimeStatus(
        (
            RuntimeCondition("RuntimeReady", True),
            RuntimeCondition("NetworkReady", True)
            if not network
            else RuntimeCondition(
                "NetworkReady", False, "NetworkPluginNotReady", f"Network plugin returns error: {network}"
            ),
            RuntimeCondition(
                LIMITS_ENFORCED,
                limits,
                "" if limits else "NoCgroups",
                f"cgroup {machine['cgroups']}" if limits else machine["cgroupsWhy"],
            ),
            RuntimeCondition(
                USER_IDS_MAPPED,
                not single,
                "SingleUserID" if single else "",
                "there is one user id" if single else f"{machine['uids']} user ids",
            ),
            RuntimeCondition(
                USER_NAMESPACES,
                not machine["ownersUnmapped"],
                "NoIDMappedMounts" if machine["ownersUnmapped"] else "",
                f"mounts of tmpfs cannot be idmapped: {machine['ownersUnmapped']}" if machine["ownersUnmapped"] else "",
            ),
        )
    )
