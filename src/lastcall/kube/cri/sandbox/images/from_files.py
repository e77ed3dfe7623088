"""Takes images out of files: OCI layouts (a directory or a tar) and `docker save` archives, gzip or not.

An archive is hostile input: its links lead nowhere outside of it, and every blob is compared with its digest.
Sources: opencontainers/image-spec image-layout.md, moby image/tarexport.
"""

import gzip
import io
import json
import os
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.sandbox.images.build import MADE_FROM
from lastcall.kube.cri.sandbox.images.layers import Unzstd
from lastcall.kube.cri.sandbox.images.layout import (
    CONFIG,
    IMAGE_NAME,
    INDEXES,
    LAYER,
    MANIFEST,
    MAX_DOCUMENT,
    MAX_NESTING,
    REF_NAME,
    Descriptor,
    ImageError,
    ImageLayout,
    choose_manifest,
)
from lastcall.kube.cri.sandbox.images.manifest import check_config, children, manifest_kind
from lastcall.kube.cri.sandbox.images.platform import Platform
from lastcall.kube.cri.sandbox.images.reference import parse_reference
from lastcall.world.dataclass import dataclass

STDIN = "-"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_MAX_ENTRIES = 100_000
_MAX_LINKS = 10
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Imported:
    """An image that is in the store now."""

    name: str
    digest: str


class _Files(Protocol):
    """The files of a directory or a tar."""

    def has(self, name: str) -> bool: ...
    def open(self, name: str) -> BinaryIO:
        """Raises ImageError."""
        ...


def import_images(
    layout: ImageLayout,
    source: str,
    *,
    name: str = "",
    platform: Platform | None = None,
    stdin: BinaryIO | None = None,
    on_bytes: Callable[[int], None] = lambda size: None,
) -> list[Imported]:
    """Import every image of `source` (a path, or "-" for `stdin`) into the layout.

    `on_bytes` gets the number of bytes that are written already. `name` is for an archive with one image, which then
    has that name only. Raises ImageError, and RuntimeServiceError with reason InvalidImageName for an invalid name.
    """
    shown = "stdin" if source == STDIN else source
    wanted = str(parse_reference(name)) if name else ""
    if "@" in wanted:
        raise RuntimeServiceError(f"image name {name!r} must not have a digest; use NAME:TAG", "InvalidImageName")
    with layout.keeping(), _opened(layout, source, stdin) as files:
        importer = _Importer(layout, files, shown, platform, on_bytes)
        if files.has("index.json") and files.has("oci-layout"):
            found = importer.oci_layout()
        elif files.has("manifest.json"):
            found = importer.docker_archive()
        else:
            raise ImageError(
                f"{shown} has no images: neither an OCI layout (index.json) nor a `docker save` archive (manifest.json)"
            )
        if not found:
            raise ImageError(f"{shown} has no images")
        if wanted:
            if len({image.digest for _, image in found}) > 1:
                names = ", ".join(sorted(known for known, _ in found if known))
                raise ImageError(f"{shown} has several images ({names}): one name cannot be theirs; leave --name away")
            found = [(wanted, found[0][1])]
        nameless = [digest for known, digest in found if not known]
        if nameless and len(nameless) == len(found):
            raise ImageError(f"{shown}: image {nameless[0].digest} has no name in there; give it one with --name")
        named = [(known, digest) for known, digest in found if known]
        for known, descriptor in named:
            layout.put(known, descriptor)
    return [Imported(known, descriptor.digest) for known, descriptor in named]


class _Importer:
    def __init__(
        self,
        layout: ImageLayout,
        files: _Files,
        shown: str,
        platform: Platform | None,
        on_bytes: Callable[[int], None],
    ) -> None:
        self._on_bytes = on_bytes
        self._written = 0
        self._layout = layout
        self._files = files
        self._shown = shown
        self._platform = platform
        self._annotations = {MADE_FROM: f"an archive, {Path(shown).name}"}

    # -- OCI layout --------------------------------------------------------------------------------------------------

    def oci_layout(self) -> list[tuple[str, Descriptor]]:
        """(name, "" for none; manifest) of every image."""
        index = self._json("index.json")
        entries = index.get("manifests") if isinstance(index, dict) else None
        if not isinstance(entries, list):
            raise ImageError(f"{self._shown}: index.json: manifests is not a list")
        found = []
        for entry in map(Descriptor.parse, entries):
            texts = (entry.annotations.get(IMAGE_NAME, ""), entry.annotations.get(REF_NAME, ""))
            # A reference name without a slash is a tag, or anything else its maker liked.
            text = texts[0] or (texts[1] if "/" in texts[1] else "")
            found.append((self._name(text) if text else "", self._image(entry)))
        return found

    def _image(self, entry: Descriptor) -> Descriptor:
        """Copy an image with all it consists of; what the index is to have of it."""
        top = chosen = self._manifest(entry)
        for _ in range(MAX_NESTING):
            if chosen.media_type not in INDEXES:
                break
            chosen = self._manifest(choose_manifest(chosen.digest, self._layout.document(chosen), self._platform))
        else:
            raise ImageError(f"{self._shown}: image indexes are nested more than {MAX_NESTING} deep")
        config, layers = children(chosen, self._layout.document(chosen))
        for blob in [config, *layers]:
            self._copy(blob)
        check_config(self._layout, chosen, config, layers, self._platform)
        named = top if self._platform is None else chosen
        return Descriptor(named.media_type, named.digest, named.size, dict(self._annotations))

    def _manifest(self, descriptor: Descriptor) -> Descriptor:
        if descriptor.size > MAX_DOCUMENT:
            raise ImageError(f"{self._shown}: manifest {descriptor.digest} of {descriptor.size} bytes is too much")
        self._copy(descriptor)
        with self._layout.open_blob(descriptor) as blob:
            kind = manifest_kind(blob.read(MAX_DOCUMENT + 1), descriptor.media_type, descriptor.digest)
        return Descriptor(kind, descriptor.digest, descriptor.size)

    def _copy(self, descriptor: Descriptor) -> None:
        if self._layout.has(descriptor):
            return
        with self._files.open(f"blobs/sha256/{descriptor.digest.removeprefix('sha256:')}") as source:
            copied = self._write(source, descriptor.media_type, descriptor)
        assert copied.digest == descriptor.digest

    def _write(self, source: BinaryIO, media_type: str, expected: Descriptor | None = None) -> Descriptor:
        with _import_errors(self._shown), self._layout.new_blob(media_type) as blob:
            while chunk := source.read(_CHUNK):
                blob.write(chunk)
                self._written += len(chunk)
                self._on_bytes(self._written)
            written = blob.descriptor()
            if expected is not None and written.digest != expected.digest:
                raise ImageError(f"{self._shown}: blob {expected.digest} has other bytes than its digest says")
        return written

    # -- docker save -------------------------------------------------------------------------------------------------

    def docker_archive(self) -> list[tuple[str, Descriptor]]:
        """(name, "" for none; manifest) of every image, one for each of its tags."""
        entries = self._json("manifest.json")
        if not isinstance(entries, list):
            raise ImageError(f"{self._shown}: manifest.json is not a list")
        found: list[tuple[str, Descriptor]] = []
        for entry in entries:
            if not isinstance(entry, dict):
                raise ImageError(f"{self._shown}: manifest.json: an entry is not an object")
            tags, layers, config = entry.get("RepoTags") or [], entry.get("Layers") or [], entry.get("Config")
            lists = isinstance(tags, list) and isinstance(layers, list)
            if not lists or not all(isinstance(text, str) for text in [*tags, *layers, config]):
                raise ImageError(f"{self._shown}: manifest.json: Config, Layers and RepoTags are not texts")
            image = self._docker_image(str(config), layers)
            found += [(self._name(tag), image) for tag in tags] or [("", image)]
        return found

    def _docker_image(self, config_name: str, layer_names: list[str]) -> Descriptor:
        with self._files.open(config_name) as source:
            data = source.read(MAX_DOCUMENT + 1)
        if len(data) > MAX_DOCUMENT:
            raise ImageError(f"{self._shown}: {config_name} has more than {MAX_DOCUMENT} bytes")
        config = self._write(io.BytesIO(data), CONFIG)
        layers = []
        for name in layer_names:
            with self._files.open(name) as source:
                layers.append(self._write(source, LAYER))
        value = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.render(),
            "layers": [layer.render() for layer in layers],
        }
        manifest = self._layout.add_document(MANIFEST, value)
        check_config(self._layout, manifest, config, layers, self._platform)
        return Descriptor(MANIFEST, manifest.digest, manifest.size, dict(self._annotations))

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _name(self, text: str) -> str:
        reference = parse_reference(text)
        if reference.digest:
            raise ImageError(f"{self._shown}: image name {text!r} has a digest; give it a name with --name")
        return str(reference)

    def _json(self, name: str) -> Any:
        with _import_errors(self._shown), self._files.open(name) as file:
            data = file.read(MAX_DOCUMENT + 1)
        if len(data) > MAX_DOCUMENT:
            raise ImageError(f"{self._shown}: {name} has more than {MAX_DOCUMENT} bytes")
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ImageError(f"{self._shown}: {name} is not JSON") from error


class _Directory:
    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)

    def has(self, name: str) -> bool:
        return os.path.isfile(os.path.join(self._root, name))

    def open(self, name: str) -> BinaryIO:
        path = os.path.realpath(os.path.join(self._root, name))
        if os.path.commonpath([path, self._root]) != self._root:
            raise ImageError(f"{self._root}: {name} points outside of it")
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                os.close(fd)
                raise ImageError(f"{self._root}: {name} is not a file")
            return os.fdopen(fd, "rb")
        except OSError as error:
            raise ImageError(f"{self._root} lacks {name}: {error.strerror}") from error


class _Archive:
    """A tar that can be read anywhere. Links stay inside of it; of two entries of one name the later counts."""

    def __init__(self, shown: str, file: BinaryIO) -> None:
        self._shown = shown
        self._tar = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 (as long as the file is open)
        self._entries: dict[str, tarfile.TarInfo] = {}
        for number, entry in enumerate(self._tar):
            if number >= _MAX_ENTRIES:
                raise ImageError(f"{shown} has more than {_MAX_ENTRIES} entries")
            self._entries[os.path.normpath(entry.name)] = entry

    def has(self, name: str) -> bool:
        return os.path.normpath(name) in self._entries

    def open(self, name: str) -> BinaryIO:
        path = os.path.normpath(name)
        for _ in range(_MAX_LINKS):
            entry = self._entries.get(path)
            if entry is None:
                raise ImageError(f"{self._shown} lacks {name}")
            if entry.isreg():
                file = self._tar.extractfile(entry)
                assert file is not None
                return cast(BinaryIO, file)
            if entry.issym():
                path = os.path.normpath(os.path.join(os.path.dirname(path), entry.linkname))
            elif entry.islnk():
                path = os.path.normpath(entry.linkname)
            else:
                break
        raise ImageError(f"{self._shown}: {name} is not a file")


@contextmanager
def _opened(layout: ImageLayout, source: str, stdin: BinaryIO | None) -> Iterator[_Files]:
    if source != STDIN and os.path.isdir(source):
        yield _Directory(source)
        return
    shown = "stdin" if source == STDIN else source
    with _import_errors(shown), _raw(source, stdin) as raw, tempfile.TemporaryFile(dir=layout.root) as spooled:
        magic = raw.peek(4)[:4]
        file: BinaryIO
        if magic.startswith((_GZIP, _ZSTD)) or not raw.seekable():
            plain: Any = raw
            if magic.startswith(_GZIP):
                plain = gzip.GzipFile(fileobj=raw)
            elif magic.startswith(_ZSTD):
                plain = Unzstd(raw)
            shutil.copyfileobj(plain, spooled, _CHUNK)
            spooled.seek(0)
            file = cast(BinaryIO, spooled)
        else:
            file = cast(BinaryIO, raw)
        yield _Archive(shown, file)


@contextmanager
def _raw(source: str, stdin: BinaryIO | None) -> Iterator[io.BufferedReader]:
    if source == STDIN:
        if stdin is None:
            raise ImageError("there is no stdin to read an archive from")
        yield stdin if isinstance(stdin, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stdin))
        return
    try:
        file = open(source, "rb")  # noqa: SIM115
    except OSError as error:
        raise ImageError(f"cannot read {source}: {error.strerror}") from error
    with file:
        yield file


@contextmanager
def _import_errors(shown: str) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        why = "an empty file" if isinstance(error, tarfile.ReadError) and "empty" in str(error) else str(error)
        raise ImageError(f"{shown} is not an archive of images: {why}") from error
    except OSError as error:
        raise ImageError(f"cannot import {shown}: {error.strerror or error}") from error
