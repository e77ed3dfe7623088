"""`lastcall up -f … --wait`: a cluster with everything in it, or the reason why not."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from staying import Place

pytestmark = pytest.mark.real_kernel

SERVES = "trap 'exit 0' TERM; mkdir -p /tmp/w; httpd -p 8080 -h /tmp/w; sleep 600 & wait"


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with Place(request.param) as made:
        yield made


def deployment(name: str, script: str, port: int = 8080) -> dict[str, Any]:
    container = {
        "name": "app", "image": "busybox:1.36", "command": ["sh", "-c", script],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
    }  # fmt: skip
    labels = {"app": name}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": spec}},
    }  # fmt: skip


def manifests(place: Place, *objects: dict[str, Any]) -> str:
    """A directory with a file for each."""
    there = Path(place.home) / "tmp" / "manifests"
    there.mkdir(exist_ok=True)
    there.chmod(0o755)
    for number, each in enumerate(objects):
        (there / f"{number}.yaml").write_text(json.dumps(each))
        (there / f"{number}.yaml").chmod(0o644)
    return str(there)


def clean(place: Place) -> None:
    for path in (place.home / "tmp" / "manifests").glob("*"):
        path.unlink()
    (place.home / "tmp" / "manifests").rmdir()


def test_a_cluster_is_up_when_all_of_it_is_ready(place: Place) -> None:
    custom = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                     "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]},
    }  # fmt: skip
    boat = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "one"}}
    there = manifests(place, boat, deployment("web", SERVES), custom)
    facts = place.up("-f", there, "-n", "shop", "--wait", "--timeout", "110s")
    found = place.kubectl(facts["kubeconfig"], "get", "deployment/web", "boat/one", "-n", "shop", "-o", "json")
    web, one = json.loads(found)["items"]
    assert web["status"]["availableReplicas"] == 2 and one["kind"] == "Boat"
    clean(place)


def test_what_does_not_become_ready_says_why_and_the_cluster_runs_all_the_same(place: Place) -> None:
    crashes = deployment("web", "echo no database; exit 3")
    result = place.run("up", "--detach", "-f", manifests(place, crashes), "--wait", "--timeout", "60s")
    assert result.status == 1, result
    assert "Deployment default/web is not ready" in result.err and "no database" in result.err, result.err
    assert "is up" in result.out and json.loads(place.ok("status", "-o", "json"))["clusters"][0]["phase"] == "running"
    clean(place)


def test_a_wrong_manifest_starts_no_cluster(place: Place) -> None:
    wrong = deployment("web", SERVES)
    wrong["spec"]["replcias"] = wrong["spec"].pop("replicas")
    result = place.run("up", "--detach", "-f", manifests(place, wrong))
    assert result.status == 2 and 'did you mean "replicas"' in result.err, result.err
    assert "no cluster is running" in place.ok("status")
    assert place.run("up", "--detach", "--wait").status == 2
    clean(place)


def test_in_the_foreground_it_stays_with_what_was_applied(place: Place) -> None:
    there = manifests(place, deployment("web", SERVES))
    with place.start("up", "-f", there, "--wait", "--timeout", "110s") as up:
        assert up.stdout is not None and "is up" in up.stdout.readline()
        kubeconfig = place.ok("kubeconfig").strip()
        found = json.loads(place.kubectl(kubeconfig, "get", "deployment/web", "-o", "json"))
        assert found["status"]["availableReplicas"] == 2
        place.ok("down")
        assert up.wait(60) == 0
    clean(place)
