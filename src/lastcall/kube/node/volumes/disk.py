"""Where emptyDirs of the default medium are on a node whose other volumes are in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.volumes import EmptyDirVolumeSource


@dataclass(frozen=True, slots=True)
class VolumesOnDisk:
    """`root` has a directory for each Pod, by uid. `maps_owners`: what is there can be mounted for the ids of a Pod.

    `mapped` are more directories for which that is so, and which are not on the file system of the other volumes.
    """

    root: Path
    maps_owners: bool = False
    mapped: tuple[Path, ...] = ()

    def takes(self, pod: Pod, source: EmptyDirVolumeSource) -> bool:
        """Return True if this emptyDir of the Pod is to be on disk. A Pod with ids of its own must own its files."""
        return not source.get("medium") and (self.maps_owners or pod["spec"].get("hostUsers") is not False)
