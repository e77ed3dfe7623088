"""What a CronJob's controller does when a write fails or a Job is not what it expects.

Source: pkg/controller/cronjob/cronjob_controllerv2.go (syncCronJob, deleteJob, cleanupFinishedJobs).
"""

from collections.abc import Awaitable, Callable

import pytest
from fake_api import FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CRONJOBS, EVENTS, JOBS
from lastcall.kube.controllers.manager import run_controllers
from lastcall.world.clock import now
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

FORBIDDEN = status_failure(403, "Forbidden", "exceeded quota")
TERMINATING = status_failure(403, "Forbidden", "ends", {"causes": [{"reason": "NamespaceTerminating"}]})


def run(test: Callable[[World, FakeAPI, ListRecorder], Awaitable[None]]) -> None:
    async def main(world: World) -> None:
        api, recorder = FakeAPI(world), ListRecorder(world)
        await world.clock.sleep((50 - now(world.clock).timestamp()) % 60)
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world,
                client=api,
                recorder_for=lambda _: recorder,
                root_ca_pem=b"ca",
                names=["cronjob-controller"],
            )
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(1)
            await test(world, api, recorder)
            tasks.cancel()

    run_virtual(main)


def stamp(world: World, ago: float = 0.0) -> str:
    from lastcall.kube.api.text.times import from_unix
    from lastcall.world.clock import rfc3339

    return rfc3339(from_unix(now(world.clock).timestamp() - ago))


def cron_job(world: World, *, schedule: str = "* * * * *", status: Object | None = None, **spec: object) -> Object:
    meta = {"name": "c", "namespace": "default", "creationTimestamp": stamp(world)}
    return {"metadata": meta, "spec": {"schedule": schedule, "jobTemplate": {}, **spec}, "status": status or {}}


def job(owner: Object, name: str, how: str = "", done: str = "", *, uid: str = "") -> Object:
    reference = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": uid or owner["metadata"]["uid"]}
    conditions = [{"type": how, "status": "True"}] if how else []
    times = {"completionTime": done} if done else {}
    return {
        "metadata": {"name": name, "namespace": "default", "ownerReferences": [{**reference, "controller": True}]},
        "spec": {},
        "status": {"conditions": conditions, **times},
    }


def events(api: FakeAPI) -> list[tuple[str, str, str]]:
    return [(each["type"], each["reason"], each["message"]) for each in api.of(EVENTS)]


def status(api: FakeAPI) -> Object:
    return api.of(CRONJOBS)[0].get("status") or {}


def names(api: FakeAPI) -> list[str]:
    return sorted(each["metadata"]["name"] for each in api.of(JOBS))


def next_name(world: World) -> str:
    return f"c-{int(now(world.clock).timestamp()) // 60 + 1}"


NEVER = "0 0 31 2 *"


def test_a_job_that_is_refused_is_said_and_tried_again() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        name = next_name(world)
        api.put(CRONJOBS, cron_job(world))
        api.fail_next("create", "jobs", FORBIDDEN)
        await world.clock.sleep(15)
        assert names(api) == [name]
        assert events(api) == [
            ("Warning", "FailedCreate", "Error creating job: exceeded quota"),
            ("Normal", "SuccessfulCreate", f"Created job {name}"),
        ]
        (active,) = status(api)["active"]
        assert (active["name"], active["uid"]) == (name, api.of(JOBS)[0]["metadata"]["uid"])
        assert status(api)["lastScheduleTime"] == stamp(world, ago=6)

    run(test)


def test_a_namespace_that_goes_is_no_failure() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(CRONJOBS, cron_job(world))
        api.fail_next("create", "jobs", TERMINATING, times=99)
        await world.clock.sleep(15)
        assert events(api) == [] and names(api) == [] and status(api) == {}

    run(test)


@pytest.mark.parametrize("ours", [True, False])
def test_a_job_of_that_name_is_taken_if_it_is_its_own(ours: bool) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        of = api.put(CRONJOBS, cron_job(world, suspend=True))
        there = api.put(JOBS, job(of, next_name(world), uid="" if ours else "another"))
        api.put(CRONJOBS, {**of, "spec": {**of["spec"], "suspend": False}})
        await world.clock.sleep(15)
        assert len(names(api)) == 1
        assert [each["uid"] for each in status(api).get("active") or ()] == ([there["metadata"]["uid"]] if ours else [])
        assert ("lastScheduleTime" in status(api)) is ours
        assert "SuccessfulCreate" not in [reason for _, reason, _ in events(api)]

    run(test)


def test_a_job_that_cannot_be_deleted_is_said_and_tried_again() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        of = api.put(CRONJOBS, cron_job(world, schedule=NEVER, successfulJobsHistoryLimit=0))
        await world.clock.sleep(1)
        api.fail_next("delete", "jobs", FORBIDDEN)
        made = api.put(JOBS, job(of, "old", "Complete", stamp(world)))
        await world.clock.sleep(5)
        assert names(api) == []
        assert ("Warning", "FailedDelete", "Deleted job: exceeded quota") in events(api)
        assert ("Normal", "SuccessfulDelete", "Deleted job old") in events(api)
        assert [each["kind"] for each in recorder.records] == ["DeletionDecided"] * 2
        facts = recorder.records[0]["facts"]
        assert facts["why"] == "Job old of CronJob c is beyond its history limit"
        assert (facts["ownerKind"], facts["owner"], facts["kind"], facts["name"], facts["uid"]) == (
            "CronJob", "c", "Job", "old", made["metadata"]["uid"],
        )  # fmt: skip

    run(test)


def test_a_job_that_is_gone_already_is_no_failure() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        of = api.put(CRONJOBS, cron_job(world, schedule=NEVER, failedJobsHistoryLimit=0))
        await world.clock.sleep(1)
        api.fail_next("delete", "jobs", status_failure(404, "NotFound", "gone"))
        api.put(JOBS, job(of, "old", "Failed"))
        await world.clock.sleep(0.001)
        assert events(api) == []

    run(test)


def test_a_job_that_goes_already_is_not_deleted_again() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        of = api.put(CRONJOBS, cron_job(world, schedule=NEVER, failedJobsHistoryLimit=0))
        going = job(of, "old", "Failed")
        going["metadata"]["deletionTimestamp"] = stamp(world)
        api.put(JOBS, going)
        await world.clock.sleep(1)
        assert recorder.records == [] and names(api) == ["old"]

    run(test)


def test_the_last_success_is_the_latest_completion() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        of = api.put(CRONJOBS, cron_job(world, schedule=NEVER))
        first, second = stamp(world, ago=10), stamp(world, ago=20)
        api.put(JOBS, job(of, "a", "Complete", first))
        await world.clock.sleep(1)
        assert status(api) == {"lastSuccessfulTime": first}
        api.put(JOBS, job(of, "b", "Complete", second))
        api.put(JOBS, job(of, "f", "Failed", stamp(world)))
        await world.clock.sleep(1)
        assert status(api) == {"lastSuccessfulTime": first}
        assert events(api) == [], "none of them was active"

    run(test)


def test_a_job_that_it_does_not_know_is_said() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        of = api.put(CRONJOBS, cron_job(world, schedule=NEVER))
        api.put(JOBS, job(of, "x"))
        await world.clock.sleep(1)
        text = "Saw a job that the controller did not create or forgot: x"
        assert events(api) == [("Warning", "UnexpectedJob", text)] and status(api) == {}

    run(test)


def test_a_job_that_a_newer_status_has_replaced_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        of = cron_job(world, schedule=NEVER)
        put = api.put(CRONJOBS, of)
        await world.clock.sleep(1)
        get, newer = api.get, {"on": True}

        async def fresh(resource: object, name: str, namespace: str = "", **options: object) -> Object:
            found = await get(resource, name, namespace, **options)
            if resource != CRONJOBS or not newer["on"]:
                return found
            meta = {**found["metadata"], "resourceVersion": "999999"}
            return {**found, "metadata": meta, "status": {}}

        monkeypatch.setattr(api, "get", fresh)
        active = [{"name": "old", "namespace": "default", "uid": "old"}]
        api.put(CRONJOBS, {**put, "status": {"active": active}})
        await world.clock.sleep(1)
        assert events(api) == []
        assert status(api)["active"] == active
        newer["on"] = False
        api.put(CRONJOBS, {**put, "status": {"active": active}, "spec": {**put["spec"], "suspend": True}})
        await world.clock.sleep(1)
        assert events(api) == [("Normal", "MissingJob", "Active job went missing: old")]

    run(test)


def test_an_active_job_that_ends_or_is_missing_is_no_longer_active() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        of = api.put(CRONJOBS, cron_job(world, schedule=NEVER, suspend=True))
        made = api.put(JOBS, job(of, "done", "Failed"))
        runs = api.put(JOBS, job(of, "runs"))
        active = [
            {"name": each["metadata"]["name"], "namespace": "default", "uid": each["metadata"]["uid"]}
            for each in (made, runs)
        ]
        active += [{"name": "lost", "namespace": "default", "uid": "lost"}, {"uid": "nameless"}]
        api.put(CRONJOBS, {**of, "status": {"active": active}, "spec": {**of["spec"], "suspend": False}})
        await world.clock.sleep(1)
        assert status(api)["active"] == [active[1]]
        assert [each for each in events(api) if each[1] != "UnexpectedJob"] == [
            ("Normal", "SawCompletedJob", "Saw completed job: done, condition: Failed"),
            ("Normal", "MissingJob", "Active job went missing: lost"),
            ("Normal", "MissingJob", "Active job went missing: "),
        ]

    run(test)


@pytest.mark.parametrize(("code", "reason", "writes"), [(404, "NotFound", 1), (409, "Conflict", 2)])
def test_a_status_that_conflicts_is_written_again_and_one_that_is_gone_is_not(
    code: int, reason: str, writes: int
) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        of = api.put(CRONJOBS, cron_job(world, schedule=NEVER))
        await world.clock.sleep(1)
        api.fail_next("update", "cronjobs", status_failure(code, reason, "x"))
        api.put(JOBS, job(of, "a", "Complete", stamp(world)))
        await world.clock.sleep(5)
        assert sum(1 for verb, plural, _ in api.calls if (verb, plural) == ("update", "cronjobs")) == writes

    run(test)


def test_a_cron_job_that_goes_starts_nothing() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        going = cron_job(world)
        going["metadata"]["deletionTimestamp"] = stamp(world)
        api.put(CRONJOBS, going)
        await world.clock.sleep(120)
        assert names(api) == []

    run(test)


def test_a_new_schedule_or_zone_starts_nothing_of_the_past() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        of = api.put(CRONJOBS, cron_job(world, schedule=NEVER))
        await world.clock.sleep(600)
        of = api.put(CRONJOBS, {**of, "spec": {**of["spec"], "schedule": "*/2 * * * *"}})
        await world.clock.sleep(1)
        assert names(api) == []
        await world.clock.sleep(120)
        assert len(names(api)) == 1
        api.put(CRONJOBS, {**api.of(CRONJOBS)[0], "spec": {**of["spec"], "schedule": "61 * * * *"}})
        await world.clock.sleep(1)
        assert "UnparseableSchedule" in [reason for _, reason, _ in events(api)]

    run(test)
