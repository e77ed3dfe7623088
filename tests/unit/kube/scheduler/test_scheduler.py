"""The scheduler's loop in virtual time."""

from fake_api import ConnectionLost, FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import copy_object
from lastcall.kube.api.resources import EVENTS, NODES, PODS
from lastcall.kube.scheduler.scheduler import run_scheduler
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def node(name="n", ready="True", **spec) -> dict:
    """One with room; what is not Ready carries the taint that the node lifecycle controller puts there."""
    if ready != "True":
        spec["taints"] = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"},
        },
    }


def pod(name="p", conditions=None, **spec) -> dict:
    return {
        "metadata": {"name": name, "namespace": "default", "generation": 1},
        "spec": {"schedulerName": "default-scheduler", "containers": [], **spec},
        "status": {"phase": "Pending", **({"conditions": conditions} if conditions else {})},
    }


def with_scheduler(test):
    async def main(world: World):
        api, recorder = FakeAPI(world), ListRecorder(world)
        async with Tasks() as tasks:
            tasks.spawn(run_scheduler(world=world, client=api, recorder=recorder, minor=36), name="scheduler")
            try:
                return await test(world, api, recorder)
            finally:
                tasks.cancel()

    return run_virtual(main)


def node_of(api, name="p"):
    return api.objects[("pods", "default", name)]["spec"].get("nodeName")


def events(api):
    return [(e["type"], e["reason"], e["message"]) for e in api.of(EVENTS)]


def test_a_pod_is_bound_at_once_with_event_and_record():
    async def test(world, api, recorder):
        api.put(NODES, node())
        await world.clock.sleep(1)
        created = api.put(PODS, pod())
        await world.clock.sleep(0.001)
        assert node_of(api) == "n"
        assert ("create", "pods", "p") in api.calls
        assert events(api) == [("Normal", "Scheduled", "Successfully assigned default/p to n")]
        (event,) = api.of(EVENTS)
        assert event["source"] == {"component": "default-scheduler"}
        assert event["involvedObject"]["resourceVersion"] == created["metadata"]["resourceVersion"]
        (record,) = recorder.records
        assert (record["kind"], record["facts"], record["pod_uid"]) == (
            "PodScheduled",
            {"node": "n"},
            created["metadata"]["uid"],
        )

    with_scheduler(test)


def test_a_pod_bound_already_gated_ended_or_of_another_scheduler_is_left_alone():
    async def test(world, api, recorder):
        api.put(NODES, node())
        api.put(PODS, pod("bound", nodeName="elsewhere"))
        api.put(PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
        api.put(PODS, pod("other", schedulerName="mine"))
        ended = pod("ended")
        ended["status"]["phase"] = "Failed"
        api.put(PODS, ended)
        await world.clock.sleep(60)
        assert [node_of(api, name) for name in ("bound", "gated", "other", "ended")] == ["elsewhere", None, None, None]
        assert events(api) == []

    with_scheduler(test)


def test_a_lifted_gate_lets_the_pod_go():
    async def test(world, api, recorder):
        api.put(NODES, node())
        api.put(PODS, pod(schedulingGates=[{"name": "example.com/wait"}]))
        await world.clock.sleep(5)
        api.put(PODS, pod())
        await world.clock.sleep(0.01)
        assert node_of(api) == "n"

    with_scheduler(test)


def test_a_pod_that_fits_nowhere_says_so_and_goes_when_the_node_changes():
    async def test(world, api, recorder):
        api.put(NODES, node(unschedulable=True))
        api.put(PODS, pod())
        await world.clock.sleep(100)
        message = (
            "0/1 nodes are available: 1 node(s) were unschedulable. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        assert events(api) == [("Warning", "FailedScheduling", message)]
        (condition,) = api.objects[("pods", "default", "p")]["status"]["conditions"]
        assert condition == {
            "type": "PodScheduled",
            "observedGeneration": 1,
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": "2030-01-01T00:00:00Z",
            "reason": "Unschedulable",
            "message": message,
        }
        api.put(NODES, {**node(unschedulable=True), "status": {**node()["status"], "images": []}})
        await world.clock.sleep(10)
        assert len(events(api)) == 1, "a change that no filter looks at is no reason to try again"
        api.put(NODES, node())
        await world.clock.sleep(0.01)
        assert node_of(api) == "n"

    with_scheduler(test)


def test_the_first_node_that_becomes_ready_takes_the_waiting_pods():
    async def test(world, api, recorder):
        api.put(PODS, pod("a"))
        api.put(PODS, pod("b"))
        await world.clock.sleep(1)
        assert {message for _, _, message in events(api)} == {"no nodes available to schedule pods"}
        api.put(NODES, node(ready="False"))
        await world.clock.sleep(1)
        assert node_of(api, "a") is None
        api.put(NODES, node())
        await world.clock.sleep(0.01)
        assert (node_of(api, "a"), node_of(api, "b")) == ("n", "n")

    with_scheduler(test)


def test_the_condition_keeps_its_neighbours_and_its_transition_time():
    async def test(world, api, recorder):
        gate = {"type": "example.com/gate", "status": "True"}
        api.put(PODS, pod(conditions=[gate]))
        await world.clock.sleep(10)
        api.put(NODES, node(unschedulable=True))
        await world.clock.sleep(10)
        conditions = api.objects[("pods", "default", "p")]["status"]["conditions"]
        assert conditions[0] == gate
        assert conditions[1]["lastTransitionTime"] == "2030-01-01T00:00:00Z"
        assert "unschedulable" in conditions[1]["message"]

    with_scheduler(test)


def test_a_toleration_added_later_makes_the_pod_fit():
    async def test(world, api, recorder):
        api.put(NODES, node(taints=[{"key": "k", "effect": "NoSchedule"}]))
        api.put(PODS, pod())
        await world.clock.sleep(5)
        tolerant = copy_object(api.objects[("pods", "default", "p")])
        tolerant["spec"]["tolerations"] = [{"operator": "Exists"}]
        tolerant["metadata"]["generation"] = 2
        api.put(PODS, tolerant)
        await world.clock.sleep(1)
        assert node_of(api) == "n"

    with_scheduler(test)


def test_pods_are_spread_over_the_nodes_that_fit():
    async def test(world, api, recorder):
        for name in ("a", "b", "c"):
            api.put(NODES, node(name))
        api.latency = 0.01
        await world.clock.sleep(1)
        for number in range(9):
            api.put(PODS, pod(f"p{number}"))
        await world.clock.sleep(5)
        placed = [node_of(api, f"p{number}") for number in range(9)]
        assert sorted(placed) == ["a"] * 3 + ["b"] * 3 + ["c"] * 3

    with_scheduler(test)


def test_a_binding_that_is_lost_is_tried_again_and_made_once():
    async def test(world, api, recorder):
        api.put(NODES, node())
        await world.clock.sleep(1)
        api.fail_next("create", "pods", ConnectionLost("down"), times=2)
        api.put(PODS, pod())
        await world.clock.sleep(10)
        assert node_of(api) == "n"
        assert len(recorder.records) == 1

    with_scheduler(test)


def test_a_pod_somebody_else_bound_or_deleted_in_between_is_no_failure():
    async def test(world, api, recorder):
        api.put(NODES, node())
        await world.clock.sleep(1)
        api.fail_next("create", "pods", status_failure(409, "Conflict", "already assigned"))
        api.fail_next("create", "pods", status_failure(404, "NotFound", "gone"))
        api.put(PODS, pod("a"))
        api.put(PODS, pod("b"))
        await world.clock.sleep(0.5)
        api.put(PODS, pod("a", nodeName="n"))
        await world.clock.sleep(60)
        assert sum(1 for call in api.calls if call[:2] == ("create", "pods")) == 2
        assert recorder.records == []

    with_scheduler(test)


def test_a_terminating_pod_is_skipped_with_an_event():
    async def test(world, api, recorder):
        api.put(NODES, node())
        held = pod()
        held["metadata"] |= {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["example.com/hold"]}
        api.put(PODS, held)
        await world.clock.sleep(5)
        assert node_of(api) is None
        assert events(api) == [("Warning", "FailedScheduling", "skip schedule deleting pod: default/p")]

    with_scheduler(test)


def test_a_waiting_pod_that_begins_to_end_is_not_looked_at_once_more():
    """Recorded: rs-scale-in-ranking (no Event tells that it is skipped)."""

    async def test(world, api, recorder):
        held = pod()
        held["metadata"]["finalizers"] = ["example.com/hold"]
        api.put(PODS, held)
        await world.clock.sleep(5)
        told = events(api)
        held["metadata"] |= {"deletionTimestamp": "2030-01-01T00:00:00Z", "generation": 2}
        api.put(PODS, held)
        await world.clock.sleep(5)
        assert events(api) == told and "skip" not in str(told)

    with_scheduler(test)


def test_a_pod_made_again_under_the_name_of_one_that_waited_is_scheduled():
    async def test(world, api, recorder):
        api.put(PODS, pod(nodeSelector={"no": "where"}))
        api.put(NODES, node())
        await world.clock.sleep(5)
        api.remove(PODS, "p", "default")
        api.put(PODS, pod())
        await world.clock.sleep(1)
        assert node_of(api) == "n"

    with_scheduler(test)


def test_two_runs_schedule_alike():
    async def test(world, api, recorder):
        for name in ("a", "b"):
            api.put(NODES, node(name))
        for number in range(6):
            api.put(PODS, pod(f"p{number}"))
        await world.clock.sleep(5)
        return recorder.records, [e["metadata"]["name"] for e in api.of(EVENTS)]

    assert with_scheduler(test) == with_scheduler(test)
