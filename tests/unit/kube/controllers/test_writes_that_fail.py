"""What owners of Pods do when the API refuses a write: each controller alone, beside an API that fails on demand.

Source: pkg/controller/{replicaset,daemon,statefulset,deployment}: the error paths of each sync.
"""

from collections.abc import Awaitable, Callable

import pytest
from fake_api import FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    CONTROLLERREVISIONS,
    DAEMONSETS,
    DEPLOYMENTS,
    EVENTS,
    NODES,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from lastcall.kube.controllers.history import new_revision
from lastcall.kube.controllers.manager import run_controllers
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
NAMES = {
    REPLICASETS: "replicaset-controller", DAEMONSETS: "daemonset-controller", STATEFULSETS: "statefulset-controller",
    DEPLOYMENTS: "deployment-controller",
}  # fmt: skip
FORBIDDEN = status_failure(403, "Forbidden", "exceeded quota")
CONFLICT = status_failure(409, "Conflict", "the object has been modified")
GONE = status_failure(404, "NotFound", "gone")
CAUSES = {"causes": [{"reason": "NamespaceTerminating"}]}
TERMINATING = status_failure(403, "Forbidden", "is being terminated", CAUSES)


def owner(resource: Resource, replicas: int = 2, **spec: object) -> Object:
    known = {} if resource == DAEMONSETS else {"replicas": replicas}
    template = {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    update = {"updateStrategy": {"type": "RollingUpdate"}} if resource in (DAEMONSETS, STATEFULSETS) else {}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": {**known, **template, **update, **spec}}


def run(resource: Resource, test: Callable[[World, FakeAPI, ListRecorder], Awaitable[None]]) -> None:
    async def main(world: World) -> None:
        api, recorder = FakeAPI(world), ListRecorder(world)
        for name in ("n1", "n2"):
            api.put(NODES, {"metadata": {"name": name}})
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world,
                client=api,
                recorder_for=lambda _: recorder,
                root_ca_pem=b"ca",
                names=[NAMES[resource]],
            )
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(1)
            await test(world, api, recorder)
            tasks.cancel()

    run_virtual(main)


def calls(api: FakeAPI, resource: Resource) -> list[str]:
    """Return the verbs about this kind, those of caches left out."""
    return [verb for verb, plural, _ in api.calls if plural == resource.plural and verb not in ("list", "watch")]


def status(api: FakeAPI, resource: Resource) -> Object:
    return api.of(resource)[0].get("status") or {}


def events(api: FakeAPI) -> list[tuple[str, str, str]]:
    return [(each["type"], each["reason"], each["message"]) for each in api.of(EVENTS)]


def pod_of(of: Object, resource: Resource, name: str, *, labels: dict | None = None, **status: object) -> Object:
    meta = of["metadata"]
    reference = {"apiVersion": resource.api_version, "kind": resource.kind, "name": "web", "uid": meta["uid"]}
    return {
        "metadata": {
            "name": name, "namespace": "default", "labels": {"app": "web"} if labels is None else labels,
            "ownerReferences": [{**reference, "controller": True}],
        },
        "spec": {"containers": []},
        "status": status,
    }  # fmt: skip


KINDS = [REPLICASETS, DAEMONSETS, STATEFULSETS]


def of_kind(resource: Resource) -> Object:
    """Return an owner that has no Pods to make."""
    return owner(
        resource, 0, **({"template": {**TEMPLATE, "spec": {"nodeName": "none"}}} if resource == DAEMONSETS else {})
    )


@pytest.mark.parametrize("resource", KINDS, ids=str)
def test_a_status_that_conflicts_is_written_onto_the_latest_object(resource: Resource) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("update", resource.plural, CONFLICT)
        api.put(resource, of_kind(resource))
        await world.clock.sleep(0.001)
        assert calls(api, resource) == ["update", "get", "update"]
        assert status(api, resource)["observedGeneration"] == 1

    run(resource, test)


@pytest.mark.parametrize("resource", KINDS, ids=str)
def test_the_status_of_what_is_gone_is_not_written_and_what_else_fails_is_tried_again(resource: Resource) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("update", resource.plural, GONE)
        api.put(resource, of_kind(resource))
        await world.clock.sleep(30)
        assert calls(api, resource) == ["update"] and not status(api, resource)
        api.fail_next("update", resource.plural, FORBIDDEN, times=2)
        again = dict(api.of(resource)[0])
        api.put(resource, {**again, "metadata": {**again["metadata"], "generation": 2}})
        await world.clock.sleep(30)
        assert calls(api, resource) == ["update"] * 4
        assert status(api, resource)["observedGeneration"] == 2

    run(resource, test)


@pytest.mark.parametrize("resource", KINDS, ids=str)
def test_a_status_is_not_written_onto_another_object_of_the_name(resource: Resource) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        other = {**of_kind(resource), "status": {"mine": 1}}
        get = api.get

        async def another(what: Resource, name: str, namespace: str = "", **more: str) -> Object:
            return {**await get(what, name, namespace, **more), "metadata": {**other["metadata"], "uid": "another"}}

        api.get = another  # type: ignore[method-assign]
        api.fail_next("update", resource.plural, CONFLICT)
        api.put(resource, of_kind(resource))
        await world.clock.sleep(0.001)
        assert calls(api, resource) == ["update", "get"]

    run(resource, test)


@pytest.mark.parametrize("resource", [REPLICASETS, DAEMONSETS], ids=str)
def test_a_creation_that_is_refused_is_said_and_tried_again(resource: Resource) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("create", "pods", FORBIDDEN)
        made = api.put(resource, owner(resource))
        await world.clock.sleep(5)
        assert len(api.of(PODS)) == 2
        assert ("Warning", "FailedCreate", "Error creating: exceeded quota") in events(api)
        assert sorted(reason for _, reason, _ in events(api)) == [
            "FailedCreate",
            "SuccessfulCreate",
            "SuccessfulCreate",
        ]
        assert all(each["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"] for each in api.of(PODS))

    run(resource, test)


@pytest.mark.parametrize("resource", [REPLICASETS, DAEMONSETS], ids=str)
def test_a_namespace_that_goes_is_no_failure(resource: Resource) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("create", "pods", TERMINATING, times=50)
        api.put(resource, owner(resource))
        await world.clock.sleep(5)
        assert events(api) == [] and "conditions" not in status(api, resource)
        assert calls(api, PODS).count("create") < 50

    run(resource, test)


def replica_failures(api: FakeAPI) -> list[tuple]:
    """Return (reason, message) of the condition ReplicaFailure, in each version of the ReplicaSet; None without one."""
    versions = [obj for _, _, resource, obj, _ in api.history if resource == REPLICASETS]
    found = [(each.get("status") or {}).get("conditions") or [] for each in versions]
    return [(each[0]["reason"], each[0]["message"]) if each else None for each in found]


def test_a_replica_set_that_cannot_make_its_pods_says_so_until_it_can() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("create", "pods", FORBIDDEN)
        api.put(REPLICASETS, owner(REPLICASETS))
        await world.clock.sleep(5)
        found = replica_failures(api)
        assert ("FailedCreate", "exceeded quota") in found and found[-1] is None
        assert (status(api, REPLICASETS)["replicas"], status(api, REPLICASETS)["fullyLabeledReplicas"]) == (2, 2)

    run(REPLICASETS, test)


def test_a_replica_set_that_cannot_delete_its_pods_says_so_until_it_can() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        made = api.put(REPLICASETS, owner(REPLICASETS))
        await world.clock.sleep(1)
        api.fail_next("delete", "pods", FORBIDDEN)
        api.put(REPLICASETS, {**made, "spec": {**made["spec"], "replicas": 0}, "status": status(api, REPLICASETS)})
        await world.clock.sleep(5)
        found = replica_failures(api)
        assert ("FailedDelete", "exceeded quota") in found and found[-1] is None
        assert api.of(PODS) == [] and status(api, REPLICASETS)["replicas"] == 0
        assert ("Warning", "FailedDelete", "Error deleting: exceeded quota") in events(api)
        first = recorder.records[0]
        assert (first["kind"], first["facts"]["rank"], first["facts"]["candidates"], first["facts"]["step"]) == (
            "DeletionDecided", 1, 2, "scaling",
        )  # fmt: skip
        assert first["facts"]["why"].startswith(
            "ReplicaSet web goes from 2 to 0 Pods, and this one is number 1 to go: "
        )

    run(REPLICASETS, test)


def test_a_replica_set_that_failed_makes_as_many_pods_as_are_missing() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        # One is made, then two at once, of which the first fails: the other eight were never tried.
        create, tried = api.create, []

        async def third_fails(resource: Resource, obj: Object, namespace: str = "", **more: str) -> Object:
            if resource == PODS:
                tried.append(obj)
                if len(tried) == 2:
                    raise FORBIDDEN
            return await create(resource, obj, namespace, **more)

        api.create = third_fails  # type: ignore[method-assign]
        api.put(REPLICASETS, owner(REPLICASETS, 10))
        await world.clock.sleep(30)
        assert (len(api.of(PODS)), len(tried)) == (10, 11)

    run(REPLICASETS, test)


def test_a_replica_set_does_not_count_before_its_own_writes_have_come_back() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.latency = 0.3
        made = api.put(REPLICASETS, owner(REPLICASETS, 5))
        for labels in ({"a": "1"}, {"a": "2"}):
            await world.clock.sleep(0.1)
            api.put(REPLICASETS, {**api.of(REPLICASETS)[0], "metadata": {**made["metadata"], "labels": labels}})
        await world.clock.sleep(10)
        assert calls(api, PODS) == ["create"] * 5

    run(REPLICASETS, test)


def test_a_replica_set_adopts_what_it_selects_and_lets_go_what_it_does_not() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        made = api.put(REPLICASETS, owner(REPLICASETS, 0))
        orphan = pod_of(made, REPLICASETS, "orphan")
        del orphan["metadata"]["ownerReferences"]
        api.put(PODS, orphan)
        await world.clock.sleep(1)
        # what was adopted is one too many
        assert calls(api, PODS) == ["patch", "delete"] and api.of(PODS) == []
        api.put(REPLICASETS, {**api.of(REPLICASETS)[0], "spec": owner(REPLICASETS, 1)["spec"]})
        await world.clock.sleep(1)
        (mine,) = api.of(PODS)
        api.put(PODS, {**mine, "metadata": {**mine["metadata"], "labels": {"app": "other"}}})
        await world.clock.sleep(1)
        assert calls(api, PODS) == ["patch", "delete", "create", "patch", "create"]

    run(REPLICASETS, test)


def test_pods_of_other_owners_are_no_business_of_a_replica_set() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        made = api.put(REPLICASETS, owner(REPLICASETS, 0))
        stranger = {**made, "metadata": {**made["metadata"], "uid": "another life"}}
        api.put(PODS, pod_of(stranger, REPLICASETS, "a"))
        api.put(PODS, pod_of(made, STATEFULSETS, "b", labels={}))
        await world.clock.sleep(1)
        # the second names its uid, and is claimed by that alone: it does not match and is let go
        assert calls(api, PODS) in ([], ["patch"])
        assert "a" in [each["metadata"]["name"] for each in api.of(PODS)]

    run(REPLICASETS, test)


READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("resource", "key"), [(REPLICASETS, "availableReplicas"), (DAEMONSETS, "numberAvailable")], ids=str
)
def test_a_pod_becomes_available_by_time_alone(resource: Resource, key: str) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        from lastcall.world.clock import now, rfc3339

        template = {"template": {**TEMPLATE, "spec": {"nodeName": "n1"}}} if resource == DAEMONSETS else {}
        api.put(resource, owner(resource, 1, minReadySeconds=20, **template))
        await world.clock.sleep(1)
        (made,) = api.of(PODS)
        ready = {**READY, "lastTransitionTime": rfc3339(now(world.clock))}
        api.put(PODS, {**made, "status": {"phase": "Running", "conditions": [ready]}})
        await world.clock.sleep(18)
        assert key not in status(api, resource)
        await world.clock.sleep(3)
        assert status(api, resource)[key] == 1

    run(resource, test)


@pytest.mark.parametrize("resource", KINDS, ids=str)
def test_an_owner_that_goes_makes_no_pods(resource: Resource) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        going = owner(resource)
        going["metadata"] |= {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["x/y"]}
        api.put(resource, going)
        await world.clock.sleep(5)
        assert calls(api, PODS) == []

    run(resource, test)


# -- DaemonSets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "kind", "reason"),
    [("Failed", "Warning", "FailedDaemonPod"), ("Succeeded", "Normal", "SucceededDaemonPod")],
)
def test_a_daemon_pod_that_ends_is_replaced_later_each_time(phase: str, kind: str, reason: str) -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        api.put(DAEMONSETS, owner(DAEMONSETS, template={**TEMPLATE, "spec": {"nodeName": "n1"}}))
        await world.clock.sleep(1)
        ends: list[float] = []
        for _ in range(4):
            while not api.of(PODS):
                await world.clock.sleep(0.01)
            (made,) = api.of(PODS)
            began = world.clock.monotonic_ns()
            api.put(PODS, {**made, "status": {"phase": phase}})
            while any(each["metadata"]["uid"] == made["metadata"]["uid"] for each in api.of(PODS)):
                await world.clock.sleep(0.01)
            ends.append((world.clock.monotonic_ns() - began) / 1e9)
        assert [round(each) for each in ends] == [0, 1, 2, 4]
        found = [each for each in events(api) if each[1] == reason]
        assert len(found) == 4 and found[0][0] == kind
        assert (
            found[0][2].startswith(f"Found {phase.lower()} daemon pod default/web-")
            and " on node n1, will try" in found[0][2]
        )
        why = recorder.records[0]["facts"]
        assert why["why"] == f"it has ended ({phase}), and DaemonSet web creates it again"
        assert (why["node"], why["step"]) == ("n1", "")

    run(DAEMONSETS, test)


@pytest.mark.parametrize("before", [None, 3])
def test_a_daemon_set_counts_the_revisions_whose_name_was_taken(before: int | None) -> None:
    """daemon/update.go:snapshot: the name is made of the count, so that the next sync asks for a free one."""

    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        of = {**of_kind(DAEMONSETS), "status": {} if before is None else {"collisionCount": before}}
        labels = of["spec"]["template"]["metadata"]["labels"]
        taken = new_revision({**of, "metadata": {**of["metadata"], "uid": "x"}}, DAEMONSETS, 1, before, labels)
        meta = {"name": taken["metadata"]["name"], "namespace": "default"}
        api.put(CONTROLLERREVISIONS, {"metadata": meta, "data": {"other": 1}, "revision": 1})
        api.put(DAEMONSETS, of)
        await world.clock.sleep(30)
        assert status(api, DAEMONSETS)["collisionCount"] == (before or 0) + 1
        assert len(api.of(CONTROLLERREVISIONS)) == 2, "one of the set's own was made"

    run(DAEMONSETS, test)


@pytest.mark.parametrize(("pause", "waits"), [(1798, 4), (1802, 1)])
def test_half_an_hour_after_the_last_end_a_node_s_daemon_pod_is_replaced_as_if_it_were_the_first(
    pause: float, waits: int
) -> None:
    """flowcontrol.Backoff forgets after twice the longest back-off, which is 15 minutes."""

    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(DAEMONSETS, owner(DAEMONSETS, template={**TEMPLATE, "spec": {"nodeName": "n1"}}))
        await world.clock.sleep(1)
        ends: list[float] = []
        for number in range(4):
            while not api.of(PODS):
                await world.clock.sleep(0.01)
            if number == 2:  # the back-off of two seconds has begun
                await world.clock.sleep(2 + pause)
            (made,) = api.of(PODS)
            began = world.clock.monotonic_ns()
            api.put(PODS, {**made, "status": {"phase": "Failed"}})
            while any(each["metadata"]["uid"] == made["metadata"]["uid"] for each in api.of(PODS)):
                await world.clock.sleep(0.01)
            ends.append((world.clock.monotonic_ns() - began) / 1e9)
        assert [round(each) for each in ends] == [0, 1, 0, waits]

    run(DAEMONSETS, test)


def test_a_node_that_comes_or_changes_gets_its_daemon_pod() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(DAEMONSETS, owner(DAEMONSETS, template={**TEMPLATE, "spec": {"nodeSelector": {"disk": "ssd"}}}))
        await world.clock.sleep(1)
        assert api.of(PODS) == []
        api.put(NODES, {"metadata": {"name": "n3", "labels": {"disk": "ssd"}}})
        await world.clock.sleep(1)
        assert len(api.of(PODS)) == 1
        api.put(NODES, {"metadata": {"name": "n1", "labels": {"disk": "ssd"}}})
        await world.clock.sleep(1)
        assert len(api.of(PODS)) == 2
        api.put(NODES, {"metadata": {"name": "n1"}})
        await world.clock.sleep(1)
        assert len(api.of(PODS)) == 1
        assert status(api, DAEMONSETS)["desiredNumberScheduled"] == 1

    run(DAEMONSETS, test)


# -- StatefulSets --------------------------------------------------------------------------------------------------


def test_a_stateful_pod_that_is_refused_is_said_by_name_and_what_was_seen_is_written() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("create", "pods", FORBIDDEN)
        api.put(STATEFULSETS, owner(STATEFULSETS, 1))
        await world.clock.sleep(5)
        assert events(api) == [
            ("Warning", "FailedCreate", "Create Pod web-0 in StatefulSet web failed error: exceeded quota"),
            ("Normal", "SuccessfulCreate", "Create Pod web-0 in StatefulSet web successful"),
        ]
        assert (status(api, STATEFULSETS)["replicas"], status(api, STATEFULSETS)["observedGeneration"]) == (1, 1)

    run(STATEFULSETS, test)


def test_a_stateful_pod_that_cannot_be_deleted_is_said_by_name() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        made = api.put(STATEFULSETS, owner(STATEFULSETS, 1))
        await world.clock.sleep(1)
        api.fail_next("delete", "pods", FORBIDDEN)
        api.put(STATEFULSETS, {**made, "spec": {**made["spec"], "replicas": 0}})
        await world.clock.sleep(5)
        assert events(api)[1:] == [
            ("Warning", "FailedDelete", "Delete Pod web-0 in StatefulSet web failed error: exceeded quota"),
            ("Normal", "SuccessfulDelete", "Delete Pod web-0 in StatefulSet web successful"),
        ]
        assert api.of(PODS) == []
        assert (recorder.records[0]["facts"]["ordinal"], recorder.records[0]["facts"]["step"]) == (0, "scaling")

    run(STATEFULSETS, test)


def test_a_stateful_pod_that_exists_already_is_no_failure() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("create", "pods", status_failure(409, "AlreadyExists", "there"), times=9)
        api.put(STATEFULSETS, owner(STATEFULSETS, 1))
        await world.clock.sleep(30)
        # once more for its own status, and then not until the cache shows the Pod
        assert events(api) == [] and calls(api, PODS) == ["create"] * 2

    run(STATEFULSETS, test)


# -- Deployments ---------------------------------------------------------------------------------------------------


def deployment(**spec: object) -> Object:
    return owner(DEPLOYMENTS, 2, strategy={"type": "Recreate"}, **spec)


def conditions(api: FakeAPI) -> list[tuple[str, str, str]]:
    return [(each["type"], each["status"], each["reason"]) for each in status(api, DEPLOYMENTS).get("conditions") or ()]


@pytest.mark.parametrize("deadline", [None, 600])
def test_a_replica_set_that_is_refused_is_said_on_the_deployment(deadline: int | None) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("create", "replicasets", FORBIDDEN, times=3)
        made = api.put(DEPLOYMENTS, deployment(**({"progressDeadlineSeconds": deadline} if deadline else {})))
        await world.clock.sleep(0.001)
        failed = ("Progressing", "False", "ReplicaSetCreateError")
        assert (failed in conditions(api)) is (deadline is not None)
        await world.clock.sleep(5)
        (replica_set,) = api.of(REPLICASETS)
        assert replica_set["spec"]["replicas"] == 2
        assert replica_set["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        text = f'Failed to create new replica set "{replica_set["metadata"]["name"]}": exceeded quota'
        assert ("Warning", "ReplicaSetCreateError", text) in events(api)
        scaled = f"Scaled up replica set {replica_set['metadata']['name']} from 0 to 2"
        assert ("Normal", "ScalingReplicaSet", scaled) in events(api)
        assert failed not in conditions(api)

    run(DEPLOYMENTS, test)


def test_a_deployment_in_a_namespace_that_goes_says_nothing() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("create", "replicasets", TERMINATING, times=100)
        api.put(DEPLOYMENTS, deployment(progressDeadlineSeconds=600))
        await world.clock.sleep(5)
        assert events(api) == [] and api.of(REPLICASETS) == [] and conditions(api) == []

    run(DEPLOYMENTS, test)


def test_a_name_that_another_replica_set_has_is_a_collision() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(DEPLOYMENTS, deployment())
        await world.clock.sleep(1)
        (made,) = api.of(REPLICASETS)
        api.remove(DEPLOYMENTS, "web", "default")
        await world.clock.sleep(1)
        api.put(DEPLOYMENTS, deployment())
        await world.clock.sleep(5)
        assert status(api, DEPLOYMENTS)["collisionCount"] == 1
        assert len(api.of(REPLICASETS)) == 2
        (new,) = [each for each in api.of(REPLICASETS) if each["metadata"]["name"] != made["metadata"]["name"]]
        assert new["spec"]["replicas"] == 2

    run(DEPLOYMENTS, test)


def test_a_deployment_that_selects_everything_does_nothing() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(DEPLOYMENTS, deployment(selector={}))
        await world.clock.sleep(1)
        text = "This deployment is selecting all pods. A non-empty selector is required."
        assert events(api) == [("Warning", "SelectingAll", text)] and api.of(REPLICASETS) == []
        assert calls(api, DEPLOYMENTS) == []

    run(DEPLOYMENTS, test)


def test_a_scale_is_recorded_with_what_it_was_decided_for() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        made = api.put(DEPLOYMENTS, deployment())
        await world.clock.sleep(1)
        latest = api.of(DEPLOYMENTS)[0]
        api.put(DEPLOYMENTS, {**latest, "spec": {**latest["spec"], "replicas": 5}})
        await world.clock.sleep(1)
        (replica_set,) = api.of(REPLICASETS)
        assert replica_set["spec"]["replicas"] == 5
        (record,) = recorder.records
        facts = record["facts"]
        assert record["kind"] == "ScaleDecided" and record["rule"] == "pkg/controller/deployment/sync.go:scale"
        assert (facts["owner"], facts["ownerUid"], facts["ownerKind"]) == ("web", made["metadata"]["uid"], "Deployment")
        assert (facts["from"], facts["to"], facts["step"], facts["revision"]) == (2, 5, "scaling", "1")
        assert (facts["ofKind"], facts["name"], facts["uid"]) == (
            "ReplicaSet", replica_set["metadata"]["name"], replica_set["metadata"]["uid"],
        )  # fmt: skip
        name = replica_set["metadata"]["name"]
        assert ("Normal", "ScalingReplicaSet", f"Scaled up replica set {name} from 2 to 5") in events(api)
        latest = api.of(DEPLOYMENTS)[0]
        api.put(DEPLOYMENTS, {**latest, "spec": {**latest["spec"], "replicas": 1}})
        await world.clock.sleep(1)
        assert ("Normal", "ScalingReplicaSet", f"Scaled down replica set {name} from 5 to 1") in events(api)

    run(DEPLOYMENTS, test)


def test_a_paused_deployment_says_so_and_that_it_goes_on() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(DEPLOYMENTS, deployment(paused=True, progressDeadlineSeconds=600))
        await world.clock.sleep(1)
        assert ("Progressing", "Unknown", "DeploymentPaused") in conditions(api) and api.of(REPLICASETS) == []
        latest = api.of(DEPLOYMENTS)[0]
        written = len(calls(api, DEPLOYMENTS))
        api.put(DEPLOYMENTS, {**latest, "metadata": {**latest["metadata"], "labels": {"a": "b"}}})
        await world.clock.sleep(1)
        assert len(calls(api, DEPLOYMENTS)) == written, "it is said once"
        api.put(DEPLOYMENTS, {**latest, "spec": {**latest["spec"], "paused": False}})
        await world.clock.sleep(1)
        reasons = [
            each["reason"]
            for _, _, resource, obj, _ in api.history
            if resource == DEPLOYMENTS
            for each in (obj.get("status") or {}).get("conditions") or ()
            if each["type"] == "Progressing"
        ]
        assert "DeploymentResumed" in reasons and len(api.of(REPLICASETS)) == 1

    run(DEPLOYMENTS, test)


@pytest.mark.parametrize("before", [None, 5])
def test_a_replica_set_follows_the_min_ready_seconds_of_its_deployment(before: int | None) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(DEPLOYMENTS, deployment(**({} if before is None else {"minReadySeconds": before})))
        await world.clock.sleep(1)
        assert calls(api, REPLICASETS) == ["create"], "nothing to change"
        assert api.of(REPLICASETS)[0]["spec"].get("minReadySeconds") == before
        for seconds in (9, 0):
            latest = api.of(DEPLOYMENTS)[0]
            api.put(DEPLOYMENTS, {**latest, "spec": {**latest["spec"], "minReadySeconds": seconds}})
            await world.clock.sleep(1)
            assert api.of(REPLICASETS)[0]["spec"]["minReadySeconds"] == seconds
        assert calls(api, REPLICASETS) == ["create", "update", "update"]

    run(DEPLOYMENTS, test)
