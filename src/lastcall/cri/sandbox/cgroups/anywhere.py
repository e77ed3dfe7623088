"""Groups for a runtime whose callers choose the parent: a kubelet's `/kubepods/burstable/pod<uid>` is in the machine's
own tree, where that kubelet made it, limits it and takes it away. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os

from lastcall.world.files import replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lastcall.cri.sandbox.cgroups.api import Cgroups, Entrance, Usage


class OfAnyParent:
    """`top` begins at `roots`, those of the hierarchies, and has what has a parent, `own` the containers without one.

    The file `kept` says which groups are ours, also when the process that made them has died.
    """

    def __init__(self, own: Cgroups, top: Cgroups, roots: list[str], kept: str) -> None:
        self._own, self._top = own, top
        self.mode = own.mode
        self._roots, self._kept = roots, kept
        self._pods, self._parents = _read(kept)
        """Groups that nobody had made, and those above them: those go with the Pod."""

    def create(self, path: str, resources: dict[str, Any]) -> None:
        """A Pod's. What is there has its maker's limits, and keeps them."""
        if self._top.exists(path):
            return
        self._pods.add(path)
        self._parents.update(each for each in _above(path) if not self._top.exists(each))
        self._keep()  # first: so the next process removes them when this one dies in between
        try:
            self._top.create(path, {})
        except OSError:
            self.remove(path)
            raise

    def update(self, path: str, resources: dict[str, Any]) -> None:
        """Its maker's to do."""

    def remove(self, path: str) -> bool:
        if path not in self._pods:
            return True
        if not self._top.remove(path):
            return False
        self._pods.discard(path)
        self._remove_parents()
        with contextlib.suppress(OSError):
            self._keep()
        return True

    def _remove_parents(self) -> None:
        """Those that have nothing in them any more: what is in them may be somebody else's."""
        for path in sorted(self._parents, reverse=True):  # those below first
            gone = [_is_gone(f"{root}/{path}") for root in self._roots]  # each is tried
            if all(gone):
                self._parents.discard(path)

    def sweep(self) -> None:
        """Take away what a process that has died had made. What is busy stays known. Raises OSError."""
        for path in sorted(self._pods):
            self.remove(path)
        self._remove_parents()
        self._keep()

    def exists(self, path: str) -> bool:
        return self._of(path).exists(path)

    def create_container(self, path: str, resources: dict[str, Any]) -> None:
        self._of(path).create_container(path, resources)

    def update_container(self, path: str, resources: dict[str, Any]) -> None:
        self._of(path).update_container(path, resources)

    def view(self, path: str, *, privileged: bool) -> list[tuple[str, str]]:
        return self._of(path).view(path, privileged=privileged)

    def entrance(self, path: str) -> Entrance:
        return self._of(path).entrance(path)

    def oom_kills(self, path: str) -> int | None:
        return self._of(path).oom_kills(path)

    def usage(self, path: str) -> Usage | None:
        return self._of(path).usage(path)

    def restrict_devices(self, path: str, more: list[str]) -> None:
        self._of(path).restrict_devices(path, more)

    def counters(self, path: str) -> dict[str, int]:
        return self._of(path).counters(path)

    def members(self, path: str) -> list[int]:
        return self._of(path).members(path)

    def kill(self, path: str) -> None:
        self._of(path).kill(path)

    def thaw(self, path: str) -> None:
        self._of(path).thaw(path)

    def remove_container(self, path: str) -> bool:
        return self._of(path).remove_container(path)

    def _of(self, path: str) -> Cgroups:
        return self._top if "/" in path else self._own

    def _keep(self) -> None:
        told = {"pods": sorted(self._pods), "parents": sorted(self._parents)}
        replace_file(self._kept, json.dumps(told).encode(), temporary=f"{self._kept}.new")


def _above(path: str) -> list[str]:
    """The groups that a group is in, the outermost first."""
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(1, len(names))]


def _is_gone(directory: str) -> bool:
    """Take a group away that has nothing in it."""
    with contextlib.suppress(OSError):
        os.rmdir(directory)
    return not os.path.isdir(directory)


def _read(kept: str) -> tuple[set[str], set[str]]:
    """(Pods' groups, groups above them) as `_keep` wrote them; nothing where there is no such file."""
    try:
        with open(kept, "rb") as file:
            told = json.load(file)
            return set(map(str, told["pods"])), set(map(str, told["parents"]))
    except (OSError, ValueError, TypeError, KeyError):
        return set(), set()
