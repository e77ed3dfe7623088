"""`lastcall run` with owners of Pods on the real kernel: made, waited for, deleted, every Pod followed to its end."""

import functools
import signal
from collections.abc import Iterator
from typing import Any

import ordinary_user
import pytest
from pods import EXITS_ON_TERM, IGNORES_TERM, container, pod
from run_command import InParallel, Lastcall, Result
from story import Story

pytestmark = pytest.mark.real_kernel

Manifest = dict[str, Any]


def owner(kind: str, name: str, *containers: Manifest, grace: int = 5, **spec: Any) -> Manifest:
    """Pods with one container that exits on SIGTERM, behind app=<name>."""
    template = pod(name, *containers, grace=grace)
    version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    if kind == "ReplicationController":
        spec["selector"] = {"app": name}
    elif kind != "Job":
        spec["selector"] = {"matchLabels": {"app": name}}
    pods = {"metadata": {"labels": {"app": name}}, "spec": template["spec"] | spec.pop("pods", {})}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {"template": pods, **spec}}


BAD_IMAGE = container("app") | {"image": "localhost/no/such:1", "imagePullPolicy": "Never"}

COMMANDS: dict[str, tuple[list[Manifest], list[str]]] = {
    "Deployment of 3 and a Pod": ([owner("Deployment", "web", replicas=3), pod("alone")], []),
    "StatefulSet": ([owner("StatefulSet", "db", replicas=2, serviceName="db")], []),
    "DaemonSet, ReplicaSet, ReplicationController": (
        [owner("DaemonSet", "agent"), owner("ReplicaSet", "set"), owner("ReplicationController", "old", replicas=2)],
        [],
    ),
    "killed with --grace": ([owner("Deployment", "deaf", container("app", IGNORES_TERM), grace=600)], ["--grace", "2"]),
    "bad image": ([owner("Deployment", "bad", BAD_IMAGE, replicas=2)], []),
    "no account": (
        [owner("ReplicaSet", "refused", replicas=2, pods={"serviceAccountName": "nobody"})],
        ["--timeout", "8"],
    ),
    "Job with sidecar": (
        [
            owner(
                "Job",
                "work",
                pods={
                    "restartPolicy": "Never",
                    "initContainers": [container("side", restartPolicy="Always")],
                },
            )
        ],
        [],
    ),
    "nowhere": ([owner("DaemonSet", "nowhere", pods={"nodeSelector": {"disk": "gold"}})], []),
}


def run(user: str, which: str) -> Result:
    manifests, arguments = COMMANDS[which]
    with Lastcall(
        ["run", "-", "--after", "1", "--output", "json", *arguments], manifests=manifests, user=user
    ) as command:
        return command.finish(90)


@pytest.fixture(scope="module")
def runs() -> Iterator[InParallel]:
    jobs = {(user, which): functools.partial(run, user, which) for which in COMMANDS for user in ordinary_user.USERS}
    running = InParallel(jobs)
    yield running
    running.close()


@pytest.fixture(params=ordinary_user.USERS)
def result_of(request: pytest.FixtureRequest, runs: InParallel) -> Any:
    return lambda which: runs[request.param, which]


def stories_of(result: Result) -> list[Story]:
    return [Story(each) for each in result.document["pods"]]


def test_every_pod_of_a_deployment_is_followed_to_its_end(result_of):
    result = result_of("Deployment of 3 and a Pod")
    assert result.status == 0, result.err
    told = stories_of(result)
    names = sorted(story["name"] for story in told)
    assert names[0] == "alone"
    assert all(name.startswith("web-") for name in names[1:])
    assert len(names) == 4
    for story in told:
        assert (story["outcome"], story["phase"]) == ("graceful", "Succeeded")
        assert story.container["exitCode"] == 0
        assert story["gone"] is not None
    assert "created Deployment default/web, default/alone" in result.err


def test_the_pods_of_a_stateful_set_go_with_it_all_at_once(result_of):
    result = result_of("StatefulSet")
    assert result.status == 0, result.err
    told = stories_of(result)
    assert sorted(story["name"] for story in told) == ["db-0", "db-1"]
    ready = [line for line in result.err.splitlines() if "default/db" in line and line.endswith("is Ready")]
    assert [line.split()[-3] for line in ready] == ["default/db-0", "default/db-1"]
    # Only scaling down is ordered: the collector deletes all dependents of an owner that is gone.
    deleted = [story.record("DeleteAccepted")["wall"] for story in told]
    exited = [story.record("ProcessExited")["wall"] for story in told]
    assert max(deleted) < min(exited)


def test_a_job_ends_with_its_sidecar_after_its_container(result_of):
    result = result_of("Job with sidecar")
    assert result.status == 0, result.err
    (story,) = stories_of(result)
    ends = {each["name"]: each["exitedAt"] for each in story["containers"]}
    assert 0 < ends["app"] < ends["side"]
    assert story["decidedBy"]["reason"] == "ownerDeleted"


def test_the_story_says_whose_delete_it_was(result_of):
    for story in stories_of(result_of("Deployment of 3 and a Pod")):
        why = story["decidedBy"]["why"]
        if story["name"] == "alone":
            assert why == "it was deleted by lastcall (user kubernetes-admin)"
        else:
            name = story["name"].rpartition("-")[0]
            assert why == (
                f"Deployment web was deleted by lastcall (user kubernetes-admin): that removed ReplicaSet {name} and "
                "this Pod"
            )


def test_other_owners_are_waited_for_and_deleted_as_well(result_of):
    result = result_of("DaemonSet, ReplicaSet, ReplicationController")
    assert result.status == 0, result.err
    assert sorted(story["name"].split("-")[0] for story in stories_of(result)) == ["agent", "old", "old", "set"]


def test_the_grace_that_was_asked_for_reaches_the_pods_of_an_owner(result_of):
    result = result_of("killed with --grace")
    assert result.status == 3, result.err
    (story,) = stories_of(result)
    assert (story["graceSeconds"], story["outcome"]) == (2, "killed")


def test_an_image_that_is_not_there_is_told_at_once_with_owner_and_pods(result_of):
    result = result_of("bad image")
    assert result.status == 1
    assert "Deployment default/bad: 0 of its 2 Pods are Ready" in result.err
    assert "ErrImageNeverPull" in result.err
    assert "fix: the image is not there and imagePullPolicy is Never" in result.err
    assert "--timeout" not in result.err


def test_a_pod_that_cannot_even_be_made_is_told_by_its_owners_events(result_of):
    result = result_of("no account")
    assert result.status == 1
    assert ": the API server refuses the Pods" in result.err
    assert "ReplicaSet default/refused: 0 of its 2 Pods are Ready" in result.err
    assert 'condition ReplicaFailure is True: FailedCreate: pods "refused-' in result.err
    assert 'serviceaccount "nobody" not found' in result.err


def test_an_owner_that_wants_no_pod_is_an_error_that_says_so(result_of):
    result = result_of("nowhere")
    assert result.status == 1
    assert "no Pod is left to end: DaemonSet default/nowhere needs no Pod on the node" in result.err


def test_ctrl_c_while_an_owners_pods_start_ends_everything():
    waits = container("app", EXITS_ON_TERM) | {"readinessProbe": {"exec": {"command": ["false"]}}}
    with Lastcall(["run", "-"], manifests=[owner("Deployment", "web", waits, replicas=2)]) as command:
        command.wait_for("created Deployment default/web")
        command.tree()
        command.interrupt(signal.SIGINT)
        result = command.finish(60)
    assert result.status == 130
    assert "tearing down the cluster" in result.err
