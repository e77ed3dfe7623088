"""Pulls an image from its registry into an image layout: resolve, choose the platform, download, verify, name.

Nothing is believed before its digest was computed. Error texts are containerd's (core/remotes/docker, client/pull.go).
"""

# check: allow asyncio.to_thread because blocking work on files of the host runs off the event loop

import asyncio
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lastcall.kube.cri.api import AuthConfig, RuntimeServiceError
from lastcall.kube.cri.sandbox.images.downloads import Download
from lastcall.kube.cri.sandbox.images.layout import (
    IMAGE_NAME,
    INDEXES,
    MAX_DOCUMENT,
    MAX_NESTING,
    PULLED,
    Descriptor,
    ImageError,
    ImageLayout,
    choose_manifest,
)
from lastcall.kube.cri.sandbox.images.manifest import check_config, children, manifest_kind
from lastcall.kube.cri.sandbox.images.platform import Platform
from lastcall.kube.cri.sandbox.images.reference import Reference
from lastcall.kube.cri.sandbox.images.registry import STALL_SECONDS, Registry, RegistryError
from lastcall.kube.cri.sandbox.images.way_out import WayOut
from lastcall.world.clock import now, rfc3339
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

LAYERS_AT_ONCE = 3
MAX_ATTEMPTS = 5
"""For a blob that makes no progress at all."""
_OTHERS_TURN_SECONDS = 0.1


class PullError(RuntimeServiceError):
    """An image could not be pulled. `status` is the registry's HTTP status, 0 where it said nothing of the kind."""

    def __init__(self, reference: Reference, message: str, reason: str = "", status: int = 0) -> None:
        super().__init__(f'failed to pull and unpack image "{reference}": {message}', reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `size` bytes of a blob are here; `present`: they were, before this pull."""

    digest: str
    done: int
    size: int
    present: bool = False


OnProgress = Callable[[Progress], None]


class ImagePuller:
    """Pulls into one layout. Many pulls at once, also from several processes, are fine: a blob is fetched once."""

    def __init__(self, world: World, layout: ImageLayout, way_out: WayOut, *, stall: float = STALL_SECONDS) -> None:
        """`stall`: seconds after which a registry that sends nothing is given up."""
        self._world = world
        self.layout = layout
        self._way_out = way_out
        self._stall = stall

    async def pull(
        self,
        reference: Reference,
        auth: AuthConfig | None = None,
        *,
        platform: Platform | None = None,
        on_progress: OnProgress = lambda _: None,
    ) -> Descriptor:
        """Return what the index now has under this name. Without `auth` the user's own credentials are asked for.

        `platform` None takes the one of this machine, and keeps the whole index's digest, as containerd does. Raises
        PullError, reason ImageNotFound where there is no such image; ImageError when the store cannot be written.
        """
        why_none = ""
        if auth is None:
            try:
                auth = await self._way_out.credentials(reference.repository)
            except RuntimeServiceError as error:
                why_none = f" ({error})"  # most images want none, so this matters only when the registry asks
        try:
            registry = Registry(reference, self._way_out, self._world.clock, auth, stall_seconds=self._stall)
            async with registry:
                return await _Pull(self, self._world, registry, reference, platform, on_progress).run()
        except RegistryError as error:
            text = f"{error}{why_none if error.status in (401, 403) else ''}"
            raise PullError(reference, text, "ImageNotFound" if error.status == 404 else "", error.status) from error
        except ImageError as error:
            raise PullError(reference, str(error), error.reason) from error


class _Pull:
    def __init__(
        self,
        puller: ImagePuller,
        world: World,
        registry: Registry,
        reference: Reference,
        platform: Platform | None,
        on_progress: OnProgress,
    ) -> None:
        self._layout = puller.layout
        self._world = world
        self._registry = registry
        self._reference = reference
        self._platform = platform
        self._on_progress = on_progress
        self._fetched = False

    async def run(self) -> Descriptor:
        digest, fetched = await self._resolve()  # a name that does not exist leaves nothing on the disk
        with self._layout.keeping():
            top = fetched if isinstance(fetched, Descriptor) else await self._keep(*fetched, digest)
            return await self._complete(top)

    async def _complete(self, top: Descriptor) -> Descriptor:
        chosen, manifest = await self._choose(top)
        config, layers = children(chosen, manifest)
        self._check_room([config, *layers])
        await self._blob(config)
        check_config(self._layout, chosen, config, layers, self._platform)
        await self._layers(layers)
        # Asked for by a platform of their own, an image is known by its own digest: the index would mean another one.
        named = top if self._platform is None else chosen
        if not self._fetched and self._is_named(named):
            return named
        named = Descriptor(named.media_type, named.digest, named.size, {PULLED: rfc3339(now(self._world.clock))})
        await asyncio.to_thread(self._layout.put, str(self._reference), named)
        return named

    def _is_named(self, image: Descriptor) -> bool:
        """Whether the index says all this already; writing it again would have every cluster read it again."""
        name = str(self._reference)
        return any(
            entry.digest == image.digest and entry.annotations.get(IMAGE_NAME) == name and PULLED in entry.annotations
            for entry in self._layout.index()
        )

    # -- manifests ---------------------------------------------------------------------------------------------------

    async def _resolve(self) -> tuple[str, Descriptor | tuple[bytes, str]]:
        """The digest the name has now ("" when the registry does not say), and the manifest or index behind it: in the
        layout already, or its bytes and media type.
        """
        wanted = self._reference.digest
        try:
            resolved = await self._registry.resolve()
            digest = resolved.digest
            if wanted and digest and digest != wanted:
                raise RegistryError(f"the registry answers {wanted} with {digest}")
            if digest and (here := self._here(digest)) is not None:
                return digest, here
            fetched = await self._registry.manifest(wanted or self._reference.tag)
        except RegistryError as error:
            text = f'failed to resolve reference "{self._reference}": {error}'
            raise RegistryError(text, error.status) from error
        return wanted or digest, fetched

    def _here(self, digest: str) -> Descriptor | None:
        """A manifest of the index of the layout that has this digest."""
        with suppress(ImageError):
            for entry in self._layout.index():
                if entry.digest == digest and self._layout.has(entry):
                    return Descriptor(entry.media_type, entry.digest, entry.size)
        return None

    async def _keep(self, data: bytes, media_type: str, digest: str) -> Descriptor:
        """Store a manifest once it has its digest, and is of one kind only."""
        found = f"sha256:{hashlib.sha256(data).hexdigest()}"
        if digest and not digest.startswith("sha256:"):
            raise ImageError(f"manifest {digest}: only sha256 digests can be verified")
        if digest and found != digest:
            raise ImageError(f"manifest has digest {found}, expected {digest}: failed precondition")
        kind = manifest_kind(data, media_type, found)
        descriptor = Descriptor(kind, found, len(data))
        if not self._layout.has(descriptor):
            await asyncio.to_thread(self._write, data)
        return descriptor

    def _write(self, data: bytes) -> None:
        with self._layout.new_blob("") as blob:
            blob.write(data)

    async def _choose(self, descriptor: Descriptor) -> tuple[Descriptor, dict[str, Any]]:
        """The image manifest for the platform, and what it says."""
        for _ in range(MAX_NESTING):
            value = self._layout.document(descriptor)
            if descriptor.media_type not in INDEXES:
                return descriptor, value
            chosen = choose_manifest(descriptor.digest, value, self._platform)
            if chosen.size > MAX_DOCUMENT:
                raise ImageError(f"manifest {chosen.digest} has {chosen.size} bytes; at most {MAX_DOCUMENT} are read")
            if self._layout.has(chosen):
                known = chosen
                data = await asyncio.to_thread(self._layout.blob_path(chosen.digest).read_bytes)
                kind = manifest_kind(data, chosen.media_type, chosen.digest)
                descriptor = Descriptor(kind, known.digest, known.size)
                continue
            data, media_type = await self._registry.manifest(chosen.digest)
            descriptor = await self._keep(data, media_type or chosen.media_type, chosen.digest)
        raise ImageError(f"image indexes are nested more than {MAX_NESTING} deep")

    def _check_room(self, blobs: list[Descriptor]) -> None:
        missing = sum(blob.size for blob in {b.digest: b for b in blobs}.values() if not self._layout.has(blob))
        with suppress(OSError):
            status = os.statvfs(self._layout.root)
            free = status.f_bavail * status.f_frsize
            if missing > free:
                raise ImageError(
                    f"the image needs {missing} bytes, and {free} are free in {self._layout.root}; "
                    "fix: lastcall image prune"
                )

    # -- blobs -------------------------------------------------------------------------------------------------------

    async def _layers(self, layers: list[Descriptor]) -> None:
        slots = asyncio.Semaphore(LAYERS_AT_ONCE)

        async def fetch(layer: Descriptor) -> None:
            async with slots:
                await self._blob(layer)

        try:
            async with Tasks() as tasks:
                for number, layer in enumerate({layer.digest: layer for layer in layers}.values()):
                    tasks.spawn(fetch(layer), name=f"layer {number}")
        except ExceptionGroup as group:
            raise _first(group) from group

    async def _blob(self, blob: Descriptor) -> None:
        """Return when it is in the layout, by this pull or by another one."""
        if self._layout.has(blob):
            self._on_progress(Progress(blob.digest, blob.size, blob.size, present=True))
            return
        while (download := Download.begin(self._layout, blob)) is None:
            await self._world.clock.sleep(_OTHERS_TURN_SECONDS)
            if self._layout.has(blob):
                self._on_progress(Progress(blob.digest, blob.size, blob.size, present=True))
                return
        try:
            if self._layout.has(blob):
                return
            await download.resume()
            await self._fill(download, blob)
            await download.commit()
            self._fetched = True
        finally:
            download.close()

    async def _fill(self, download: Download, blob: Descriptor) -> None:
        attempts = 0
        resumed = download.offset > 0
        while True:
            began = download.offset
            error = await self._stream(download, blob)
            if error is None and download.complete:
                if download.digest == blob.digest:
                    return
                wrong = download.digest
                download.restart()
                if not resumed:
                    text = f"failed to copy: blob {blob.digest} has digest {wrong}: failed precondition"
                    raise ImageError(text)
                resumed = False  # what an earlier attempt left may be what is wrong: once more from the beginning
                continue
            if error is not None and not error.transient:
                raise RegistryError(f"failed to copy: {error}", error.status) from error
            attempts = 0 if download.offset > began else attempts + 1
            if attempts >= MAX_ATTEMPTS:
                why = str(error) if error else f"blob {blob.digest}: short read: {download.offset} of {blob.size} bytes"
                raise RegistryError(f"failed to copy: {why}") from error
            resumed = resumed or download.offset > 0
            await self._world.clock.sleep(0.2 * 2**attempts)

    async def _stream(self, download: Download, blob: Descriptor) -> RegistryError | None:
        """Take what one request gives; the error that ended it, None for its proper end."""
        if download.complete and blob.size:
            return None
        try:
            async with self._registry.blob(blob.digest, download.offset) as (start, chunks):
                if start != download.offset:
                    download.restart()
                async for chunk in chunks:
                    download.write(chunk)
                    self._on_progress(Progress(blob.digest, download.offset, blob.size))
        except RegistryError as error:
            return error
        return None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
