"""The calls of CRI's ImageService."""

from typing import Any

from lastcall.cri.api import ImageService, RuntimeServiceError
from lastcall.cri.v1.messages import new
from lastcall.cri.v1.needs import Disk
from lastcall.cri.v1.requests import demand
from lastcall.cri.v1.stats import filesystem_message
from lastcall.cri.v1.translate.images import auth_of, image_message
from lastcall.world.clock import Clock


class ImageCalls:
    """Without `disk` nobody counts what images take."""

    def __init__(self, images: ImageService, clock: Clock, disk: Disk | None) -> None:
        self._images, self._clock, self._disk = images, clock, disk

    async def list_images(self, request: Any) -> Any:
        images = await self._images.list_images()
        if wanted := request.filter.image.image:
            found = await self._images.image_status(wanted)
            images = [each for each in images if found is not None and each.id == found.id]
        return new("ListImagesResponse", images=list(map(image_message, images)))

    async def image_status(self, request: Any) -> Any:
        """An image that is not there is an answer without one."""
        demand(request.image.image != "", "image name must not be empty")
        image = await self._images.image_status(request.image.image)
        info = {"info": "{}"} if request.verbose and image is not None else {}
        return new("ImageStatusResponse", image=None if image is None else image_message(image), info=info)

    async def pull_image(self, request: Any) -> Any:
        auth = auth_of(request.auth) if request.HasField("auth") else None
        return new("PullImageResponse", image_ref=await self._images.pull_image(request.image.image, auth))

    async def remove_image(self, request: Any) -> Any:
        await self._images.remove_image(request.image.image)
        return new("RemoveImageResponse")

    async def image_fs_info(self, request: Any) -> Any:
        if self._disk is None:
            raise RuntimeServiceError("nobody counts what images take", "Unimplemented")
        now = self._clock.wall_ns()
        return new(
            "ImageFsInfoResponse",
            image_filesystems=[filesystem_message(await self._disk.images(), now)],
            container_filesystems=[filesystem_message(await self._disk.containers(), now)],
        )
