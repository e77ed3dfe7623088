"""Which control group belongs to which container of which Pod. Pure.

Sources: kubelet cm/pod_container_manager_linux.go:GetPodContainerName, cm/cgroup_manager_linux.go:ToSystemd;
containerd internal/cri/server/podsandbox/helpers_linux.go:getCgroupsPath, cri-o internal/config/cgmgr.
"""

# check: pure

from __future__ import annotations

import re

_UID = r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32}"
_POD = re.compile(rf"(?:.*-)?pod(?P<uid>{_UID})(?:\.slice)?")
_CONTAINER = re.compile(r"(?:(?:cri-containerd|crio|docker|libpod)-)?(?P<id>[0-9a-f]{32,64})(?:\.scope)?")
_ON_THE_WAY = re.compile(
    r"kube|besteffort|burstable|docker|lastcall|podman|system\.slice|containerd|machine|init|[0-9a-f]{64}"
)

MOST_LEVELS = 8
"""How deep below the root of a hierarchy a Pod's group is looked for: a node in a container of a node is at 7."""


def pod_of(name: str) -> str:
    """Return the uid of the Pod whose group has this name, with either driver; "" for any other group.

    `kubepods-burstable-pod0d1f…_….slice` is systemd's, where "-" only separates levels. A static Pod's uid is the hash
    of its manifest, without any.
    """
    match = _POD.fullmatch(name)
    return match["uid"].replace("_", "-") if match else ""


def container_of(name: str) -> str:
    """Return the id of the container whose group, in a Pod's, has this name; "" for any other one.

    cri-o's `crio-conmon-<id>.scope` is that of its monitor, not of the container.
    """
    match = _CONTAINER.fullmatch(name)
    return match["id"] if match else ""


def may_lead_to_pods(name: str, level: int) -> bool:
    """Return whether to look for Pods' groups in a group: always in the first two levels. A node has thousands."""
    return level < MOST_LEVELS and (level < 2 or _ON_THE_WAY.search(name) is not None)
