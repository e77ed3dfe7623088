"""Claims with kubectl on the real kernel: data outlive the Pod, and nothing outlives the cluster."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import container, pod
from staying import Place
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

COUNTS = "echo $HOSTNAME >>/data/starts; trap 'exit 0' TERM; sleep 3600 & wait"


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with Place(request.param) as made:
        yield made


def counting(**more: object) -> dict:
    """A container that adds a line to /data/starts at each start."""
    return {**container("app", COUNTS), "volumeMounts": [{"name": "data", "mountPath": "/data"}], **more}


def claim(name: str) -> dict:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def stateful_set(**policy: str) -> dict:
    labels = {"app": "db"}
    spec = {
        "replicas": 1,
        "serviceName": "db",
        "selector": {"matchLabels": labels},
        "persistentVolumeClaimRetentionPolicy": policy,
        "template": {
            "metadata": {"labels": labels},
            "spec": {"terminationGracePeriodSeconds": 5, "containers": [counting()]},
        },
        "volumeClaimTemplates": [claim("data")],
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}


class Cluster:
    def __init__(self, place: Place, *arguments: str) -> None:
        self.place = place
        self.kubeconfig = place.up(*arguments)["kubeconfig"]

    def kubectl(self, *arguments: str, **options: object) -> str:
        return self.place.kubectl(self.kubeconfig, *arguments, **options)

    def apply(self, *manifests: dict) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))

    def row(self, *what: str) -> list[str]:
        (line,) = self.kubectl("get", *what, "--no-headers").splitlines()
        return line.split()

    def names(self, kind: str) -> list[str]:
        return self.kubectl("get", kind, "-o", "name").split()

    def starts(self, name: str, at_least: int = 1) -> list[str]:
        """The lines of a Pod that is Ready, once there are so many: who started on this volume."""

        def lines() -> list[str]:
            text = self.kubectl("get", "pod", name, "-o", "json", "--ignore-not-found")
            found = json.loads(text) if text else {"metadata": {"deletionTimestamp": "none"}}
            ready = {"type": "Ready", "status": "True"}
            if "deletionTimestamp" in found["metadata"] or not any(
                ready.items() <= each.items() for each in found["status"].get("conditions") or ()
            ):
                return []
            try:
                written = self.kubectl("exec", name, "--", "cat", "/data/starts").split()
            except AssertionError:  # Ready by what was written before the container ended
                return []
            return written if len(written) >= at_least else []

        return eventually(lines, f"{name} runs and its volume has {at_least} lines")


def test_a_stateful_set_finds_its_data_again_and_scaling_in_takes_them(place: Place) -> None:
    cluster = Cluster(place)
    assert cluster.row("sc")[:5] == [
        "standard", "(default)", "rancher.io/local-path", "Delete", "WaitForFirstConsumer",
    ]  # fmt: skip
    cluster.apply(stateful_set(whenScaled="Delete", whenDeleted="Retain"))
    assert cluster.starts("db-0") == ["db-0"]
    row = cluster.row("pvc", "data-db-0")
    volume = row[2]
    assert row[:2] == ["data-db-0", "Bound"] and volume.startswith("pvc-")
    assert row[3:7] == ["64Mi", "RWO", "standard", "<unset>"]
    assert cluster.row("pv", volume)[:7] == [
        volume, "64Mi", "RWO", "Delete", "Bound", "default/data-db-0", "standard",
    ]  # fmt: skip
    assert "Used By:       db-0" in cluster.kubectl("describe", "pvc", "data-db-0")
    cluster.kubectl("delete", "pod", "db-0")
    assert cluster.starts("db-0", 2) == ["db-0", "db-0"]
    cluster.kubectl("scale", "statefulset/db", "--replicas=0")
    eventually(lambda: not cluster.names("pvc") and not cluster.names("pv"), "claim and volume go with the Pod")
    cluster.kubectl("scale", "statefulset/db", "--replicas=1")
    assert cluster.starts("db-0") == ["db-0"], "a new volume is empty"
    place.ok("down")
    place.assert_clean()


def test_a_claim_that_is_deleted_waits_for_its_pod_and_is_read_only_where_asked() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        cluster = Cluster(place)
        volumes = [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "same", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        ]
        mounts = [
            {"name": "data", "mountPath": "/data", "subPath": "inner"},
            {"name": "same", "mountPath": "/same"},
        ]
        cluster.apply(claim("data"), pod("p", counting(volumeMounts=mounts), volumes=volumes, grace=5))
        assert cluster.starts("p") == ["p"]
        assert cluster.kubectl("exec", "p", "--", "cat", "/same/inner/starts").split() == ["p"]
        refused = cluster.kubectl("exec", "p", "--", "sh", "-c", "touch /same/x 2>&1 || true")
        assert "Read-only file system" in refused
        cluster.kubectl("delete", "pvc", "data", "--wait=false")
        assert cluster.row("pvc", "data")[:2] == ["data", "Terminating"]
        cluster.kubectl("delete", "pod", "p")
        eventually(lambda: not cluster.names("pvc") and not cluster.names("pv"), "the claim goes after its Pod")


def test_data_are_there_again_with_the_state_and_owned_by_their_writer() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        state = Path(place.home) / "state/kept"
        place.kept = [str(state)]
        cluster = Cluster(place, "--state", str(state))
        cluster.apply(stateful_set())
        cluster.starts("db-0")
        (directory,) = (state / "durable/local-path-provisioner").iterdir()
        assert directory.name.endswith("_default_data-db-0") and (directory / "starts").read_text() == "db-0\n"
        assert (state / "durable").stat().st_mode & 0o077 == 0
        place.ok("down")
        again = Cluster(place, "--state", str(state))
        assert set(again.starts("db-0", 2)) == {"db-0"}
        again.kubectl("delete", "statefulset", "db")
        again.kubectl("delete", "pvc", "data-db-0")
        eventually(lambda: not os.listdir(state / "durable/local-path-provisioner"), "the directory goes too")
