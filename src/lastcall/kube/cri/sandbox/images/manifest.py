"""What a manifest must be before anything of it is fetched or copied. A manifest is hostile input."""

import json
from typing import Any

from lastcall.kube.cri.sandbox.images.layout import (
    DOCKER_MANIFEST,
    INDEX,
    INDEXES,
    MANIFEST,
    MAX_DOCUMENT,
    Descriptor,
    ImageError,
    ImageLayout,
)
from lastcall.kube.cri.sandbox.images.platform import Platform, platform_of, rank, this_machine

MAX_LAYERS = 512
_SCHEMA_1 = (
    "application/vnd.docker.distribution.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v1+prettyjws",
)


def children(chosen: Descriptor, manifest: dict[str, Any]) -> tuple[Descriptor, list[Descriptor]]:
    """Return the config and the layers of an image manifest. Raises ImageError."""
    layers = manifest.get("layers")
    if not isinstance(layers, list) or len(layers) > MAX_LAYERS:
        raise ImageError(f"manifest {chosen.digest}: layers is not a list of at most {MAX_LAYERS} layers")
    config = Descriptor.parse(manifest.get("config"))
    if config.size > MAX_DOCUMENT:
        raise ImageError(
            f"manifest {chosen.digest}: its config has {config.size} bytes, and at most {MAX_DOCUMENT} are read"
        )
    return config, [Descriptor.parse(layer) for layer in layers]


def manifest_kind(data: bytes, media_type: str, digest: str) -> str:
    """Return the media type of a manifest, from its content. Raises ImageError if it is two things, or neither.

    Source: containerd core/images/image.go:validateMediaType (GHSA-77vh-xpmg-72qh).
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ImageError(f"manifest {digest} is not JSON") from error
    if not isinstance(value, dict):
        raise ImageError(f"manifest {digest} is not a JSON object")
    if media_type in _SCHEMA_1 or value.get("schemaVersion") == 1:
        raise ImageError(f"manifest {digest} has Docker's schema 1, which nothing reads any more; push the image anew")
    said = str(value.get("mediaType") or media_type)
    is_index = "manifests" in value
    if is_index and ("config" in value or "layers" in value):
        raise ImageError(f"manifest {digest} says it is an image and an index of images at once")
    if is_index and said in (*INDEXES, "", "application/json", "text/plain", "application/octet-stream"):
        return said if said in INDEXES else INDEX
    if not is_index and "layers" in value and said not in (*INDEXES, *_SCHEMA_1):
        return said if said in (MANIFEST, DOCKER_MANIFEST) else MANIFEST
    raise ImageError(f"manifest {digest} of media type {said!r} is not an image")


def check_config(
    layout: ImageLayout, chosen: Descriptor, config: Descriptor, layers: list[Descriptor], platform: Platform | None
) -> None:
    """Check that the image is for the platform (None: this machine's) and its config has its layers. Raises ImageError.

    `config` is in the layout.
    """
    value = layout.document(config)
    wanted, offered = platform or this_machine(), platform_of(value)
    if rank(offered, wanted) is None:
        text = f"no match for platform {wanted} in manifest {chosen.digest}, which is for {offered}: not found"
        raise ImageError(text, "ImageNotFound")
    root = value.get("rootfs")
    diff_ids = root.get("diff_ids") if isinstance(root, dict) else None
    if not isinstance(diff_ids, list) or len(diff_ids) != len(layers):
        count = len(diff_ids) if isinstance(diff_ids, list) else 0
        raise ImageError(f"image {chosen.digest}: {len(layers)} layers but {count} diff_ids")
