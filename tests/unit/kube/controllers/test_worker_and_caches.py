"""The loop around each sync, and the caches that controllers share.

Source: the runWorker of every controller in pkg/controller, client-go informers.SharedInformerFactory.
"""

import itertools

import pytest
from fake_api import ConnectionLost, FakeAPI

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.resources import CONFIGMAPS, PODS, SERVICES
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.informers import (
    CONTROLLER,
    NAMESPACE,
    NODE,
    SELECTING,
    Informers,
    by_controller,
    by_namespace,
    by_node,
    by_selecting,
    is_managed,
    owned_and_orphans,
)
from lastcall.kube.controllers.ownership import controller_of, is_controlled_by, owner_value
from lastcall.kube.controllers.pods.control import is_pod_active, is_pod_terminating, pod_from_template
from lastcall.kube.controllers.worker import Retry, Worker, queue_name, split_key
from lastcall.world.clock import monotonic
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

ERRORS: list[Exception] = [status_failure(500, "InternalError", "x"), ConnectionLost("x"), Retry("x")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("most", [None, 0, 2])
def test_a_sync_that_fails_is_tried_again_so_many_times(error: Exception, most: int | None) -> None:
    async def main(world: World) -> None:
        tried: list[float] = []

        async def sync(key: str) -> None:
            assert key == "default/a"
            tried.append(monotonic(world.clock))
            if len(tried) < 6:
                raise error

        worker = Worker(world, "test", sync, max_retries=most)
        async with Tasks() as tasks:
            tasks.spawn(worker.run([]), name="worker")
            worker.queue.add("default/a")
            await world.clock.sleep(10)
            assert len(tried) == (6 if most is None else most + 1)
            assert worker.queue.num_requeues("default/a") == 0
            waits = [round(after - before, 3) for before, after in itertools.pairwise(tried)]
            assert waits == [0.005, 0.01, 0.02, 0.04, 0.08][: len(waits)]
            worker.queue.add("default/a")
            await world.clock.sleep(10)
            assert len(tried) > (6 if most is None else most + 1), "it may come again"
            tasks.cancel()

    run_virtual(main)


@pytest.mark.parametrize("workers", [1, 3])
def test_as_many_syncs_run_at_once_as_there_are_workers_and_never_two_for_one_key(workers: int) -> None:
    async def main(world: World) -> None:
        running: list[str] = []
        most = 0

        async def sync(key: str) -> None:
            nonlocal most
            assert key not in running
            running.append(key)
            most = max(most, len(running))
            await world.clock.sleep(1)
            running.remove(key)

        worker = Worker(world, "test", sync, workers=workers)
        async with Tasks() as tasks:
            tasks.spawn(worker.run([]), name="worker")
            for _ in range(3):
                for key in ("a", "b", "c", "d"):
                    worker.queue.add(key)
                await world.clock.sleep(0.5)
            await world.clock.sleep(20)
            tasks.cancel()
        assert most == workers

    run_virtual(main)


def test_work_begins_when_the_caches_are_filled() -> None:
    async def main(world: World) -> None:
        api, seen = FakeAPI(world), []
        api.latency = 5.0
        informer: Informer = Informer(api, PODS, world=world)

        async def sync(key: str) -> None:
            seen.append(key)

        worker = Worker(world, "test", sync)
        async with Tasks() as tasks:
            tasks.spawn(informer.run(), name="informer")
            tasks.spawn(worker.run([informer]), name="worker")
            worker.queue.add("default/a")
            await world.clock.sleep(4)
            assert seen == []
            await world.clock.sleep(2)
            assert seen == ["default/a"]
            tasks.cancel()

    run_virtual(main)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("deployment-controller", "deployment"), ("replication-controller", "replicationmanager"),
        ("job-controller orphans", "job_orphan_pod"), ("taint-eviction", "taint-eviction"), ("a b", "a_b"),
    ],
)  # fmt: skip
def test_a_queue_has_the_name_that_kubernetes_gives_it(name: str, expected: str) -> None:
    assert queue_name(name) == expected


def test_a_key_is_a_namespace_and_a_name() -> None:
    assert split_key("default/web") == ("default", "web") and split_key("a/b/c") == ("a", "b/c")


# -- caches --------------------------------------------------------------------------------------------------------


def pod(name: str, owner: str = "", node: str = "", namespace: str = "default", **meta: object) -> dict:
    references = [{"uid": "x"}, {"uid": owner, "controller": True, "name": "o", "kind": "K"}] if owner else []
    made = {"name": name, "namespace": namespace, "uid": name, "ownerReferences": references, **meta}
    return {"metadata": made, "spec": {"nodeName": node} if node else {}}


def test_objects_are_found_by_namespace_owner_node_and_selecting_service() -> None:
    assert by_namespace(pod("a")) == ("default",)
    assert (by_controller(pod("a", "u")), by_controller(pod("a"))) == (("u",), ("orphan/default",))
    assert (by_node(pod("a", node="n")), by_node(pod("a")), by_node({"metadata": {}})) == (("n",), (), ())
    managed = {"metadata": {"namespace": "default"}, "spec": {"selector": {"a": "b"}}}
    assert by_selecting(managed) == ("default",)
    for spec in ({}, {"selector": {}}, {"selector": {"a": "b"}, "type": "ExternalName"}):
        assert not is_managed({"spec": spec}) and by_selecting({**managed, "spec": spec}) == ()
    assert is_managed(managed) and not is_managed({})


def test_the_controller_is_the_reference_that_is_marked_so() -> None:
    owned = pod("a", "u")
    assert controller_of(owned)["uid"] == "u" and owner_value(owned) == "u"
    assert is_controlled_by(owned, {"metadata": {"uid": "u"}}) and not is_controlled_by(
        owned, {"metadata": {"uid": "x"}}
    )
    assert controller_of({"metadata": {"ownerReferences": [{"uid": "x", "controller": False}]}}) is None
    assert not is_controlled_by(pod("b"), {"metadata": {"uid": "u"}})


def test_all_who_ask_get_the_same_cache_and_it_runs_once() -> None:
    async def main(world: World) -> None:
        api = FakeAPI(world)
        informers = Informers(world, api)
        pods: Informer = informers.get(PODS)
        assert informers.get(PODS) is pods and informers.of(PODS, "shop") is not pods
        assert informers.pods_by_owner is informers.pods_by_owner and informers.pod_routes is informers.pod_routes
        api.put(PODS, pod("a", "u", "n1"))
        api.put(PODS, pod("b", namespace="shop"))
        api.put(SERVICES, {"metadata": {"name": "s", "namespace": "shop"}, "spec": {"selector": {"a": "b"}}})
        async with Tasks() as tasks:
            informers.spawn(tasks)
            late: Informer = informers.get(SERVICES)
            await world.clock.sleep(1)
            assert [call for call in api.calls if call[0] == "list"] == [("list", "pods", ""), ("list", "services", "")]
            assert [each["metadata"]["name"] for each in pods.by_index(NODE, "n1")] == ["a"]
            assert [each["metadata"]["name"] for each in pods.by_index(CONTROLLER, "u")] == ["a"]
            assert pods.has_any(NAMESPACE, "shop") and late.has_any(SELECTING, "shop")
            found = owned_and_orphans(pods, "u", "shop")
            assert [each["metadata"]["name"] for each in found] == ["a", "b"]
            moved = api.of(PODS, "default")[0]
            api.put(PODS, {**moved, "spec": {"nodeName": "n2"}})
            await world.clock.sleep(1)
            assert not pods.has_any(NODE, "n1") and pods.has_any(NODE, "n2")
            moved = api.of(PODS, "default")[0]
            api.put(PODS, {**moved, "metadata": {**moved["metadata"], "ownerReferences": []}})
            await world.clock.sleep(1)
            assert not pods.has_any(CONTROLLER, "u") and pods.has_any(CONTROLLER, "orphan/default")
            assert informers.drop(PODS) is pods and informers.drop(CONFIGMAPS) is None
            api.put(PODS, pod("c"))
            await world.clock.sleep(1)
            assert pods.get("default", "c") is None and informers.get(PODS) is not pods
            tasks.cancel()

    run_virtual(main)


def test_of_config_maps_the_shared_cache_keeps_no_content() -> None:
    async def main(world: World) -> None:
        api = FakeAPI(world)
        maps: Informer = (informers := Informers(world, api)).get(CONFIGMAPS)
        api.put(CONFIGMAPS, {"metadata": {"name": "a", "namespace": "shop"}, "data": {"x": "y" * 1000}})
        async with Tasks() as tasks:
            informers.spawn(tasks)
            await world.clock.sleep(1)
            assert [sorted(each) for each in maps.by_index(NAMESPACE, "shop")] == [["apiVersion", "kind", "metadata"]]
            api.put(CONFIGMAPS, {**api.of(CONFIGMAPS, "shop")[0], "data": {"x": "z"}})
            await world.clock.sleep(1)
            assert [sorted(each) for each in maps.items()] == [["apiVersion", "kind", "metadata"]]
            tasks.cancel()

    run_virtual(main)


@pytest.mark.parametrize(
    ("phase", "ending", "active", "terminating"),
    [
        ("Running", False, True, False),
        ("Running", True, False, True),
        ("Failed", False, False, False),
        ("Failed", True, False, False),
    ],
)
def test_a_pod_is_active_until_it_ends_or_is_deleted(phase: str, ending: bool, active: bool, terminating: bool) -> None:
    made = pod("a", **({"deletionTimestamp": "2030-01-01T00:00:00Z"} if ending else {}))
    made["status"] = {"phase": phase}
    assert (is_pod_active(made), is_pod_terminating(made)) == (active, terminating)


def test_a_bare_template_makes_a_bare_pod() -> None:
    made = pod_from_template({}, "web", {"uid": "u"})
    assert made["metadata"] == {"generateName": "web-", "ownerReferences": [{"uid": "u"}]} and made["spec"] == {}
    assert (made["kind"], made["apiVersion"]) == ("Pod", "v1")
