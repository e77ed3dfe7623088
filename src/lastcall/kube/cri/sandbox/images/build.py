"""Makes images of files: one layer, byte for byte the same for the same files."""

import io
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import IO, Any, cast

from lastcall.kube.cri.sandbox.images.layout import (
    CONFIG,
    LAYER,
    MANIFEST,
    BlobWriter,
    Descriptor,
    ImageError,
    ImageLayout,
)
from lastcall.kube.cri.sandbox.spec import ImageConfig
from lastcall.world.dataclass import dataclass

Files = Mapping[str, tuple[bytes | str | Path, int]]
"""
Path in the image → (content, mode). Content as bytes is the file's own, as a path it is copied from the host, a
directory with all that is in it. The type bits of mode tell a directory (`stat.S_IFDIR | 0o1777`, content `b""`) and a
symbolic link (`stat.S_IFLNK | 0o777`, content the target) from a file (no type bits).
"""

HOST_BINDS = "lastcall.dev/host-binds"
"""Index annotation: directories of the host that this image consists of, joined by ":". Never taken from a registry."""
MADE_FROM = "lastcall.dev/made-from"
"""Index annotation: what of the host an image was made from."""


@dataclass(frozen=True, slots=True)
class ImageContent:
    """All that an image is made of. `annotations` go into the index, not into the image."""

    files: Files
    config: ImageConfig = field(default_factory=ImageConfig)
    annotations: dict[str, str] = field(default_factory=dict)


def write_image(layout: ImageLayout, name: str, content: ImageContent) -> Descriptor:
    """Store an image under its normalised name; return its manifest. Raises ImageError."""
    with layout.locked():
        with layout.new_blob(LAYER) as blob:
            write_layer(blob, content.files)
        layer = blob.descriptor()
        machine = os.uname().machine
        config = layout.add_document(
            CONFIG,
            {
                "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine),
                "os": "linux",
                "config": render_config(content.config),
                "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
            },
        )
        manifest = layout.add_document(
            MANIFEST,
            {"schemaVersion": 2, "mediaType": MANIFEST, "config": config.render(), "layers": [layer.render()]},
        )
        named = Descriptor(MANIFEST, manifest.digest, manifest.size, dict(content.annotations))
        layout.put(name, named)
        return named


def render_config(config: ImageConfig) -> dict[str, Any]:
    """Return the `config` object of an image configuration; empty fields are left out."""
    value: dict[str, Any] = {
        "Entrypoint": list(config.entrypoint),
        "Cmd": list(config.cmd),
        "Env": list(config.env),
        "WorkingDir": config.working_dir,
        "User": config.user,
        "StopSignal": config.stop_signal,
    }
    return {key: item for key, item in value.items() if item}


def write_layer(blob: BlobWriter, files: Files) -> None:
    """Write files as a tar, the same bytes for the same files. Raises ImageError for one that cannot be read."""
    with tarfile.open(fileobj=cast(IO[bytes], blob), mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(files):
            content, mode = files[path]
            for name, data, kind in _expand(path.strip("/"), content, mode):
                _add(tar, name, data, kind)


def _expand(name: str, content: bytes | str | Path, mode: int) -> Iterator[tuple[str, bytes | str, int]]:
    """One entry, or all of a directory of the host: (name, bytes or host path, type and mode)."""
    if isinstance(content, bytes):
        yield name, content, mode if stat.S_IFMT(mode) else stat.S_IFREG | mode
        return
    source = os.fspath(content)
    try:
        status = os.stat(source)
    except OSError as error:
        raise ImageError(f"cannot read {source}, which is to become {name} of an image: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        yield name, source, stat.S_IFREG | stat.S_IMODE(mode)
        return
    yield name, b"", stat.S_IFDIR | stat.S_IMODE(mode)
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        found = entry.stat(follow_symlinks=False).st_mode
        inner = f"{name}/{entry.name}" if name else entry.name
        if stat.S_ISLNK(found):
            yield inner, os.fsencode(os.readlink(entry.path)), found
        elif stat.S_ISDIR(found) or stat.S_ISREG(found):
            yield from _expand(inner, entry.path, stat.S_IMODE(found))


def _add(tar: tarfile.TarFile, name: str, data: bytes | str, mode: int) -> None:
    if not name:
        return
    entry = tarfile.TarInfo(name)
    entry.mode = stat.S_IMODE(mode)
    if stat.S_ISDIR(mode):
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
    elif stat.S_ISLNK(mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.fsdecode(data)
        tar.addfile(entry)
    elif isinstance(data, bytes):
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
    else:
        try:
            with open(data, "rb") as file:
                entry.size = os.fstat(file.fileno()).st_size
                tar.addfile(entry, file)
        except PermissionError as error:
            raise ImageError(f"cannot read {data}, which is to become {name} of an image: {error.strerror}") from error
