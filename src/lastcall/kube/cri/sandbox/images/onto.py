"""Makes an image of a base image and one more layer. The base's blobs stay as they are.

Source: opencontainers/image-spec config.md (diff_ids, history) and manifest.md.
"""

import gzip
import re
import tarfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, cast

from lastcall.kube.cri.sandbox.images.build import ImageContent, write_layer
from lastcall.kube.cri.sandbox.images.layers import Unzstd
from lastcall.kube.cri.sandbox.images.layout import (
    CONFIG,
    IMAGE_NAME,
    LAYER,
    MANIFEST,
    Descriptor,
    ImageError,
    ImageLayout,
)
from lastcall.kube.cri.sandbox.images.manifest import check_config, children

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_DOCKER_LAYERS = {
    "application/vnd.docker.image.rootfs.diff.tar": LAYER,
    "application/vnd.docker.image.rootfs.diff.tar.gzip": f"{LAYER}+gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd": f"{LAYER}+zstd",
}
"""Docker's names of the same bytes: a manifest has one family of names."""
_ENV_NAME = re.compile(r"[^=]+")


class Base:
    """The image of this machine that a layout has under `name`. Raises ImageError when it has none, or a broken one."""

    def __init__(self, layout: ImageLayout, name: str) -> None:
        found = next((entry for entry in layout.index() if entry.annotations.get(IMAGE_NAME) == name), None)
        if found is None:
            raise ImageError(f"there is no image {name} here", "ImageNotFound")
        chosen, self.manifest = layout.manifest(found)
        config, self.layers = children(chosen, self.manifest)
        check_config(layout, chosen, config, self.layers, None)
        self.layout, self.name, self.digest = layout, name, chosen.digest
        self.document = layout.document(config)
        inner = self.document.get("config")
        self.config: dict[str, Any] = inner if isinstance(inner, dict) else {}

    @property
    def env(self) -> dict[str, str]:
        """Return its variables."""
        texts = [each for each in self.config.get("Env") or [] if isinstance(each, str)]
        return {name: value for name, _, value in (each.partition("=") for each in texts)}

    def names(self) -> Iterator[str]:
        """Yield the paths of the entries of all its layers, the lowest layer first, hidden ones too. Raises
        ImageError."""
        for layer in self.layers:
            yield from _names(self.layout, layer)


def add_layer(base: Base, name: str, content: ImageContent, made_by: str) -> Descriptor:
    """Store the base with `content` on top under a normalised name; return the manifest.

    Entrypoint and Cmd are replaced by those of `content.config`, its Env is added to the base's. `made_by` is part of
    the image's history. Raises ImageError.
    """
    layout = base.layout
    with layout.keeping(), layout.locked():
        with layout.new_blob(LAYER) as blob:
            write_layer(blob, content.files)
        layer = blob.descriptor()
        document = dict(base.document)
        document["config"] = _config(base, content)
        rootfs = document["rootfs"]
        document["rootfs"] = {**rootfs, "diff_ids": [*rootfs["diff_ids"], layer.digest]}
        history = document.get("history")
        if isinstance(history, list):
            document["history"] = [*history, {"created_by": made_by}]
        config = layout.add_document(CONFIG, document)
        layers = [Descriptor(_oci(each.media_type), each.digest, each.size) for each in base.layers]
        manifest = layout.add_document(
            MANIFEST,
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": config.render(),
                "layers": [each.render() for each in [*layers, layer]],
                "annotations": {
                    "org.opencontainers.image.base.name": base.name,
                    "org.opencontainers.image.base.digest": base.digest,
                },
            },
        )
        layout.put(name, Descriptor(MANIFEST, manifest.digest, manifest.size, dict(content.annotations)))
        return manifest


def _config(base: Base, content: ImageContent) -> dict[str, Any]:
    wanted = content.config
    env = base.env | {name: value for name, _, value in (each.partition("=") for each in wanted.env)}
    merged = {
        **base.config,
        "Env": [f"{name}={value}" for name, value in env.items() if _ENV_NAME.fullmatch(name)],
        "Entrypoint": list(wanted.entrypoint),
        "Cmd": list(wanted.cmd),
        "WorkingDir": wanted.working_dir,
        "User": wanted.user,
    }
    return {key: value for key, value in merged.items() if value}


def _oci(media_type: str) -> str:
    return _DOCKER_LAYERS.get(media_type, media_type)


def _names(layout: ImageLayout, layer: Descriptor) -> Iterator[str]:
    try:
        with layout.open_blob(layer) as blob:
            magic = blob.read(4)
            blob.seek(0)
            plain: Any = blob
            if magic.startswith(_GZIP):
                plain = gzip.GzipFile(fileobj=blob)
            elif magic.startswith(_ZSTD):
                plain = Unzstd(blob)
            with tarfile.open(fileobj=cast(IO[bytes], plain), mode="r|") as tar:
                for entry in tar:
                    yield entry.name.removeprefix("./").strip("/")
    except (tarfile.TarError, EOFError, zlib.error, ValueError, OSError) as error:
        raise ImageError(f"layer {layer.digest} cannot be read: {error}") from error
