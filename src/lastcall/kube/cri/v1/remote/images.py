"""Serve CRI's ImageService by an existing runtime."""

# check: observes because it asked the runtime how far a pull is

import re
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
from lastcall.world.tasks import Tasks

if TYPE_CHECKING:
    from lastcall.records.definitions.runtime import ImagePullProgress

_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
PROGRESS_SECONDS = 1.0
SECONDS = 120.0
"""For all calls but a pull, which has no limit of its own (cri-client pkg/remote_image.go)."""


class RemoteImages:
    """`lastcall.kube.cri.api.ImageService`."""

    def __init__(
        self, connection: RuntimeConnection, recorder: Recorder | None = None, clock: Clock | None = None
    ) -> None:
        """`recorder` and `clock`, where there is somebody to tell how far a pull is."""
        self._connection, self._recorder, self._clock = connection, recorder, clock

    async def image_status(self, image: str) -> Image | None:
        """Raises RuntimeServiceError, reason InvalidImageName, before the runtime is asked.

        Source: kubelet util/parsers/parsers.go:ParseImageName.
        """
        if not _ID.fullmatch(image):
            parse_reference(image)
        request = new("ImageStatusRequest", image=image_spec(image))
        answer = await self._connection.images("ImageStatus", request, SECONDS)
        return image_of(answer.image) if answer.HasField("image") else None

    async def pull_image(self, image: str, auth: AuthConfig | None = None) -> str:
        """Raises RuntimeServiceError. None for `auth`: what the runtime is configured with."""
        request = new(
            "PullImageRequest",
            image=image_spec(image),
            auth=None if auth is None else auth_message(auth),
        )
        failed: RuntimeServiceError | None = None
        answer = None
        async with Tasks() as tasks:
            if self._recorder is not None and self._clock is not None:
                tasks.spawn(self._tell_progress(image, self._recorder, self._clock), name=f"pull of {image}")
            try:
                answer = await self._connection.images("PullImage", request)
            except RuntimeServiceError as error:
                failed = error
            tasks.cancel()
        if failed is not None or answer is None:
            reason = "ImageNotFound" if failed is None or failed.reason == "NotFound" else failed.reason
            raise RuntimeServiceError(str(failed), reason)
        return str(answer.image_ref)

    async def _tell_progress(self, image: str, recorder: Recorder, clock: Clock) -> None:
        """CRI does not say how far a pull is; containerd does, for all downloads together."""
        began, asks = monotonic(clock), True
        while True:
            await clock.sleep(PROGRESS_SECONDS)
            facts: ImagePullProgress = {
                "image": image, "seconds": monotonic(clock) - began, "bytes": None, "total": None,
            }  # fmt: skip
            if asks:
                try:
                    facts["bytes"], facts["total"] = await self._connection.downloads(PROGRESS_SECONDS)
                except RuntimeServiceError as error:
                    asks = error.reason != "Unimplemented"
            recorder.record(kinds.IMAGE_PULL_PROGRESS, facts=facts)

    async def list_images(self) -> list[api.Image]:
        answer = await self._connection.images("ListImages", new("ListImagesRequest"), SECONDS)
        return [image_of(each) for each in answer.images]

    async def remove_image(self, image: str) -> None:
        request = new("RemoveImageRequest", image=image_spec(image))
        await self._connection.images("RemoveImage", request, SECONDS)
