"""Mount points inside of a volume that containers cannot write to: the kubelet makes them when it mounts the volume.

Source: pkg/volume/util/nested_volumes.go.
"""

# check: pure

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from lastcall.kube.node.pods.spec import all_containers_of

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod


def nested_mount_points(pod: Pod, volume: str) -> list[str]:
    """Return the paths in a volume at which containers of the Pod mount something else, outermost first."""
    found: dict[str, None] = {}
    for container in all_containers_of(pod):
        mounts = [(m["name"], posixpath.normpath(m["mountPath"])) for m in container.get("volumeMounts") or []]
        paths = sorted(path for _, path in mounts)
        for own in (path for name, path in mounts if name == volume):
            last = ""
            for path in paths:
                nested = path.startswith(f"{own}/") and not (last and path.startswith(f"{last}/"))
                if nested:
                    last = path
                    found[path[len(own) + 1 :]] = None
    return list(found)
