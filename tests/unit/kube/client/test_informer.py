"""The informer against a server that loses watches, forgets history and repeats itself."""

import itertools

from fake_api import ConnectionLost, FakeAPI

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import copy_object
from lastcall.kube.api.resources import NODES, PODS
from lastcall.kube.client.api import WatchEvent
from lastcall.kube.client.informer import MAX_BACKOFF, Informer
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def pod(name: str, **labels: str) -> dict:
    return {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": {}, "status": {}}


class Told:
    """What the handlers were told, in order."""

    def __init__(self, informer: Informer) -> None:
        self.log: list[tuple] = []
        informer.add_handler(
            lambda o: self.log.append(("add", o["metadata"]["name"])),
            lambda _, o: self.log.append(("update", o["metadata"]["name"])),
            lambda o: self.log.append(("delete", o["metadata"]["name"])),
        )

    def take(self) -> list[tuple]:
        log, self.log = self.log, []
        return log


def with_informer(test, **options):
    """Run `test(world, api, informer, told)` beside a running informer."""

    async def main(world: World):
        api = FakeAPI(world)
        informer = Informer(api, PODS, world=world, **options)
        told = Told(informer)
        async with Tasks() as tasks:
            tasks.spawn(informer.run(), name="informer")
            try:
                return await test(world, api, informer, told)
            finally:
                tasks.cancel()

    return run_virtual(main)


def test_it_lists_then_follows_every_change():
    async def test(world, api, informer, told):
        api.put(PODS, pod("a"))
        await informer.synced()
        api.put(PODS, pod("b"))
        api.put(PODS, pod("a", tier="x"))
        api.remove(PODS, "b", "default")
        await world.clock.sleep(0.1)
        assert told.take() == [("add", "a"), ("add", "b"), ("update", "a"), ("delete", "b")]
        assert informer.get("default", "a")["metadata"]["labels"] == {"tier": "x"}
        assert informer.get("default", "b") is None
        assert [o["metadata"]["name"] for o in informer.items()] == ["a"]

    with_informer(test)


def test_what_changed_while_the_connection_was_lost_is_told_once():
    async def test(world, api, informer, told):
        for name in ("stays", "changes", "goes"):
            api.put(PODS, pod(name))
        await informer.synced()
        told.take()
        api.fail_next("list", "pods", ConnectionLost("down"), times=4)
        api.break_watches(ConnectionLost("reset"))
        await world.clock.sleep(0)
        api.put(PODS, pod("changes", new="1"))
        api.remove(PODS, "goes", "default")
        api.put(PODS, pod("comes"))
        await world.clock.sleep(60)
        assert sorted(told.take()) == [("add", "comes"), ("delete", "goes"), ("update", "changes")]

    with_informer(test)


def test_retries_back_off_with_jitter_up_to_a_bound():
    async def test(world, api, informer, told):
        api.fail_next("list", "pods", ConnectionLost("down"), times=30)
        moments = []
        seen = 0
        for _ in range(4000):
            await world.clock.sleep(0.05)
            lists = sum(1 for call in api.calls if call[0] == "list")
            if lists > seen:
                seen = lists
                moments.append(world.clock.monotonic_ns() / 1e9)
        gaps = [b - a for a, b in itertools.pairwise(moments)]
        assert gaps[0] < 0.3
        assert max(gaps) <= 2 * MAX_BACKOFF + 0.2
        assert max(gaps) >= MAX_BACKOFF
        assert len(set(gaps[-5:])) > 1

    with_informer(test)


def test_an_expired_version_leads_to_a_new_list_at_once():
    async def test(world, api, informer, told):
        await informer.synced()
        await world.clock.sleep(2)
        # The watch ends; before it is asked again, history goes.
        api.put(PODS, pod("a"))
        api.break_watches(status_failure(410, "Expired", "too old resource version"))
        api.put(PODS, pod("b"))
        before = world.clock.monotonic_ns()
        api.compact()
        await world.clock.sleep(0.01)
        assert sorted(told.take()) == [("add", "a"), ("add", "b")]
        assert world.clock.monotonic_ns() - before < 50_000_000

    with_informer(test)


def test_a_watch_closed_in_good_order_goes_on_where_it_was_without_a_list():
    async def test(world, api, informer, told):
        await informer.synced()
        await world.clock.sleep(5)
        api.break_watches()
        api.put(PODS, pod("a"))
        await world.clock.sleep(1)
        assert told.take() == [("add", "a")]
        assert [call[0] for call in api.calls].count("list") == 1

    with_informer(test)


def test_a_server_that_closes_every_watch_at_once_is_not_hammered():
    async def test(world, api, informer, told):
        await informer.synced()
        api.bookmark = False
        for _ in range(1000):
            api.break_watches()
            await world.clock.sleep(0.01)
        assert sum(1 for call in api.calls if call[0] == "watch") < 20

    with_informer(test)


def test_old_and_repeated_events_change_nothing():
    async def test(world, api, informer, told):
        old = copy_object(api.put(PODS, pod("a", step="1")))
        await informer.synced()
        new = api.put(PODS, pod("a", step="2"))
        await world.clock.sleep(0.1)
        told.take()
        for event in (WatchEvent("ADDED", old), WatchEvent("MODIFIED", new)):
            api.watchers[0].queue.put_nowait(event)
        await world.clock.sleep(0.1)
        assert told.take() == []
        assert informer.get("default", "a")["metadata"]["labels"] == {"step": "2"}

    with_informer(test)


def test_a_pod_deleted_and_made_again_unseen_is_told_as_two_lives():
    async def test(world, api, informer, told):
        first = api.put(PODS, pod("a"))
        await informer.synced()
        told.take()
        api.fail_next("list", "pods", ConnectionLost("down"))
        api.break_watches(ConnectionLost("reset"))
        await world.clock.sleep(0)
        api.remove(PODS, "a", "default")
        second = api.put(PODS, pod("a"))
        await world.clock.sleep(5)
        assert first["metadata"]["uid"] != second["metadata"]["uid"]
        assert told.take() == [("delete", "a"), ("add", "a")]

    with_informer(test)


def test_a_server_that_lost_its_store_and_counts_anew_is_believed():
    async def test(world, api, informer, told):
        api.put(PODS, pod("a", step="1"))
        await informer.synced()
        told.take()
        uid = informer.get("default", "a")["metadata"]["uid"]
        api.objects.clear()
        api.history.clear()
        api.version = 1
        restored = pod("a", step="0")
        restored["metadata"]["uid"] = uid
        api.put(PODS, restored)
        api.break_watches(ConnectionLost("restarted"))
        await world.clock.sleep(5)
        assert told.take() == [("update", "a")]
        assert informer.get("default", "a")["metadata"]["labels"] == {"step": "0"}

    with_informer(test)


def test_indexes_follow_the_objects():
    async def test(world, api, informer, told):
        api.put(PODS, pod("a", app="web"))
        api.put(PODS, pod("b", app="web"))
        await informer.synced()
        names = lambda value: [o["metadata"]["name"] for o in informer.by_index("app", value)]  # noqa: E731
        assert names("web") == ["a", "b"]
        api.put(PODS, pod("a", app="db"))
        api.remove(PODS, "b", "default")
        await world.clock.sleep(0.1)
        assert names("web") == []
        assert names("db") == ["a"]

    with_informer(test, indexes={"app": lambda o: [o["metadata"]["labels"]["app"]]})


def test_a_handler_added_late_is_told_what_is_there():
    async def test(world, api, informer, told):
        api.put(PODS, pod("a"))
        await informer.synced()
        assert Told(informer).take() == [("add", "a")]

    with_informer(test)


def test_a_selector_makes_an_object_that_stops_matching_look_deleted():
    async def test(world, api, informer, told):
        api.put(PODS, pod("a", app="web"))
        await informer.synced()
        api.put(PODS, pod("a", app="db"))
        await world.clock.sleep(0.1)
        assert told.take() == [("add", "a"), ("delete", "a")]

    with_informer(test, label_selector="app=web")


def test_cluster_scoped_objects_are_found_without_a_namespace():
    async def main(world: World):
        api = FakeAPI(world)
        api.put(NODES, {"metadata": {"name": "n"}})
        informer = Informer(api, NODES, world=world)
        async with Tasks() as tasks:
            tasks.spawn(informer.run(), name="informer")
            await informer.synced()
            assert informer.get("", "n") is not None
            tasks.cancel()

    run_virtual(main)
