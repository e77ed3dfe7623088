"""Pods with user ids of their own in a whole cluster: who gets them, who does not, and what survives a node process."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import ordinary_user
import pytest
from kernel_features import needs_mapped_tmpfs
from kubectls import needs_kubectl
from staying import Place
from waiting import eventually

from lastcall.kube.cluster.user_ids import PODS_PER_BLOCK, REGION

pytestmark = [
    pytest.mark.real_kernel,
    needs_kubectl,
    needs_mapped_tmpfs,
    pytest.mark.timeout(300),
]
as_root = pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user's Pods share its ids by default")
PATIENCE = 60.0
APP = "cat /proc/self/uid_map; echo by-root > /e/file; exec sleep 1000"


def pod(name: str, *, volumes: tuple[dict[str, Any], ...] = (), **spec: Any) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "busybox:1.36",
        "command": ["sh", "-c", APP],
        "volumeMounts": [{"name": "e", "mountPath": "/e"}, *({"name": v["name"], "mountPath": "/v"} for v in volumes)],
        **spec.pop("container", {}),
    }
    every = [{"name": "e", "emptyDir": {}}, *volumes]
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], "volumes": every, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


class Cluster:
    def __init__(self, place: Place, *arguments: str) -> None:
        self.place = place
        self.kubeconfig = place.up(*arguments)["kubeconfig"]

    def kubectl(self, *arguments: str, **more: Any) -> str:
        return self.place.kubectl(self.kubeconfig, *arguments, **more)

    def make(self, *objects: dict[str, Any]) -> None:
        document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(document))

    def ready(self, *names: str) -> None:
        self.kubectl("wait", "--for", "condition=Ready", "--timeout", "60s", *(f"pod/{name}" for name in names))

    def first_id(self, name: str) -> int:
        """Who root of the Pod is outside."""
        inside, outside, count = self.kubectl("exec", name, "--", "cat", "/proc/self/uid_map").split()
        assert (inside, count) in (("0", "65536"), ("0", "4294967295"))
        return int(outside)

    def events(self, name: str, reason: str) -> list[str]:
        found = json.loads(self.kubectl("get", "events", "-o", "json"))["items"]
        return [e["message"] for e in found if (e["involvedObject"]["name"], e["reason"]) == (name, reason)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Place("root") as place:
        yield Cluster(place)


@as_root
def test_by_default_every_pod_has_a_range_of_its_own(cluster: Cluster) -> None:
    cluster.make(pod("own-a"), pod("own-b"))
    cluster.ready("own-a", "own-b")
    ranges = [cluster.first_id(name) for name in ("own-a", "own-b")]
    assert all(first in REGION for first in ranges)
    assert abs(ranges[0] - ranges[1]) >= 65_536
    assert cluster.kubectl("exec", "own-a", "--", "stat", "-c", "%u %g", "/e/file", "/etc/hosts").split() == ["0"] * 4
    spec = json.loads(cluster.kubectl("get", "pod", "own-a", "-o", "json"))["spec"]
    assert "hostUsers" not in spec  # what the API shows is as in Kubernetes


@as_root
def test_who_needs_the_machines_ids_has_them(cluster: Cluster) -> None:
    exceptions = {
        "host-path": pod("host-path", volumes=({"name": "h", "hostPath": {"path": "/tmp"}},)),
        "host-users": pod("host-users", hostUsers=True),
        "privileged": pod("privileged", container={"securityContext": {"privileged": True}}),
        "host-network": pod("host-network", hostNetwork=True),
        "host-pid": pod("host-pid", hostPID=True),
        "high-group": pod("high-group", securityContext={"fsGroup": 70_000}),
    }
    cluster.make(*exceptions.values())
    cluster.ready(*exceptions)
    assert {name: cluster.first_id(name) for name in exceptions} == dict.fromkeys(exceptions, 0)


@as_root
def test_a_claim_on_the_clusters_own_file_system_is_mapped(cluster: Cluster) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    volume = {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}
    cluster.make(claim, pod("claim", volumes=(volume,), hostUsers=False))
    cluster.ready("claim")
    assert cluster.first_id("claim") in REGION
    cluster.kubectl("exec", "claim", "--", "touch", "/v/made")
    cluster.kubectl("delete", "pod", "claim")
    cluster.make(pod("claim", volumes=(volume,), hostUsers=True))
    cluster.ready("claim")
    assert cluster.kubectl("exec", "claim", "--", "stat", "-c", "%u", "/v/made").strip() == "0"


@as_root
def test_a_host_path_that_asks_for_its_own_ids_fails_as_on_a_file_system_that_cannot(cluster: Cluster) -> None:
    cluster.make(pod("refused", hostUsers=False, volumes=({"name": "h", "hostPath": {"path": "/sys"}},)))
    said = eventually(lambda: cluster.events("refused", "Failed"), "an Event", PATIENCE)
    assert "failed to set MOUNT_ATTR_IDMAP on /sys: invalid argument (maybe the filesystem used" in said[0]
    cluster.kubectl("delete", "pod", "refused", "--grace-period", "0", "--force")


@as_root
def test_groups_users_and_shared_processes_mean_ids_inside(cluster: Cluster) -> None:
    asked = pod(
        "ids",
        shareProcessNamespace=True,
        securityContext={"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000},
        container={"command": ["sh", "-c", "touch /e/made; ls -ln /e/made; id -G; exec sleep 1000"]},
    )
    cluster.make(asked)
    cluster.ready("ids")
    words = eventually(lambda: cluster.kubectl("logs", "ids").split(), "output", PATIENCE)
    assert words[2:4] == ["1000", "2000"]
    assert words[-2:] == ["3000", "2000"]
    assert "sleep 1000" in cluster.kubectl("exec", "ids", "--", "ps")
    debug = ("--image", "busybox:1.36", "--target", "c", "--container", "d", "--", "sh", "-c", "cat /proc/self/uid_map")
    cluster.kubectl("debug", "ids", *debug)
    first = str(cluster.first_id("ids"))
    eventually(lambda: first in cluster.kubectl("logs", "ids", "-c", "d"), "the ephemeral container", PATIENCE)


@as_root
def test_files_are_copied_in_and_out(cluster: Cluster) -> None:
    cluster.make(pod("copy"))
    cluster.ready("copy")
    source, back = cluster.place.home / "tmp/source", cluster.place.home / "tmp/back"
    source.write_text("there and back\n")
    cluster.kubectl("cp", str(source), "copy:/e/copied")
    cluster.kubectl("cp", "copy:/e/copied", str(back))
    assert back.read_text() == "there and back\n"
    back.unlink()
    source.unlink()


@as_root
def test_a_killed_node_process_keeps_every_range(cluster: Cluster) -> None:
    cluster.make(pod("kept-a"), pod("kept-b"))
    cluster.ready("kept-a", "kept-b")
    before = [cluster.first_id(name) for name in ("kept-a", "kept-b")]
    node = cluster.place.pids()["node-1"]
    subprocess.run(["kill", "-9", str(node)], check=True)
    eventually(lambda: cluster.place.pids().get("node-1", node) != node, "another node process", PATIENCE)
    cluster.make(pod("after"))
    cluster.ready("after")
    assert [cluster.first_id(name) for name in ("kept-a", "kept-b")] == before
    assert cluster.first_id("after") not in before
    cluster.kubectl("delete", "pod", "kept-a", "after")


@as_root
def test_two_clusters_have_different_ranges(cluster: Cluster) -> None:
    cluster.make(pod("here"))
    cluster.ready("here")
    here = cluster.first_id("here")
    with Place("root") as place:
        other = Cluster(place)
        other.make(pod("there"))
        other.ready("there")
        blocks = [(each - REGION.start) // (PODS_PER_BLOCK * 65_536) for each in (other.first_id("there"), here)]
        assert blocks[0] != blocks[1]


@pytest.mark.skipif("ordinary user" not in ordinary_user.USERS, reason="needs an ordinary user besides")
def test_an_ordinary_user_without_enough_ids_is_told_so() -> None:
    with Place("ordinary user") as place:
        cluster = Cluster(place)
        cluster.make(pod("asks", hostUsers=False))
        said = eventually(lambda: cluster.events("asks", "FailedCreatePodSandBox"), "an Event", PATIENCE)
        assert "can't set `spec.hostUsers: false`: this cluster has no range of user ids for it" in said[0]
        cluster.kubectl("delete", "pod", "asks")


@as_root
def test_with_a_state_directory_claims_stay_with_the_machines_ids() -> None:
    with Place("root") as place:
        state = place.home / "kept"
        place.kept.append(str(state))
        cluster = Cluster(place, "--state", str(state))
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
        }
        volume = {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}
        cluster.make(claim, pod("claim", volumes=(volume,)), pod("none"))
        cluster.ready("claim", "none")
        assert cluster.first_id("claim") == 0
        assert cluster.first_id("none") in REGION
