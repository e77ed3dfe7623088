"""Unpacks image layers. A layer is hostile input: whatever its entries say, nothing outside `target` is touched.

Parents are walked one name at a time from a directory fd, and a link on the way is resolved as if `target` were `/`, so
neither `..`, nor an absolute name, nor a link leads out. Devices are skipped (containers get theirs from the runtime).
Source of the format: opencontainers/image-spec layer.md.
"""

import errno
import gzip
import hashlib
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import IO, Any, BinaryIO, Protocol, cast

from lastcall.kube.cri.sandbox.images.layout import ImageError

_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_MAX_LINKS = 40  # as the kernel
_MAX_DEPTH = 200  # removing a tree costs a stack frame a directory
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BUFFER = 256 * 1024
_MAX_WINDOW_LOG = 27  # 128 MiB of memory that a zstd frame may ask for, as in containerd
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NeedsMerge(Exception):
    """The layer hides whole directories of the layers below it; a directory of its own cannot say so here."""


class _Reads(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Hashing:
    """Hashes what is read through it; only forwards."""

    def __init__(self, file: _Reads) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._hash.update(data)
        return data

    def drain(self) -> str:
        """Read the rest and answer the digest of everything."""
        while self.read(1 << 20):
            pass
        return f"sha256:{self._hash.hexdigest()}"


class Unzstd:
    """The plain bytes of zstd frames. Raises ValueError when reading a broken one."""

    def __init__(self, compressed: _Reads) -> None:
        zstd = _zstd()
        self._broken: type[Exception] = zstd.ZstdError
        self._stream = zstd.ZstdFile(compressed, options={zstd.DecompressionParameter.window_log_max: _MAX_WINDOW_LOG})

    def read(self, size: int = -1, /) -> bytes:
        try:
            return cast(bytes, self._stream.read(size))
        except self._broken as error:
            raise ValueError(f"zstd: {error}") from error


def _zstd() -> Any:
    """Of the standard library (Python 3.14 and later), or its backport. Raises ImageError without either."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return import_module(name)
    raise ImageError("a layer is compressed with zstd, which this Python was built without: use another one")


def unpack_layer(blob: BinaryIO, digest: str, diff_id: str, target: str) -> None:
    """Unpack one layer (tar, or gzip of it) as a directory of its own for overlayfs: whiteouts are devices 0/0.

    `target` is an empty directory. Its content must not be used when this raises: ImageError for a layer that is
    broken, hostile, or has other bytes than `digest` and `diff_id` say; NeedsMerge for an opaque directory, or where
    whiteout devices cannot be made.
    """
    with _verified(blob, digest, diff_id) as tar, Extractor(target) as extractor:
        for entry in tar:
            parts = split_name(entry.name)
            hidden = hidden_by(parts)
            if hidden is None:
                extractor.extract(tar, entry, parts)
            elif hidden == parts[:-1]:
                raise NeedsMerge(entry.name)
            else:
                extractor.whiteout(hidden)


def merge_layer(open_blob: Callable[[], BinaryIO], digest: str, diff_id: str, target: str) -> None:
    """Apply one layer on top of what is in `target` already. Raises ImageError."""
    with open_blob() as blob, _verified(blob, digest, diff_id) as tar, Extractor(target) as extractor:
        # First everything the layer hides, then what it brings: a whiteout never hides its own layer's files.
        for entry in tar:
            parts = split_name(entry.name)
            hidden = hidden_by(parts)
            if hidden is not None:
                extractor.remove(hidden, children_only=hidden == parts[:-1])
    with open_blob() as blob, _verified(blob, digest, diff_id) as tar, Extractor(target) as extractor:
        for entry in tar:
            parts = split_name(entry.name)
            if hidden_by(parts) is None:
                extractor.extract(tar, entry, parts)


@contextmanager
def _verified(blob: BinaryIO, digest: str, diff_id: str) -> Iterator[tarfile.TarFile]:
    compressed = _Hashing(blob)
    magic = blob.read(4)
    blob.seek(0)
    stream: _Reads = compressed
    if magic.startswith(_GZIP):
        stream = gzip.GzipFile(fileobj=cast(IO[bytes], compressed))
    elif magic.startswith(_ZSTD):
        stream = Unzstd(compressed)
    plain = _Hashing(stream)
    try:
        with tarfile.open(fileobj=cast(IO[bytes], plain), mode="r|", bufsize=_BUFFER, errorlevel=2) as tar:
            yield tar
        unpacked, packed = plain.drain(), compressed.drain()
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError, OverflowError) as error:
        raise ImageError(f"layer {digest} cannot be unpacked: {error}") from error
    except OSError as error:
        raise ImageError(f"layer {digest} cannot be unpacked: {error.strerror or error}") from error
    if packed != digest:
        raise ImageError(f"layer {digest} has other bytes than its digest says ({packed})")
    if unpacked != diff_id:
        raise ImageError(f"layer {digest} unpacks to {unpacked}, the image config says {diff_id}")


def split_name(name: str) -> tuple[str, ...]:
    """Split an entry's name into its components, relative to the root. Raises ImageError for `..` and NUL."""
    if "\0" in name:
        raise ImageError(f"layer entry {name!r}: a NUL in a name")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ImageError(f"layer entry {name!r} points outside the image")
    return parts


def hidden_by(parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the path that a whiteout entry hides, None for other entries; for an opaque marker its directory."""
    if not parts or not parts[-1].startswith(_WHITEOUT):
        return None
    if parts[-1] == _OPAQUE:
        return parts[:-1]
    name = parts[-1].removeprefix(_WHITEOUT)
    if name in ("", ".", ".."):
        raise ImageError(f"layer entry {'/'.join(parts)!r} hides no name")
    return (*parts[:-1], name)


class Extractor:
    """Makes entries below one directory. Ownership is kept where this user namespace has more than one id."""

    def __init__(self, target: str) -> None:
        self._root = os.open(target, _DIRECTORY)
        self._parent: tuple[tuple[str, ...], int] | None = None
        self._closed_directories: list[tuple[tuple[str, ...], int]] = []
        self._change_owner = mapped_ids() > 1

    def __enter__(self) -> "Extractor":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                for parts, mode in self._closed_directories:
                    with self._opened(parts) as fd:
                        os.fchmod(fd, mode)
        finally:
            self._forget_parent()
            os.close(self._root)

    # -- entries -----------------------------------------------------------------------------------------------------

    def extract(self, tar: tarfile.TarFile, entry: tarfile.TarInfo, parts: tuple[str, ...]) -> None:
        """Make one entry, replacing what was there (a directory stays when the entry is one)."""
        mode = entry.mode & 0o7777
        if not parts:
            os.fchmod(self._root, mode | 0o700)
        elif entry.isdir():
            self.directory(parts, mode, entry)
        elif entry.isreg():
            source = tar.extractfile(entry)
            assert source is not None
            self.file(parts, source, mode, entry)
        elif entry.issym():
            self.symlink(parts, entry.linkname, entry)
        elif entry.islnk():
            self._hard_link(parts, split_name(entry.linkname))
        elif entry.isfifo():
            parent, name = self._make_way(parts)
            os.mkfifo(name, mode, dir_fd=parent)
        elif not entry.isdev():
            raise ImageError(f"layer entry {entry.name!r} has the unknown type {entry.type!r}")

    def directory(self, parts: tuple[str, ...], mode: int, entry: tarfile.TarInfo | None = None) -> None:
        parent, name = self._make_way(parts, keep_directory=True)
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
        fd = os.open(name, _DIRECTORY, dir_fd=parent)
        try:
            self._own(fd, entry)
            # A directory without rights for its owner would lock out what is still to come.
            os.fchmod(fd, mode | 0o700)
        finally:
            os.close(fd)
        if mode & 0o700 != 0o700:
            self._closed_directories.append((parts, mode))

    def file(self, parts: tuple[str, ...], source: IO[bytes], mode: int, entry: tarfile.TarInfo | None = None) -> None:
        parent, name = self._make_way(parts)
        fd = os.open(name, _NEW_FILE, 0o600, dir_fd=parent)
        with open(fd, "wb") as file:
            shutil.copyfileobj(source, file, 1 << 18)
            file.flush()
            self._own(fd, entry)  # before the mode: a change of owner clears setuid
            if entry is not None:
                _set_file_capabilities(fd, entry)
                os.utime(fd, (entry.mtime, entry.mtime))
            os.fchmod(fd, mode)

    def symlink(self, parts: tuple[str, ...], target: str, entry: tarfile.TarInfo | None = None) -> None:
        parent, name = self._make_way(parts)
        os.symlink(target, name, dir_fd=parent)
        if entry is not None and self._change_owner and (entry.uid or entry.gid):
            with suppress(OSError):
                os.chown(name, entry.uid, entry.gid, dir_fd=parent, follow_symlinks=False)

    def _hard_link(self, parts: tuple[str, ...], target: tuple[str, ...]) -> None:
        if not target or target == parts:
            raise ImageError(f"layer entry {'/'.join(parts)!r} is a hard link to itself")
        source = os.dup(self._open_parent(target[:-1]))
        try:
            status = os.stat(target[-1], dir_fd=source, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                raise ImageError(f"layer entry {'/'.join(parts)!r} is a hard link to a directory")
            parent, name = self._make_way(parts)
            os.link(target[-1], name, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False)
        finally:
            os.close(source)

    def whiteout(self, parts: tuple[str, ...]) -> None:
        """Hide a name of the layers below: a character device 0/0 (no privilege needed since Linux 5.8)."""
        parent, name = self._make_way(parts)
        try:
            os.mknod(name, stat.S_IFCHR, os.makedev(0, 0), dir_fd=parent)
        except PermissionError as error:
            raise NeedsMerge("/".join(parts)) from error

    def remove(self, parts: tuple[str, ...], *, children_only: bool) -> None:
        """Remove a path of the layers below, or all that is in a directory. A missing one is fine."""
        if not children_only:
            self._make_way(parts)
            return
        with self._opened(parts) as fd:
            for name in sorted(os.listdir(fd)):
                self._remove(fd, name)
        self._forget_parent()  # it may have been inside

    # -- paths -------------------------------------------------------------------------------------------------------

    def _own(self, fd: int, entry: tarfile.TarInfo | None) -> None:
        if entry is not None and self._change_owner and (entry.uid or entry.gid):
            with suppress(OSError):  # an id that is not mapped here
                os.fchown(fd, entry.uid, entry.gid)

    def _make_way(self, parts: tuple[str, ...], *, keep_directory: bool = False) -> tuple[int, str]:
        """The fd of the parent, and the name in it with nothing (or only a directory) there."""
        parent, name = self._open_parent(parts[:-1]), parts[-1]
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return parent, name
        if not (keep_directory and stat.S_ISDIR(status.st_mode)):
            self._remove(parent, name)
            if stat.S_ISDIR(status.st_mode):
                self._forget_parent()  # it may have been inside
                parent = self._open_parent(parts[:-1])
        return parent, name

    @staticmethod
    def _remove(parent: int, name: str) -> None:
        try:
            os.unlink(name, dir_fd=parent)
        except IsADirectoryError:
            shutil.rmtree(name, dir_fd=parent)

    @contextmanager
    def _opened(self, parts: tuple[str, ...]) -> Iterator[int]:
        fd = self._walk(parts)
        try:
            yield fd
        finally:
            os.close(fd)

    def _open_parent(self, parts: tuple[str, ...]) -> int:
        """The fd of a directory, kept open until another one is asked for: entries come directory by directory."""
        if self._parent is None or self._parent[0] != parts:
            fd = self._walk(parts)
            self._forget_parent()
            self._parent = (parts, fd)
        return self._parent[1]

    def _forget_parent(self) -> None:
        if self._parent is not None:
            os.close(self._parent[1])
            self._parent = None

    def _walk(self, parts: tuple[str, ...]) -> int:
        """Open a directory below the root, making what is missing; links are resolved inside the root."""
        queue = list(reversed(parts))
        trail = [os.dup(self._root)]
        links = 0
        try:
            while queue:
                if len(trail) > _MAX_DEPTH:
                    raise ImageError(f"a layer entry is more than {_MAX_DEPTH} directories deep")
                name = queue.pop()
                if name == "..":
                    if len(trail) > 1:
                        os.close(trail.pop())
                    continue
                try:
                    trail.append(self._enter(trail[-1], name))
                except OSError as error:
                    if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                        raise
                    target = _link_target(trail[-1], name)
                    links += 1
                    if target is None or links > _MAX_LINKS:
                        raise ImageError(
                            f"layer entry below {'/'.join(parts)!r}: {name!r} is not a directory"
                        ) from error
                    if target.startswith("/"):
                        while len(trail) > 1:
                            os.close(trail.pop())
                    queue.extend(part for part in reversed(target.split("/")) if part not in ("", "."))
            return trail.pop()
        finally:
            for fd in trail:
                os.close(fd)

    @staticmethod
    def _enter(parent: int, name: str) -> int:
        try:
            return os.open(name, _DIRECTORY, dir_fd=parent)
        except FileNotFoundError:
            os.mkdir(name, 0o755, dir_fd=parent)
            return os.open(name, _DIRECTORY, dir_fd=parent)


def _link_target(parent: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=parent)
    except OSError:
        return None


def _set_file_capabilities(fd: int, entry: tarfile.TarInfo) -> None:
    """File capabilities are an attribute; in a user namespace the kernel binds them to its root."""
    value = entry.pax_headers.get("SCHILY.xattr.security.capability")
    if value:
        with suppress(OSError):
            os.setxattr(fd, "security.capability", value.encode("utf-8", "surrogateescape"))


def mapped_ids() -> int:
    """Count the user ids of this user namespace."""
    with open("/proc/self/uid_map") as file:
        return sum(int(line.split()[2]) for line in file)
