"""CronJobs and the clean-up of finished Jobs, on a virtual cluster."""

from datetime import UTC, datetime

from virtual_cluster import VirtualCluster, run_cluster
from workloads import events_about, listed, pods

from lastcall.kube.api.meta import annotations_of, labels_of, name_of, uid_of
from lastcall.kube.api.resources import CRONJOBS, EVENTS, JOBS
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds
from lastcall.world.clock import now


def cron_job(name="c", schedule="* * * * *", *, job=None, **spec):
    pod = {"containers": [{"name": "app", "image": "app:1"}], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {"tier": "batch"}}, "spec": {"template": {"spec": pod}, **(job or {})}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


async def status(cluster: VirtualCluster):
    return (await cluster.client.get(CRONJOBS, "c", cluster.namespace)).get("status") or {}


async def job_names(cluster: VirtualCluster):
    return sorted(map(name_of, await listed(cluster, JOBS)))


def wall(cluster: VirtualCluster) -> float:
    return now(cluster.world.clock).timestamp()


async def to_second(cluster: VirtualCluster, second: int) -> None:
    """Sleep until the clock shows this second of a minute."""
    await cluster.sleep((second - wall(cluster)) % 60)


QUICK = {"app": Program(exits_after=1.0)}
LONG = {"app": Program(drain_seconds=1)}


def test_each_minute_a_job_named_by_its_minute_is_started_and_seen_to_complete():
    async def scenario(cluster):
        await to_second(cluster, 50)
        minute = int(wall(cluster)) // 60 + 1
        await cluster.create(cron_job())
        await cluster.sleep(9)
        assert await job_names(cluster) == []
        await cluster.sleep(11)
        assert await job_names(cluster) == [f"c-{minute}"]
        (made,) = await listed(cluster, JOBS)
        assert labels_of(made)["tier"] == "batch"
        due = datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert annotations_of(made)["batch.kubernetes.io/cronjob-scheduled-timestamp"] == due
        assert made["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
        found = await status(cluster)
        assert found["lastScheduleTime"] == due
        assert found["lastSuccessfulTime"] == made["status"]["completionTime"]
        assert "active" not in found
        assert events_about(cluster, "c") == [
            f"SuccessfulCreate: Created job c-{minute}",
            f"SawCompletedJob: Saw completed job: c-{minute}, condition: Complete",
        ]

    run_cluster(scenario, QUICK)


def test_only_so_many_finished_jobs_are_kept_and_their_pods_go_with_them():
    async def scenario(cluster):
        await to_second(cluster, 50)
        minute = int(wall(cluster)) // 60 + 1
        await cluster.create(cron_job(successfulJobsHistoryLimit=2))
        await cluster.sleep(60 * 5)
        assert await job_names(cluster) == [f"c-{minute + 3}", f"c-{minute + 4}"]
        assert len(await pods(cluster)) == 2
        assert f"SuccessfulDelete: Deleted job c-{minute}" in events_about(cluster, "c")

    run_cluster(scenario, QUICK)


def test_with_forbid_nothing_is_started_while_one_runs():
    async def scenario(cluster):
        await to_second(cluster, 50)
        await cluster.create(cron_job(concurrencyPolicy="Forbid"))
        await cluster.sleep(150)
        assert len(await job_names(cluster)) == 1
        assert len((await status(cluster))["active"]) == 1
        texts = [text.split(":")[0] for text in events_about(cluster, "c")]
        assert texts == ["SuccessfulCreate", "JobAlreadyActive"]

    run_cluster(scenario, LONG)


def test_with_replace_what_runs_goes_first():
    async def scenario(cluster):
        await to_second(cluster, 50)
        await cluster.create(cron_job(concurrencyPolicy="Replace"))
        await cluster.sleep(20)
        (first,) = await listed(cluster, JOBS)
        await cluster.sleep(60)
        (second,) = await listed(cluster, JOBS)
        assert uid_of(first) != uid_of(second)
        (active,) = (await status(cluster))["active"]
        assert active["uid"] == uid_of(second)
        assert f"SuccessfulDelete: Deleted job {name_of(first)}" in events_about(cluster, "c")
        assert not [each for each in events_about(cluster, "c") if each.startswith("MissingJob")]
        why = [record.facts["why"] for record in cluster.records(kinds.DELETION_DECIDED)]
        still = f"Job {name_of(first)} of CronJob c still runs when the next is due, and concurrencyPolicy is Replace"
        assert why[0] == still

    run_cluster(scenario, LONG)


def test_with_allow_they_run_beside_each_other():
    async def scenario(cluster):
        await to_second(cluster, 50)
        await cluster.create(cron_job())
        await cluster.sleep(140)
        assert len((await status(cluster))["active"]) == 3

    run_cluster(scenario, LONG)


def test_what_was_missed_while_suspended_is_started_once_or_not_at_all_after_its_deadline():
    async def scenario(cluster):
        await to_second(cluster, 30)
        await cluster.create(cron_job(suspend=True), cron_job("strict", suspend=True, startingDeadlineSeconds=15))
        await cluster.sleep(60 * 5)
        assert await job_names(cluster) == []
        minute = int(wall(cluster)) // 60
        await cluster.patch("cronjob/c", {"spec": {"suspend": False}})
        await cluster.patch("cronjob/strict", {"spec": {"suspend": False}})
        await cluster.sleep(5)
        assert await job_names(cluster) == [f"c-{minute}"]
        await cluster.sleep(40)
        assert await job_names(cluster) == [f"c-{minute}", f"c-{minute + 1}", f"strict-{minute + 1}"]

    run_cluster(scenario, QUICK)


def test_a_hundred_missed_times_are_told():
    async def scenario(cluster):
        await cluster.create(cron_job(suspend=True))
        await cluster.sleep(60 * 102)
        await cluster.patch("cronjob/c", {"spec": {"suspend": False}})
        await cluster.sleep(5)
        assert len(await job_names(cluster)) == 1
        message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        assert f"TooManyMissedTimes: {message}" in events_about(cluster, "c")

    run_cluster(scenario, QUICK)


def test_a_new_schedule_counts_from_now_on():
    async def scenario(cluster):
        await cluster.create(cron_job(schedule="0 0 1 1 *"))
        await cluster.sleep(600)
        await cluster.patch("cronjob/c", {"spec": {"schedule": "*/5 * * * *"}})
        await cluster.sleep(2)
        assert await job_names(cluster) == []
        await cluster.sleep(300)
        assert len(await job_names(cluster)) == 1

    run_cluster(scenario, QUICK)


def test_a_job_of_its_own_that_vanishes_is_no_longer_active():
    async def scenario(cluster):
        await to_second(cluster, 50)
        await cluster.create(cron_job())
        await cluster.sleep(20)
        (made,) = await listed(cluster, JOBS)
        await cluster.delete(f"job/{name_of(made)}", propagation="Background")
        await cluster.sleep(5)
        assert "active" not in await status(cluster)
        assert f"MissingJob: Active job went missing: {name_of(made)}" in events_about(cluster, "c")

    run_cluster(scenario, LONG)


def test_a_cron_job_that_waits_writes_nothing():
    async def scenario(cluster):
        await cluster.create(cron_job(schedule="0 0 1 1 *"))
        await cluster.sleep(60)
        version = (await cluster.client.get(CRONJOBS, "c", "default"))["metadata"]["resourceVersion"]
        events = len(cluster.history[EVENTS])
        await cluster.sleep(7200)
        assert (await cluster.client.get(CRONJOBS, "c", "default"))["metadata"]["resourceVersion"] == version
        assert len(cluster.history[EVENTS]) == events

    run_cluster(scenario, QUICK)


def test_a_finished_job_goes_with_its_pods_when_its_time_to_live_is_over():
    async def scenario(cluster):
        made = cron_job(job={"ttlSecondsAfterFinished": 5})["spec"]["jobTemplate"]["spec"]
        await cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": made})
        await cluster.sleep(4)
        (job,) = await listed(cluster, JOBS)
        assert any(each["type"] == "Complete" for each in job["status"]["conditions"])
        await cluster.sleep(6)
        assert await listed(cluster, JOBS) == []
        assert await pods(cluster) == []
        (record,) = [each for each in cluster.records(kinds.DELETION_DECIDED) if each.facts.get("kind") == "Job"]
        assert record.facts["why"] == "Job j finished longer than its ttlSecondsAfterFinished of 5 s ago"

    run_cluster(scenario, QUICK)
