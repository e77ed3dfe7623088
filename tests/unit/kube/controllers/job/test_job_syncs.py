"""What the Job controller does beside an API: strays, refused writes, lost answers, Pods that change hands.

Source: pkg/controller/job/job_controller.go (syncJob, syncOrphanPod, addPod, updatePod, deletePod).
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import ConnectionLost, FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import EVENTS, JOBS, PODS, Resource
from lastcall.kube.controllers.job.pods import TRACKING
from lastcall.kube.controllers.manager import run_controllers
from lastcall.world.clock import now, rfc3339
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

REMOVED = "$deleteFromPrimitiveList/finalizers"
FORBIDDEN = status_failure(403, "Forbidden", "exceeded quota")
TERMINATING = status_failure(403, "Forbidden", "is being terminated", {"causes": [{"reason": "NamespaceTerminating"}]})
BROKEN = status_failure(500, "InternalError", "broken")


class API(FakeAPI):
    """Takes finalizers off by a strategic patch."""

    async def patch(self, resource: Resource, name: str, patch: Any, namespace: str = "", **more: Any) -> Object:
        meta = dict(patch.get("metadata") or {})
        if gone := meta.pop(REMOVED, None):
            there = self._existing(resource, name, namespace)["metadata"].get("finalizers") or []
            meta["finalizers"] = [each for each in there if each not in gone]
        return await super().patch(resource, name, {**patch, "metadata": meta} if meta else patch, namespace, **more)


def run(test: Callable[[World, API, ListRecorder], Awaitable[None]], *there: tuple[Resource, Object]) -> ListRecorder:
    """Play a test with a controller that starts where some objects are there already."""

    async def main(world: World) -> ListRecorder:
        api, recorder = API(world), ListRecorder(world)
        for resource, obj in there:
            api.put(resource, obj)
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world,
                client=api,
                recorder_for=lambda _: recorder,
                root_ca_pem=b"ca",
                names=["job-controller"],
            )
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(0.001)
            await test(world, api, recorder)
            tasks.cancel()
        return recorder

    return run_virtual(main)


def job(status: Object | None = None, **spec: Any) -> Object:
    template = {"metadata": {"labels": {"job": "j"}}, "spec": {"containers": []}}
    known = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "template": template}
    selector = {"selector": {"matchLabels": {"job": "j"}}}
    return {
        "metadata": {"name": "j", "namespace": "default", "uid": "u", "generation": 1},
        "spec": known | selector | spec,
        "status": status or {},
    }


def ended(kind: str = "Complete") -> Object:
    return {"conditions": [{"type": kind, "status": "True"}]}


def pod(owner: Object | None = None, *, name: str = "p", phase: str = "Running", **meta: Any) -> Object:
    """A tracked Pod of the Job, unless `owner` changes the reference or is empty."""
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    known = {"name": name, "namespace": "default", "uid": f"uid of {name}", "finalizers": [TRACKING], **meta}
    known.setdefault("labels", {"job": "j"})
    if owner != {}:
        known["ownerReferences"] = [reference | (owner or {})]
    return {"metadata": known, "spec": {}, "status": {"phase": phase}}


def calls(api: FakeAPI, resource: Resource = PODS) -> list[str]:
    return [verb for verb, plural, _ in api.calls if plural == resource.plural and verb not in ("list", "watch")]


def finalizers(api: FakeAPI) -> list[list[str]]:
    return [each["metadata"].get("finalizers") or [] for each in api.of(PODS)]


def events(api: FakeAPI) -> list[tuple[str, str]]:
    return [(each["reason"], each["message"]) for each in api.of(EVENTS)]


# -- Pods that no Job counts any more --------------------------------------------------------------------------------

OTHERS = {"labels": {}}


@pytest.mark.parametrize(
    ("jobs", "stray", "released"),
    [
        ([], pod({}, **OTHERS), True),
        ([], pod(), True),
        ([], pod({"kind": "ReplicaSet"}), False),
        ([], pod({"apiVersion": "example.com/v1"}), False),
        ([job()], pod({"uid": "an earlier life"}), True),
        ([job(ended())], pod(), True),
        ([job(ended("Failed"))], pod(), True),
        ([job(ended("SuccessCriteriaMet"), managedBy="example.com/other")], pod(), False),
        ([job(ended(), managedBy="example.com/other")], pod(), False),
        ([job(ended(), managedBy="kubernetes.io/job-controller")], pod(), True),
        ([job(ended(), managedBy="")], pod(), True),
        ([job(ended())], pod(deletionTimestamp="2030-01-01T00:00:00Z"), True),
    ],
)
@pytest.mark.parametrize("is_first", [False, True])
def test_a_finalizer_that_no_job_will_take_off_is_taken_off(
    jobs: list[Object], stray: Object, released: bool, is_first: bool
) -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        if not is_first:
            api.put(PODS, stray)
        await world.clock.sleep(1)
        assert [each["metadata"]["finalizers"] for each in api.of(PODS) if each["metadata"]["name"] == "p"] == [
            [] if released else [TRACKING]
        ]
        assert calls(api).count("patch") == released

    there = [(JOBS, each) for each in jobs] + [(PODS, stray)] * is_first
    run(test, *there)


def test_a_stray_without_the_finalizer_is_let_be() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        api.put(PODS, pod(finalizers=["example.com/hold"]))
        await world.clock.sleep(1)
        assert calls(api) == [] and calls(api, JOBS) == []

    run(test)


def test_a_stray_of_a_job_that_the_cache_does_not_show_yet_is_the_job_s() -> None:
    """The live Job is asked for: the cache of Jobs may be behind that of Pods."""

    async def test(world: World, api: API, _: ListRecorder) -> None:
        api.objects[JOBS.plural, "default", "j"] = job()  # written, and told to nobody
        api.put(PODS, pod())
        await world.clock.sleep(1)
        assert calls(api, JOBS) == ["get"] and finalizers(api) == [[TRACKING]]

    run(test)


def test_a_stray_whose_job_cannot_be_asked_for_waits_until_it_can() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        api.fail_next("get", "jobs", BROKEN, times=2)
        api.put(PODS, pod())
        await world.clock.sleep(0.001)
        assert finalizers(api) == [[TRACKING]], "that the Job is gone is not certain"
        await world.clock.sleep(10)
        assert finalizers(api) == [[]] and calls(api, JOBS) == ["get"] * 3

    run(test)


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (status_failure(404, "NotFound", "gone"), 1),
        (status_failure(422, "Invalid", "another uid"), 1),
        (status_failure(409, "Conflict", "changed"), 2),
        (ConnectionLost("lost"), 2),
    ],
)
def test_a_finalizer_of_a_pod_that_is_gone_needs_no_second_try(error: Exception, tries: int) -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        api.fail_next("patch", "pods", error)
        api.put(PODS, pod())
        await world.clock.sleep(10)
        assert calls(api) == ["patch"] * tries

    run(test)


@pytest.mark.parametrize("is_deleted", [True, False])
def test_pods_that_run_when_their_job_is_deleted_or_ended_lose_the_finalizer(is_deleted: bool) -> None:
    """job_controller.go:cleanupPodFinalizers."""

    async def test(world: World, api: API, _: ListRecorder) -> None:
        await world.clock.sleep(1)
        assert finalizers(api) == [[TRACKING], ["example.com/hold"]]
        if is_deleted:
            api.remove(JOBS, "j", "default")
        else:
            api.put(JOBS, {**api.of(JOBS)[0], "status": ended("Failed")})
        await world.clock.sleep(1)
        assert finalizers(api) == [[], ["example.com/hold"]] and calls(api) == ["patch"]

    other = pod({}, name="other", finalizers=["example.com/hold"], labels={})
    run(test, (JOBS, job()), (PODS, pod()), (PODS, other))


# -- one sync --------------------------------------------------------------------------------------------------------


def status(api: FakeAPI) -> Object:
    return api.of(JOBS)[0]["status"]


def test_a_job_makes_its_pods_and_counts_them_as_active() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        await world.clock.sleep(1)
        assert calls(api) == ["create"] * 3 and finalizers(api) == [[TRACKING]] * 3
        assert status(api) == {
            "startTime": "2030-01-01T00:00:00Z", "active": 3, "ready": 0, "terminating": 0,
            "uncountedTerminatedPods": {},
        }  # fmt: skip
        (first, *_) = api.of(PODS)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        api.put(PODS, {**first, "status": ready})
        await world.clock.sleep(1)
        assert (status(api)["active"], status(api)["ready"]) == (3, 1)

    run(test, (JOBS, job(parallelism=3, completions=5)))


@pytest.mark.parametrize(("manager", "made"), [(None, 1), ("", 1), ("kubernetes.io/job-controller", 1), ("a.b/c", 0)])
def test_a_job_of_another_controller_is_let_be(manager: str | None, made: int) -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        await world.clock.sleep(1)
        assert len(api.of(PODS)) == made and bool(status(api)) is bool(made)

    run(test, (JOBS, job(**({} if manager is None else {"managedBy": manager}))))


def test_pods_that_cannot_be_made_are_said_and_made_later_none_too_many() -> None:
    """One, then two at once, of which the first fails: the others were never tried, and are not waited for."""

    async def test(world: World, api: API, _: ListRecorder) -> None:
        await world.clock.sleep(0.001)
        assert calls(api) == ["create"] * 3 and status(api)["active"] == 2
        await world.clock.sleep(5)
        assert calls(api) == ["create"] * 9 and len(api.of(PODS)) == status(api)["active"] == 8
        assert events(api).count(("FailedCreate", "Error creating: exceeded quota")) == 1

    async def main(world: World, api: API, recorder: ListRecorder) -> None:
        create, tried = api.create, []

        async def second_fails(resource: Resource, obj: Object, namespace: str = "", **more: str) -> Object:
            if resource == PODS:
                tried.append(obj)
                if len(tried) == 2:
                    api.calls.append(("create", "pods", ""))
                    raise FORBIDDEN
            return await create(resource, obj, namespace, **more)

        api.create = second_fails  # type: ignore[method-assign]
        api.put(JOBS, job(parallelism=8, completions=8))
        await test(world, api, recorder)

    run(main)


def test_in_a_namespace_that_goes_nothing_is_said_and_nothing_counted() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        api.fail_next("create", "pods", TERMINATING, times=50)
        api.put(JOBS, job(parallelism=2, completions=2))
        await world.clock.sleep(0.5)
        assert "active" not in status(api) and events(api) == []
        assert api.of(PODS) == []

    run(test)


def test_a_status_whose_answer_was_lost_is_read_before_the_next_sync() -> None:
    """A Job that the cache shows may be older than what was written, and its count would be wrong."""

    async def test(world: World, api: API, _: ListRecorder) -> None:
        update = api.update

        async def loses(resource: Resource, obj: Object, namespace: str = "", **more: str) -> Object:
            answer = await update(resource, obj, namespace, **more)
            if resource == JOBS and calls(api, JOBS) == ["update"]:
                raise ConnectionLost("after the write")
            return answer

        api.update = loses  # type: ignore[method-assign]
        api.put(JOBS, job())
        await world.clock.sleep(20)
        assert calls(api, JOBS) == ["update", "get"] and calls(api) == ["create"]

    run(test)


def test_a_job_waits_until_the_cache_shows_its_own_last_write() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        update = api.update

        async def ahead(resource: Resource, obj: Object, namespace: str = "", **more: str) -> Object:
            answer = await update(resource, obj, namespace, **more)
            return {**answer, "metadata": {**answer["metadata"], "resourceVersion": "100000"}}

        api.update = ahead  # type: ignore[method-assign]
        api.put(JOBS, job(parallelism=1))
        await world.clock.sleep(1)
        api.put(JOBS, {**api.of(JOBS)[0], "spec": job(parallelism=2, completions=2)["spec"]})
        await world.clock.sleep(30)
        assert calls(api) == ["create"], "what the cache has is older than what was written"
        api.remove(JOBS, "j", "default")
        again = job(parallelism=2, completions=2)
        api.put(JOBS, {**again, "metadata": {**again["metadata"], "uid": "v"}})
        await world.clock.sleep(1)
        assert calls(api).count("create") == 3, "of another Job of the name nothing was written"

    run(test)


def test_too_many_pods_leave_the_count_before_they_are_deleted() -> None:
    async def test(world: World, api: API, recorder: ListRecorder) -> None:
        await world.clock.sleep(1)
        made = api.of(JOBS)[0]
        api.put(
            JOBS, {**made, "spec": made["spec"] | {"parallelism": 1}, "metadata": {**made["metadata"], "generation": 2}}
        )
        await world.clock.sleep(0.01)
        assert calls(api) == ["create"] * 3 + ["patch", "delete"] * 2
        assert len(api.of(PODS)) == 1 and "failed" not in status(api)
        facts = recorder.records[0]["facts"]
        assert recorder.records[0]["rule"] == "pkg/controller/job/job_controller.go:manageJob"
        assert (facts["wanted"], facts["active"], facts["step"]) == (1, 3, "scaling")
        assert facts["why"].startswith("Job j wants 1 active Pods and has 3: ") and "condition" not in facts

    run(test, (JOBS, job(parallelism=3, completions=3)))


def test_a_suspended_job_s_pods_go_and_the_status_counts_them_as_ending() -> None:
    async def test(world: World, api: API, recorder: ListRecorder) -> None:
        await world.clock.sleep(1)
        made = api.of(JOBS)[0]
        api.put(JOBS, {**made, "spec": made["spec"] | {"suspend": True}})
        await world.clock.sleep(1)
        assert api.of(PODS) == [] and recorder.records[0]["facts"]["step"] == "suspended"
        assert ("Suspended", "Job suspended") in events(api)
        written = [
            obj["status"] for _, kind, resource, obj, _ in api.history if resource == JOBS and kind == "MODIFIED"
        ]
        assert next(each.get("terminating") for each in written if "conditions" in each) == 2

    run(test, (JOBS, job(parallelism=2, completions=2)))


def test_a_pod_that_cannot_be_deleted_is_tried_again_and_counts_until_then() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        await world.clock.sleep(1)
        api.fail_next("delete", "pods", FORBIDDEN)
        made = api.of(JOBS)[0]
        api.put(
            JOBS, {**made, "spec": made["spec"] | {"parallelism": 1}, "metadata": {**made["metadata"], "generation": 2}}
        )
        await world.clock.sleep(0.001)
        assert (status(api)["active"], len(api.of(PODS))) == (2, 2)
        await world.clock.sleep(5)
        assert (status(api)["active"], len(api.of(PODS))) == (1, 1)
        assert ("FailedDelete", "Error deleting: exceeded quota") in events(api)

    run(test, (JOBS, job(parallelism=2, completions=2)))


def test_when_a_job_fails_its_pods_are_deleted_with_their_finalizer_on() -> None:
    """They are counted as failed, so that the finalizer goes after the count."""

    async def test(world: World, api: API, recorder: ListRecorder) -> None:
        await world.clock.sleep(1)
        first, second = api.of(PODS)
        api.put(PODS, {**first, "status": {"phase": "Failed"}})
        await world.clock.sleep(0.5)
        assert calls(api)[:3] == ["create", "create", "delete"]
        (record,) = recorder.records
        facts = record["facts"]
        assert record["rule"] == "pkg/controller/job/job_controller.go:deleteActivePods"
        assert (record["pod_uid"], facts["step"]) == (second["metadata"]["uid"], "finished")
        assert (facts["condition"], facts["conditionReason"]) == ("FailureTarget", "BackoffLimitExceeded")
        assert facts["why"] == "Job j has 1 failed Pods at a backoffLimit of 0" and "wanted" not in facts
        await world.clock.sleep(5)
        assert status(api)["failed"] == 2
        assert [each["type"] for each in status(api)["conditions"]] == ["FailureTarget", "Failed"]
        assert ("BackoffLimitExceeded", "Job has reached the specified backoff limit") in events(api)

    run(test, (JOBS, job(parallelism=2, completions=2, backoffLimit=0)))


@pytest.mark.parametrize("error", [BROKEN, ConnectionLost("lost")])
def test_a_pod_whose_finalizer_stays_is_counted_once_it_is_off(error: Exception) -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        await world.clock.sleep(1)
        api.fail_next("patch", "pods", error)
        (made,) = api.of(PODS)
        api.put(PODS, {**made, "status": {"phase": "Succeeded"}})
        await world.clock.sleep(0.03)
        uid = made["metadata"]["uid"]
        assert status(api)["uncountedTerminatedPods"] == {"succeeded": [uid]} and "succeeded" not in status(api)
        await world.clock.sleep(10)
        assert (status(api)["succeeded"], status(api)["uncountedTerminatedPods"]) == (1, {})
        assert calls(api) == ["create", "patch", "patch"]
        assert events(api)[-1] == ("Completed", "Job completed")

    run(test, (JOBS, job()))


def test_a_failed_pod_is_replaced_after_ten_seconds_and_the_next_after_twenty() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        gaps = []
        for number in range(1, 4):
            while len(api.of(PODS)) < number:
                await world.clock.sleep(0.1)
            made = api.of(PODS)[-1]
            stamp = rfc3339(now(world.clock))
            ready = {"type": "Ready", "status": "False", "lastTransitionTime": stamp}
            began = world.clock.monotonic_ns()
            api.put(PODS, {**made, "status": {"phase": "Failed", "conditions": [ready]}})
            while len(api.of(PODS)) == number:
                await world.clock.sleep(0.1)
            gaps.append(round((world.clock.monotonic_ns() - began) / 1e9))
        assert gaps == [10, 20, 40] and status(api)["failed"] == 3

    run(test, (JOBS, job()))


# -- which Jobs are looked at ----------------------------------------------------------------------------------------


def test_a_pod_that_becomes_nobody_s_and_matches_is_adopted_with_the_finalizer() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        await world.clock.sleep(1)
        api.put(PODS, pod({}, name="other", finalizers=[], labels={"job": "another"}))
        await world.clock.sleep(1)
        assert calls(api) == ["create"], "it does not match"
        api.put(PODS, pod({}, name="other", finalizers=[]))
        await world.clock.sleep(0.5)
        adopted = next(each for each in api.of(PODS) if each["metadata"]["name"] == "other")
        assert adopted["metadata"]["ownerReferences"][0]["uid"] == "u"
        assert adopted["metadata"]["finalizers"] == [TRACKING]

    run(test, (JOBS, job(parallelism=2, completions=2)), (PODS, pod()))


def test_a_new_pod_that_is_nobody_s_and_matches_is_adopted() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        await world.clock.sleep(1)
        api.put(PODS, pod({}, name="new", finalizers=[]))
        await world.clock.sleep(0.03)
        (found,) = [each for each in api.of(PODS) if each["metadata"]["name"] == "new"]
        assert found["metadata"]["ownerReferences"][0]["uid"] == "u"

    run(test, (JOBS, job(parallelism=2, completions=2)), (PODS, pod()))


@pytest.mark.parametrize("goes", ["released", "deleted", "ending"])
def test_a_job_whose_pod_goes_makes_another(goes: str) -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        await world.clock.sleep(1)
        assert calls(api) == []
        if goes == "released":
            api.put(PODS, pod({"uid": "another", "name": "k"}, finalizers=[]))
        elif goes == "deleted":
            api.remove(PODS, "p", "default")
        else:
            api.put(PODS, pod(deletionTimestamp="2030-01-01T00:00:00Z", deletionGracePeriodSeconds=0))
        await world.clock.sleep(30)
        assert calls(api).count("create") == 1

    run(test, (JOBS, job()), (PODS, pod()))


def test_a_pod_of_the_job_that_somebody_else_makes_is_one_too_many() -> None:
    async def test(world: World, api: API, _: ListRecorder) -> None:
        await world.clock.sleep(1)
        api.put(PODS, pod())
        await world.clock.sleep(0.1)
        assert len(api.of(PODS)) == 1 and calls(api).count("delete") == 1

    run(test, (JOBS, job()))
