"""A state directory that an earlier version wrote: the present one starts on it, serves it and lets it be deleted."""

import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from staying import KUBECTL, Place
from waiting import eventually

pytestmark = [
    pytest.mark.real_kernel,
    pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed"),
]

STATES = sorted(Path(__file__).parent.glob("*.tar.xz"))


class Upgraded(Place):
    """A place with a copy of an earlier version's state directory."""

    def unpack(self, archive: Path) -> None:
        with tarfile.open(archive) as packed:
            # Python before 3.11.4 (Debian 12's) has no filters.
            packed.extractall(self.home / "state", **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}))
        self.state = self.home / "state" / archive.name.removesuffix(".tar.xz")
        self.kept = [str(self.state)]
        if self.user == "ordinary user":
            for path in (self.state, *self.state.rglob("*")):
                os.chown(path, ordinary_user.UID, ordinary_user.UID)

    def start_on_it(self) -> None:
        self.kubeconfig: str = self.up("--state", str(self.state))["kubeconfig"]

    def get(self, *arguments: str) -> Any:
        return json.loads(self.kubectl(self.kubeconfig, "get", "-n", "kept", *arguments, "-o", "json"))

    def ready_pods(self, app: str) -> list[dict[str, Any]]:
        return [
            pod
            for pod in self.get("pods", "-l", f"app={app}")["items"]
            if any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", []))
        ]


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest) -> Iterator[Upgraded]:
    with Upgraded(request.param) as made:
        yield made


@pytest.mark.parametrize("archive", STATES, ids=lambda path: path.name.partition(".")[0])
def test_the_state_is_served_its_pods_run_and_all_of_it_can_be_deleted(place: Upgraded, archive: Path) -> None:
    place.unpack(archive)
    before = json.loads((place.state / "credentials.json").read_text())
    place.start_on_it()

    # Served: what was written is read, and the credentials are the old ones.
    assert place.get("configmap", "settings")["data"] == {"colour": "green"}
    assert place.get("secret", "password")["data"] == {"word": "bm90LXNlY3JldA=="}
    assert place.get("lamps", "desk")["spec"] == {"watts": 40}
    assert place.get("job", "once")["status"]["succeeded"] == 1
    assert place.get("pdb", "web")["spec"]["minAvailable"] == 1
    held = place.get("pod", "held")
    assert held["metadata"]["finalizers"] == ["example.com/held"] and held["metadata"]["deletionTimestamp"]
    after = json.loads((place.state / "credentials.json").read_text())
    for name in before.keys() - {"apiPort"}:  # it may be taken here
        assert after[name] == before[name], f"{name} is as it was"

    # Its Pods run again, as after a reboot of their node, with their data.
    for app, wanted in (("web", 2), ("db", 1)):
        eventually(lambda app=app, wanted=wanted: len(place.ready_pods(app)) == wanted, f"the Pods of {app} are Ready")
    assert place.get("pvc", "data-db-0")["status"]["phase"] == "Bound"
    starts = place.kubectl(place.kubeconfig, "exec", "-n", "kept", "db-0", "--", "cat", "/data/starts")
    assert len(starts.splitlines()) == 2, "the volume has the line of each start, by either version"

    # What is new is written beside it; an old object is changed.
    place.kubectl(place.kubeconfig, "scale", "-n", "kept", "deployment", "web", "--replicas", "3")
    eventually(lambda: len(place.ready_pods("web")) == 3, "a third Pod is Ready")

    # All of it goes.
    place.kubectl(place.kubeconfig, "patch", "-n", "kept", "pod", "held", "-p", '{"metadata":{"finalizers":null}}')
    volume = place.get("pvc", "data-db-0")["spec"]["volumeName"]
    place.kubectl(place.kubeconfig, "delete", "namespace", "kept", "--wait=false")
    place.kubectl(place.kubeconfig, "delete", "crd", "lamps.example.com", "--wait=false")

    def left(kind: str, name: str) -> str:
        return place.kubectl(place.kubeconfig, "get", kind, name, "--ignore-not-found", "-o", "name").strip()

    for kind, name in (("namespace", "kept"), ("crd", "lamps.example.com"), ("pv", volume)):
        eventually(lambda kind=kind, name=name: not left(kind, name), f"{kind} {name} is gone")
    assert not list(place.state.glob(f"durable/local-path-provisioner/{volume}*"))

    # What this version wrote, it starts on again.
    place.ok("down")
    place.start_on_it()
    assert not left("namespace", "kept")
