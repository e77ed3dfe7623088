"""The config source `file`: a directory of manifests, read again and again (kubelet config/file.go).

A changed file is another Pod (its UID is a hash): the old one is REMOVEd, the new one ADDed. A file that has become
unreadable keeps its Pod for `FILE_CHECK_SECONDS`, because another process may be writing it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.node.config import PodUpdates, merge
from lastcall.kube.node.static_pods.decide import ManifestError, duplicate_message, without_duplicates
from lastcall.world import crash_guard
from lastcall.world.clock import now, rfc3339_micro
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""Between two looks at the directory. The kubelet has inotify, and looks every 20 s besides."""
FILE_CHECK_SECONDS = 20.0


class ManifestDirectory(Protocol):
    async def read(self) -> dict[str, bytes | str]:
        """Return file name → content, or a text why there is none, by name. Raises OSError: nothing is known."""
        ...


@dataclass(slots=True)
class _File:
    content: bytes | str
    pod: Pod | None = None
    bad_since: float | None = None


class FileConfig:
    """`on_updates` is called with every SET's changes, `on_duplicate(pod, message)` for a Pod that is left out."""

    def __init__(
        self,
        directory: ManifestDirectory,
        node_name: str,
        on_updates: Callable[[PodUpdates], None],
        *,
        world: World,
        on_duplicate: Callable[[Pod, str], None] = lambda pod, message: None,
        gates: FeatureGates | None = None,
    ) -> None:
        self._directory = directory
        self._node_name = node_name
        self._on_updates = on_updates
        self._on_duplicate = on_duplicate
        self._gates = gates
        self._world = world
        self._files: dict[str, _File] = {}
        self._known: dict[str, Pod] = {}
        self._reported: dict[str, None] = {}
        self._trouble = ""
        self._first = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Return True after the first SET."""
        return self._first.is_set()

    async def first_set(self) -> None:
        await self._first.wait()

    async def run(self) -> None:
        """Follow the directory until cancelled."""
        while True:
            await self.look()
            await self._world.clock.sleep(POLL_SECONDS)

    async def look(self) -> None:
        """Read the directory once and report what has changed."""
        try:
            contents = await self._directory.read()
        except OSError as error:
            if str(error) != self._trouble:
                log.warning("static Pods: the directory cannot be read: %s", error.strerror or error)
            self._trouble = str(error)
            self._first.set()
            return
        self._trouble = ""
        at = self._world.clock.monotonic_ns() / 1e9
        self._files = {name: self._file(name, content, at) for name, content in contents.items()}
        pods, dropped = without_duplicates(file.pod for file in self._files.values() if file.pod is not None)
        for pod in dropped:
            self._report_duplicate(pod)
        self._known, updates = merge(self._known, pods)
        if updates:
            self._on_updates(updates)
        self._first.set()

    def _file(self, name: str, content: bytes | str, at: float) -> _File:
        before = self._files.get(name)
        if before is not None and before.content == content:
            if before.bad_since is not None and at - before.bad_since >= FILE_CHECK_SECONDS:
                before.pod = None
            return before
        try:
            if isinstance(content, str):
                raise ManifestError(content)
            # late: 27 ms of a node's start, and 1.5 MB of a node without static Pods
            from lastcall.kube.node.static_pods.manifest import read_manifest

            seen = rfc3339_micro(now(self._world.clock))
            pod = read_manifest(content, path=name, node_name=self._node_name, seen=seen, gates=self._gates)
            return _File(content, pod)
        except ManifestError as error:
            log.error("static Pods: %s is left out: %s", name, error)
        except Exception as error:  # no file may end the node
            crash_guard.noticed("kubelet static pods", name, error)
            log.error("static Pods: %s is left out: %s: %s", name, type(error).__name__, error)
        bad_since = before.bad_since if before is not None and before.bad_since is not None else at
        return _File(content, before.pod if before is not None else None, bad_since)

    def _report_duplicate(self, pod: Pod) -> None:
        message = duplicate_message(pod)
        if message not in self._reported:
            self._reported[message] = None
            log.error("%s", message)
            self._on_duplicate(pod, message)
