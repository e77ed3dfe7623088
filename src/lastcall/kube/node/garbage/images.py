"""Image garbage collection: which images go, and when it is time. Sources: images/image_gc_manager.go, kubelet.go.

An image on the node is what the runtime has unpacked there: `ImageService.remove_image` gives that memory back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from lastcall.kube.cri.api import Image, ImageService, RuntimeService, RuntimeServiceError
from lastcall.kube.node.interfaces import EventRecorder
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.node.eviction.manager import NodeStats

PERIOD_SECONDS = 300.0
"""kubelet.go:ImageGCPeriod."""
IMAGE_FS = "imagefs.available"
EVERYTHING = 1 << 63

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ImageGCPolicy:
    """Percentages of the images' file system, seconds. `max_age` 0 is unlimited. Raises ValueError.

    imageGCHighThresholdPercent, imageGCLowThresholdPercent, imageMinimumGCAge, imageMaximumGCAge.
    """

    high_threshold_percent: int = 85
    low_threshold_percent: int = 80
    min_age: float = 120.0
    max_age: float = 0.0

    def __post_init__(self) -> None:
        high, low = self.high_threshold_percent, self.low_threshold_percent
        if not 0 <= high <= 100:
            raise ValueError(f"invalid HighThresholdPercent {high}, must be in range [0-100]")
        if not 0 <= low <= 100:
            raise ValueError(f"invalid LowThresholdPercent {low}, must be in range [0-100]")
        if low > high:
            raise ValueError(f"LowThresholdPercent {low} can not be higher than HighThresholdPercent {high}")

    @property
    def off(self) -> bool:
        """Return True if neither fullness nor age is a reason (kubelet.go:StartGarbageCollection)."""
        return self.high_threshold_percent == 100 and not self.max_age


@dataclass(frozen=True, slots=True)
class ImageRecord:
    """What is remembered of an image, in monotonic seconds; `last_used` is 0 when nobody has used it."""

    image: Image
    first_detected: float
    last_used: float = 0.0


def is_used(image: Image, names: Iterable[str]) -> bool:
    """Return whether one of the names that containers use (image as written, reference, id) means this image."""
    own = {image.id, image.id.removeprefix("sha256:"), *image.repo_tags, *image.repo_digests}
    return any(name in own for name in names)


def detect(
    known: dict[str, ImageRecord], images: Sequence[Image], names: Iterable[str], now: float
) -> dict[str, ImageRecord]:
    """Return the records by image id after a look (detectImages): add new images, touch used ones, drop gone ones."""
    in_use = list(dict.fromkeys(names))
    records = {}
    for image in images:
        before = known.get(image.id, ImageRecord(image, now))
        used = now if is_used(image, in_use) else before.last_used
        records[image.id] = ImageRecord(image, before.first_detected, used)
    return records


def eviction_order(records: dict[str, ImageRecord], now: float) -> list[ImageRecord]:
    """Return the images that may be removed: longest unused first, then longest known (imagesInEvictionOrder)."""
    free = [each for each in records.values() if each.last_used < now and not each.image.pinned]
    return sorted(free, key=lambda each: (each.last_used, each.first_detected, each.image.id))


def too_old(records: Sequence[ImageRecord], policy: ImageGCPolicy, now: float, began: float) -> list[ImageRecord]:
    """Return images unused for `max_age`, once the kubelet itself has watched for so long (freeOldImages)."""
    if not policy.max_age or now - began <= policy.max_age:
        return []
    return [each for each in records if now - each.last_used > policy.max_age]


def old_enough(records: Sequence[ImageRecord], policy: ImageGCPolicy, now: float) -> list[ImageRecord]:
    """Return the images that may go for their space: one that was just pulled is about to be used (freeSpace)."""
    return [each for each in records if now - each.first_detected >= policy.min_age]


def bytes_to_free(policy: ImageGCPolicy, capacity: int, available: int) -> int:
    """Return the bytes to free down to the low threshold, if the high one is reached; else 0 (GarbageCollect)."""
    available = min(available, capacity)
    if 100 - available * 100 // capacity < policy.high_threshold_percent:
        return 0
    return capacity * (100 - policy.low_threshold_percent) // 100 - available


class ImageGCError(Exception):
    """A collection failed; the text is the Event's."""


class ImageGCManager:
    """`run` until cancelled. `names_in_use`: images of Pods that are about to start, beside those of containers."""

    def __init__(
        self,
        *,
        world: World,
        runtime: RuntimeService,
        images: ImageService,
        events: EventRecorder,
        node: Node,
        stats: NodeStats | None,
        policy: ImageGCPolicy = ImageGCPolicy(),  # noqa: B008
        names_in_use: Callable[[], Iterable[str]] = tuple,
        attempted: bool = True,
    ) -> None:
        """`attempted`: in the words of 1.28 and later when too little could be freed."""
        self._world = world
        self._runtime = runtime
        self._images = images
        self._events = events
        self._node = node
        self._stats = stats
        self._policy = policy
        self._names_in_use = names_in_use
        self._attempted = attempted
        self._records: dict[str, ImageRecord] = {}
        self._began = monotonic(world.clock)

    async def run(self) -> None:
        """Collect now and every 5 minutes; an Event only when it failed twice in a row."""
        if self._stats is None or self._policy.off:
            return
        self._began = monotonic(self._world.clock)
        failed = False
        while True:
            try:
                await self.garbage_collect(self._stats)
                failed = False
            except (ImageGCError, RuntimeServiceError) as error:
                if failed:
                    self._event("ImageGCFailed", str(error))
                log.warning("image garbage collection failed: %s", error)
                failed = True
            except Exception as error:
                crash_guard.caught("kubelet image garbage collection", "", error)
            await self._world.clock.sleep(PERIOD_SECONDS)

    async def garbage_collect(self, stats: NodeStats) -> None:
        """Run one pass. Raises ImageGCError, RuntimeServiceError."""
        now = monotonic(self._world.clock)
        order = await self._in_eviction_order(now)
        old = too_old(order, self._policy, now, self._began)
        _, errors = await self._free(old, EVERYTHING)
        left = [each for each in order if each.image.id in self._records]
        seen = (await stats.observe()).get(IMAGE_FS)
        if seen is not None and not seen.capacity:
            text = "invalid capacity 0 on image filesystem"
            self._event("InvalidDiskCapacity", text)
            raise ImageGCError(text)
        # Where nobody knows how full it is, only age counts.
        wanted = bytes_to_free(self._policy, seen.capacity, seen.available) if seen is not None else 0
        if wanted > 0:
            freed = await self._free_space(left, wanted, now)
            if freed < wanted:
                text = self._too_little(wanted, freed)
                self._event("FreeDiskSpaceFailed", text)
                raise ImageGCError(text)
        if errors:
            raise ImageGCError(f"encountered errors in image deletion: {_aggregate(errors)}")

    async def delete_unused_images(self) -> None:
        """Delete every image that nobody uses, to make room. Raises ImageGCError, RuntimeServiceError."""
        now = monotonic(self._world.clock)
        await self._free_space(await self._in_eviction_order(now), EVERYTHING, now)

    async def _in_eviction_order(self, now: float) -> list[ImageRecord]:
        images = await self._images.list_images()
        containers = await self._runtime.list_containers()
        names = [name for each in containers for name in (each.image_ref, each.image)]
        self._records = detect(self._records, images, [*names, *self._names_in_use()], now)
        return eviction_order(self._records, now)

    async def _free_space(self, records: Sequence[ImageRecord], wanted: int, now: float) -> int:
        freed, errors = await self._free(old_enough(records, self._policy, now), wanted)
        if errors:
            raise ImageGCError(
                f"wanted to free {wanted} bytes, but freed {freed} bytes space with errors in image deletion: "
                f"{_aggregate(errors)}"
            )
        return freed

    async def _free(self, records: Sequence[ImageRecord], wanted: int) -> tuple[int, list[str]]:
        """Remove one after the other until `wanted` bytes are free: how many are, and what went wrong."""
        freed, errors = 0, []
        for record in records:
            if freed >= wanted:
                break
            try:
                await self._images.remove_image(record.image.id)
            except RuntimeServiceError as error:
                errors.append(str(error))
                continue
            self._records.pop(record.image.id, None)
            freed += record.image.size
        return freed, errors

    def _too_little(self, wanted: int, freed: int) -> str:
        if not self._attempted:
            return (
                f"failed to garbage collect required amount of images. Wanted to free {wanted} bytes, "
                f"but freed {freed} bytes"
            )
        return (
            f"Failed to garbage collect required amount of images. Attempted to free {wanted} bytes, "
            f"but only found {freed} bytes eligible to free."
        )

    def _event(self, reason: str, text: str) -> None:
        self._events.event(self._node, "Warning", reason, text)


def _aggregate(errors: Sequence[str]) -> str:
    """As Go's utilerrors.Aggregate."""
    texts = list(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
