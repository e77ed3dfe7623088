"""The loop around the rules: latency, refusals, lost watches, other people's writes."""

from fake_api import ConnectionLost, FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import copy_object
from lastcall.kube.api.resources import ENDPOINTSLICES, NODES, PODS, SERVICES
from lastcall.kube.controllers.manager import run_controllers
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def a_service(name="svc", **spec) -> dict:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "clusterIP": "10.96.0.9", "ports": [{"port": 80}], **spec},
    }


def a_pod(name="p", ip="10.0.0.1", ready="True", phase="Running", deleted=False, labels=None, node="n") -> dict:
    meta = {"name": name, "namespace": "default", "labels": labels or {"app": "web"}}
    if deleted:
        meta["deletionTimestamp"] = "2030-01-01T00:00:30Z"
    return {
        "metadata": meta,
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": phase, "podIPs": [{"ip": ip}], "conditions": [{"type": "Ready", "status": ready}]},
    }


def with_controllers(test, latency=0.0):
    async def main(world: World):
        api, recorder = FakeAPI(world), ListRecorder(world)
        api.latency = latency
        api.put(NODES, {"metadata": {"name": "n"}})
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(), world=world, client=api, recorder_for=lambda _: recorder, root_ca_pem=b"ca"
            )
            tasks.spawn(controllers, name="controllers")
            try:
                return await test(world, api, recorder)
            finally:
                tasks.cancel()

    return run_virtual(main)


def listed(api: FakeAPI, service="svc") -> list[tuple]:
    return [
        (e["targetRef"]["name"], e["conditions"]["ready"], e["conditions"]["terminating"])
        for s in api.of(ENDPOINTSLICES)
        if s["metadata"]["labels"]["kubernetes.io/service-name"] == service
        for e in s["endpoints"] or ()
    ]


def slice_writes(api: FakeAPI) -> int:
    return sum(1 for verb, plural, _ in api.calls if plural == "endpointslices" and verb in ("create", "update"))


def test_a_deletion_timestamp_reaches_the_slice_without_any_waiting():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(PODS, a_pod())
        await world.clock.sleep(5)
        assert listed(api) == [("p", True, False)]
        start = world.clock.monotonic_ns()
        api.put(PODS, a_pod(deleted=True))
        await world.clock.sleep(0.001)
        assert listed(api) == [("p", False, True)]
        assert recorder.records[-1]["at"] * 1e9 == start
        assert recorder.records[-1]["evidence"] == "observed"

    with_controllers(test)


def test_with_a_slow_server_a_second_change_during_the_write_is_not_lost_and_not_refused():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(PODS, a_pod())
        await world.clock.sleep(5)
        api.put(PODS, a_pod(deleted=True))
        await world.clock.sleep(0.02)
        api.put(PODS, a_pod(deleted=True, ready="False"))
        await world.clock.sleep(0.2)
        api.put(PODS, a_pod(deleted=True, ready="False", phase="Succeeded"))
        await world.clock.sleep(0.2)
        assert listed(api) == []
        states = [(r["facts"].get("ready"), r["facts"].get("serving")) for r in recorder.records]
        assert states[-3:] == [(False, True), (False, False), (None, None)]

    with_controllers(test, latency=0.05)


def test_our_own_write_is_known_before_the_watch_brings_it():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(PODS, a_pod())
        await world.clock.sleep(5)
        # From here on the controller sees no slice events at all.
        for watcher in api.watchers:
            if watcher.resource == ENDPOINTSLICES:
                watcher.namespace = "nowhere"
        before = slice_writes(api)
        for number in range(4):
            api.put(PODS, a_pod(ready="False" if number % 2 == 0 else "True"))
            await world.clock.sleep(0.5)
        assert slice_writes(api) - before == 4
        assert listed(api) == [("p", True, False)]

    with_controllers(test)


def test_our_own_write_stays_known_while_the_service_is_looked_at_again_and_again():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(PODS, a_pod())
        await world.clock.sleep(5)
        for watcher in api.watchers:
            if watcher.resource == ENDPOINTSLICES:
                watcher.namespace = "nowhere"
        before = slice_writes(api)
        api.put(PODS, a_pod(ready="False"))
        for number in range(4):
            await world.clock.sleep(0.5)
            api.put(SERVICES, {**a_service(), "status": {"conditions": [{"type": "X", "reason": str(number)}]}})
        await world.clock.sleep(0.5)
        assert slice_writes(api) - before == 1

    with_controllers(test)


def test_a_conflict_is_tried_again_after_a_second():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(PODS, a_pod())
        await world.clock.sleep(5)
        api.fail_next("update", "endpointslices", status_failure(409, "Conflict", "modified"))
        api.put(PODS, a_pod(deleted=True))
        await world.clock.sleep(0.5)
        assert listed(api) == [("p", True, False)]
        await world.clock.sleep(1)
        assert listed(api) == [("p", False, True)]

    with_controllers(test)


def test_a_removal_that_failed_at_first_still_names_the_version_of_the_pod_it_reacted_to():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(PODS, a_pod())
        await world.clock.sleep(5)
        api.fail_next("update", "endpointslices", ConnectionLost("down"))
        gone = api.remove(PODS, "p", "default")
        await world.clock.sleep(5)
        assert listed(api) == []
        record = recorder.records[-1]
        assert record["kind"] == "EndpointRemoved"
        assert record["facts"]["observedResourceVersion"] == gone["metadata"]["resourceVersion"]

    with_controllers(test)


def test_a_slice_somebody_else_changed_is_put_right_after_a_second():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(PODS, a_pod())
        await world.clock.sleep(5)
        (ours,) = api.of(ENDPOINTSLICES)
        spoiled = copy_object(ours)
        spoiled["endpoints"] = None
        api.put(ENDPOINTSLICES, spoiled)
        await world.clock.sleep(0.5)
        assert listed(api) == []
        await world.clock.sleep(1)
        assert listed(api) == [("p", True, False)]

    with_controllers(test)


def test_a_slice_somebody_deleted_comes_back():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(PODS, a_pod())
        await world.clock.sleep(20)
        (ours,) = api.of(ENDPOINTSLICES)
        api.remove(ENDPOINTSLICES, ours["metadata"]["name"], "default")
        await world.clock.sleep(20)
        assert listed(api) == [("p", True, False)]

    with_controllers(test)


def test_nothing_is_written_while_nothing_changes():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(PODS, a_pod())
        await world.clock.sleep(5)
        before = slice_writes(api)
        for number in range(5):
            touched = a_pod()
            touched["metadata"]["annotations"] = {"n": str(number)}
            api.put(PODS, touched)
            await world.clock.sleep(10)
        assert slice_writes(api) == before

    with_controllers(test)


def test_a_pod_that_changes_labels_moves_between_services():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(SERVICES, a_service("other", selector={"app": "db"}))
        api.put(PODS, a_pod())
        await world.clock.sleep(5)
        api.put(PODS, a_pod(labels={"app": "db"}))
        await world.clock.sleep(0.01)
        assert listed(api) == []
        assert listed(api, "other") == [("p", True, False)]

    with_controllers(test)


def test_a_pod_whose_node_comes_late_is_listed_when_it_comes():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(PODS, a_pod(node="late"))
        await world.clock.sleep(5)
        assert listed(api) == []
        api.put(NODES, {"metadata": {"name": "late"}})
        await world.clock.sleep(0.01)
        assert listed(api) == [("p", True, False)]

    with_controllers(test)


def test_the_slices_of_a_deleted_service_go_and_those_of_others_stay():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(SERVICES, a_service("other"))
        api.put(PODS, a_pod())
        await world.clock.sleep(5)
        api.remove(SERVICES, "svc", "default")
        await world.clock.sleep(1)
        assert listed(api) == []
        assert listed(api, "other") == [("p", True, False)]

    with_controllers(test)


def test_services_without_selector_and_external_names_are_left_alone():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service(selector=None))
        api.put(SERVICES, a_service("external", type="ExternalName", externalName="example.com"))
        api.put(PODS, a_pod())
        await world.clock.sleep(5)
        assert api.of(ENDPOINTSLICES) == []

    with_controllers(test)


def test_a_create_refused_because_the_namespace_goes_away_is_not_retried():
    async def test(world, api, recorder):
        details = {"causes": [{"reason": "NamespaceTerminating"}]}
        refusal = status_failure(403, "Forbidden", "being terminated", details)
        api.fail_next("create", "endpointslices", refusal, times=100)
        api.put(SERVICES, a_service())
        await world.clock.sleep(600)
        assert sum(1 for call in api.calls if call[:2] == ("create", "endpointslices")) == 1

    with_controllers(test)


def test_a_server_that_keeps_failing_is_asked_at_growing_distances():
    async def test(world, api, recorder):
        api.fail_next("create", "endpointslices", ConnectionLost("down"), times=4)
        api.put(SERVICES, a_service())
        await world.clock.sleep(20)
        assert sum(1 for call in api.calls if call[:2] == ("create", "endpointslices")) == 5
        assert len(api.of(ENDPOINTSLICES)) == 1

    with_controllers(test)


def test_after_everything_was_disconnected_the_slices_are_right_again():
    async def test(world, api, recorder):
        api.put(SERVICES, a_service())
        api.put(PODS, a_pod("a", ip="10.0.0.1"))
        api.put(PODS, a_pod("b", ip="10.0.0.2"))
        await world.clock.sleep(5)
        api.break_watches(ConnectionLost("reset"))
        await world.clock.sleep(0)
        api.remove(PODS, "a", "default")
        api.put(PODS, a_pod("c", ip="10.0.0.3"))
        await world.clock.sleep(60)
        assert sorted(listed(api)) == [("b", True, False), ("c", True, False)]

    with_controllers(test)
