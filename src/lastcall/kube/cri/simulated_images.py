"""Calls of the simulated runtime that fail on request, and its images."""

import hashlib
from collections.abc import Mapping

from lastcall.kube.cri.api import AuthConfig, Image, RuntimeServiceError
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World


@dataclass(frozen=True, slots=True)
class SimulatedImage:
    """How pulling an image goes. `present`: it is on the node already. `error`: the pull fails with this text."""

    present: bool = True
    pull_seconds: float = 0.0
    error: str = ""
    reason: str = "ImageNotFound"


@dataclass(slots=True)
class _Failure:
    error: Exception
    times: int
    seconds: float


class Failures:
    """Verbs that fail when a test says so."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._failures: dict[str, list[_Failure]] = {}

    def fail_next(self, verb: str, error: Exception | str, *, times: int = 1, seconds: float = 0.0) -> None:
        """Let the next `times` calls of `verb` wait `seconds`, then raise `error` (text becomes RuntimeServiceError).

        Verbs are the method names (`stop_container`, `exec_sync`, …), and `cni_add`, `cni_del` for the network part of
        run_pod_sandbox and stop_pod_sandbox. Failures of one verb are used up in the order they were asked for.
        """
        wrapped = RuntimeServiceError(error) if isinstance(error, str) else error
        self._failures.setdefault(verb, []).append(_Failure(wrapped, times, seconds))

    async def may_fail(self, verb: str) -> None:
        queue = self._failures.get(verb)
        if not queue:
            return
        failure = queue[0]
        failure.times -= 1
        if failure.times <= 0:
            queue.pop(0)
        if failure.seconds:
            await self._world.clock.sleep(failure.seconds)
        raise failure.error


class SimulatedImages(Failures):
    """`ImageService`. `images` says how pulls go; an image that is not named there is present."""

    def __init__(self, world: World, images: Mapping[str, SimulatedImage] | None = None) -> None:
        super().__init__(world)
        self._images = dict(images or {})
        self._pulled: dict[str, None] = {}
        self._removed: dict[str, None] = {}

    async def image_status(self, image: str) -> Image | None:
        await self.may_fail("image_status")
        return image_of(image) if self._is_present(image) else None

    async def pull_image(self, image: str, auth: AuthConfig | None = None) -> str:
        await self.may_fail("pull_image")
        known = self._images.get(image, SimulatedImage())
        if known.pull_seconds:
            await self._world.clock.sleep(known.pull_seconds)
        if known.error:
            raise RuntimeServiceError(known.error, known.reason)
        self._pulled[image] = None
        self._removed.pop(image, None)
        return image_of(image).id

    async def list_images(self) -> list[Image]:
        await self.may_fail("list_images")
        names = dict.fromkeys((*self._images, *self._pulled))
        return [image_of(name) for name in names if self._is_present(name)]

    async def remove_image(self, image: str) -> None:
        await self.may_fail("remove_image")
        known = (*self._images, *self._pulled)
        name = next((name for name in known if image == image_of(name).id), image)
        self._pulled.pop(name, None)
        self._removed[name] = None

    def _is_present(self, image: str) -> bool:
        if image in self._removed:
            return False
        return image in self._pulled or self._images.get(image, SimulatedImage()).present


def image_of(name: str) -> Image:
    """Return an image whose id follows from its name."""
    return Image(id=f"sha256:{hashlib.sha256(name.encode()).hexdigest()}", repo_tags=(name,), size=1)
