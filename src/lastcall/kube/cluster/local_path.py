"""The directories of claims: `DURABLE_DIR/local-path-provisioner/pvc-<uid>_<namespace>_<name>`.

All nodes of a cluster share its mount namespace. They go with the cluster, or stay with `--state`.
"""

# check: allow asyncio.to_thread because it removes a volume with all that is in it

import asyncio
import os
from contextlib import suppress

from lastcall.kube.cluster.options import LOCAL_PATH_DIR
from lastcall.world.remove_tree import remove_tree


class HostDirectories:
    """Implements `local_path_provisioner.Directories`. `root` is made with the first volume, for root alone."""

    def __init__(self, root: str = LOCAL_PATH_DIR) -> None:
        self.root = root

    async def make(self, name: str) -> None:
        with suppress(FileExistsError):
            os.mkdir(self.root, 0o700)
        path = f"{self.root}/{name}"
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        os.chmod(path, 0o777)  # noqa: S103 (any user id of a container; the directory above is root's alone)

    async def remove(self, name: str) -> None:
        """Remove a directory, in a thread: how much is in it is unknown."""
        await asyncio.to_thread(remove_tree, f"{self.root}/{name}")
