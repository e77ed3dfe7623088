"""Pods that write more than they may, on the real kernel."""

import json
import os
from pathlib import Path

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import container, pod
from staying import Place
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

FILL = "dd if=/dev/zero of={} bs=1048576 count=6 2>/dev/null; while true; do sleep 0.05; done"


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest):
    with Place(request.param) as made:
        yield made


def test_pods_over_their_limits_are_evicted_and_the_others_stay(place: Place) -> None:
    kubeconfig = place.up()["kubeconfig"]
    scratch = {"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}
    limit = {"resources": {"limits": {"ephemeral-storage": "5Mi"}, "requests": {"ephemeral-storage": "0"}}}

    def with_scratch(name: str, size: str) -> dict:
        volumes = [{"name": "scratch", "emptyDir": {"sizeLimit": size}}]
        return pod(name, container("app", FILL.format("/scratch/file"), **scratch), grace=30, volumes=volumes)

    pods = [
        with_scratch("over", "5Mi"),
        with_scratch("within", "8Mi"),
        pod("layer", container("app", FILL.format("/file"), **limit), grace=30),
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
    place.kubectl(kubeconfig, "create", "-f", "-", stdin=text)

    def status(name: str) -> dict:
        return json.loads(place.kubectl(kubeconfig, "get", "pod", name, "-o", "json"))["status"]

    for name, message in (
        ("over", 'Usage of EmptyDir volume "scratch" exceeds the limit "5Mi". '),
        ("layer", "Pod ephemeral local storage usage exceeds the total limit of containers 5Mi. "),
    ):
        eventually(lambda name=name: status(name)["phase"] == "Failed", f"{name} is evicted")
        found = status(name)
        assert (found["reason"], found["message"]) == ("Evicted", message)
        assert found["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
        assert not [each for each in found["conditions"] if each["type"] == "DisruptionTarget"]
    assert status("within")["phase"] == "Running"
    why = 'over ended because the kubelet evicted it: Usage of EmptyDir volume "scratch" exceeds the limit "5Mi"'
    eventually(lambda: why in " ".join(place.run("story", "over").out.split()), "the story says so")


def test_a_pod_that_fills_the_space_of_pods_takes_none_of_the_clusters_own(place: Place) -> None:
    kubeconfig = place.up("--state-size", "32m")["kubeconfig"]
    fill = "while true; do dd if=/dev/zero of=/scratch/$((n=n+1)) bs=4096 2>/dev/null; done"
    scratch = {"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}
    filler = pod("filler", container("app", fill, **scratch), grace=0, volumes=[{"name": "scratch", "emptyDir": {}}])
    place.kubectl(kubeconfig, "create", "-f", "-", stdin=json.dumps(filler))
    space = Path(f"/proc/{place.pids()['init']}/root/lastcall")
    on_disk = (space / "disk").stat().st_dev != space.stat().st_dev
    if not on_disk:  # where the kernel is the limit
        eventually(lambda: os.statvfs(space).f_bavail == 0, "the space of Pods is full")
    config_maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c-{n}"}} for n in range(20)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": config_maps})
    place.kubectl(kubeconfig, "create", "-f", "-", stdin=text)
    # The kubelet ends it, writes why, and what it wrote goes: nothing of that failed for lack of space.
    pod_status = ("get", "pod", "filler", "-o", "jsonpath={.status.reason}")
    eventually(lambda: place.kubectl(kubeconfig, *pod_status) == "Evicted", "the filler is evicted")
    place.kubectl(kubeconfig, "delete", "pod", "filler")
    eventually(lambda: os.statvfs(space).f_bavail > 0, "its space is given back")
    if on_disk:
        eventually(lambda: not list((space / "empty-dirs").iterdir()), "what it wrote is gone")
