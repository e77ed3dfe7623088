"""Clusters that stay on the real kernel: why a Pod ended after kubectl changed its owner, and a cluster whose
controllers are a process of their own."""

import json
import signal
from typing import Any

import ordinary_user
import pytest
from pods import EXITS_ON_TERM, container, pod
from staying import Place
from waiting import eventually

pytestmark = pytest.mark.real_kernel


def deployment(replicas: int) -> str:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod("web", container("app", EXITS_ON_TERM))["spec"]}
    spec: dict[str, Any] = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})


def endings(place: Place) -> list[dict[str, Any]]:
    return json.loads(place.ok("story", "-o", "json"))["endings"]


def why(place: Place, ending: dict[str, Any]) -> dict[str, Any]:
    (told,) = json.loads(place.ok("story", ending["name"], "--uid", ending["uid"], "-o", "json"))["pods"]
    return told["decidedBy"]


@pytest.mark.parametrize("user", ordinary_user.USERS)
def test_the_story_names_kubectl_the_step_and_the_rank(user):
    with Place(user) as place:
        kubeconfig = place.up()["kubeconfig"]
        place.kubectl(kubeconfig, "create", "-f", "-", stdin=deployment(2))
        place.kubectl(kubeconfig, "rollout", "status", "deployment/web", "--timeout=60s")
        place.kubectl(kubeconfig, "rollout", "restart", "deployment/web")
        place.kubectl(kubeconfig, "rollout", "status", "deployment/web", "--timeout=60s")
        eventually(lambda: len(endings(place)) == 2, "both old Pods have ended")
        for ending in endings(place):
            found = why(place, ending)
            assert (found["actor"], found["reason"], found["client"]) == (
                "replicaset-controller",
                "rolledOut",
                "kubectl",
            )
            assert found["why"].startswith(
                "Deployment web was rolled out to revision 2 by kubectl (user kubernetes-admin): ReplicaSet web-"
            )
        place.kubectl(kubeconfig, "scale", "deployment/web", "--replicas=1")
        eventually(lambda: len(endings(place)) == 3, "one of two has gone")
        found = why(place, endings(place)[-1])
        assert found["why"].startswith("Deployment web was scaled from 2 to 1 by kubectl (user kubernetes-admin): ")
        assert "this one is number 1 to go" in found["why"]
        place.kubectl(kubeconfig, "delete", "deployment/web")
        eventually(lambda: len(endings(place)) == 4, "the last one has gone")
        found = why(place, endings(place)[-1])
        assert found["why"].startswith(
            "Deployment web was deleted by kubectl (user kubernetes-admin): that removed Repl"
        )


def test_a_cluster_without_controllers_is_kept_in_step_by_a_process_beside_it():
    with Place() as place:
        kubeconfig = place.up("--no-controllers")["kubeconfig"]
        place.kubectl(kubeconfig, "create", "-f", "-", stdin=deployment(2))
        assert "0/2" in place.kubectl(kubeconfig, "get", "deployment/web", "--no-headers")
        with place.start("controller-manager", "--kubeconfig", kubeconfig) as manager:
            try:
                place.kubectl(kubeconfig, "rollout", "status", "deployment/web", "--timeout=60s")
                holder = "jsonpath={.spec.holderIdentity}"
                lease = ("-n", "kube-system", "get", "lease", "kube-controller-manager", "-o", holder)
                assert place.kubectl(kubeconfig, *lease)
                place.kubectl(kubeconfig, "delete", "deployment/web")
                eventually(lambda: len(endings(place)) == 2, "its Pods have ended")
                manager.send_signal(signal.SIGTERM)
                out, err = manager.communicate(timeout=60)
            finally:
                if manager.poll() is None:
                    manager.kill()
        assert (manager.returncode, out) == (0, "")
        assert "is the leader" in err
        assert place.kubectl(kubeconfig, *lease) == ""
