"""What the StatefulSet controller writes for one set, its Pods and their claims, beside an API.

Source: pkg/controller/statefulset/{stateful_set,stateful_set_control,stateful_pod_control}.go.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import ConnectionLost, FakeAPI, ListRecorder, play

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    CONTROLLERREVISIONS,
    EVENTS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    STATEFULSETS,
    Resource,
)
from lastcall.world.world import World

Test = Callable[[World, FakeAPI, ListRecorder], Awaitable[None]]
CLAIMS = PERSISTENTVOLUMECLAIMS
FORBIDDEN = status_failure(403, "Forbidden", "no")
GOING = {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["x/y"]}


def run(test: Test, *there: tuple[Resource, Object]) -> None:
    """Play a test with a controller that starts where some objects are there already."""
    play(test, ["statefulset-controller"], there)


def template(image: str = "one") -> Object:
    return {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "app", "image": image}]}}


def a_set(replicas: int = 2, **spec: Any) -> Object:
    known = {"replicas": replicas, "selector": {"matchLabels": {"app": "db"}}, "template": template()}
    update = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}
    meta = {"name": "db", "namespace": "default", "uid": "u", "generation": 1}
    return {"metadata": meta, "spec": {**known, **update, **spec}}


DATA = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]}


async def change(world: World, api: FakeAPI, **spec: Any) -> None:
    (latest,) = api.of(STATEFULSETS)
    api.put(STATEFULSETS, {**latest, "spec": {**latest["spec"], **spec}})
    await world.clock.sleep(0.1)


async def become_ready(world: World, api: FakeAPI, name: str, ready: str = "True") -> None:
    each = api.objects["pods", "default", name]
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": "2030-01-01T00:00:00Z"}
    api.put(PODS, {**each, "status": {"phase": "Running", "conditions": [condition]}})
    await world.clock.sleep(0.1)


def names(api: FakeAPI, resource: Resource = PODS) -> list[str]:
    return [each["metadata"]["name"] for each in api.of(resource)]


def owners(api: FakeAPI) -> dict[str, list[str]]:
    """Return what kinds of owners each claim has."""
    return {
        each["metadata"]["name"]: [owner["kind"] for owner in each["metadata"].get("ownerReferences") or ()]
        for each in api.of(CLAIMS)
    }


def status(api: FakeAPI) -> Object:
    return api.of(STATEFULSETS)[0].get("status") or {}


def events(api: FakeAPI) -> list[tuple[str, str]]:
    return [(each["reason"], each["message"]) for each in api.of(EVENTS)]


def calls(api: FakeAPI, resource: Resource) -> list[str]:
    return [verb for verb, plural, _ in api.calls if plural == resource.plural and verb not in ("list", "watch")]


def test_pods_are_made_one_after_the_other_and_go_the_other_way_round() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        assert names(api) == ["db-0"]
        await become_ready(world, api, "db-0")
        assert names(api) == ["db-0", "db-1"]
        await become_ready(world, api, "db-1")
        assert (status(api)["replicas"], status(api)["readyReplicas"], status(api)["currentReplicas"]) == (2, 2, 2)
        await change(world, api, replicas=0)
        assert names(api) == [] and status(api)["replicas"] == 0
        assert [record["facts"]["ordinal"] for record in recorder.records] == [1, 0]
        assert ("SuccessfulDelete", "Delete Pod db-1 in StatefulSet db successful") in events(api)

    run(test, (STATEFULSETS, a_set()))


def test_pods_of_a_parallel_set_are_made_at_once_and_one_that_is_refused_stops_the_rest() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        assert names(api) == ["db-0", "db-1", "db-2", "db-3"]
        api.fail_next("create", "pods", FORBIDDEN)
        await change(world, api, replicas=8)
        assert (
            len(names(api)) == 8
            and events(api).count(("FailedCreate", "Create Pod db-4 in StatefulSet db failed error: no")) == 1
        )

    run(test, (STATEFULSETS, a_set(4, podManagementPolicy="Parallel")))


def test_a_rollout_replaces_the_highest_first_and_counts_what_is_still_current() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        await become_ready(world, api, "db-0")
        await become_ready(world, api, "db-1")
        old = status(api)["currentRevision"]
        await change(world, api, template=template("two"))
        new = status(api)["updateRevision"]
        assert old != new and status(api)["currentRevision"] == old
        (record,) = recorder.records
        facts = record["facts"]
        assert (facts["ordinal"], facts["step"], facts["revision"]) == (1, "rollout", old)
        assert record["rule"] == "pkg/controller/statefulset/stateful_set_control.go:updateStatefulSet"
        assert api.objects["pods", "default", "db-1"]["spec"]["containers"][0]["image"] == "two"
        counted = [
            obj["status"].get("currentReplicas")
            for _, _, resource, obj, _ in api.history
            if resource == STATEFULSETS and (obj.get("status") or {}).get("updateRevision") == new
        ]
        assert counted[0] == 1, "the Pod that was just deleted is current no more"
        await become_ready(world, api, "db-1")
        await become_ready(world, api, "db-0")
        assert status(api)["currentRevision"] == status(api)["updateRevision"] == new
        assert status(api)["currentReplicas"] == 2

    run(test, (STATEFULSETS, a_set()))


def test_when_a_set_has_one_pod_a_rollout_leaves_no_current_one() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        await become_ready(world, api, "db-0")
        seen = len(api.history)
        await change(world, api, template=template("two"))
        written = [obj["status"] for _, _, resource, obj, _ in api.history[seen:] if resource == STATEFULSETS]
        assert any("currentReplicas" not in each for each in written[1:])
        assert not any(each.get("currentReplicas") == 0 for each in written)

    run(test, (STATEFULSETS, a_set(1)))


def test_a_pod_that_lost_the_labels_of_its_identity_gets_them_back() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        await become_ready(world, api, "db-0")
        made = api.objects["pods", "default", "db-0"]
        labels = {key: made["metadata"]["labels"][key] for key in ("app", "controller-revision-hash")}
        api.put(PODS, {**made, "metadata": {**made["metadata"], "labels": labels}})
        await world.clock.sleep(0.1)
        labels = api.objects["pods", "default", "db-0"]["metadata"]["labels"]
        assert labels["statefulset.kubernetes.io/pod-name"] == "db-0" and labels["apps.kubernetes.io/pod-index"] == "0"
        assert calls(api, PODS)[:2] == ["create", "update"]

    run(test, (STATEFULSETS, a_set(1)))


def test_an_orphan_of_its_name_is_adopted_and_others_are_let_be() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        for name in ("db-1", "else-0"):
            api.put(PODS, {"metadata": {"name": name, "namespace": "default", "labels": {"app": "db"}}, "spec": {}})
        await world.clock.sleep(0.1)
        assert api.objects["pods", "default", "db-1"]["metadata"]["ownerReferences"][0]["uid"] == "u"
        assert "ownerReferences" not in api.objects["pods", "default", "else-0"]["metadata"]

    run(test, (STATEFULSETS, a_set(2)))


def test_a_pod_that_is_given_away_brings_its_set_a_look() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        made = api.objects["pods", "default", "db-0"]
        assert status(api)["replicas"] == 1
        theirs = [{**made["metadata"]["ownerReferences"][0], "uid": "another", "name": "other"}]
        api.fail_next("create", "pods", FORBIDDEN, times=1000)
        api.put(PODS, {**made, "metadata": {**made["metadata"], "ownerReferences": theirs}})
        await world.clock.sleep(0.1)
        assert status(api)["replicas"] == 0

    run(test, (STATEFULSETS, a_set(1)))


# -- claims ----------------------------------------------------------------------------------------------------------


def test_each_pod_has_its_claims_before_it_is_made() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        assert names(api, CLAIMS) == ["data-db-0"] and names(api) == ["db-0"]
        order = [plural for verb, plural, _ in api.calls if verb == "create" and plural in (CLAIMS.plural, "pods")]
        assert order == ["persistentvolumeclaims", "pods"]
        assert ("SuccessfulCreate", "Create Claim data-db-0 Pod db-0 in StatefulSet db success") in events(api)
        assert owners(api) == {"data-db-0": []}

    run(test, (STATEFULSETS, a_set(1, **DATA)))


def test_a_claim_that_is_there_is_taken_as_it_is() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        assert names(api) == ["db-0"] and calls(api, CLAIMS) == []

    meta = {"name": "data-db-0", "namespace": "default"}
    run(test, (CLAIMS, {"metadata": meta, "spec": {}}), (STATEFULSETS, a_set(1, **DATA)))


def test_a_claim_that_the_cache_does_not_show_yet_is_asked_for() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.objects[CLAIMS.plural, "default", "data-db-0"] = {"metadata": {"name": "data-db-0", "namespace": "default"}}
        api.put(STATEFULSETS, a_set(1, **DATA))
        await world.clock.sleep(0.1)
        assert names(api) == ["db-0"] and calls(api, CLAIMS)[:2] == ["create", "get"]
        assert not any("Claim" in text for _, text in events(api))

    run(test)


def test_a_pod_waits_until_the_claim_of_the_one_before_is_gone() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        assert names(api) == [] and ("FailedCreate", text) in events(api)
        api.remove(CLAIMS, "data-db-0", "default")
        await world.clock.sleep(0.001)
        assert names(api) == ["db-0"] and names(api, CLAIMS) == ["data-db-0"]

    text = "Create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted"
    meta = {"name": "data-db-0", "namespace": "default", **GOING}
    run(test, (CLAIMS, {"metadata": meta, "spec": {}}), (STATEFULSETS, a_set(1, **DATA)))


def test_a_claim_that_is_refused_is_said_twice_and_made_later() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("create", CLAIMS.plural, FORBIDDEN)
        api.put(STATEFULSETS, a_set(1, **DATA))
        await world.clock.sleep(1)
        assert names(api) == ["db-0"] and names(api, CLAIMS) == ["data-db-0"]
        assert events(api)[:2] == [
            ("FailedCreate", "Create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: no"),
            ("FailedCreate", "Create Pod db-0 in StatefulSet db failed error: failed to create PVC data-db-0: no"),
        ]

    run(test)


def test_a_claim_that_goes_while_its_pod_is_pending_is_made_again() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(PODS, {**api.objects["pods", "default", "db-0"], "status": {"phase": "Pending"}})
        await world.clock.sleep(0.1)
        api.remove(CLAIMS, "data-db-0", "default")
        await world.clock.sleep(0.1)
        assert names(api, CLAIMS) == ["data-db-0"]

    run(test, (STATEFULSETS, a_set(1, **DATA)))


@pytest.mark.parametrize("when", ["whenDeleted", "whenScaled"])
def test_claims_belong_to_whom_the_policy_says(when: str) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        await become_ready(world, api, "db-0")
        await become_ready(world, api, "db-1")
        mine = ["StatefulSet"] if when == "whenDeleted" else []
        assert owners(api) == {"data-db-0": mine, "data-db-1": mine}
        api.fail_next("delete", "pods", FORBIDDEN, times=1000)
        await change(world, api, replicas=1)
        assert owners(api) == {"data-db-0": mine, "data-db-1": ["Pod"] if when == "whenScaled" else mine}

    policy = {"whenDeleted": "Retain", "whenScaled": "Retain", when: "Delete"}
    run(test, (STATEFULSETS, a_set(2, **DATA, persistentVolumeClaimRetentionPolicy=policy)))


# -- status and history ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [FORBIDDEN, ConnectionLost("lost")])
def test_what_was_seen_is_written_also_when_a_step_fails(error: Exception) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("create", "pods", error, times=3)
        api.put(STATEFULSETS, a_set(1))
        await world.clock.sleep(0.001)
        assert status(api)["observedGeneration"] == 1 and status(api)["replicas"] == 0
        await world.clock.sleep(5)
        assert names(api) == ["db-0"]

    run(test)


@pytest.mark.parametrize("limit", [None, 1])
def test_revisions_beyond_the_limit_go_and_those_in_use_stay(limit: int | None) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        for number in range(4):
            await change(world, api, template=template(str(number)))
        assert len(api.of(CONTROLLERREVISIONS)) == (5 if limit is None else 1 + limit)

    run(test, (STATEFULSETS, a_set(0, **({} if limit is None else {"revisionHistoryLimit": limit}))))


def test_a_set_that_is_being_deleted_keeps_its_revisions() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        await change(world, api, template=template("two"))
        (latest,) = api.of(STATEFULSETS)
        api.put(STATEFULSETS, {**latest, "metadata": {**latest["metadata"], **GOING}})
        await change(world, api, revisionHistoryLimit=0)
        assert len(api.of(CONTROLLERREVISIONS)) == 2 and "delete" not in calls(api, CONTROLLERREVISIONS)

    run(test, (STATEFULSETS, a_set(0)))


def test_conditions_that_somebody_else_wrote_stay() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        assert status(api)["conditions"] == [{"type": "Mine"}] and status(api)["replicas"] == 1

    run(test, (STATEFULSETS, {**a_set(1), "status": {"conditions": [{"type": "Mine"}]}}))


def test_a_pod_becomes_available_by_time_alone() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        await become_ready(world, api, "db-0")
        assert not status(api).get("availableReplicas")
        await world.clock.sleep(20)
        assert status(api)["availableReplicas"] == 1

    run(test, (STATEFULSETS, a_set(1, minReadySeconds=15)))
