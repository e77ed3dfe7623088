"""Jobs on a virtual cluster: how they count, when they end, what becomes of their Pods."""

import pytest
from virtual_cluster import VirtualCluster, run_cluster
from workloads import events_about, listed, most_at_once, pods

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import annotations_of, is_terminating, labels_of, name_of, uid_of
from lastcall.kube.api.resources import EVENTS, JOBS, PODS
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


def job(name="j", *, containers=None, init=None, grace=6, restart="Never", **spec):
    pod = {"containers": containers or [{"name": "app", "image": "app:1"}], "restartPolicy": restart}
    pod |= {"terminationGracePeriodSeconds": grace} | ({"initContainers": init} if init else {})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"metadata": {"labels": {"app": name}}, "spec": pod}, **spec},
    }


async def the_job(cluster: VirtualCluster, name="j"):
    return await cluster.client.get(JOBS, name, cluster.namespace)


async def status(cluster: VirtualCluster, name="j"):
    return (await the_job(cluster, name)).get("status") or {}


def has(found, kind):
    return any(each["type"] == kind and each["status"] == "True" for each in found.get("conditions") or ())


async def until(cluster: VirtualCluster, kind, name="j", limit=600.0):
    async def there():
        return has(await status(cluster, name), kind)

    await cluster.wait_until_async(there, limit)


async def until_counts(cluster: VirtualCluster, limit=120.0, **counts):
    async def there():
        found = await status(cluster)
        return all(found.get(key, 0) == value for key, value in counts.items())

    await cluster.wait_until_async(there, limit)


def conditions(found):
    return [(each["type"], each["reason"]) for each in found["conditions"]]


def created(cluster: VirtualCluster):
    return [seen for seen in cluster.history[PODS] if seen.type == "ADDED"]


def whys(cluster: VirtualCluster):
    return [record.facts["why"] for record in cluster.records(kinds.DELETION_DECIDED)]


QUICK = {"app": Program(exits_after=1.0)}
FAILS = {"app": Program(exits_after=0.5, natural_exit_code=1)}
SERVES = {"app": Program(drain_seconds=3, exit_code=1)}


def by_index(outcomes):
    """Programs by completion index: exit codes for one try after the other; each runs a second."""
    tries: dict[str, int] = {}

    def program(config, sandbox):
        index = dict(sandbox.annotations or {}).get(INDEX) or dict(sandbox.labels or {}).get(INDEX)
        codes = outcomes.get(int(index), (0,))
        number = tries.get(index, 0)
        tries[index] = number + 1
        return Program(exits_after=1.0, natural_exit_code=codes[min(number, len(codes) - 1)])

    return program


def test_a_job_runs_its_completions_and_is_complete_when_all_are_counted():
    async def scenario(cluster):
        await cluster.create(job(completions=5, parallelism=2))
        await until(cluster, "Complete")
        found = await status(cluster)
        assert found["succeeded"] == 5
        assert conditions(found) == [
            ("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")
        ]  # fmt: skip
        assert found["uncountedTerminatedPods"] == {}
        assert found["ready"] == found["terminating"] == 0
        assert "active" not in found
        assert found["completionTime"] == found["conditions"][1]["lastTransitionTime"]
        assert len(created(cluster)) == 5
        assert most_at_once(cluster, lambda pod: pod["status"].get("phase") in ("Pending", "Running")) == 2
        assert all("finalizers" not in pod["metadata"] for pod in await pods(cluster))
        assert events_about(cluster, "j")[-1] == "Completed: Job completed"

    run_cluster(scenario, QUICK)


def test_each_pod_carries_the_tracking_finalizer_and_the_labels_of_its_job():
    async def scenario(cluster):
        await cluster.create(job())
        await until_counts(cluster, active=1)
        (pod,) = await pods(cluster)
        assert pod["metadata"]["finalizers"] == [TRACKING]
        assert labels_of(pod)["batch.kubernetes.io/job-name"] == "j"
        assert pod["metadata"]["generateName"] == "j-"
        assert events_about(cluster, "j") == [f"SuccessfulCreate: Created pod: {name_of(pod)}"]

    run_cluster(scenario, SERVES)


def test_a_failed_pod_is_replaced_ten_seconds_after_its_end_and_the_limit_ends_the_job():
    async def scenario(cluster):
        await cluster.create(job(backoffLimit=2))
        await until(cluster, "Failed")
        first, second, third = (seen.at for seen in created(cluster))
        assert 9.5 <= second - first <= 11.5
        assert 19.5 <= third - second <= 21.5
        found = await status(cluster)
        assert found["failed"] == 3
        assert conditions(found) == [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
        assert events_about(cluster, "j")[-1] == "BackoffLimitExceeded: Job has reached the specified backoff limit"

    run_cluster(scenario, FAILS)


def test_restarts_in_place_count_against_the_limit_too():
    async def scenario(cluster):
        await cluster.create(job(restart="OnFailure", backoffLimit=1))
        await until(cluster, "Failed")
        assert len(created(cluster)) == 1
        assert (await status(cluster))["failed"] == 1
        assert whys(cluster) == ["Job j has 0 failed Pods at a backoffLimit of 1"]

    run_cluster(scenario, FAILS)


def test_the_deadline_ends_the_pods_gracefully_and_failed_comes_when_they_are_gone():
    async def scenario(cluster):
        await cluster.create(job(activeDeadlineSeconds=3))
        await until(cluster, "FailureTarget")
        (pod,) = await pods(cluster)
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 6
        found = await status(cluster)
        assert (found["terminating"], has(found, "Failed")) == (1, False)
        await until(cluster, "Failed")
        assert (await status(cluster))["failed"] == 1
        assert whys(cluster) == ["Job j was active longer than its activeDeadlineSeconds of 3 s"]
        texts = [text.split(":")[0] for text in events_about(cluster, "j")]
        assert texts == ["SuccessfulCreate", "SuccessfulDelete", "DeadlineExceeded"]

    run_cluster(scenario, SERVES)


def test_a_deleted_pod_counts_as_failed_at_once_and_is_replaced_after_the_back_off():
    async def scenario(cluster):
        await cluster.create(job(backoffLimit=2))
        await until_counts(cluster, ready=1)
        await cluster.sleep(1)
        (pod,) = await pods(cluster)
        began = cluster.now
        await cluster.delete(f"pod/{name_of(pod)}")
        await until_counts(cluster, failed=1, terminating=1)
        assert "finalizers" not in cluster.pod(name_of(pod))["metadata"]
        await cluster.wait_until(lambda: len(created(cluster)) == 2)
        assert 8.5 <= cluster.now - began <= 10.5

    run_cluster(scenario, SERVES)


def test_with_replacement_policy_failed_a_deleted_pod_counts_when_it_has_ended():
    async def scenario(cluster):
        await cluster.create(job(backoffLimit=2, podReplacementPolicy="Failed"))
        await until_counts(cluster, ready=1)
        await cluster.sleep(1)
        (pod,) = await pods(cluster)
        began = cluster.now
        await cluster.delete(f"pod/{name_of(pod)}")
        await until_counts(cluster, terminating=1)
        await cluster.sleep(1)
        assert "failed" not in await status(cluster)
        await until_counts(cluster, failed=1)
        assert cluster.now - began >= 3
        await cluster.wait_until(lambda: len(created(cluster)) == 2)
        assert 12 <= cluster.now - began <= 14

    run_cluster(scenario, SERVES)


def test_suspending_deletes_the_pods_without_counting_them_and_resuming_starts_anew():
    async def scenario(cluster):
        await cluster.create(job(parallelism=2, completions=4))
        await until_counts(cluster, ready=2)
        started = (await status(cluster))["startTime"]
        await cluster.sleep(5)
        await cluster.patch("job/j", {"spec": {"suspend": True}})
        await until(cluster, "Suspended")
        await until_counts(cluster, active=0, terminating=0)
        assert "failed" not in await status(cluster)
        assert whys(cluster) == ["Job j is suspended"] * 2
        await cluster.patch("job/j", {"spec": {"suspend": False}})
        await until_counts(cluster, ready=2)
        found = await status(cluster)
        assert found["startTime"] > started
        assert [(c["type"], c["status"], c["reason"]) for c in found["conditions"]] == [
            ("Suspended", "False", "JobResumed")
        ]
        said = [text for text in events_about(cluster, "j") if "pod" not in text]
        assert said == ["Suspended: Job suspended", "Resumed: Job resumed"]

    run_cluster(scenario, SERVES)


def test_a_job_that_is_made_suspended_has_no_start():
    async def scenario(cluster):
        await cluster.create(job(suspend=True, activeDeadlineSeconds=2))
        await until(cluster, "Suspended")
        await cluster.sleep(10)
        assert "startTime" not in await status(cluster)
        assert await pods(cluster) == []

    run_cluster(scenario, SERVES)


def one_fails_one_serves():
    def program(config, sandbox):
        fails = dict(sandbox.labels or {}).get(INDEX) == "0"
        return Program(exits_after=1.0, natural_exit_code=1) if fails else Program()

    return program


@pytest.mark.parametrize("per_index", [{}, {"backoffLimitPerIndex": 2}])
def test_while_a_replacement_backs_off_and_another_pod_is_ready_the_status_stays_as_it_was(per_index):
    """kubernetes/kubernetes#139428: 1.36.2 would say that no Pod is active, and its API server refuses that."""

    async def scenario(cluster):
        await cluster.create(job(completions=2, parallelism=2, completionMode="Indexed", backoffLimit=3, **per_index))
        await until_counts(cluster, active=2, ready=2)
        await cluster.wait_until_async(lambda: any_failed(cluster))
        await cluster.sleep(5)
        found = await status(cluster)
        assert (found["active"], found["ready"], found.get("failed", 0)) == (2, 2, 0)
        (failed,) = [pod for pod in await pods(cluster) if pod["status"]["phase"] == "Failed"]
        assert failed["metadata"]["finalizers"] == [TRACKING]
        ended = cluster.now - 5
        await until_counts(cluster, failed=1)
        assert 9 <= cluster.now - ended <= 12
        assert (await status(cluster))["active"] == 2

    run_cluster(scenario, one_fails_one_serves(), kubernetes_version="1.36")


def test_since_1_37_a_failure_is_counted_while_its_replacement_backs_off():
    """(kubernetes#139457)"""

    async def scenario(cluster):
        await cluster.create(job(completions=2, parallelism=2, completionMode="Indexed", backoffLimit=3))
        await until_counts(cluster, active=2, ready=2)
        await cluster.wait_until_async(lambda: any_failed(cluster))
        await cluster.sleep(5)
        found = await status(cluster)
        assert (found["active"], found["ready"], found.get("failed", 0)) == (1, 1, 1)

    run_cluster(scenario, one_fails_one_serves(), kubernetes_version="1.37")


async def any_failed(cluster):
    return any(pod["status"].get("phase") == "Failed" for pod in await pods(cluster))


def test_less_parallelism_deletes_what_is_too_many_and_says_why():
    async def scenario(cluster):
        await cluster.create(job(parallelism=3, completions=9))
        await until_counts(cluster, ready=3)
        await cluster.patch("job/j", {"spec": {"parallelism": 1}})
        await until_counts(cluster, active=1, terminating=0)
        assert "failed" not in await status(cluster)
        assert len(whys(cluster)) == 2
        assert whys(cluster)[0].startswith("Job j wants 1 active Pods and has 3: ")

    run_cluster(scenario, SERVES)


def test_indexed_pods_know_their_index_and_complete_it():
    async def scenario(cluster):
        await cluster.create(job(completions=4, parallelism=4, completionMode="Indexed"))
        await until(cluster, "Complete")
        found = await status(cluster)
        assert (found["completedIndexes"], found["succeeded"]) == ("0-3", 4)
        for pod in await pods(cluster):
            index = annotations_of(pod)[INDEX]
            assert labels_of(pod)[INDEX] == index
            assert pod["spec"]["hostname"] == f"j-{index}"
            assert name_of(pod).startswith(f"j-{index}-")
            (env,) = pod["spec"]["containers"][0]["env"]
            assert env["name"] == "JOB_COMPLETION_INDEX"
            assert env["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"

    run_cluster(scenario, QUICK)


def test_each_index_has_its_own_limit_and_the_job_fails_when_all_others_are_done():
    async def scenario(cluster):
        await cluster.create(job(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=1))
        await until(cluster, "Failed")
        found = await status(cluster)
        assert (found["completedIndexes"], found["failedIndexes"]) == ("0,2", "1")
        assert (found["succeeded"], found["failed"]) == (2, 3)
        assert conditions(found)[-1] == ("Failed", "FailedIndexes")
        tries = [annotations_of(seen.object) for seen in created(cluster) if annotations_of(seen.object)[INDEX] == "1"]
        assert [each["batch.kubernetes.io/job-index-failure-count"] for each in tries] == ["0", "1"]

    run_cluster(scenario, by_index({1: (1,), 2: (1, 0)}))


def test_too_many_failed_indexes_end_the_job_early():
    async def scenario(cluster):
        spec = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}
        await cluster.create(job(completions=9, parallelism=2, completionMode="Indexed", **spec))
        await until(cluster, "Failed")
        found = await status(cluster)
        assert conditions(found)[-1] == ("Failed", "MaxFailedIndexesExceeded")
        assert found["failedIndexes"] == "0,1"

    run_cluster(scenario, by_index({0: (1,), 1: (1,)}))


def test_a_success_policy_ends_the_others():
    async def scenario(cluster):
        policy = {"rules": [{"succeededIndexes": "0", "succeededCount": 1}]}
        await cluster.create(job(completions=3, parallelism=3, completionMode="Indexed", successPolicy=policy))
        await until(cluster, "Complete")
        found = await status(cluster)
        assert conditions(found) == [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]
        assert found["conditions"][0]["message"] == "Matched rules at index 0"
        assert found["succeeded"] == 1
        assert set(whys(cluster)) == {"Job j has met its success policy (matched rules at index 0)"}

    def leader(config, sandbox):
        index = dict(sandbox.annotations or {}).get(INDEX)
        return Program(exits_after=2.0 if index == "0" else None, drain_seconds=1)

    run_cluster(scenario, leader)


def policy(action, **what):
    return {"rules": [{"action": action, **what}]}


def test_a_failure_policy_fails_the_job_with_the_reason_in_its_message():
    async def scenario(cluster):
        codes = {"onExitCodes": {"operator": "In", "values": [1, 42]}}
        await cluster.create(job(completions=1, podFailurePolicy=policy("FailJob", **codes)))
        await until(cluster, "Failed")
        found = await status(cluster)
        name = name_of(created(cluster)[0].object)
        message = f"Container app for pod default/{name} failed with exit code 1 matching FailJob rule at index 0"
        assert found["conditions"][-1]["message"] == message
        assert f"PodFailurePolicy: {message}" in events_about(cluster, "j")
        assert len(created(cluster)) == 1

    run_cluster(scenario, FAILS)


def test_a_failure_that_the_policy_ignores_is_not_counted():
    async def scenario(cluster):
        disrupted = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        await cluster.create(job(backoffLimit=0, podFailurePolicy=policy("Ignore", **disrupted)))
        await until_counts(cluster, ready=1)
        (pod,) = await pods(cluster)
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "Test", "lastTransitionTime": None}
        await cluster.patch(
            f"pod/{name_of(pod)}",
            {"status": {"conditions": [*pod["status"]["conditions"], condition]}},
            subresource="status",
        )
        await cluster.delete(f"pod/{name_of(pod)}")
        await cluster.wait_gone(name_of(pod))
        await until_counts(cluster, ready=1)
        found = await status(cluster)
        assert "failed" not in found
        assert "conditions" not in found

    run_cluster(scenario, SERVES)


def test_an_index_can_fail_at_once_by_policy():
    async def scenario(cluster):
        codes = {"onExitCodes": {"operator": "NotIn", "values": [0, 7]}}
        spec = {"backoffLimitPerIndex": 5, "podFailurePolicy": policy("FailIndex", **codes)}
        await cluster.create(job(completions=2, parallelism=2, completionMode="Indexed", **spec))
        await until(cluster, "Failed")
        found = await status(cluster)
        assert (found["completedIndexes"], found["failedIndexes"]) == ("0", "1")
        assert len(created(cluster)) == 2

    run_cluster(scenario, by_index({1: (3,)}))


def test_a_pod_with_a_sidecar_completes():
    async def scenario(cluster):
        sidecar = {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}
        await cluster.create(job(init=[sidecar]))
        await until(cluster, "Complete")
        (pod,) = await pods(cluster)
        assert pod["status"]["phase"] == "Succeeded"

    run_cluster(scenario, {"app": Program(exits_after=2.0), "proxy": Program(drain_seconds=1)})


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_deleting_a_job_deletes_its_pods_and_their_finalizer_does_not_hold_them(propagation):
    async def scenario(cluster):
        await cluster.create(job(parallelism=2, completions=2))
        await until_counts(cluster, ready=2)
        await cluster.delete("job/j", propagation=propagation)

        async def nothing_left():
            return not await pods(cluster) and not await listed(cluster, JOBS)

        await cluster.wait_until_async(nothing_left)

    run_cluster(scenario, SERVES)


def test_orphaned_pods_run_on_without_finalizer_and_owner():
    async def scenario(cluster):
        await cluster.create(job())
        await until_counts(cluster, ready=1)
        await cluster.delete("job/j", propagation="Orphan")

        async def free():
            (pod,) = await pods(cluster)
            return not pod["metadata"].get("ownerReferences") and not pod["metadata"].get("finalizers")

        await cluster.wait_until_async(free)
        await cluster.sleep(5)
        (pod,) = await pods(cluster)
        assert not is_terminating(pod)

    run_cluster(scenario, SERVES)


def test_a_job_with_a_selector_of_its_own_adopts_a_pod_and_gives_it_the_finalizer():
    async def scenario(cluster):
        bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare", "labels": {"app": "j"}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}], "restartPolicy": "Never"}}  # fmt: skip
        await cluster.create(bare)
        await cluster.wait_ready("bare")
        await cluster.create(job(manualSelector=True, selector={"matchLabels": {"app": "j"}}))
        await until_counts(cluster, ready=1)
        (pod,) = await pods(cluster)
        assert name_of(pod) == "bare"
        assert pod["metadata"]["finalizers"] == [TRACKING]
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "Job"

    run_cluster(scenario, SERVES)


def test_a_job_that_somebody_else_manages_is_left_alone():
    async def scenario(cluster):
        await cluster.create(job(managedBy="example.com/queue"))
        await cluster.sleep(30)
        assert await pods(cluster) == []
        assert await status(cluster) == {}

    run_cluster(scenario, SERVES)


def test_a_finished_job_and_a_running_one_are_left_alone():
    async def scenario(cluster):
        await cluster.create(job("done", containers=[{"name": "once", "image": "once:1"}]), job("runs"))
        await until(cluster, "Complete", "done")
        await cluster.sleep(60)
        versions = {uid_of(each): each["metadata"]["resourceVersion"] for each in await listed(cluster, JOBS)}
        events = len(cluster.history[EVENTS])
        await cluster.sleep(3600)
        assert versions == {uid_of(each): each["metadata"]["resourceVersion"] for each in await listed(cluster, JOBS)}
        assert len(cluster.history[EVENTS]) == events

    run_cluster(scenario, {"once": Program(exits_after=1.0), **SERVES})


def test_a_pod_that_was_counted_as_failed_is_not_counted_again_when_it_then_succeeds():
    async def scenario(cluster):
        await cluster.create(job(backoffLimit=3))
        await until_counts(cluster, ready=1)
        (pod,) = await pods(cluster)
        await cluster.delete(f"pod/{name_of(pod)}")
        await cluster.wait_gone(name_of(pod))
        assert cluster.status(name_of(pod))["phase"] == "Succeeded"
        await until_counts(cluster, ready=1)
        found = await status(cluster)
        assert found["failed"] == 1
        assert "succeeded" not in found

    run_cluster(scenario, {"app": Program(drain_seconds=2)})


def test_a_refused_pod_is_told_and_tried_again():
    async def scenario(cluster):
        await cluster.create(job(parallelism=4, completions=4))
        await until(cluster, "Complete")
        assert any(text.startswith("FailedCreate: Error creating: no") for text in events_about(cluster, "j"))
        assert len(created(cluster)) == 4

    refusals = iter([True, False, True])

    class Refusing:
        def __init__(self, client):
            self._client = client

        def __getattr__(self, name):
            return getattr(self._client, name)

        async def create(self, resource, *arguments, **options):
            if resource is PODS and next(refusals, False):
                raise StatusError({"code": 500, "reason": "InternalError", "message": "no"})
            return await self._client.create(resource, *arguments, **options)

    def wrap(client, component):
        return Refusing(client) if component == "kube-controller-manager" else client

    run_cluster(scenario, QUICK, wrap=wrap)
