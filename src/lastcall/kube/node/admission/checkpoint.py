"""What Pods were given, kept over the death of the kubelet: a file for each Pod that can be resized.

Without it a kubelet that starts anew would take a resize that it had put off for what the Pod has already.
Source: pkg/kubelet/allocation/state (allocated_pods_state, one file for all Pods there).
"""

import logging
import os
from contextlib import suppress

import orjson

from lastcall.kube.node.admission.allocation import Allocation, read, written
from lastcall.world.files import replace_file

log = logging.getLogger(__name__)


class AllocationFiles:
    """`directory` "" keeps nothing."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def load(self) -> dict[str, Allocation]:
        """Return allocations by Pod UID. Remove a file that cannot be read: its Pod then has what it asks for."""
        found: dict[str, Allocation] = {}
        if not self._directory or not os.path.isdir(self._directory):
            return found
        for name in os.listdir(self._directory):
            uid, end = os.path.splitext(name)
            path = os.path.join(self._directory, name)
            try:
                if end != ".json":
                    raise ValueError("was not written to its end")
                with open(path, "rb") as file:
                    found[uid] = read(orjson.loads(file.read()))
            except (OSError, ValueError) as error:
                log.warning("the checkpoint %s cannot be used, it is removed: %s", path, error)
                with suppress(OSError):
                    os.unlink(path)
        return found

    def save(self, uid: str, allocation: Allocation) -> None:
        """Write a Pod's allocation. Raises OSError."""
        if not self._directory:
            return
        path = os.path.join(self._directory, f"{uid}.json")
        data = orjson.dumps(written(allocation))
        try:
            replace_file(path, data, temporary=f"{path}.tmp")
        except FileNotFoundError:
            os.makedirs(self._directory, 0o700, exist_ok=True)
            replace_file(path, data, temporary=f"{path}.tmp")

    def remove(self, uid: str) -> None:
        """Remove a Pod's allocation; one that does not exist is no error."""
        if self._directory:
            with suppress(OSError):
                os.unlink(os.path.join(self._directory, f"{uid}.json"))
