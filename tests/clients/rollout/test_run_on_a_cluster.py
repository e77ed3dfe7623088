"""`lastcall run --context`: Pods are ended on another cluster, one of `lastcall up`, and nothing of it is left."""

import json
import signal
from pathlib import Path

import ordinary_user
import pytest
from api_snapshot import difference, everything
from staying import Place
from waiting import eventually

pytestmark = pytest.mark.real_kernel

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "rollout" / "polite.yaml"

POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %s}}
spec:
  terminationGracePeriodSeconds: %d
  containers:
  - {name: app, image: "busybox:1.36", command: [sh, -c, "%s; while true; do sleep 0.1; done"]}
"""
NAIVE = POD % ("naive", "naive", 1, "trap '' TERM")
POLITE = POD % ("polite", "polite", 20, "trap 'exit 0' TERM")
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 20
      initContainers:
      - {name: first, image: "busybox:1.36", command: ["true"]}
      - name: sidecar
        image: busybox:1.36
        restartPolicy: Always
        command: [sh, -c, "trap 'exit 0' TERM; while true; do sleep 0.1; done"]
      containers:
      - {name: app, image: "busybox:1.36", command: [sh, -c, "trap 'exit 0' TERM; while true; do sleep 0.1; done"]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: %d, selector: {matchLabels: {app: web}}}
"""
CLAIMS = "kind: Namespace\napiVersion: v1\nmetadata: {name: mine}\n---" + NAIVE


@pytest.mark.timeout(400)
def test_pods_end_on_another_cluster_and_it_is_as_before_also_when_the_run_is_killed() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        kubeconfig = place.up("--name", "theirs")["kubeconfig"]
        (context,) = (
            each["name"] for each in json.loads(place.kubectl(kubeconfig, "config", "view", "-o", "json"))["contexts"]
        )
        place.kubectl(kubeconfig, "create", "namespace", "shop")
        there = ("--kubeconfig", kubeconfig, "--context", context)

        def written(name: str, text: str) -> Path:
            path = place.home / "tmp" / name
            path.write_text(text)
            path.chmod(0o644)
            return path

        def command(path: Path, *more: str) -> tuple[str, ...]:
            return ("run", str(path), *there, "-n", "shop", *more)

        naive, both = written("naive.yaml", NAIVE), written("both.yaml", f"{NAIVE}---{POLITE}")
        web, blocked = written("web.yaml", WEB % 1), written("blocked.yaml", WEB % 2)
        place.kubectl(kubeconfig, "-n", "shop", "create", "service", "clusterip", "polite", "--tcp=80")
        before = everything(kubeconfig)
        for path, words, why in (
            (naive, (), "there is no terminal to ask on"),
            (naive, ("--yes=other",), "--yes=other confirms context other"),
            (naive, (f"--yes={context}", "-n", "kube-system"), "runs no experiments in"),
            (naive, (f"--yes={context}", "--keep"), "--keep applies to the cluster that run starts itself"),
            (naive, (f"--yes={context}", "-n", "absent"), "has no namespace absent"),
            (written("claims.yaml", CLAIMS), (f"--yes={context}",), "it is cluster-scoped"),
            (both, (f"--yes={context}",), "Service polite, which already exists, would send requests to"),
        ):
            refused = place.run(*command(path, *words))
            assert (refused.status, why in refused.err) == (2, True), refused.err
        assert difference(before, everything(kubeconfig)) == []
        place.kubectl(kubeconfig, "-n", "shop", "delete", "service", "polite")

        def ended(path: Path, status: int, *more: str) -> list[tuple[str, str]]:
            before = everything(kubeconfig)
            result = place.run(*command(path, f"--yes={context}", "-o", "json", *more), timeout=120)
            assert result.status == status, (result.out, result.err)
            assert difference(before, everything(kubeconfig)) == []
            found = json.loads(result.out)["pods"] if result.out else []
            return sorted((each["name"].partition("-")[0], each["outcome"]) for each in found)

        assert ended(both, 3) == [("naive", "killed"), ("polite", "graceful")]
        assert ended(naive, 3, "--delete", "--grace", "2") == [("naive", "killed")]
        assert ended(web, 0) == [("web", "graceful")] * 2
        stopped = place.run(*command(blocked, f"--yes={context}"), timeout=120)
        assert (stopped.status, "it allows no eviction" in stopped.err) == (1, True), stopped.err

        for number in (signal.SIGINT, signal.SIGKILL):
            before = everything(kubeconfig)
            process = place.start(*command(web, f"--yes={context}", "--after", "60s"))
            eventually(
                lambda: "Running" in place.kubectl(kubeconfig, "-n", "shop", "get", "pods", "--no-headers"), "its Pods"
            )
            process.send_signal(number)
            process.wait(60)
            if number == signal.SIGKILL:
                left = place.run("doctor", *there)
                assert (left.status, "delete Deployment web" in left.out) == (1, True), left.out
                for _ in range(2):
                    assert "nothing is left" in place.ok("cleanup", *there, f"--yes={context}")
            assert difference(before, everything(kubeconfig)) == []
        assert place.run("doctor", *there).status == 0
        place.ok("down", "--name", "theirs")
        for path in (place.home / "tmp").glob("*.yaml"):
            path.unlink()


@pytest.mark.timeout(400)
def test_requests_are_counted_while_the_pods_of_an_application_end_on_another_cluster() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        facts = place.up("--name", "theirs", "--publish", "0:svc/shop/polite:80")
        kubeconfig, entrance = facts["kubeconfig"], f"http://{facts['published'][0]['address']}"
        (context,) = (
            each["name"] for each in json.loads(place.kubectl(kubeconfig, "config", "view", "-o", "json"))["contexts"]
        )
        place.kubectl(kubeconfig, "create", "namespace", "shop")
        before = everything(kubeconfig)
        command = ("run", str(EXAMPLE), "--kubeconfig", kubeconfig, "--context", context, "-n", "shop")
        load = ("--url", entrance, "--load", "fresh=20")
        denied = place.run(*command, *load)
        assert denied.status == 2 and "send 20 requests a second to their Service" in denied.err, denied.err
        result = place.run(*command, *load, f"--yes={context}", "-o", "json", timeout=240)
        assert difference(before, everything(kubeconfig)) == []
        document = json.loads(result.out)
        found = document["requests"]
        assert (found["workload"], found["from"], found["disrupt"]) == ("Deployment polite", "client", "evict")
        assert found["total"] > 20 and found["control"]["lost"] == 0, result.err
        assert result.status == (3 if found["lost"] else 0) and len(document["pods"]) == 3
        place.ok("down", "--name", "theirs")
