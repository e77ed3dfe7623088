"""Which images are unpacked on this node, and what it takes to take one away.

The layouts keep images as they came; what a node has of its own is their layers, unpacked into the cluster's tmpfs,
each once for all images that have it. `i<digest>.json` beside them says which image is made of which directories, so
that the next node process knows, also of an image whose name has gone from its layout meanwhile. Directories appear and
go whole: what is being filled or emptied has a name with a dot, and is swept away by the next process.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from lastcall.kube.cri.api import Image
from lastcall.kube.cri.sandbox.images.layout import ImageError
from lastcall.world.dataclass import dataclass
from lastcall.world.files import replace_file

_FILLING, _EMPTYING = ".unpacking-", ".removing-"
_RECORD = "i{}.json"
_DIGITS = 32
_LAYER = re.compile(r"[lm][0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class UnpackedImage:
    """`directories` are names below the root, the uppermost layer first; `size` is what they take, in bytes."""

    manifest_digest: str
    id: str
    repo_tags: tuple[str, ...]
    repo_digests: tuple[str, ...]
    directories: tuple[str, ...]
    size: int
    pinned: bool = False

    def is_called(self, name: str) -> bool:
        """Return whether a name means it: id (with or without `sha256:`), manifest digest, tag or digest."""
        return name in (self.id, self.id.removeprefix("sha256:"), self.manifest_digest, *self.repo_tags) or (
            name in self.repo_digests
        )

    def image(self) -> Image:
        """Return the image as CRI lists it."""
        return Image(self.id, self.repo_tags, self.repo_digests, self.size, pinned=self.pinned)


class UnpackedImages:
    """The images below `root`. Not thread-safe: the image store calls with its lock held."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._images: dict[str, UnpackedImage] | None = None

    def find(self, manifest_digest: str) -> tuple[str, ...] | None:
        """Return the lower directories of an image, the uppermost first; None if it is not unpacked."""
        image = self._known().get(manifest_digest)
        return None if image is None else tuple(str(self._root / name) for name in image.directories)

    def all(self) -> list[UnpackedImage]:
        return list(self._known().values())

    def add(self, image: Image, manifest_digest: str, directories: tuple[str, ...], *, pinned: bool) -> None:
        """Record an image whose directories exist. Raises OSError."""
        names = tuple(os.path.basename(path) for path in directories)
        size = sum(disk_usage(path) for path in dict.fromkeys(directories))
        unpacked = UnpackedImage(manifest_digest, image.id, image.repo_tags, image.repo_digests, names, size, pinned)
        target = self._record(manifest_digest)
        replace_file(target, orjson.dumps(unpacked), temporary=f"{target}.tmp")
        self._known()[manifest_digest] = unpacked

    def remove(self, manifest_digest: str) -> None:
        """Remove an image, with the layers that no other one has. Raises OSError."""
        image = self._known().pop(manifest_digest, None)
        if image is None:
            return
        with suppress(FileNotFoundError):
            os.unlink(self._record(manifest_digest))
        needed = {name for other in self._known().values() for name in other.directories}
        for name in dict.fromkeys(image.directories):
            if name not in needed:
                _empty(self._root, name)

    def fill(self, name: str, fill: Callable[[str], None]) -> str:
        """Return the path of a directory that `fill` fills completely, or not at all. Raises ImageError."""
        final = self._root / name
        if final.is_dir():
            return str(final)
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            temporary = tempfile.mkdtemp(prefix=_FILLING, dir=self._root)
            os.chmod(temporary, 0o755)  # noqa: S103 (a container's other users read it)
        except OSError as error:
            raise ImageError(f"cannot unpack images into {self._root}: {error.strerror}") from error
        try:
            fill(temporary)
            os.rename(temporary, final)
        except BaseException as error:
            shutil.rmtree(temporary, ignore_errors=True)
            if isinstance(error, OSError):
                raise ImageError(f"cannot unpack images into {self._root}: {error.strerror}") from error
            raise
        return str(final)

    def _record(self, manifest_digest: str) -> str:
        return f"{self._root}/{_RECORD.format(manifest_digest.removeprefix('sha256:')[:_DIGITS])}"

    def _known(self) -> dict[str, UnpackedImage]:
        if self._images is None:
            self._images = {}
            self._load()
        return self._images

    def _load(self) -> None:
        """What an earlier process left: images all of whose layers are there; half of anything goes."""
        assert self._images is not None
        try:
            names = sorted(os.listdir(self._root))
        except OSError:
            return
        for name in names:
            if name.startswith((_FILLING, _EMPTYING)):
                shutil.rmtree(self._root / name, ignore_errors=True)
            elif name.startswith("i") and name.endswith(".json"):
                image = _read(self._root / name)
                if image is not None and all((self._root / each).is_dir() for each in image.directories):
                    self._images[image.manifest_digest] = image
        needed = {name for image in self._images.values() for name in image.directories}
        for name in names:
            if _LAYER.fullmatch(name) and name not in needed:  # the process died before it knew of whose it was
                _empty(self._root, name)


def _read(path: Path) -> UnpackedImage | None:
    try:
        value: dict[str, Any] = orjson.loads(path.read_bytes())
        fields: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in value.items()}
        return UnpackedImage(**fields)
    except (OSError, TypeError, ValueError):
        return None


def _empty(root: Path, name: str) -> None:
    """In two steps: nobody finds half a layer."""
    temporary = root / f"{_EMPTYING}{name}"
    try:
        os.rename(root / name, temporary)
    except FileNotFoundError:
        return
    shutil.rmtree(temporary, ignore_errors=True)


def disk_usage(directory: str) -> int:
    """Return the bytes that the files of a tree take, each once. Links are not followed."""
    seen: dict[tuple[int, int], int] = {}
    waiting = [directory]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                seen[status.st_dev, status.st_ino] = status.st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return sum(seen.values())
