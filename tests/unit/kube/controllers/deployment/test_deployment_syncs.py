"""What the Deployment controller writes in a rollout, a scaling and a rollback, beside an API.

The tests play the ReplicaSet controller: they write the ReplicaSets' statuses.
Source: pkg/controller/deployment/{deployment_controller,rolling,recreate,sync,progress}.go.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import FakeAPI, ListRecorder, play

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import DEPLOYMENTS, EVENTS, PODS, REPLICASETS, Resource
from lastcall.world.world import World

Test = Callable[[World, FakeAPI, ListRecorder], Awaitable[None]]
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
RECREATE = {"type": "Recreate"}
REVISION = "deployment.kubernetes.io/revision"
FORBIDDEN = status_failure(403, "Forbidden", "no")


def run(test: Test, *there: tuple[Resource, Object]) -> None:
    """Play a test with a controller that starts where some objects are there already."""
    play(test, ["deployment-controller"], there)


def template(image: str = "one") -> Object:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": image}]}}


def deployment(replicas: int = 4, strategy: Object = ROLLING, image: str = "one", **spec: Any) -> Object:
    known = {"replicas": replicas, "strategy": strategy, "selector": {"matchLabels": {"app": "web"}}}
    meta = {"name": "web", "namespace": "default", "uid": "u", "generation": 1}
    return {"metadata": meta, "spec": {**known, "template": template(image), **spec}}


async def change(world: World, api: FakeAPI, **spec: Any) -> None:
    """Write the Deployment's spec as a user does."""
    (latest,) = api.of(DEPLOYMENTS)
    meta = {**latest["metadata"], "generation": latest["metadata"]["generation"] + 1}
    api.put(DEPLOYMENTS, {**latest, "metadata": meta, "spec": {**latest["spec"], **spec}})
    await world.clock.sleep(0.1)


def sets(api: FakeAPI) -> dict[str, Object]:
    """Return the ReplicaSets by their image."""
    return {each["spec"]["template"]["spec"]["containers"][0]["image"]: each for each in api.of(REPLICASETS)}


def sizes(api: FakeAPI) -> dict[str, int]:
    return {image: each["spec"]["replicas"] for image, each in sets(api).items()}


async def become(world: World, api: FakeAPI, image: str, count: int, available: int | None = None) -> None:
    """Play the ReplicaSet's controller: so many Pods, so many of them available (all)."""
    each = sets(api)[image]
    ready = count if available is None else available
    counts = {"replicas": count, "readyReplicas": ready, "availableReplicas": ready}
    api.put(REPLICASETS, {**each, "status": {**counts, "observedGeneration": each["metadata"]["generation"]}})
    await world.clock.sleep(0.1)


def status(api: FakeAPI) -> Object:
    return api.of(DEPLOYMENTS)[0].get("status") or {}


def condition(api: FakeAPI, kind: str) -> tuple[str, str]:
    return next((each["status"], each["reason"]) for each in status(api)["conditions"] if each["type"] == kind)


def events(api: FakeAPI) -> list[str]:
    return [each["message"] for each in api.of(EVENTS)]


def calls(api: FakeAPI, resource: Resource = REPLICASETS) -> list[str]:
    return [verb for verb, plural, _ in api.calls if plural == resource.plural and verb not in ("list", "watch")]


def pod(owner: Object, name: str = "p") -> Object:
    meta = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "controller": True}
    reference = {**meta, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    known = {"name": name, "namespace": "default", "labels": {"app": "web"}, "ownerReferences": [reference]}
    return {"metadata": known, "spec": {}, "status": {"phase": "Running"}}


def test_a_rollout_goes_up_and_down_within_its_limits_and_ends_complete() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        assert sizes(api) == {"one": 4}
        assert condition(api, "Available") == ("False", "MinimumReplicasUnavailable")
        await become(world, api, "one", 4)
        assert condition(api, "Available") == ("True", "MinimumReplicasAvailable")
        assert api.of(DEPLOYMENTS)[0]["metadata"]["annotations"][REVISION] == "1"
        await change(world, api, template=template("two"))
        assert sizes(api) == {"one": 3, "two": 2}
        assert api.of(DEPLOYMENTS)[0]["metadata"]["annotations"][REVISION] == "2"
        await become(world, api, "one", 3)
        assert sizes(api) == {"one": 3, "two": 2}
        await become(world, api, "two", 2)
        assert sizes(api) == {"one": 1, "two": 4}
        await become(world, api, "two", 4)
        assert sizes(api) == {"one": 0, "two": 4}
        assert condition(api, "Progressing") == ("True", "ReplicaSetUpdated")
        await become(world, api, "one", 0)
        assert condition(api, "Progressing") == ("True", "NewReplicaSetAvailable")
        assert status(api)["replicas"] == status(api)["updatedReplicas"] == status(api)["availableReplicas"] == 4
        one, two = sets(api)["one"]["metadata"]["name"], sets(api)["two"]["metadata"]["name"]
        said = [text.removeprefix("Scaled ").replace(one, "one").replace(two, "two") for text in events(api)]
        assert said == [
            "up replica set one from 0 to 4", "up replica set two from 0 to 1", "down replica set one from 4 to 3",
            "up replica set two from 1 to 2", "down replica set one from 3 to 1", "up replica set two from 2 to 4",
            "down replica set one from 1 to 0",
        ]  # fmt: skip
        first = recorder.records[0]["facts"]
        assert (first["from"], first["to"], first["step"], first["revision"]) == (4, 3, "rollout", "2")
        assert recorder.records[0]["rule"] == "pkg/controller/deployment/rolling.go:reconcileOldReplicaSets"

    run(test, (DEPLOYMENTS, deployment(progressDeadlineSeconds=600)))


def test_recreate_starts_the_new_pods_when_the_last_old_one_is_gone() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(PODS, pod(sets(api)["one"]))
        await become(world, api, "one", 4)
        await change(world, api, template=template("two"))
        assert sizes(api) == {"one": 0}
        await become(world, api, "one", 1)
        assert sizes(api) == {"one": 0}, "a Pod is counted"
        await become(world, api, "one", 0)
        assert sizes(api) == {"one": 0}, "it is there, although it is not counted"
        api.remove(PODS, "p", "default")
        await world.clock.sleep(0.1)
        assert sizes(api) == {"one": 0, "two": 4}
        assert sets(api)["two"]["metadata"]["annotations"][REVISION] == "2"

    run(test, (DEPLOYMENTS, deployment(strategy=RECREATE)))


def test_recreate_does_not_wait_for_an_old_pod_that_has_ended() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(PODS, {**pod(sets(api)["one"]), "status": {"phase": "Failed"}})
        await change(world, api, template=template("two"))
        await become(world, api, "one", 0)
        assert sizes(api) == {"one": 0, "two": 4}

    run(test, (DEPLOYMENTS, deployment(strategy=RECREATE)))


@pytest.mark.parametrize("strategy", [RECREATE, ROLLING])
def test_a_rollback_takes_the_replica_set_that_is_there_and_gives_it_the_highest_revision(strategy: Object) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        await become(world, api, "one", 1)
        await change(world, api, template=template("two"))
        for image in ("one", "two", "one"):
            await become(world, api, image, sizes(api).get(image, 0))
        assert sizes(api) == {"one": 0, "two": 1}
        await change(world, api, template=template("one"))
        for image in ("two", "one", "two"):
            await become(world, api, image, sizes(api)[image])
        assert sizes(api) == {"one": 1, "two": 0}
        annotations = sets(api)["one"]["metadata"]["annotations"]
        assert (annotations[REVISION], annotations["deployment.kubernetes.io/revision-history"]) == ("3", "1")
        assert api.of(DEPLOYMENTS)[0]["metadata"]["annotations"][REVISION] == "3"
        assert calls(api).count("create") == 2

    run(test, (DEPLOYMENTS, deployment(1, strategy)))


@pytest.mark.parametrize("strategy", [RECREATE, ROLLING])
def test_when_a_rollout_is_complete_revisions_beyond_the_limit_go(strategy: Object) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        for image in ("one", "two", "three"):
            await change(world, api, template=template(image))
            for _ in range(3):
                for each in list(sizes(api)):
                    await become(world, api, each, sizes(api)[each])
        await change(world, api, paused=False)
        assert sizes(api) == {"two": 0, "three": 1}

    run(test, (DEPLOYMENTS, deployment(1, strategy, revisionHistoryLimit=1)))


@pytest.mark.parametrize(("error", "counts"), [(status_failure(404, "NotFound", "gone"), True), (FORBIDDEN, False)])
def test_a_revision_that_is_gone_already_is_no_failure_of_the_sync(error: Exception, counts: bool) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        await become(world, api, "one", 0)
        api.fail_next("delete", "replicasets", error, times=1000)
        await change(world, api, template=template("two"), paused=True)
        assert (status(api)["observedGeneration"] == 2) is counts

    run(test, (DEPLOYMENTS, deployment(0, revisionHistoryLimit=0)))


def test_a_paused_deployment_is_scaled_and_not_rolled_out() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        await become(world, api, "one", 4)
        await change(world, api, paused=True, template=template("two"), replicas=6)
        assert sizes(api) == {"one": 6}
        assert (recorder.records[-1]["facts"]["step"], recorder.records[-1]["facts"]["to"]) == ("scaling", 6)
        await change(world, api, paused=False)
        assert sizes(api)["two"] > 0

    run(test, (DEPLOYMENTS, deployment()))


def test_a_deployment_that_is_being_deleted_counts_and_changes_nothing() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        (latest,) = api.of(DEPLOYMENTS)
        going = {**latest["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["x/y"]}
        api.put(DEPLOYMENTS, {**latest, "metadata": going, "spec": {**latest["spec"], "template": template("two")}})
        await become(world, api, "one", 4, 3)
        assert sizes(api) == {"one": 4} and calls(api) == ["create"]
        assert (status(api)["replicas"], status(api)["readyReplicas"]) == (4, 3)

    run(test, (DEPLOYMENTS, deployment()))


def test_a_replica_set_that_somebody_deletes_or_scales_is_made_as_it_was() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        name = sets(api)["one"]["metadata"]["name"]
        api.remove(REPLICASETS, name, "default")
        await world.clock.sleep(0.1)
        assert sizes(api) == {"one": 4}
        each = sets(api)["one"]
        api.put(REPLICASETS, {**each, "spec": {**each["spec"], "replicas": 1}})
        await world.clock.sleep(0.1)
        assert sizes(api) == {"one": 4}

    run(test, (DEPLOYMENTS, deployment()))


def test_a_replica_set_that_matches_and_is_nobody_s_is_adopted_also_when_it_only_comes_to_match() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        made = sets(api)["one"]
        meta = {"name": "found", "namespace": "default", "labels": {"app": "other"}}
        spec = {**made["spec"], "template": template("found"), "replicas": 0}
        api.put(REPLICASETS, {"metadata": meta, "spec": spec, "status": {}})
        await world.clock.sleep(0.1)
        assert "ownerReferences" not in sets(api)["found"]["metadata"]
        api.put(REPLICASETS, {"metadata": {**meta, "labels": {"app": "web"}}, "spec": spec, "status": {}})
        await world.clock.sleep(0.1)
        assert sets(api)["found"]["metadata"]["ownerReferences"][0]["uid"] == "u"

    run(test, (DEPLOYMENTS, deployment()))


def test_a_replica_set_that_is_given_away_is_replaced() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        made = sets(api)["one"]
        theirs = [{**made["metadata"]["ownerReferences"][0], "uid": "another", "name": "other"}]
        api.fail_next("create", "replicasets", FORBIDDEN)
        api.put(REPLICASETS, {**made, "metadata": {**made["metadata"], "ownerReferences": theirs}})
        await world.clock.sleep(1)
        assert len(api.of(REPLICASETS)) == 2 and status(api)["collisionCount"] == 1

    run(test, (DEPLOYMENTS, deployment()))


def test_a_rollout_that_stands_still_is_said_when_its_deadline_has_passed_and_not_before() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        await world.clock.sleep(28)
        assert condition(api, "Progressing") == ("True", "NewReplicaSetCreated")
        await world.clock.sleep(5)
        assert condition(api, "Progressing") == ("False", "ProgressDeadlineExceeded")
        await become(world, api, "one", 4)
        assert condition(api, "Progressing") == ("True", "NewReplicaSetAvailable")

    run(test, (DEPLOYMENTS, deployment(progressDeadlineSeconds=30)))


def test_a_replica_set_that_is_there_at_the_start_is_found_and_said_so() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        made = sets(api)["one"]
        (latest,) = api.of(DEPLOYMENTS)
        api.put(DEPLOYMENTS, {**latest, "status": {}})
        await world.clock.sleep(0.001)
        said = {
            each["reason"]: each["message"]
            for _, _, resource, obj, _ in api.history
            if resource == DEPLOYMENTS
            for each in (obj.get("status") or {}).get("conditions") or ()
        }
        assert said["FoundNewReplicaSet"] == f'Found new replica set "{made["metadata"]["name"]}"'
        assert calls(api).count("create") == 1

    run(test, (DEPLOYMENTS, deployment(progressDeadlineSeconds=600)))


def test_a_replica_set_of_the_name_that_the_cache_does_not_know_yet_is_its_own() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        create = api.create

        async def loses(resource: Resource, obj: Object, namespace: str = "", **more: str) -> Object:
            await create(resource, obj, namespace, **more)
            api.create = create  # type: ignore[method-assign]
            raise status_failure(409, "AlreadyExists", "there")

        api.create = loses  # type: ignore[method-assign]
        api.put(DEPLOYMENTS, deployment(progressDeadlineSeconds=600))
        await world.clock.sleep(1)
        assert sizes(api) == {"one": 4} and "collisionCount" not in status(api)
        assert not any(text.startswith("Scaled up") for text in events(api)), "who made it said so"

    run(test)


def test_after_fifteen_more_tries_a_deployment_waits_for_its_next_change() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("create", "replicasets", FORBIDDEN, times=1000)
        api.put(DEPLOYMENTS, deployment())
        await world.clock.sleep(10_000)
        assert calls(api) == ["create"] * 16

    run(test)
