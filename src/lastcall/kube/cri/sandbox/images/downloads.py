"""Blobs on their way into an image layout: one writer each, kept when it is cut off, named only with the right digest.

`downloads/<hex digits>` holds what came so far; its writer holds its flock, so that two clusters that pull the
same layer at once fetch it once. A killed writer leaves a beginning that the next one continues.
"""

# check: allow asyncio.to_thread because blocking work on files of the host runs off the event loop

import asyncio
import errno
import fcntl
import hashlib
import os
from contextlib import suppress
from pathlib import Path

from lastcall.kube.cri.sandbox.images.layout import Descriptor, ImageError, ImageLayout
from lastcall.world.files import sync_directory


class Download:
    """One blob, locked. `offset` bytes of it are here."""

    def __init__(self, layout: ImageLayout, descriptor: Descriptor, path: Path, fd: int) -> None:
        self._layout = layout
        self._descriptor = descriptor
        self._path = path
        self._fd = fd
        self._hash = hashlib.sha256()
        self.offset = 0

    @staticmethod
    def begin(layout: ImageLayout, descriptor: Descriptor) -> "Download | None":
        """Return None while another process downloads it. Raises ImageError when nothing can be written here."""
        directory = layout.root / "downloads"
        path = directory / descriptor.digest.removeprefix("sha256:")
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _failed(layout, error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It may have been finished, or thrown away, between the open and the lock.
            if os.fstat(fd).st_nlink and os.path.samestat(os.fstat(fd), os.stat(path)):
                return Download(layout, descriptor, path, fd)
        except (BlockingIOError, FileNotFoundError):
            pass
        except OSError as error:
            os.close(fd)
            raise _failed(layout, error) from error
        os.close(fd)
        return None

    async def resume(self) -> None:
        """Hash what an earlier attempt left."""
        await asyncio.to_thread(self._rehash)

    def _rehash(self) -> None:
        size = os.fstat(self._fd).st_size
        if size > self._descriptor.size:
            self.restart()
            return
        while self.offset < size and (data := os.pread(self._fd, 1 << 20, self.offset)):
            self._hash.update(data)
            self.offset += len(data)

    def restart(self) -> None:
        """Forget what is here."""
        os.ftruncate(self._fd, 0)
        self._hash, self.offset = hashlib.sha256(), 0

    def write(self, data: bytes) -> None:
        """Write data. Raises ImageError for more bytes than the blob has, and if they cannot be written."""
        if self.offset + len(data) > self._descriptor.size:
            self.restart()
            raise ImageError(
                f"blob {self._descriptor.digest} has more than the {self._descriptor.size} bytes it should"
            )
        self._hash.update(data)
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(self._fd, view, self.offset)
                self.offset += written
                view = view[written:]
        except OSError as error:
            raise _failed(self._layout, error) from error

    @property
    def complete(self) -> bool:
        return self.offset == self._descriptor.size

    @property
    def digest(self) -> str:
        """Return the digest of the bytes that are here."""
        return f"sha256:{self._hash.hexdigest()}"

    async def commit(self) -> None:
        """Give the blob its name. The caller has compared the digest."""
        await asyncio.to_thread(self._commit)

    def _commit(self) -> None:
        target = self._layout.blob_path(self._descriptor.digest)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.fsync(self._fd)
            os.fchmod(self._fd, 0o644)
            os.rename(self._path, target)
            sync_directory(str(target.parent))
        except OSError as error:
            raise _failed(self._layout, error) from error

    def close(self) -> None:
        """Close the download; an empty one leaves nothing."""
        if self.offset == 0:
            with suppress(OSError):
                if os.path.samestat(os.fstat(self._fd), os.stat(self._path)):
                    os.unlink(self._path)
        os.close(self._fd)


def _failed(layout: ImageLayout, error: OSError) -> ImageError:
    hint = "; `lastcall image prune` frees some" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return ImageError(f"cannot write to the image store {layout.root}: {error.strerror}{hint}")
