"""How far an owner of Pods is, and what --grace does to it."""

import pytest

from lastcall.experiment.ready.readiness import Progress, progress
from lastcall.experiment.reasons.pod_watch import FollowedPod
from lastcall.kube.api.resources import DAEMONSETS, DEPLOYMENTS, JOBS, PODS, REPLICASETS
from lastcall.manifests.workloads import may_have_pods, with_grace


def owner(status=None, *, generation=1, **spec):
    return {"metadata": {"name": "web", "generation": generation}, "spec": spec, "status": status or {}}


def some_pods(ready=0, starting=0, ended=0, gone=0):
    made = [FollowedPod({"metadata": {}, "status": {}}, ready=True) for _ in range(ready)]
    made += [FollowedPod({"metadata": {}, "status": {}}) for _ in range(starting)]
    made += [FollowedPod({"metadata": {}, "status": {"phase": "Succeeded"}}) for _ in range(ended)]
    return made + [FollowedPod({"metadata": {}, "status": {}}, ready=True, gone=True) for _ in range(gone)]


SEEN = {"observedGeneration": 1}


@pytest.mark.parametrize(
    ("resource", "obj", "pods", "expected"),
    [
        (DEPLOYMENTS, owner(SEEN | {"availableReplicas": 3}, replicas=3), some_pods(ready=3), Progress(3, 3, True)),
        (DEPLOYMENTS, owner(SEEN | {"availableReplicas": 2}, replicas=3), some_pods(ready=3), Progress(3, 3, False)),
        # The watch of Pods may be behind that of owners.
        (DEPLOYMENTS, owner(SEEN | {"availableReplicas": 3}, replicas=3), some_pods(ready=2), Progress(2, 3, False)),
        (DEPLOYMENTS, owner({"availableReplicas": 3}, replicas=3), some_pods(ready=3), Progress(3, 3, False)),
        (REPLICASETS, owner(SEEN | {"availableReplicas": 1}), some_pods(ready=1, gone=1), Progress(1, 1, True)),
        (REPLICASETS, owner(SEEN, replicas=0), some_pods(), Progress(0, 0, True)),
        (DAEMONSETS, owner(), some_pods(), Progress(0, None, False)),
        (DAEMONSETS, owner(SEEN), some_pods(), Progress(0, 0, True)),
        (
            DAEMONSETS,
            owner(SEEN | {"desiredNumberScheduled": 1, "numberAvailable": 1}),
            some_pods(ready=1),
            Progress(1, 1, True),
        ),
        (JOBS, owner(parallelism=3, completions=2), some_pods(ready=1, ended=1), Progress(2, 2, True)),
        (JOBS, owner(parallelism=2), some_pods(ready=1, starting=1), Progress(1, 2, False)),
        (JOBS, owner({"conditions": [{"type": "Failed", "status": "True"}]}), some_pods(), Progress(0, 1, True)),
        (JOBS, owner({"conditions": [{"type": "Failed", "status": "False"}]}), some_pods(), Progress(0, 1, False)),
    ],
)
def test_an_owner_is_settled_when_its_pods_are_there_and_counted(resource, obj, pods, expected):
    assert progress(resource, obj, pods) == expected


@pytest.mark.parametrize(
    ("resource", "spec", "expected"),
    [
        (DEPLOYMENTS, {}, True),
        (DEPLOYMENTS, {"replicas": 0}, False),
        (DAEMONSETS, {}, True),
        (JOBS, {}, True),
        (JOBS, {"suspend": True}, False),
        (JOBS, {"parallelism": 0}, False),
        (JOBS, {"completions": 0}, False),
    ],
)
def test_an_owner_that_asks_for_no_pod_is_known_by_its_manifest(resource, spec, expected):
    assert may_have_pods(resource, {"spec": spec}) is expected


def test_the_grace_that_is_asked_for_becomes_the_pods_own_and_the_manifest_stays_as_it_is():
    obj = owner(template={"metadata": {}, "spec": {"terminationGracePeriodSeconds": 30}})
    changed = with_grace(DEPLOYMENTS, obj, 2)
    assert changed["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 2
    assert obj["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 30
    assert with_grace(DEPLOYMENTS, obj, None) is obj
    assert with_grace(PODS, obj, 2) is obj
