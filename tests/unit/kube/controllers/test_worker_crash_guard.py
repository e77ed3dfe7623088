"""A key whose sync fails as nobody expected backs off; the others go on."""

import itertools

import pytest
from fake_api import FakeAPI

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import EVENTS, PODS
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.worker import Worker
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


@pytest.mark.parametrize("of_its_own", [True, False], ids=["Events of its own", "no Events else"])
def test_a_poisoned_key_backs_off_is_told_on_its_object_and_the_others_go_on(of_its_own: bool) -> None:
    async def main(world: World) -> None:
        api = FakeAPI(world)
        bad: Object = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": "bad", "namespace": "default", "uid": "u"},
        }
        api.put(PODS, bad)
        informer = Informer(api, PODS, world=world)
        events = EventRecorder(api, world, "test-controller") if of_its_own else None
        tried: list[float] = []
        done: list[str] = []

        async def sync(key: str) -> None:
            if key == "default/bad":
                tried.append(monotonic(world.clock))
                raise ValueError("Exceeds the limit (4300 digits)")
            done.append(key)

        worker = Worker(world, "test-controller", sync, workers=1, events=events, client=api)
        with crash_guard.installed() as faults:
            async with Tasks() as tasks:
                tasks.spawn(informer.run(), name="informer")
                if events is not None:
                    tasks.spawn(events.run(), name="events")
                tasks.spawn(worker.run([informer]), name="worker")
                worker.queue.add("default/bad")
                for number in range(100):
                    worker.queue.add(f"default/{number}")
                    await world.clock.sleep(1.0)
                tasks.cancel()
        assert len(done) == 100
        waits = [after - before for before, after in itertools.pairwise(tried)]
        assert len(tried) < 20 and waits[-1] > 10.0, "it waits longer each time"
        (fault,) = faults.of("test-controller", "default/bad")
        assert fault.count == len(tried)
        told = [event for event in api.of(EVENTS) if event["reason"] == "InternalError"]
        assert len(told) == 1, "one Event, counted"
        assert told[0]["type"] == "Warning" and told[0]["involvedObject"]["name"] == "bad"
        assert "ValueError: Exceeds the limit" in told[0]["message"]

    run_virtual(main)
