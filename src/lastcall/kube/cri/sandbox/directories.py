"""The directories of containers, made before they are needed."""

# check: allow asyncio.to_thread because blocking work on files of the host runs off the event loop

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from lastcall.kube.cri.sandbox.spread import spread

READY = "ready"
"""The name below the directory of all containers: of those that no container has yet."""
_MOST_READY = 16


class ContainerDirectories:
    """Give each new container an id, and an empty directory of that name below `parent`.

    Directories are spread over the disk. The first one that ext4 places in a group of blocks waits for the disk: 4 to
    100 ms, in which the node would do nothing else. So `run` makes some in advance, in a thread: one at first, more
    once containers follow each other. If none is ready, a new one is placed near its parent, without a wait.
    """

    def __init__(self, parent: str, new_id: Callable[[], str]) -> None:
        self._parent = parent
        self._new_id = new_id
        self._ready: list[str] = []
        self._taken = 0
        self._wanted = asyncio.Event()

    def take(self) -> tuple[str, str]:
        """Return a new id and its directory. Raises OSError."""
        self._taken += 1
        self._wanted.set()
        if self._ready:
            identity = self._ready.pop()
            directory = os.path.join(self._parent, identity)
            os.rename(os.path.join(self._parent, READY, identity), directory)
        else:
            identity = self._new_id()
            directory = os.path.join(self._parent, identity)
            os.makedirs(directory, 0o700)
        return identity, directory

    async def run(self) -> None:
        """Keep directories ready until cancelled. A disk that takes none is for `take` to report."""
        await asyncio.to_thread(self._open)
        while True:
            self._wanted.clear()
            most = min(self._taken + 1, _MOST_READY)
            if 2 * len(self._ready) < most:
                await asyncio.to_thread(self._make_ready, [self._new_id() for _ in range(most - len(self._ready))])
            await self._wanted.wait()

    def _open(self) -> None:
        """Make the place of those that are ready, and take over what an earlier node process left there."""
        ready = os.path.join(self._parent, READY)
        with suppress(OSError):
            os.makedirs(ready, 0o700, exist_ok=True)
            spread(ready)
            self._ready.extend(os.listdir(ready))

    def _make_ready(self, identities: Iterable[str]) -> None:
        with suppress(OSError):
            for identity in identities:
                os.mkdir(os.path.join(self._parent, READY, identity), 0o700)
                self._ready.append(identity)
