"""Serve CRI's ImageService by an existing runtime."""

import re

from lastcall.kube.cri import api
from lastcall.kube.cri.api import AuthConfig, Image, RuntimeServiceError
from lastcall.kube.cri.sandbox.images.reference import parse_reference
from lastcall.kube.cri.v1.messages import new
from lastcall.kube.cri.v1.remote.connection import RuntimeConnection
from lastcall.kube.cri.v1.translate.images import auth_message, image_of, image_spec

_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
SECONDS = 120.0
"""For all calls but a pull, which has no limit of its own (cri-client pkg/remote_image.go)."""


class RemoteImages:
    """`lastcall.kube.cri.api.ImageService`."""

    def __init__(self, connection: RuntimeConnection) -> None:
        self._connection = connection

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
        try:
            return str((await self._connection.images("PullImage", request)).image_ref)
        except RuntimeServiceError as error:
            reason = "ImageNotFound" if error.reason == "NotFound" else error.reason
            raise RuntimeServiceError(str(error), reason) from None

    async def list_images(self) -> list[api.Image]:
        answer = await self._connection.images("ListImages", new("ListImagesRequest"), SECONDS)
        return [image_of(each) for each in answer.images]

    async def remove_image(self, image: str) -> None:
        request = new("RemoveImageRequest", image=image_spec(image))
        await self._connection.images("RemoveImage", request, SECONDS)
