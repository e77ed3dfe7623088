"""`lastcall up --static-pods`: the node's own Pods on the real kernel."""

import json
import os
from pathlib import Path

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import pod
from staying import Place
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest):
    with Place(request.param) as made:
        yield made


def write(directory: Path, name: str, manifest: dict) -> None:
    """As a whole, as somebody careful writes."""
    (directory / f".{name}").write_text(json.dumps(manifest))
    (directory / f".{name}").rename(directory / name)


def test_a_static_pod_lives_and_ends_with_its_manifest(place: Place) -> None:
    directory = place.home / "manifests"
    directory.mkdir()
    place.kept.append(str(directory))
    directory.chmod(0o755)
    write(directory, "web.yaml", pod("web"))
    os.mkfifo(directory / "pipe.yaml")  # nobody writes to it: reading it would never end
    (directory / "link.yaml").symlink_to("/etc/passwd")
    facts = place.up("--static-pods", str(directory))
    kubeconfig = facts["kubeconfig"]

    def get(*arguments: str) -> dict:
        return json.loads(place.kubectl(kubeconfig, "get", "pod", "-o", "json", *arguments))

    def phase() -> str:
        items = get()["items"]
        return items[0].get("status", {}).get("phase", "") if items else ""

    eventually(lambda: phase() == "Running", "the mirror is Running")
    mirror = get("web-node-1")
    assert mirror["metadata"]["ownerReferences"][0]["kind"] == "Node"
    started = mirror["status"]["containerStatuses"][0]["containerID"]

    place.kubectl(kubeconfig, "delete", "pod", "web-node-1", "--wait=false")
    eventually(
        lambda: get()["items"] and get()["items"][0]["metadata"]["uid"] != mirror["metadata"]["uid"], "a new mirror"
    )
    eventually(lambda: phase() == "Running", "the new mirror is Running")
    assert get("web-node-1")["status"]["containerStatuses"][0]["containerID"] == started

    logs = place.ok("logs")
    assert "pipe.yaml is left out: it is not a regular file" in logs and "link.yaml is left out" in logs
    (directory / "web.yaml").unlink()
    eventually(lambda: not get()["items"], "the mirror is gone")


def test_a_directory_that_is_none_is_named(place: Place) -> None:
    result = place.run("up", "--detach", "--static-pods", "/nonexistent")
    assert result.status == 2 and "'/nonexistent' is not a directory" in result.err
