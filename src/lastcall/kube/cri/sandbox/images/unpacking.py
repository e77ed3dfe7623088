"""Unpacking an image: its lower directories, each layer once for all images that have it."""

from functools import partial

from lastcall.kube.cri.sandbox.images.catalogue import Stored
from lastcall.kube.cri.sandbox.images.layers import NeedsMerge, merge_layer, unpack_layer
from lastcall.kube.cri.sandbox.images.layout import Descriptor, ImageLayout
from lastcall.kube.cri.sandbox.images.unpacked import UnpackedImages

_MAX_LAYERS = 40  # overlayfs' options must fit into one page; more layers are merged into one directory


def unpack(stored: Stored, on_node: UnpackedImages) -> tuple[str, ...]:
    """Unpack the image; return its lower directories, the uppermost first. Raises ImageError."""
    try:
        if len(stored.layers) > _MAX_LAYERS:
            raise NeedsMerge
        pairs = list(zip(stored.layers, stored.diff_ids, strict=True))
        directories = [_layer(on_node, stored.layout, layer, diff_id) for layer, diff_id in pairs]
    except NeedsMerge:
        directories = [_merged(on_node, stored)]
    return tuple(reversed(directories))


def _layer(on_node: UnpackedImages, layout: ImageLayout, layer: Descriptor, diff_id: str) -> str:
    def fill(target: str) -> None:
        with layout.open_blob(layer) as blob:
            unpack_layer(blob, layer.digest, diff_id, target)

    return on_node.fill(f"l{_short(diff_id)}", fill)


def _merged(on_node: UnpackedImages, stored: Stored) -> str:
    def fill(target: str) -> None:
        for layer, diff_id in zip(stored.layers, stored.diff_ids, strict=True):
            merge_layer(partial(stored.layout.open_blob, layer), layer.digest, diff_id, target)

    return on_node.fill(f"m{_short(stored.image.id)}", fill)


def _short(digest: str) -> str:
    """Enough of a digest for a name: overlayfs' options have to fit into one page."""
    return digest.removeprefix("sha256:")[:32]
