"""What the disruption controller counts, says and writes for one budget (disruption/controller.py).

Source: pkg/controller/disruption/disruption.go (trySync, getExpectedScale, failSafe, syncStalePodDisruption).
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from fake_api import FakeAPI, play

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    PODDISRUPTIONBUDGETS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from lastcall.world.clock import now, rfc3339
from lastcall.world.world import World


def run(test: Callable[[World, FakeAPI], Awaitable[None]]) -> None:
    play(lambda world, api, _: test(world, api), ["disruption-controller"], settle=1)


def budget(name: str = "pdb", status: Object | None = None, **spec: object) -> Object:
    known = {"selector": {"matchLabels": {"app": "web"}}, **(spec or {"minAvailable": 1})}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": known, "status": status or {}}


def pod(
    name: str, owner: Object | None = None, resource: Resource = REPLICASETS, *, ready: bool = True, **meta: object
) -> Object:
    made = {"name": name, "namespace": "default", "labels": {"app": "web"}, **meta}
    if owner is not None:
        what = {"apiVersion": resource.api_version, "kind": resource.kind}
        uid, whose = owner["metadata"]["uid"], owner["metadata"]["name"]
        made["ownerReferences"] = [{**what, "name": whose, "uid": uid, "controller": True}]
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"metadata": made, "spec": {}, "status": {"phase": "Running", "conditions": conditions}}


def scaled(name: str, replicas: int | None, **meta: object) -> Object:
    spec = {} if replicas is None else {"replicas": replicas}
    return {"metadata": {"name": name, "namespace": "default", **meta}, "spec": spec}


def status(api: FakeAPI) -> Object:
    return api.of(PODDISRUPTIONBUDGETS)[0]["status"]


def counts(api: FakeAPI) -> tuple[int, int, int, int]:
    keys = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(status(api)[key] for key in keys)  # type: ignore[return-value]


def events(api: FakeAPI) -> list[tuple[str, str, str]]:
    return [(each["type"], each["reason"], each["message"]) for each in api.of(EVENTS)]


def test_a_budget_without_pods_says_so_and_allows_nothing() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(PODDISRUPTIONBUDGETS, budget())
        await world.clock.sleep(1)
        assert counts(api) == (0, 1, 0, 0)
        assert ("Normal", "NoPods", "No matching pods found") in events(api)

    run(test)


def test_a_number_is_counted_from_the_pods_there_are() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(PODDISRUPTIONBUDGETS, budget(minAvailable=2))
        for name in ("a", "b", "c"):
            api.put(PODS, pod(name))
        api.put(PODS, pod("d", ready=False))
        api.put(PODS, {**pod("e"), "metadata": {**pod("e")["metadata"], "labels": {"app": "other"}}})
        api.put(PODS, {**pod("f"), "metadata": {**pod("f")["metadata"], "namespace": "shop"}})
        await world.clock.sleep(1)
        assert counts(api) == (4, 2, 3, 1)
        assert not [each for each in events(api) if each[0] == "Warning"]
        api.remove(PODS, "a", "default")
        await world.clock.sleep(1)
        assert counts(api) == (3, 2, 2, 0)
        stored = api.of(PODDISRUPTIONBUDGETS)[0]
        api.put(PODDISRUPTIONBUDGETS, {**stored, "spec": budget(minAvailable=1)["spec"]})
        await world.clock.sleep(1)
        assert counts(api) == (3, 1, 2, 1)
        moved = next(each for each in api.of(PODS) if each["metadata"]["name"] == "b")
        api.put(PODS, {**moved, "metadata": {**moved["metadata"], "labels": {"app": "other"}}})
        await world.clock.sleep(1)
        assert counts(api) == (3, 1, 2, 1), "only a change of a Pod that is selected makes it count (asked of 1.36.2)"
        api.remove(PODS, "c", "default")
        await world.clock.sleep(1)
        assert counts(api) == (1, 1, 0, 0)

    run(test)


def test_a_pod_that_gets_other_labels_makes_no_event_of_the_budget_it_leaves() -> None:
    """(asked of 1.36.2: `updatePod` looks at the new labels only)"""

    async def test(world: World, api: FakeAPI) -> None:
        api.put(PODS, pod("a"))
        api.put(PODDISRUPTIONBUDGETS, budget())
        await world.clock.sleep(1)
        (moved,) = api.of(PODS)
        api.put(PODS, {**moved, "metadata": {**moved["metadata"], "labels": {"app": "other"}}})
        await world.clock.sleep(1)
        assert not [reason for _, reason, _ in events(api) if reason == "NoPods"]

    run(test)


@pytest.mark.parametrize(
    ("resource", "replicas", "expected"),
    [(REPLICASETS, 4, 4), (STATEFULSETS, 3, 3), (DEPLOYMENTS, 6, 6), (REPLICASETS, None, 1), (REPLICASETS, 0, 0)],
)
def test_a_share_is_counted_from_what_the_owners_ask_for(
    resource: Resource, replicas: int | None, expected: int
) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        if resource == DEPLOYMENTS:
            above = api.put(DEPLOYMENTS, scaled("web", replicas))
            reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": above["metadata"]["uid"]}
            owner = api.put(REPLICASETS, scaled("web-1", 2, ownerReferences=[{**reference, "controller": True}]))
            api.put(PODS, pod("b", owner, REPLICASETS))
        else:
            owner = api.put(resource, scaled("web", replicas))
        api.put(PODS, pod("a", owner, REPLICASETS if resource == DEPLOYMENTS else resource))
        await world.clock.sleep(1)
        api.put(PODDISRUPTIONBUDGETS, budget(maxUnavailable=1))
        await world.clock.sleep(1)
        assert status(api)["expectedPods"] == expected
        assert status(api)["desiredHealthy"] == max(0, expected - 1)

    run(test)


def test_the_replicas_of_each_owner_are_added_once() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        one, two = api.put(REPLICASETS, scaled("one", 3)), api.put(STATEFULSETS, scaled("two", 2))
        for name in ("a", "b"):
            api.put(PODS, pod(name, one))
        api.put(PODS, pod("c", two, STATEFULSETS))
        api.put(PODS, pod("d"))
        await world.clock.sleep(1)
        api.put(PODDISRUPTIONBUDGETS, budget(minAvailable="50%"))
        await world.clock.sleep(1)
        assert counts(api) == (5, 3, 4, 1)
        (warning,) = {each for each in events(api) if each[0] == "Warning"}
        assert warning[1] == "UnmanagedPods" and "were found to be unmanaged" in warning[2]
        assert "selector: &LabelSelector{MatchLabels:map[string]string{app: web,}" in warning[2]

    run(test)


@pytest.mark.parametrize(
    ("resource", "there", "words"),
    [
        (REPLICASETS, False, 'found no controllers for pod "a"'),
        (JOBS, True, "jobs.batch does not implement the scale subresource"),
        (Resource("example.org", "v1", "things", "Thing", True), True,
         'no matches for kind "Thing" in version "example.org/v1"'),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_allows_nothing(resource: Resource, there: bool, words: str) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        owner = {"metadata": {"name": "web", "namespace": "default", "uid": "gone"}, "spec": {"replicas": 3}}
        if there:
            owner = api.put(resource, owner)
        api.put(PODS, pod("a", owner, resource))
        await world.clock.sleep(1)
        api.put(PODDISRUPTIONBUDGETS, budget(maxUnavailable=1, status={"disruptionsAllowed": 7}))
        await world.clock.sleep(0.5)
        text = f"Failed to calculate the number of expected pods: {words}"
        assert ("Warning", "CalculateExpectedPodCountFailed", text) in events(api)
        (condition,) = status(api)["conditions"]
        assert (condition["status"], condition["reason"], condition["message"]) == ("False", "SyncFailed", words)
        assert status(api)["disruptionsAllowed"] == 0

    run(test)


@pytest.mark.parametrize(("code", "reason"), [(409, "Conflict"), (404, "NotFound"), (500, "InternalError")])
def test_a_write_that_fails_is_tried_again_unless_the_budget_is_gone(code: int, reason: str) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.fail_next("update", "poddisruptionbudgets", status_failure(code, reason, "x"))
        api.put(PODDISRUPTIONBUDGETS, budget())
        await world.clock.sleep(5)
        found = status(api)
        assert found.get("expectedPods") == (None if reason == "NotFound" else 0)

    run(test)


def test_a_pod_that_was_to_be_deleted_and_was_not_counts_again() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        evicted = rfc3339(now(world.clock))
        for name in ("a", "b"):
            api.put(PODS, pod(name))
        api.put(PODDISRUPTIONBUDGETS, budget(status={"disruptedPods": {"a": evicted, "x": evicted}}))
        await world.clock.sleep(1)
        assert counts(api) == (2, 1, 1, 0) and status(api)["disruptedPods"] == {"a": evicted}
        await world.clock.sleep(117)
        assert counts(api) == (2, 1, 1, 0)
        await world.clock.sleep(4)
        assert counts(api) == (2, 1, 2, 1) and "disruptedPods" not in status(api)
        text = "Pod was expected by PDB default/default to be deleted but it wasn't"
        assert ("Warning", "NotDeleted", text) in events(api)

    run(test)


def test_a_pod_that_two_budgets_select_is_said() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(PODDISRUPTIONBUDGETS, budget("one"))
        await world.clock.sleep(1)
        api.put(PODS, pod("a"))
        await world.clock.sleep(1)
        assert "MultiplePodDisruptionBudgets" not in [reason for _, reason, _ in events(api)]
        api.put(PODDISRUPTIONBUDGETS, budget("two"))
        await world.clock.sleep(1)
        api.put(PODS, pod("b"))
        await world.clock.sleep(1)
        text = 'Pod "default"/"b" matches multiple PodDisruptionBudgets.  Chose "one" arbitrarily.'
        assert ("Warning", "MultiplePodDisruptionBudgets", text) in events(api)

    run(test)


def test_a_pod_that_becomes_a_target_once_more_is_one_for_two_more_minutes() -> None:
    """syncStalePodDisruption: the first wait ends too early, so the controller waits for the rest."""

    async def test(world: World, api: FakeAPI) -> None:
        made = pod("a")

        def target() -> None:
            since = rfc3339(now(world.clock))
            condition = {"type": "DisruptionTarget", "status": "True", "reason": "x", "lastTransitionTime": since}
            made["status"] |= {"conditions": [condition]}
            api.put(PODS, made)

        target()
        await world.clock.sleep(60)
        target()
        for seconds, status in ((118, "True"), (4, "False")):
            await world.clock.sleep(seconds)
            assert api.of(PODS)[0]["status"]["conditions"][0]["status"] == status

    run(test)


@pytest.mark.parametrize(
    ("age", "phase", "after", "expected"),
    [
        (0, "Running", 118, "True"), (0, "Running", 122, "False"), (110, "Running", 12, "False"),
        (500, "Running", 1, "False"), (500, "Failed", 5, "True"),
    ],
)  # fmt: skip
def test_a_pod_that_stays_is_no_target_of_a_disruption_after_two_minutes(
    age: float, phase: str, after: float, expected: str
) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        made = pod("a")
        since = rfc3339(now(world.clock) - timedelta(seconds=age))
        target = {"type": "DisruptionTarget", "status": "True", "reason": "x", "lastTransitionTime": since}
        made["status"] |= {"phase": phase, "conditions": [target]}
        api.put(PODS, made)
        await world.clock.sleep(after)
        (condition,) = api.of(PODS)[0]["status"]["conditions"]
        assert condition["status"] == expected
        if expected == "False":
            assert condition["lastTransitionTime"] > since

    run(test)
