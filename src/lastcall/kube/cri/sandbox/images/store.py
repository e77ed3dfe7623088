"""The image store: CRI's ImageService, and the root file systems the runtime asks for.

Images are kept as an OCI layout on disk, by `lastcall image` and by the pulls of clusters; where that cannot be
written, a cluster keeps what it pulls in its own tmpfs. Layers are unpacked into the tmpfs, each once and shared by
all images and containers that have it. The substitute of an image that is not available (see `substitutes`) is made
there too.
"""

# check: allow asyncio.to_thread because blocking work on files of the host runs off the event loop

import asyncio
import os
import re
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lastcall.kube.cri.api import SUBSTITUTE_FOR, AuthConfig, Image, Mount, RuntimeServiceError
from lastcall.kube.cri.sandbox.images.build import ImageContent, write_image
from lastcall.kube.cri.sandbox.images.catalogue import Catalogue, IncompleteError, Stored, one_of_each, read_layout
from lastcall.kube.cri.sandbox.images.from_host import host_image, python_image
from lastcall.kube.cri.sandbox.images.layout import ImageError, ImageLayout
from lastcall.kube.cri.sandbox.images.place import default_root
from lastcall.kube.cri.sandbox.images.reference import Reference, parse_reference
from lastcall.kube.cri.sandbox.images.unpacked import UnpackedImages
from lastcall.kube.cri.sandbox.images.unpacking import unpack
from lastcall.kube.cri.sandbox.spec import ImageConfig, RootFilesystem
from lastcall.world.dataclass import dataclass

Substitutes = Mapping[str, Callable[[], ImageContent]]
"""Repository as people write it (`busybox`) → what makes an image to stand in for any tag of it."""

HOST_SUBSTITUTES: Substitutes = {"busybox": host_image, "python": python_image}
"""The host's own programs stand in for busybox, and its Python for python."""

_HOST_TAGS = {"python": ".".join(map(str, sys.version_info[:3]))}
"""Of the host's programs, their version where it is known."""

Pulls = Callable[[ImageLayout, Reference, AuthConfig | None], Awaitable[object]]
"""(layout, reference, credentials): brings an image into the layout under its name. Raises RuntimeServiceError."""

_NOT_FOUND = "rpc error: code = NotFound desc = "
"""How a kubelet sees containerd's error of that kind."""
_SHORT = re.compile(r"(sha256:)?[0-9a-f]{12,63}")


@dataclass(frozen=True, slots=True)
class ImageEntry:
    """An image and its manifest's digest. `created` (by its maker) and `pulled` are RFC 3339, "" where nobody said;
    `last_used` is seconds since the epoch.
    """

    image: Image
    digest: str
    created: str
    pulled: str
    last_used: float


class ImageStore:
    """Images in the layout `root`, unpacked below `unpacked`. One per node; also what `lastcall image` works on.

    `image` arguments are names (`busybox:1.36`), names with a digest, or image ids. Raises RuntimeServiceError.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        *,
        unpacked: str | Path = "/run/lastcall/images",
        substitutes: Substitutes | None = None,
        pulls: Pulls | None = None,
    ) -> None:
        """`root` is `default_root()` when None. `substitutes` are none when None; a cluster uses HOST_SUBSTITUTES.
        `pulls` is how images come from registries; None: they do not.
        """
        self.layout = ImageLayout(default_root() if root is None else root)
        self._unpacked = Path(unpacked)
        self._substitutes = substitutes or {}
        self._substitute_layout = ImageLayout(self._unpacked / "substitutes")
        self._pulled_layout = ImageLayout(self._unpacked / "pulled")
        self._layouts = (self.layout, self._pulled_layout, self._substitute_layout)
        self._pulls = pulls
        # Asked from the event loop and from its worker threads: one lock for what is quick, one for what is not.
        self._reading, self._unpacking = threading.Lock(), threading.Lock()
        self._known: dict[ImageLayout, tuple[tuple[int, int], Catalogue]] = {}
        self._on_node = UnpackedImages(self._unpacked)

    # -- CRI ImageService --------------------------------------------------------------------------------------------

    async def image_status(self, image: str) -> Image | None:
        """Return the image, ready to be used by `rootfs`; None when it is not there and has no substitute.

        A substitute has the annotation `SUBSTITUTE_FOR` with the asked name.
        """
        try:
            found = await self._quickly_ready(image)
        except IncompleteError:
            if self._pulls is None:
                raise
            found = None  # to be pulled again
        if found is None:
            return None
        if found.layout is not self._substitute_layout or image in (found.image.id, *found.image.repo_tags):
            return found.image
        return replace(found.image, annotations={**found.image.annotations, SUBSTITUTE_FOR: image})

    async def pull_image(self, image: str, auth: AuthConfig | None = None) -> str:
        """Return the id of the image as its registry has it now, unpacked. None for `auth`: the user's own credentials.

        What was made or imported here, or is a substitute, is not looked for in a registry. Raises RuntimeServiceError,
        reason ImageNotFound or InvalidImageName, else none.
        """
        if self._pulls is not None and not _is_id(image) and self._is_the_registrys(image):
            layout = self.layout if self.layout.writable() else self._pulled_layout
            try:
                await self._pulls(layout, parse_reference(image), auth)
            except RuntimeServiceError as error:
                if error.reason == "ImageNotFound":
                    raise RuntimeServiceError(f"{_NOT_FOUND}{error}", error.reason) from error
                raise
        found = await self._quickly_ready(image)
        if found is None:
            raise _not_found(image)
        return found.image.id

    def _is_the_registrys(self, image: str) -> bool:
        """Whether a registry has the say on what a name means: nothing of it was made or imported here."""
        try:
            found = self._available(image)
        except ImageError:
            return True
        if found is None:
            return parse_reference(image).familiar not in self._substitutes
        return bool(found.pulled)

    async def list_images(self) -> list[Image]:
        """Return what is unpacked here: the layout is the user's, and other clusters' too."""
        return list(one_of_each(unpacked.image() for unpacked in self._on_node.all()).values())

    async def remove_image(self, image: str) -> None:
        """Remove an image from this node: its layers, and itself if it was pulled into the cluster's own tmpfs.

        The user's layout is not touched (`remove` does that): a Pod that asks again unpacks again. Not to be called for
        an image that a container has. One that is not there is a success. Raises RuntimeServiceError.
        """
        await asyncio.to_thread(self._remove_from_node, image)

    def _remove_from_node(self, image: str) -> None:
        names = (image,) if _is_id(image) else (image, str(parse_reference(image)))
        with self._unpacking:
            try:
                for unpacked in self._on_node.all():
                    if any(unpacked.is_called(name) for name in names):
                        self._on_node.remove(unpacked.manifest_digest)
            except OSError as error:
                raise RuntimeServiceError(f"failed to delete image {image!r}: {error}") from error
            found = self._find(self._pulled_layout, image)
            identity = None if found is None else found.image.id
            for own in self._read(self._pulled_layout).images:  # several manifests may have the same image
                if own.image.id == identity:
                    self._pulled_layout.remove(own.manifest_digest)
                    self._on_node.remove(own.manifest_digest)

    # -- the runtime's side ------------------------------------------------------------------------------------------

    def rootfs(self, image: str) -> RootFilesystem:
        """Return what a container's root is made of. Quick after `image_status`; otherwise unpacks first.

        Raises RuntimeServiceError, reason ImageNotFound, or ImageError for a broken image.
        """
        found = self._ready(image)
        if found is None:
            raise _not_found(image)
        binds = tuple(Mount(path, path, readonly=True) for path in found.binds if os.path.isdir(path))
        # As containerd: the digest it came under, and for what never was in a registry its id.
        reference = found.image.repo_digests[0] if found.pulled and found.image.repo_digests else found.image.id
        directories = self._on_node.find(found.manifest_digest)
        if directories is None:
            raise _not_found(image)  # collected this very moment
        return RootFilesystem(directories, binds, found.config, reference)

    # -- what the command line uses ----------------------------------------------------------------------------------

    def images(self) -> list[Image]:
        """Return all images of the store, without substitutes."""
        return [stored.image for stored in self._read(self.layout).images]

    def entries(self) -> list[ImageEntry]:
        """Return all images of the store, with what people ask about them."""
        last_used = self.layout.last_used
        return [
            ImageEntry(one.image, one.manifest_digest, one.created, one.pulled, last_used(one.manifest_digest))
            for one in self._read(self.layout).images
        ]

    def add(self, name: str, content: ImageContent) -> Image:
        """Keep a new image under `name`, which another image then loses. Raises RuntimeServiceError."""
        reference = _tagged(name)
        write_image(self.layout, str(reference), content)
        found = self._find(self.layout, str(reference))
        if found is None:
            raise ImageError(f"image {reference} was made, and removed by another process at once")
        return found.image

    def remove(self, image: str) -> bool:
        """Remove a name, and with the last name, or by its id or digest, the image; return whether it existed.

        An id or digest may be cut short (12 digits, as `lastcall image ls` shows them). Raises RuntimeServiceError.
        """
        if _is_id(image) or (_SHORT.fullmatch(image) and self._find(self.layout, image) is None):
            found = self._by_digits(image.removeprefix("sha256:"))
            name = ""
        else:
            reference = parse_reference(image)
            name = "" if reference.digest else str(reference)
            broken = self._read(self.layout).broken
            if name in broken:
                self.layout.remove(broken[name].digest, name)
                return True
            found = self._find(self.layout, image)
        if found is not None:
            self.layout.remove(found.manifest_digest, name)
        return found is not None

    def _by_digits(self, digits: str) -> Stored | None:
        matches = [
            one
            for one in self._read(self.layout).images
            if any(digest.startswith(f"sha256:{digits}") for digest in (one.image.id, one.manifest_digest))
        ]
        if len(matches) > 1:
            raise RuntimeServiceError(f"{digits} is the beginning of {len(matches)} images' digests; use more digits")
        return matches[0] if matches else None

    # -- looking up --------------------------------------------------------------------------------------------------

    async def _quickly_ready(self, image: str) -> Stored | None:
        """`_ready`, in a worker thread when there is something to unpack."""
        found = self._available(image)
        if found is not None and self._on_node.find(found.manifest_digest) is not None:
            found.layout.touch(found.manifest_digest)
            return found
        return await asyncio.to_thread(self._ready, image)

    def _ready(self, image: str) -> Stored | None:
        """The image or its substitute, unpacked."""
        found = self._available(image)
        if found is None or self._on_node.find(found.manifest_digest) is None:
            with self._unpacking:
                found = found or self._substitute(image)
                if found is not None and self._on_node.find(found.manifest_digest) is None:
                    self._put_on_node(found)
                    found.layout.touch(found.manifest_digest)
        return found

    def _available(self, image: str) -> Stored | None:
        """The image, or what was made to stand in for it already."""
        found = self._find(self.layout, image) or self._find(self._pulled_layout, image)
        if found is not None or _is_id(image):
            return found or self._find(self._substitute_layout, image)
        reference = parse_reference(image)
        for name in (image, *([_stand_in(reference)] if reference.familiar in self._substitutes else [])):
            found = found or self._find(self._substitute_layout, name)
        return found

    def _find(self, layout: ImageLayout, image: str) -> Stored | None:
        """Raises RuntimeServiceError with reason InvalidImageName."""
        catalogue = self._read(layout)
        if _is_id(image):
            digest = f"sha256:{image.removeprefix('sha256:')}"
            return next((one for one in catalogue.images if one.image.id == digest), None)
        name = str(parse_reference(image))
        if name in catalogue.broken:
            raise catalogue.broken[name].error
        return next((one for one in catalogue.images if name in one.image.repo_tags + one.image.repo_digests), None)

    def _substitute(self, image: str) -> Stored | None:
        if _is_id(image):
            return None
        reference = parse_reference(image)
        make = self._substitutes.get(reference.familiar)
        if make is None:
            return None
        name = _stand_in(reference)
        if self._find(self._substitute_layout, name) is None:
            write_image(self._substitute_layout, name, make())
        return self._find(self._substitute_layout, name)

    def _read(self, layout: ImageLayout) -> Catalogue:
        with self._reading:
            version = layout.version()
            known = self._known.get(layout)
            if known is None or known[0] != version:
                known = self._known[layout] = (version, read_layout(layout))
            return known[1]

    # -- unpacking ---------------------------------------------------------------------------------------------------

    def _put_on_node(self, stored: Stored) -> None:
        directories = unpack(stored, self._on_node)
        try:
            # A substitute is made of the host's own files: to remove it would give nothing back.
            pinned = stored.layout is self._substitute_layout
            self._on_node.add(stored.image, stored.manifest_digest, directories, pinned=pinned)
        except OSError as error:
            raise ImageError(f"cannot unpack images into {self._unpacked}: {error.strerror}") from error


def build_image(store: ImageStore, name: str, files: Any, config: ImageConfig = ImageConfig()) -> Image:  # noqa: B008
    """Make an image of `files` (see `image_build.Files`) and keep it as `name`. Raises RuntimeServiceError."""
    return store.add(name, ImageContent(files, config))


def _tagged(name: str) -> Reference:
    reference = parse_reference(name)
    if reference.digest:
        raise RuntimeServiceError(f"image name {name!r} must not have a digest; use NAME:TAG", "InvalidImageName")
    return reference


def _stand_in(reference: Reference) -> str:
    """Return the name of the substitute for all tags of a repository."""
    name = reference.path.rpartition("/")[2]
    return str(Reference("localhost", f"from-host/{name}", _HOST_TAGS.get(name, "latest")))


def _is_id(image: str) -> bool:
    digits = image.removeprefix("sha256:")
    return len(digits) == 64 and all(c in "0123456789abcdef" for c in digits)


def _not_found(image: str) -> RuntimeServiceError:
    name = str(parse_reference(image)) if not _is_id(image) else image
    text = f'{_NOT_FOUND}failed to pull and unpack image "{name}": it is not in the image store'
    return RuntimeServiceError(text, "ImageNotFound")
