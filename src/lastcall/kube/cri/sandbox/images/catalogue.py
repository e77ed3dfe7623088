"""What an OCI layout of images holds, read and checked."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field, replace
from typing import Any, cast

from lastcall.kube.cri.api import Image, RuntimeServiceError
from lastcall.kube.cri.sandbox.images.build import HOST_BINDS, MADE_FROM
from lastcall.kube.cri.sandbox.images.from_host import BINDABLE
from lastcall.kube.cri.sandbox.images.layout import IMAGE_NAME, PULLED, REF_NAME, Descriptor, ImageError, ImageLayout
from lastcall.kube.cri.sandbox.images.reference import Reference, parse_reference
from lastcall.kube.cri.sandbox.spec import ImageConfig
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Stored:
    """An image of a layout, read and checked."""

    layout: ImageLayout
    image: Image
    created: str
    pulled: str
    config: ImageConfig
    layers: tuple[Descriptor, ...]
    diff_ids: tuple[str, ...]
    binds: tuple[str, ...]
    manifest_digest: str


@dataclass(frozen=True, slots=True)
class Broken:
    """A name whose image cannot be read."""

    digest: str
    error: ImageError


class IncompleteError(ImageError):
    """A blob of an image is gone."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What a layout holds."""

    images: list[Stored] = field(default_factory=list)
    broken: dict[str, Broken] = field(default_factory=dict)


def read_layout(layout: ImageLayout) -> Catalogue:
    """Read the images of a layout, each manifest with all its names. A broken one does not hide the others."""
    grouped: dict[str, list[Descriptor]] = {}
    for entry in layout.index():
        grouped.setdefault(entry.digest, []).append(entry)
    catalogue = Catalogue()
    for digest, entries in grouped.items():
        try:
            catalogue.images.append(_read_image(layout, entries))
        except ImageError as error:
            names = [name for entry in entries if (name := _name_of(entry)) is not None]
            catalogue.broken.update({str(name): Broken(digest, error) for name in names})
    return catalogue


def _read_image(layout: ImageLayout, entries: list[Descriptor]) -> Stored:
    chosen, manifest = layout.manifest(entries[0])
    config_descriptor = Descriptor.parse(manifest.get("config"))
    layers = tuple(Descriptor.parse(layer) for layer in cast(list[Any], manifest.get("layers") or []))
    value = layout.document(config_descriptor)
    diff_ids = tuple(str(diff_id) for diff_id in (value.get("rootfs") or {}).get("diff_ids") or [])
    if len(diff_ids) != len(layers):
        raise ImageError(f"image {chosen.digest}: {len(layers)} layers but {len(diff_ids)} diff_ids")
    if missing := next((layer for layer in layers if not layout.has(layer)), None):
        raise IncompleteError(f"the image store lacks blob {missing.digest} of image {chosen.digest}")
    references = [reference for entry in entries if (reference := _name_of(entry)) is not None]
    config = parse_config(value.get("config"))
    annotations = {
        key: text for entry in entries for key, text in entry.annotations.items() if key not in (IMAGE_NAME, REF_NAME)
    }
    image = Image(
        id=config_descriptor.digest,
        repo_tags=tuple(dict.fromkeys(str(one) for one in references if not one.digest)),
        repo_digests=tuple(dict.fromkeys(f"{one.repository}@{entries[0].digest}" for one in references)),
        size=config_descriptor.size + sum(layer.size for layer in layers),
        user=config.user,
        annotations={key: text for key, text in annotations.items() if key == MADE_FROM},
    )
    asked = [path for path in annotations.get(HOST_BINDS, "").split(":") if path]
    binds = tuple(path for path in asked if path in BINDABLE)
    created = str(value.get("created") or "")
    pulled = max((entry.annotations.get(PULLED, "") for entry in entries), default="")
    return Stored(layout, image, created, pulled, config, layers, diff_ids, binds, entries[0].digest)


def _name_of(entry: Descriptor) -> Reference | None:
    """The name in the index; other tools' layouts may hold just a tag, which is not a name."""
    name = entry.annotations.get(IMAGE_NAME) or entry.annotations.get(REF_NAME, "")
    if entry.annotations.get(IMAGE_NAME) is None and "/" not in name:
        return None
    with suppress(RuntimeServiceError):
        return parse_reference(name)
    return None


def parse_config(value: Any) -> ImageConfig:
    """Parse the `config` object of an image configuration. Raises ImageError for fields of a wrong type."""
    fields = value or {}
    if not isinstance(fields, dict):
        raise ImageError("the image's config is not an object")

    def texts(key: str) -> tuple[str, ...]:
        items = fields.get(key) or []
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ImageError(f"the image's config.{key} is not a list of texts")
        return tuple(items)

    def text(key: str) -> str:
        item = fields.get(key) or ""
        if not isinstance(item, str):
            raise ImageError(f"the image's config.{key} is not a text")
        return item

    return ImageConfig(
        entrypoint=texts("Entrypoint"),
        cmd=texts("Cmd"),
        env=texts("Env"),
        working_dir=text("WorkingDir"),
        user=text("User"),
        stop_signal=text("StopSignal"),
    )


def one_of_each(images: Iterable[Image]) -> dict[str, Image]:
    """Return images by id: one with several manifests is one, with the names of all, pinned if one of them is.

    Source: containerd internal/cri/store/image/image.go (an image's references and those that pin it).
    """
    found: dict[str, Image] = {}
    for image in images:
        other = found.get(image.id)
        if other is not None:
            tags = tuple(dict.fromkeys((*other.repo_tags, *image.repo_tags)))
            digests = tuple(dict.fromkeys((*other.repo_digests, *image.repo_digests)))
            image = replace(other, repo_tags=tags, repo_digests=digests, pinned=other.pinned or image.pinned)
        found[image.id] = image
    return found
