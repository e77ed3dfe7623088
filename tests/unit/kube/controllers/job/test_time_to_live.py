"""When a finished Job is cleaned up (job/ttl_after_finished.py).

Source: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go (processJob, processTTL, timeLeft).
"""

from collections.abc import Awaitable, Callable

import pytest
from fake_api import FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import JOBS
from lastcall.kube.api.text.times import from_unix
from lastcall.kube.controllers.job.ttl_after_finished import expires_at
from lastcall.kube.controllers.manager import run_controllers
from lastcall.world.clock import now, rfc3339
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

DONE = "1970-01-01T00:01:40Z"


def job(ttl: int | None = 5, how: str = "Complete", done: str = DONE, state: str = "True", **meta: object) -> Object:
    spec = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    conditions = [{"type": how, "status": state, "lastTransitionTime": done}]
    return {
        "metadata": {"name": "j", "namespace": "default", **meta},
        "spec": spec,
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (job(), 105.0), (job(0), 100.0), (job(how="Failed"), 105.0), (job(None), None), (job(how="Suspended"), None),
        (job(state="False"), None), (job(deletionTimestamp=DONE), None),
    ],
)  # fmt: skip
def test_a_job_that_has_finished_stays_so_long(of: Object, expected: float | None) -> None:
    assert expires_at(of) == expected


def run(test: Callable[[World, FakeAPI, ListRecorder], Awaitable[None]]) -> None:
    async def main(world: World) -> None:
        api, recorder = FakeAPI(world), ListRecorder(world)
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world, client=api, recorder_for=lambda _: recorder, root_ca_pem=b"ca",
                names=["ttl-after-finished-controller"],
            )  # fmt: skip
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(-now(world.clock).timestamp() % 1 + 1)
            await test(world, api, recorder)
            tasks.cancel()

    run_virtual(main)


def just_done(world: World) -> str:
    return rfc3339(from_unix(now(world.clock).timestamp()))


def test_its_time_runs_from_its_end() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        made = api.put(JOBS, job(5, done=just_done(world)))
        await world.clock.sleep(4.9)
        assert api.of(JOBS) and not recorder.records
        await world.clock.sleep(0.2)
        assert not api.of(JOBS)
        (record,) = recorder.records
        assert (record["kind"], record["facts"]["uid"]) == ("DeletionDecided", made["metadata"]["uid"])
        assert record["facts"]["why"] == "Job j finished longer than its ttlSecondsAfterFinished of 5 s ago"

    run(test)


def test_a_time_to_live_that_is_given_later_counts_too() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        made = api.put(JOBS, job(None, done=just_done(world)))
        await world.clock.sleep(10)
        assert api.of(JOBS)
        api.put(JOBS, {**made, "spec": {"ttlSecondsAfterFinished": 5}})
        await world.clock.sleep(0.1)
        assert not api.of(JOBS)

    run(test)


@pytest.mark.parametrize("more", [0.5, 3])
def test_what_the_api_says_decides_and_not_the_cache(more: float) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        made = api.put(JOBS, job(5, done=just_done(world)))
        await world.clock.sleep(4)
        # the cache hears of it only later
        api.objects["jobs", "default", "j"] = {**made, "spec": {"ttlSecondsAfterFinished": 5 + more}}
        await world.clock.sleep(1.2)
        assert api.of(JOBS), "the time that it has now is not over"

    run(test)


def test_another_job_of_the_name_stays() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        made = api.put(JOBS, job(5, done=just_done(world)))
        await world.clock.sleep(4)
        api.objects["jobs", "default", "j"] = {**made, "metadata": {**made["metadata"], "uid": "another"}}
        await world.clock.sleep(2)
        assert api.of(JOBS) and not recorder.records

    run(test)


@pytest.mark.parametrize(("code", "reason", "tries"), [(404, "NotFound", 1), (500, "InternalError", 2)])
def test_a_delete_that_fails_is_tried_again_unless_the_job_is_gone(code: int, reason: str, tries: int) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next("delete", "jobs", status_failure(code, reason, "x"))
        api.put(JOBS, job(0, done=just_done(world)))
        await world.clock.sleep(5)
        assert sum(1 for verb, *_ in api.calls if verb == "delete") == tries

    run(test)
