"""`lastcall rollout --from-cluster`: a workload of another cluster, one of `lastcall up`, is updated in one of ours."""

import json
from pathlib import Path

import ordinary_user
import pytest
from staying import Place

pytestmark = pytest.mark.real_kernel

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "rollout" / "naive.yaml"
LOAD = ("--load", "fresh=40", "--control", "1s", "--settle", "1s", "-o", "json")


def everything(place: Place, kubeconfig: str) -> str:
    """The objects of the other cluster that an experiment may not touch, with their versions."""
    kinds = "deployments,replicasets,pods,services,configmaps,secrets,serviceaccounts"
    found = json.loads(place.kubectl(kubeconfig, "get", kinds, "-n", "shop", "-o", "json"))["items"]
    return json.dumps(sorted((each["kind"], each["metadata"]["name"], each["metadata"]["uid"]) for each in found))


def test_a_workload_of_another_cluster_is_tried_here_and_left_alone_there() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        kubeconfig = place.up("--name", "theirs")["kubeconfig"]
        place.kubectl(kubeconfig, "create", "namespace", "shop")
        place.kubectl(kubeconfig, "apply", "-n", "shop", "-f", str(EXAMPLE))
        place.kubectl(
            kubeconfig, "wait", "-n", "shop", "deployment/naive", "--for=condition=Available", "--timeout=120s"
        )
        before = everything(place, kubeconfig)
        from_theirs = ("rollout", "--from-cluster", "deployment/naive", "--kubeconfig", kubeconfig, "-n", "shop")
        result = place.run(*from_theirs, *LOAD, timeout=240)
        assert result.status in (0, 3), result.err
        (found,) = json.loads(result.out)["experiments"]
        assert found["control"]["lost"] == 0 and found["total"] > 40
        assert "ConfigMap naive, Service naive, Deployment naive" in result.err
        assert everything(place, kubeconfig) == before

        unknown = place.run("rollout", "--from-cluster", "deployment/nave", "--kubeconfig", kubeconfig, "-n", "shop")
        assert (unknown.status, "did you mean naive?" in unknown.err) == (2, True), unknown.err
        twice = place.run("rollout", str(EXAMPLE), "--from-cluster", "deployment/naive", "--kubeconfig", kubeconfig)
        assert (twice.status, "--from-cluster replaces MANIFEST" in twice.err) == (2, True), twice.err
        place.ok("down", "--name", "theirs")
