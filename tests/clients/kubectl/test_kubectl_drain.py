"""`kubectl drain` under a PodDisruptionBudget, on the real kernel: it waits while the budget forbids, and ends when it
allows."""

import json

import pytest
from kubectls import Kubectl
from waiting import eventually

pytestmark = pytest.mark.real_kernel

NODE = "node-1"
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - {name: main, image: "quick:1"}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guard}
spec: {minAvailable: 2, selector: {matchLabels: {app: NAME}}}
"""


@pytest.fixture
def kubectl(kubectl: Kubectl) -> Kubectl:
    """With a Deployment `web` of two Ready Pods and the budget `guard`."""
    kubectl("create", "-f", "-", stdin=WEB.replace("NAME", kubectl.namespace))
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    eventually(lambda: kubectl("get", "pdb", "guard", "-o", "jsonpath={.status.currentHealthy}") == "2")
    return kubectl


def pods(kubectl: Kubectl) -> list[dict]:
    return json.loads(kubectl("get", "pods", "-o", "json"))["items"]


def drain(kubectl: Kubectl, *more: str) -> tuple[str, ...]:
    return ("drain", NODE, f"--pod-selector=app={kubectl.namespace}", "--ignore-daemonsets", *more)


def test_a_drain_waits_for_the_budget_and_ends_when_it_allows(kubectl: Kubectl) -> None:
    names = {pod["metadata"]["name"] for pod in pods(kubectl)}
    draining = kubectl.start(*drain(kubectl, "--timeout=60s"))
    try:
        assert draining.stderr is not None
        # Both are refused, and both stay as they are.
        refused = [line for line in (draining.stderr.readline() for _ in range(2)) if "error when evicting" in line]
        assert len(refused) == 2
        for line in refused:
            assert "will retry after 5s" in line
            assert line.endswith("Cannot evict pod as it would violate the pod's disruption budget.\n")
        assert {pod["metadata"]["name"] for pod in pods(kubectl)} == names
        assert not any("deletionTimestamp" in pod["metadata"] for pod in pods(kubectl))
        kubectl("patch", "pdb", "guard", "--type=merge", "-p", '{"spec":{"minAvailable":0}}')
        out, err = draining.communicate(timeout=60)
        assert draining.returncode == 0, out + err
        assert {f"pod/{name} evicted" for name in names} <= set(out.splitlines())
        assert not names & {pod["metadata"]["name"] for pod in pods(kubectl)}
    finally:
        draining.kill()
        draining.communicate()
        kubectl("uncordon", NODE)
        kubectl("delete", "namespace", kubectl.namespace)
    code, _, err = kubectl.run("get", "namespace", kubectl.namespace)
    assert (code, "NotFound" in err) == (1, True)


def test_a_drain_of_one_pod_after_the_other_keeps_the_budget(kubectl: Kubectl) -> None:
    """One may go at a time; its replacement has no node to go to, so the other one stays."""
    try:
        kubectl("patch", "pdb", "guard", "--type=merge", "-p", '{"spec":{"minAvailable":1}}')
        counted = "jsonpath={.status.disruptionsAllowed}"
        eventually(lambda: kubectl("get", "pdb", "guard", "-o", counted) == "1")
        code, out, err = kubectl.run(*drain(kubectl, "--timeout=20s"))
        assert code == 1
        assert out.count(" evicted\n") == 1
        assert "Cannot evict pod as it would violate the pod's disruption budget." in err
        ready = [each for each in pods(kubectl) if each["status"]["phase"] == "Running"]
        assert len(ready) == 1
        kubectl("uncordon", NODE)
        kubectl("wait", "deployment/web", "--for=condition=Available", "--timeout=60s")
        code, out, err = kubectl.run(*drain(kubectl, "--disable-eviction", "--timeout=60s"))
        assert code == 0, err
    finally:
        kubectl("uncordon", NODE)
        kubectl("delete", "namespace", kubectl.namespace)
