"""One bad object in a cache ends only its own turn."""

import pytest
from fake_api import FakeAPI

from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.resources import PODS
from lastcall.kube.client.informer import Informer
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def pod(name: str, **more: object) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, **more}


def refuse(obj: Object) -> None:
    if name_of(obj).startswith("bad"):
        raise OverflowError("date value out of range")


def index(obj: Object) -> tuple[str, ...]:
    refuse(obj)
    return ("all",)


async def followed(world: World, story: object) -> None:
    api = FakeAPI(world)
    informer = Informer(api, PODS, indexes={"all": index}, world=world)
    first: list[str] = []
    second: list[str] = []
    informer.add_handler(
        lambda obj: (refuse(obj), first.append(f"+{name_of(obj)}")),
        lambda old, new: (refuse(new), first.append(f"~{name_of(new)}")),
        lambda obj: (refuse(obj), first.append(f"-{name_of(obj)}")),
    )
    informer.add_handler(
        lambda obj: second.append(f"+{name_of(obj)}"),
        lambda old, new: second.append(f"~{name_of(new)}"),
        lambda obj: second.append(f"-{name_of(obj)}"),
    )
    async with Tasks() as tasks:
        api.put(PODS, pod("bad-1"))
        api.put(PODS, pod("a"))
        tasks.spawn(informer.run(), name="informer")
        await informer.synced()
        api.put(PODS, pod("bad-2"))
        api.put(PODS, pod("b"))
        api.put(PODS, pod("bad-1", spec={}))
        api.remove(PODS, "bad-2", "default")
        api.remove(PODS, "a", "default")
        await world.clock.sleep(0.1)
        assert first == ["+a", "+b", "-a"]
        assert second == ["+bad-1", "+a", "+bad-2", "+b", "~bad-1", "-bad-2", "-a"]
        assert [name_of(obj) for obj in informer.by_index("all", "all")] == ["b"], "others are found as ever"
        late: list[str] = []
        informer.add_handler(lambda obj: (refuse(obj), late.append(name_of(obj))))
        assert late == ["b"]
        tasks.cancel()


def test_a_bad_object_ends_only_its_own_turn() -> None:
    async def main(world: World) -> None:
        with crash_guard.installed() as faults:
            await followed(world, None)
        keys = {each.key: each.count for each in faults.of("informer pods")}
        assert keys == {"default/bad-1": 5, "default/bad-2": 3}  # each index and each handler that failed

    run_virtual(main)


def test_without_walls_a_handler_that_fails_is_seen() -> None:
    async def main(world: World) -> None:
        await followed(world, None)

    with pytest.raises(ExceptionGroup):
        run_virtual(main)
