"""Objects as the overview shows them."""

from typing import Any

from lastcall.records.record import Record
from lastcall.ui.cells import pod_cell, stage_of, workload_cell


def test_a_pod_that_ends_says_how_long_it_has_and_how_far_it_is() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "d", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:30Z",
                     "deletionGracePeriodSeconds": 30, "finalizers": ["a/b"]},
        "spec": {"nodeName": "n", "containers": [{"name": "app"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip
    cell = pod_cell(pod, "hook")
    assert cell["deletion"] == {"at": "2026-01-01T00:00:30Z", "grace": 30}
    assert cell["stage"] == "hook" and cell["finalizers"] == ["a/b"] and cell["isReady"] and cell["ready"] == [0, 1]


def test_the_replicaset_of_a_deployment_is_told_as_the_deployment() -> None:
    def owned(kind: str, name: str, **labels: str) -> Any:
        owner = {"kind": kind, "name": name, "controller": True}
        return pod_cell({"metadata": {"ownerReferences": [owner], "labels": labels}})["owner"]

    assert owned("ReplicaSet", "web-abc", **{"pod-template-hash": "abc"}) == {"kind": "Deployment", "name": "web"}
    assert owned("ReplicaSet", "web") == {"kind": "ReplicaSet", "name": "web"}
    assert owned("Job", "j") == {"kind": "Job", "name": "j"}


def test_a_container_that_waits_gives_its_reason() -> None:
    def reason(**status: Any) -> Any:
        return pod_cell({"status": status})["reason"]

    assert reason(containerStatuses=[{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]) == "ImagePullBackOff"
    assert reason(containerStatuses=[{"state": {"waiting": {"reason": "ContainerCreating"}}}]) == "ContainerCreating"
    assert reason(reason="Evicted", containerStatuses=[]) == "Evicted"


def test_the_numbers_are_those_of_kubectl_get_with_sidecars_and_init_containers() -> None:
    running = {"ready": True, "started": True, "restartCount": 2, "state": {"running": {}}}
    inits = [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}]
    pod: dict[str, Any] = {
        "spec": {"initContainers": inits, "containers": [{"name": "app"}]},
        "status": {
            "phase": "Running",
            "initContainerStatuses": [
                {"name": "setup", "restartCount": 5, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
                {"name": "proxy", **running},
            ],
            "containerStatuses": [{"name": "app", **running}],
        },
    }
    cell = pod_cell(pod)
    assert (cell["ready"], cell["restarts"], cell["reason"]) == ([2, 2], 4, "")
    pod["status"] = {
        "phase": "Pending",
        "initContainerStatuses": [{"name": "setup", "restartCount": 3, "state": {"terminated": {"exitCode": 1}}}],
        "containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "PodInitializing"}}}],
    }
    cell = pod_cell(pod)
    assert (cell["ready"], cell["restarts"], cell["reason"]) == ([0, 2], 3, "Init:ExitCode:1")


def test_records_say_how_far_an_end_is() -> None:
    def stage(kind: str, **facts: Any) -> str:
        return stage_of(Record("r", 1, 1, "kubelet", kind, facts=facts))

    assert [stage("DeleteAccepted"), stage("PreStopStarted"), stage("SandboxStopped")] == ["deleted", "hook", "cleanup"]
    assert stage("SignalSent", signal=15) == "term" and stage("SignalSent", signal=9) == "kill"
    assert stage("Output", text="x") == ""


def test_a_daemonset_wants_what_its_status_says() -> None:
    status = {"desiredNumberScheduled": 3, "numberReady": 2}
    cell = workload_cell("DaemonSet", {"status": status})
    assert (cell["wanted"], cell["ready"]) == (3, 2)
    assert workload_cell("Deployment", {"spec": {"replicas": 4}})["wanted"] == 4


def test_a_job_tells_how_many_have_succeeded_and_a_cronjob_its_schedule() -> None:
    done: dict[str, Any] = {"succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]}
    cell = workload_cell("Job", {"metadata": {"name": "j"}, "spec": {"completions": 2}, "status": done})
    assert (cell["wanted"], cell["ready"], cell["state"]) == (2, 2, "Complete")
    cell = workload_cell("Job", {"metadata": {"name": "j"}, "spec": {"parallelism": 3}})
    assert (cell["wanted"], cell["ready"], cell["state"]) == (None, 0, "Running")
    status: dict[str, Any] = {"active": [{"name": "c-1"}]}
    cell = workload_cell("CronJob", {"spec": {"schedule": "*/5 * * * *", "suspend": True}, "status": status})
    assert (cell["schedule"], cell["suspended"], cell["ready"], cell["wanted"]) == ("*/5 * * * *", True, 1, None)
