"""Serve CRI's ImageService by an existing runtime."""

# check: observes because it asked the runtime how far a pull is

import re
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.kube.cri import api
from lastcall.kube.cri.api import AuthConfig, Image, RuntimeServiceError
from lastcall.kube.cri.sandbox.images.reference import parse_reference
from lastcall.kube.cri.v1.messages import new
from lastcall.kube.cri.v1.remote.connection import RuntimeConnection
from lastcall.kube.cri.v1.translate.images import auth_message, image_of, image_spec
from lastcall.records import kinds
from lastcall.records.record import Recorder
from lastcall.world.clock import Clock, monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks

if TYPE_CHECKING:
    from lastcall.records.definitions.runtime import ImagePullProgress

_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
PROGRESS_SECONDS = 1.0
SECONDS = 120.0
"""For all calls but a pull, which has no limit of its own (cri-client pkg/remote_image.go)."""


@dataclass(slots=True)
class Layers:
    """What one pull downloads, of all that the runtime downloads. Pure.

    `others` went on before the pull began.
    """

    others: frozenset[str]
    _sizes: dict[str, int] = field(default_factory=dict)

    def look(self, now: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
        """Return (bytes so far, bytes of all) of the layers begun. What is no longer downloaded is there."""
        self._sizes.update({name: total for name, (_, total) in now.items() if name not in self.others})
        done = sum(now[name][0] if name in now else size for name, size in self._sizes.items())
        return done, sum(self._sizes.values())


class RemoteImages:
    """`lastcall.kube.cri.api.ImageService`."""

    def __init__(
        self, connection: RuntimeConnection, recorder: Recorder | None = None, clock: Clock | None = None
    ) -> None:
        """`recorder` and `clock`, where there is somebody to tell how far a pull is."""
        self._connection, self._recorder, self._clock = connection, recorder, clock
        self._asks = True
        """Whether the runtime may say what it downloads."""
        self._pulls = 0
        """How many go on."""

    async def image_status(self, image: str) -> Image | None:
        """Return an image. Raises RuntimeServiceError, reason InvalidImageName, before the runtime is asked.

        Source: kubelet util/parsers/parsers.go:ParseImageName.
        """
        if not _ID.fullmatch(image):
            parse_reference(image)
        request = new("ImageStatusRequest", image=image_spec(image))
        answer = await self._connection.images("ImageStatus", request, SECONDS)
        return image_of(answer.image) if answer.HasField("image") else None

    async def pull_image(self, image: str, auth: AuthConfig | None = None) -> str:
        """Pull an image. Raises RuntimeServiceError. None for `auth`: what the runtime is configured with."""
        request = new(
            "PullImageRequest",
            image=image_spec(image),
            auth=None if auth is None else auth_message(auth),
        )
        failed: RuntimeServiceError | None = None
        answer = None
        self._pulls += 1
        try:
            async with Tasks() as tasks:
                if self._recorder is not None and self._clock is not None:
                    layers = Layers(frozenset(await self._downloads()))
                    tasks.spawn(
                        self._tell_progress(image, layers, self._recorder, self._clock), name=f"pull of {image}"
                    )
                try:
                    answer = await self._connection.images("PullImage", request)
                except RuntimeServiceError as error:
                    failed = error
                tasks.cancel()
        finally:
            self._pulls -= 1
        if failed is not None or answer is None:
            reason = "ImageNotFound" if failed is None or failed.reason == "NotFound" else failed.reason
            raise RuntimeServiceError(str(failed), reason)
        return str(answer.image_ref)

    async def _tell_progress(self, image: str, layers: Layers, recorder: Recorder, clock: Clock) -> None:
        """CRI does not say how far a pull is. containerd does, layer by layer, but not whose layers they are."""
        began, alone = monotonic(clock), True
        while True:
            await clock.sleep(PROGRESS_SECONDS)
            done, total = layers.look(await self._downloads())
            alone = alone and self._pulls == 1
            facts: ImagePullProgress = {
                "image": image,
                "seconds": monotonic(clock) - began,
                "bytes": done if self._asks and alone else None,
                "total": total if self._asks and alone else None,
            }
            recorder.record(kinds.IMAGE_PULL_PROGRESS, facts=facts)

    async def _downloads(self) -> Mapping[str, tuple[int, int]]:
        """Return what the runtime downloads, empty if it does not say."""
        if self._asks:
            try:
                return await self._connection.downloads(PROGRESS_SECONDS)
            except RuntimeServiceError as error:
                self._asks = error.reason != "Unimplemented"
        return {}

    async def list_images(self) -> list[api.Image]:
        answer = await self._connection.images("ListImages", new("ListImagesRequest"), SECONDS)
        return [image_of(each) for each in answer.images]

    async def remove_image(self, image: str) -> None:
        request = new("RemoveImageRequest", image=image_spec(image))
        await self._connection.images("RemoveImage", request, SECONDS)
