"""An OCI image layout: the directory form in which images are kept.

Content addressed: a blob's name is the digest of its bytes, and what does not have its digest is never used. The index
is replaced in one step, and writers exclude one another with a lock, so that a killed command leaves either the old or
the new state. Source: opencontainers/image-spec image-layout.md.
"""

import fcntl
import hashlib
import json
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Any, BinaryIO, cast

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.sandbox.images.platform import Platform, choose, this_machine
from lastcall.world.dataclass import dataclass
from lastcall.world.files import replace_file, sync_directory

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEXES = (INDEX, DOCKER_LIST)

IMAGE_NAME = "io.containerd.image.name"
"""Index annotation with the whole normalised name, as `ctr image export` writes it."""
REF_NAME = "org.opencontainers.image.ref.name"
PULLED = "lastcall.dev/pulled"
"""Index annotation: when an image came from its registry. Images without it were made or imported here."""

MAX_DOCUMENT = 4 * 1024 * 1024
"""Bytes of a manifest, index or config at most, as in containerd."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


MAX_NESTING = 4
"""Indexes of indexes of images, at most."""


class ImageError(RuntimeServiceError):
    """An image is broken, hostile, or cannot be stored; the text says what and where."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """`digest` is `sha256:<64 hex digits>`, `size` bytes."""

    media_type: str
    digest: str
    size: int
    annotations: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(value: Any) -> "Descriptor":
        """Parse a descriptor. Raises ImageError for anything but one with a sha256 digest."""
        if not isinstance(value, dict) or not _DIGEST.fullmatch(str(value.get("digest", ""))):
            raise ImageError(f"not a descriptor with a sha256 digest: {json.dumps(value)[:200]}")
        size = value.get("size")
        if not isinstance(size, int) or size < 0:
            raise ImageError(f"descriptor {value['digest']}: size {size!r} is not a number of bytes")
        annotations = value.get("annotations") or {}
        if not isinstance(annotations, dict):
            raise ImageError(f"descriptor {value['digest']}: annotations is not an object")
        texts = {str(key): str(text) for key, text in annotations.items()}
        return Descriptor(str(value.get("mediaType", "")), value["digest"], size, texts)

    def render(self) -> dict[str, Any]:
        result: dict[str, Any] = {"mediaType": self.media_type, "digest": self.digest, "size": self.size}
        return result | ({"annotations": self.annotations} if self.annotations else {})


class ImageLayout:
    """One layout directory. Reading one that is not there finds no images; the first write makes it."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self._thread_lock = threading.RLock()
        self._depth = 0
        self._lock_file = -1

    # -- reading -----------------------------------------------------------------------------------------------------

    def version(self) -> tuple[int, int]:
        """Return a value that changes whenever the index changes."""
        try:
            status = os.stat(self.root / "index.json")
        except OSError:
            return (0, 0)
        return (status.st_mtime_ns, status.st_ino)

    def index(self) -> list[Descriptor]:
        """Return the images' manifests, with their names as annotations. Raises ImageError for an unreadable index."""
        path = self.root / "index.json"
        try:
            value = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []  # no store yet, or another user's: no images
        except (OSError, ValueError) as error:
            raise ImageError(f"cannot read the image store's index {path}: {error}") from error
        manifests = value.get("manifests") if isinstance(value, dict) else None
        if not isinstance(manifests, list):
            raise ImageError(f"{path}: manifests is not a list")
        return [Descriptor.parse(manifest) for manifest in manifests]

    def document(self, descriptor: Descriptor) -> dict[str, Any]:
        """Read a manifest, index or config, and verify its digest. Raises ImageError."""
        if descriptor.size > MAX_DOCUMENT:
            raise ImageError(f"{descriptor.digest}: {descriptor.size} bytes is too much for a manifest or config")
        with self.open_blob(descriptor) as blob:
            data = blob.read(MAX_DOCUMENT + 1)
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != descriptor.digest:
            raise ImageError(
                f"blob {descriptor.digest} in {self.root} is damaged: it has other bytes than its digest says"
            )
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ImageError(f"blob {descriptor.digest} in {self.root} is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise ImageError(f"blob {descriptor.digest} in {self.root} is not a JSON object")
        return cast(dict[str, Any], value)

    def has(self, descriptor: Descriptor) -> bool:
        """Return whether the blob exists; only what had its digest was ever given its name."""
        try:
            return os.stat(self.blob_path(descriptor.digest)).st_size == descriptor.size
        except OSError:
            return False

    def writable(self) -> bool:
        """Return whether this process may write here, or make the directory; changes nothing."""
        place = self.root
        while not place.exists() and place != place.parent:
            place = place.parent
        return place.is_dir() and os.access(place, os.W_OK | os.X_OK)

    def occupied(self) -> int:
        """Return the bytes of all blobs and downloads."""
        total = 0
        for directory in ("blobs/sha256", "downloads"):
            with suppress(OSError), os.scandir(self.root / directory) as entries:
                total += sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
        return total

    def touch(self, digest: str) -> None:
        """Note that an image is used now: the modification time of its manifest tells when it was last used."""
        with suppress(OSError):
            os.utime(self.blob_path(digest))

    def last_used(self, digest: str) -> float:
        """Return the seconds since the epoch of the last use; 0 if its manifest does not exist."""
        try:
            return os.stat(self.blob_path(digest)).st_mtime
        except OSError:
            return 0.0

    def manifest(self, descriptor: Descriptor) -> tuple[Descriptor, dict[str, Any]]:
        """Return the image manifest for this machine, and its own descriptor; looks into an index of platforms."""
        value = self.document(descriptor)
        for _ in range(MAX_NESTING):
            if descriptor.media_type not in INDEXES:
                return descriptor, value
            descriptor = choose_manifest(descriptor.digest, value)
            value = self.document(descriptor)
        raise ImageError(f"{descriptor.digest}: image indexes are nested more than {MAX_NESTING} deep")

    def open_blob(self, descriptor: Descriptor) -> BinaryIO:
        """Open the blob, whose bytes are not verified: the reader hashes what it reads. Raises ImageError."""
        path = self.blob_path(descriptor.digest)
        try:
            return open(path, "rb")
        except OSError as error:
            raise ImageError(f"the image store lacks blob {descriptor.digest}: {error}") from error

    def blob_path(self, digest: str) -> Path:
        """Return where a blob is, or will be."""
        return self.root / "blobs" / "sha256" / digest.removeprefix("sha256:")

    # -- writing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def new_blob(self, media_type: str) -> Iterator["BlobWriter"]:
        """Write a blob; it gets its name when the block ends without an error. Raises ImageError."""
        with self._writing():
            directory = self.root / "blobs" / "sha256"
            directory.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=directory)
            try:
                with open(descriptor, "wb") as file:
                    writer = BlobWriter(file, media_type)
                    yield writer
                    file.flush()
                    os.fsync(file.fileno())
                os.chmod(temporary, 0o644)
                os.rename(temporary, self.blob_path(writer.descriptor().digest))
                sync_directory(str(directory))
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
                raise

    def add_document(self, media_type: str, value: dict[str, Any]) -> Descriptor:
        """Store a JSON document as a blob."""
        with self.new_blob(media_type) as blob:
            blob.write(json.dumps(value, separators=(",", ":")).encode())
        return blob.descriptor()

    def put(self, name: str, descriptor: Descriptor) -> None:
        """Give a manifest a name; another image of this name loses it. Raises ImageError."""
        tag = "" if "@" in name else name.rpartition(":")[2]
        named = Descriptor(
            descriptor.media_type,
            descriptor.digest,
            descriptor.size,
            {**descriptor.annotations, IMAGE_NAME: name, **({REF_NAME: tag} if tag else {})},
        )
        with self.locked():
            self._write_index([*(d for d in self.index() if d.annotations.get(IMAGE_NAME) != name), named])

    def remove(self, digest: str, name: str = "") -> None:
        """Remove one name, or without `name` all names, of a manifest, and drop the blobs nobody needs any more."""
        with self.locked():
            kept = [
                entry
                for entry in self.index()
                if entry.digest != digest or (name and entry.annotations.get(IMAGE_NAME) != name)
            ]
            self._write_index(kept)
            self.collect()

    def collect(self) -> "Collected":
        """Drop the blobs that no image of the index needs, and downloads that nobody continues. Raises ImageError.

        Not while a process writes blobs that no name refers to yet: those are counted as `busy`.
        """
        with self.locked(), self._alone() as alone:
            if not alone:
                return Collected(busy=True)
            used = self._used(self.index())
            blobs, freed = 0, 0
            for directory in ("blobs/sha256", "downloads"):
                with suppress(FileNotFoundError, NotADirectoryError):
                    for name in sorted(os.listdir(self.root / directory)):
                        path = self.root / directory / name
                        if directory.startswith("blobs") and f"sha256:{name}" in used:
                            continue
                        freed += os.lstat(path).st_size
                        blobs += 1
                        os.unlink(path)
            return Collected(blobs, freed)

    def _used(self, kept: list[Descriptor]) -> set[str]:
        used: set[str] = set()
        for entry in kept:
            used.add(entry.digest)
            try:
                chosen, manifest = self.manifest(entry)
                children = [manifest.get("config"), *(manifest.get("layers") or [])]
                used |= {chosen.digest, *(Descriptor.parse(child).digest for child in children)}
                if entry.media_type in INDEXES:
                    # Whatever else of the index is here, such as a nested one.
                    entries = self.document(entry).get("manifests") or []
                    used |= {str(each.get("digest")) for each in entries if isinstance(each, dict)}
            except ImageError:
                continue
        return used

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Hold the layout while blobs are written and named: nobody collects meanwhile. Raises ImageError."""
        fd = self._open_lock(".writers")
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
            yield
        finally:
            os.close(fd)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        fd = self._open_lock(".writers")
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(fd)

    def _open_lock(self, name: str) -> int:
        with self._writing():
            self.root.mkdir(parents=True, exist_ok=True)
            return os.open(self.root / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _write_index(self, manifests: list[Descriptor]) -> None:
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry.render() for entry in manifests]}
        self._replace("oci-layout", {"imageLayoutVersion": "1.0.0"})
        self._replace("index.json", index)

    def _replace(self, name: str, value: dict[str, Any]) -> None:
        data = json.dumps(value, separators=(",", ":")).encode()
        replace_file(f"{self.root}/{name}", data, temporary=f"{self.root}/.{name}.new", mode=0o644, durable=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers, also of other processes, out: around all that belongs to one change. Reentrant."""
        with self._thread_lock, self._writing():
            self._depth += 1
            try:
                if self._depth == 1:
                    self._lock_file = self._open_lock(".lock")
                    fcntl.flock(self._lock_file, fcntl.LOCK_EX)
                yield
            finally:
                self._depth -= 1
                if self._depth == 0 and self._lock_file >= 0:
                    os.close(self._lock_file)
                    self._lock_file = -1

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ImageError(f"cannot write to the image store {self.root}: {error.strerror or error}") from error


def choose_manifest(digest: str, index: dict[str, Any], platform: Platform | None = None) -> Descriptor:
    """Choose what an image index has for a platform (None: this machine's). Raises ImageError."""
    entries = index.get("manifests")
    wanted = platform or this_machine()
    entry = choose(entries, wanted) if isinstance(entries, list) else None
    if entry is None:
        raise ImageError(f"no match for platform {wanted} in manifest {digest}: not found", "ImageNotFound")
    return Descriptor.parse(entry)


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection freed: blobs, bytes. `busy`: a process was writing, so nothing was looked at."""

    blobs: int = 0
    size: int = 0
    busy: bool = False


class BlobWriter:
    """Counts and hashes what goes into a blob."""

    def __init__(self, file: BinaryIO, media_type: str) -> None:
        self._file = file
        self._media_type = media_type
        self._hash = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self._size += len(data)
        return self._file.write(data)

    def descriptor(self) -> Descriptor:
        """Return the descriptor of what was written so far."""
        return Descriptor(self._media_type, f"sha256:{self._hash.hexdigest()}", self._size)
