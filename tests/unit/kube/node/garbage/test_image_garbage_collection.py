"""node-semantics 17.1, image_gc_manager.go: which images go, when, and what is said of it."""

import os

import pytest

from lastcall.kube.cri.api import ContainerMetadata, ContainerState, ContainerStatus, Image, RuntimeServiceError
from lastcall.kube.cri.sandbox.images import ImageStore, build_image
from lastcall.kube.node.eviction.decide import Observation
from lastcall.kube.node.garbage.images import (
    ImageGCError,
    ImageGCManager,
    ImageGCPolicy,
    ImageRecord,
    bytes_to_free,
    detect,
    eviction_order,
    is_used,
    old_enough,
    too_old,
)
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

MI = 1 << 20


def image(name, size=10, **more):
    return Image(f"sha256:{name * 64}"[:71], (f"docker.io/library/{name}:1",), (), size * MI, **more)


@pytest.mark.rule("node-semantics 17.1/images")
@pytest.mark.parametrize(
    ("available", "expected"),
    [(16, 0), (15, 5), (14.99, 5.01), (5, 15), (0, 20), (200, 0)],
)
def test_how_much_is_to_be_freed(available, expected):
    """85 % full, and it is brought down to 80 %."""
    assert bytes_to_free(ImageGCPolicy(), 100_00, int(available * 100)) == int(expected * 100)


@pytest.mark.parametrize(
    ("high", "low", "text"),
    [(101, 80, "HighThresholdPercent 101"), (80, -1, "LowThresholdPercent -1"), (70, 80, "can not be higher")],
)
def test_a_policy_that_cannot_be(high, low, text):
    with pytest.raises(ValueError, match=text):
        ImageGCPolicy(high, low)


def test_the_longest_unused_image_goes_first_and_a_used_or_pinned_one_never():
    a, b, c, d, e = (
        ImageRecord(image(n), first, used)
        for n, first, used in zip("abcde", (1, 2, 3, 4, 5), (9, 0, 0, 50, 5), strict=True)
    )
    pinned = ImageRecord(image("f", pinned=True), 0, 0)
    records = {each.image.id: each for each in (a, b, c, d, e, pinned)}
    assert eviction_order(records, 50) == [b, c, e, a]


def test_an_image_is_used_by_any_of_its_names():
    one = Image("sha256:1f", ("docker.io/library/a:1",), ("docker.io/library/a@sha256:aa",))
    for name in ("sha256:1f", "1f", "docker.io/library/a:1", "docker.io/library/a@sha256:aa"):
        assert is_used(one, ["other", name])
    assert not is_used(one, ["docker.io/library/a:2", ""])


def test_records_begin_with_the_first_look_and_end_with_the_image():
    a, b = image("a"), image("b")
    records = detect({}, [a, b], [], 5)
    records = detect(records, [a], a.repo_tags, 9)
    assert records == {a.id: ImageRecord(a, 5, 9)}
    assert detect(records, [a], [], 12) == records


def test_young_images_are_spared_and_old_ones_go_only_after_the_kubelet_has_looked_for_so_long():
    records = [ImageRecord(image("a"), 0, 40), ImageRecord(image("b"), 100, 0)]
    assert old_enough(records, ImageGCPolicy(), 200) == records[:1]
    policy = ImageGCPolicy(max_age=60)
    assert too_old(records, policy, 101, began=0) == [records[0], records[1]]
    assert too_old(records, policy, 101, began=60) == []
    assert too_old(records, ImageGCPolicy(), 10**9, began=0) == []


class Node:
    """Images, a disk of 100 MiB that they are on, containers, and Events."""

    def __init__(self, images, other=0):
        self.images = {each.id: each for each in images}
        self.other = other
        self.broken = set()
        self.used = []
        self.events = []
        self.removed = []

    async def list_images(self):
        return list(self.images.values())

    async def remove_image(self, name):
        if name in self.broken:
            raise RuntimeServiceError("it is in use")
        self.removed.append(self.images.pop(name).repo_tags[0].rpartition("/")[2][0])

    async def list_containers(self):
        meta, state = ContainerMetadata("c"), ContainerState.CONTAINER_EXITED
        return [ContainerStatus("c", meta, "s", state, each, "", 1) for each in self.used]

    async def observe(self):
        taken = sum(each.size for each in self.images.values()) + self.other * MI
        return {"imagefs.available": Observation(max(0, 100 * MI - taken), 100 * MI)}

    def event(self, obj, event_type, reason, message, **more):
        assert obj["kind"] == "Node"
        self.events.append(f"{event_type} {reason}: {message}")


def collect(node, seconds, policy=ImageGCPolicy(), **more):  # noqa: B008
    async def main(world):
        manager = ImageGCManager(
            world=world,
            runtime=node,
            images=node,
            events=node,
            node={"kind": "Node", "metadata": {"name": "n"}},
            stats=node,
            policy=policy,
            **more,
        )
        async with Tasks() as tasks:
            tasks.spawn(manager.run(), name="images")
            await world.clock.sleep(seconds)
            tasks.cancel()

    run_virtual(main)


@pytest.mark.rule("node-semantics 17.1/images")
def test_a_full_disk_loses_images_until_it_is_at_the_low_threshold():
    node = Node([image(name, 18) for name in "abcde"])
    collect(node, 299)
    assert node.removed == []  # seen for less than two minutes
    collect(node, 301)
    assert node.removed == ["a"]


def test_images_of_containers_even_of_dead_ones_and_of_pods_to_come_stay():
    node = Node([image(name, 18) for name in "abcde"])
    node.used = ["docker.io/library/a:1"]
    collect(node, 301, names_in_use=lambda: ["docker.io/library/b:1"])
    assert node.removed == ["c"]


def test_what_cannot_be_freed_is_an_event_and_the_failure_one_when_it_is_repeated():
    node = Node([image("a", 5)], other=95)
    collect(node, 299)
    too_little = (
        "Failed to garbage collect required amount of images. Attempted to free 20971520 bytes, "
        "but only found 0 bytes eligible to free."
    )
    assert node.events == [f"Warning FreeDiskSpaceFailed: {too_little}"]
    node.events.clear()
    collect(node, 301)
    freed = too_little.replace("found 0", "found 5242880")
    assert node.events[1:] == [f"Warning FreeDiskSpaceFailed: {freed}", f"Warning ImageGCFailed: {freed}"]


def test_the_words_of_older_versions():
    node = Node([], other=100)
    collect(node, 1, attempted=False)
    assert node.events == [
        "Warning FreeDiskSpaceFailed: failed to garbage collect required amount of images. "
        "Wanted to free 20971520 bytes, but freed 0 bytes"
    ]


def test_an_image_that_cannot_be_removed_does_not_hold_the_others():
    node = Node([image(name, 18) for name in "abcde"])
    node.broken = {image("a").id}
    collect(node, 601)
    assert node.removed == ["b"]
    collect(node, 1, policy=ImageGCPolicy(high_threshold_percent=100))
    assert node.removed == ["b"]


def test_images_that_nobody_has_used_for_the_longest_age_go_whatever_the_disk():
    node = Node([image("a", 1), image("b", 1)])
    node.used = ["docker.io/library/b:1"]
    collect(node, 899, policy=ImageGCPolicy(max_age=600))
    assert node.removed == []
    collect(node, 901, policy=ImageGCPolicy(max_age=600))
    assert node.removed == ["a"]


def test_with_everything_switched_off_nothing_is_even_asked():
    collect(None, 1000, policy=ImageGCPolicy(high_threshold_percent=100))


async def test_on_a_real_store_a_used_image_stays_and_an_unused_one_gives_its_memory_back(tmp_path):
    store = ImageStore(tmp_path / "images", unpacked=tmp_path / "unpacked")
    used = build_image(store, "used:1", {"a": (b"a" * 5000, 0o644)})
    unused = build_image(store, "unused:1", {"b": (b"b" * 5000, 0o644)})
    for name in ("used:1", "unused:1"):
        await store.image_status(name)
    root = store.rootfs("used:1")
    node = Node([], other=99)
    node.used = [root.image_ref]
    manager = ImageGCManager(
        world=World(), runtime=node, images=store, events=node, node={"kind": "Node"}, stats=node,
        policy=ImageGCPolicy(min_age=0),
    )  # fmt: skip
    with pytest.raises(ImageGCError, match="Attempted to free 19922944 bytes"):
        await manager.garbage_collect(node)
    assert [each.id for each in await store.list_images()] == [used.id]
    assert os.listdir(root.lowerdirs[0]) == ["a"]
    assert {each.id for each in store.images()} == {used.id, unused.id}, "the user's layout is not the node's"


@pytest.mark.parametrize(
    ("high", "max_age", "off"), [(100, 0, True), (99, 0, False), (100, 60, False), (85, 60, False)]
)
def test_images_stay_if_neither_fullness_nor_age_is_a_reason(high: int, max_age: float, off: bool) -> None:
    """kubelet.go:StartGarbageCollection: ImageGCHighThresholdPercent 100 and no greatest age."""
    assert ImageGCPolicy(high_threshold_percent=high, max_age=max_age).off is off
