"""Writes an image as an archive: an OCI layout in a tar, with the `manifest.json` that `docker load` reads.

`ctr images import`, `docker load`, `podman load`, `kind load image-archive` and `lastcall image import` take it.
"""

import io
import json
import os
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from lastcall.kube.cri.sandbox.images.layout import IMAGE_NAME, INDEX, REF_NAME, Descriptor, ImageError, ImageLayout
from lastcall.kube.cri.sandbox.images.manifest import children


def write_archive(layout: ImageLayout, name: str, manifest: Descriptor, target: Path) -> int:
    """Write one image under its normalised name; return its bytes. Whole or not at all. Raises ImageError."""
    config, layers = children(manifest, layout.document(manifest))
    named = Descriptor(
        manifest.media_type,
        manifest.digest,
        manifest.size,
        {IMAGE_NAME: name, REF_NAME: name.rpartition(":")[2]},
    )
    blobs = {each.digest: each for each in (manifest, config, *layers)}
    docker = [{"Config": _blob(config), "RepoTags": [name], "Layers": [_blob(layer) for layer in layers]}]
    documents: dict[str, Any] = {
        "oci-layout": {"imageLayoutVersion": "1.0.0"},
        "index.json": {"schemaVersion": 2, "mediaType": INDEX, "manifests": [named.render()]},
        "manifest.json": docker,
    }
    temporary = ""
    try:
        fd, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with open(fd, "wb") as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path, value in documents.items():
                data = json.dumps(value, separators=(",", ":")).encode()
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(data), 0o644
                tar.addfile(entry, io.BytesIO(data))
            for blob in blobs.values():
                entry = tarfile.TarInfo(_blob(blob))
                entry.size, entry.mode = blob.size, 0o644
                with layout.open_blob(blob) as source:
                    tar.addfile(entry, source)
        size = os.stat(temporary).st_size
        os.chmod(temporary, 0o644)
        os.rename(temporary, target)
    except OSError as error:
        raise ImageError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        if temporary:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    return size


def _blob(descriptor: Descriptor) -> str:
    return f"blobs/sha256/{descriptor.digest.removeprefix('sha256:')}"
