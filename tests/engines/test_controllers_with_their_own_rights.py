"""Our controllers and our scheduler on the API server of a real Kubernetes, each with the rights it has there.

The processes are known as system:kube-controller-manager and system:kube-scheduler, each controller by its own
ServiceAccount. No node runs: what kubelets would say of Pods is written by the test.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines.api_server import RealAPIServer, needs, real_api_server
from waiting import eventually

pytestmark = [pytest.mark.proof, pytest.mark.timeout(400), needs("etcd", "kube-apiserver", "kubectl")]

POD = {"containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1m"}}}]}
SELECTOR = {"matchLabels": {"app": "web"}}
JOB = {"template": {"metadata": {"labels": {"app": "job"}}, "spec": {**POD, "restartPolicy": "Never"}}}
HALF = {"type": "Utilization", "averageUtilization": 50}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}, "storageClassName": ""}


MISSING = "missing permission"


def labelled(app: str) -> dict:
    labels = {"app": app}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": POD}}


OBJECTS = {
    ("apps/v1", "Deployment", "web"): {"spec": {"replicas": 2, **labelled("web")}},
    ("apps/v1", "StatefulSet", "db"): {"spec": {"serviceName": "db", **labelled("db")}},
    ("apps/v1", "DaemonSet", "agent"): {"spec": labelled("agent")},
    ("v1", "ReplicationController", "old"): {
        "spec": {"replicas": 1, "selector": {"app": "old"}, "template": labelled("old")["template"]}
    },
    ("batch/v1", "Job", "once"): {"spec": {**JOB, "ttlSecondsAfterFinished": 0}},
    ("v1", "Service", "web"): {"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}},
    ("v1", "Service", "others"): {"spec": {"ports": [{"port": 80}]}},
    ("v1", "Endpoints", "others"): {"subsets": [{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 80}]}]},
    ("policy/v1", "PodDisruptionBudget", "web"): {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    ("v1", "ResourceQuota", "some"): {"spec": {"hard": {"pods": "40"}}},
    ("v1", "PersistentVolumeClaim", "data"): {"spec": CLAIM},
    ("autoscaling/v2", "HorizontalPodAutoscaler", "old"): {
        "spec": {
            "scaleTargetRef": {"apiVersion": "v1", "kind": "ReplicationController", "name": "old"},
            "minReplicas": 2,
            "maxReplicas": 2,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": HALF}}],
        }
    },
}  # fmt: skip
OF_THE_CLUSTER = {
    ("v1", "PersistentVolume", "disk"): {
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Mi"}, "hostPath": {"path": "/nowhere"},
            "persistentVolumeReclaimPolicy": "Retain",
        }
    },
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "sum"): {
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}, "rules": [],
    },
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "part"): {
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    },
    ("storage.k8s.io/v1", "VolumeAttributesClass", "fast"): {"driverName": "x.example.com", "parameters": {"a": "b"}},
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "checked"): {
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
                ]
            },
            "validations": [{"expression": "object.data.size() < 100"}],
        }
    },
}  # fmt: skip
"""Something for each controller to do."""


class Cluster:
    def __init__(self, real: RealAPIServer) -> None:
        self.real = real
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, user: str, *options: str) -> None:
        command = [sys.executable, "-m", "lastcall.cli.main", name, "--kubeconfig", self.real.user(user), *options]
        with self.log(name).open("wb") as log:
            self._processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def log(self, name: str) -> Path:
        return self.real.folder / f"{name}.log"

    def logs(self) -> str:
        return "\n".join(self.log(name).read_text(errors="replace") for name in ("controller-manager", "scheduler"))

    def end(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            process.wait(60)

    def apply(self, objects: dict, namespace: str = "") -> None:
        place = {"namespace": namespace} if namespace else {}
        items = [
            {"apiVersion": version, "kind": kind, "metadata": {"name": name, **place}, **rest}
            for (version, kind, name), rest in objects.items()
        ]
        self.real.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})

    def get(self, *words: str) -> dict:
        return json.loads(self.real.kubectl("get", *words, "-o", "json", check=False) or "{}")

    def items(self, *words: str) -> list[dict]:
        return self.get(*words).get("items") or []

    def node(self) -> None:
        """Ready, and never heard of again."""
        self.apply({("v1", "Node", "n"): {}})
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastHeartbeatTime": "2020-01-01T00:00:00Z",
        }
        room = {"cpu": "8", "memory": "8Gi", "pods": "110"}
        self.status("node", "n", "", {"conditions": [ready], "allocatable": room, "capacity": room})

    def status(self, kind: str, name: str, namespace: str, status: dict) -> None:
        place = ("-n", namespace) if namespace else ()
        patch = json.dumps({"status": status})
        self.real.kubectl(*place, "patch", kind, name, "--subresource=status", "--type=merge", "-p", patch)

    def run_pods(self, namespace: str) -> None:
        """As a kubelet: what is bound runs, and Jobs' Pods succeed; what is to go is gone."""
        for pod in self.items("pods", "-n", namespace):
            meta = pod["metadata"]
            if meta.get("deletionTimestamp"):
                self.real.kubectl(
                    "-n", namespace, "delete", "pod", meta["name"], "--force", "--wait=false", check=False
                )
            elif pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                done = meta["labels"]["app"] == "job"
                ready = {"type": "Ready", "status": str(not done), "lastTransitionTime": meta["creationTimestamp"]}
                phase, address = (
                    ("Succeeded", {}) if done else ("Running", {"podIP": "192.0.2.9", "podIPs": [{"ip": "192.0.2.9"}]})
                )
                self.status("pod", meta["name"], namespace, {"phase": phase, "conditions": [ready], **address})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with real_api_server(tmp_path_factory.mktemp("real")) as real:
        made = Cluster(real)
        made.start("controller-manager", "system:kube-controller-manager", "--use-service-account-credentials")
        made.start("scheduler", "system:kube-scheduler")
        try:
            yield made
        finally:
            made.end()


def test_every_controller_works_with_the_rights_of_its_own_account(cluster: Cluster) -> None:
    cluster.node()
    cluster.apply(OF_THE_CLUSTER)
    cluster.real.kubectl("label", "clusterrole", "part", "part=yes")
    cluster.real.kubectl("create", "namespace", "a")
    cluster.apply(OBJECTS, "a")

    def work() -> dict[str, bool]:
        cluster.run_pods("a")

        def status(kind: str, name: str) -> dict:
            return cluster.get(kind, name, "-n", "a").get("status") or {}

        conditions = status("hpa", "old").get("conditions") or []
        return {
            "deployment": status("deployment", "web").get("availableReplicas") == 2,
            "statefulset": status("statefulset", "db").get("readyReplicas") == 1,
            "daemonset": status("daemonset", "agent").get("numberReady") == 1,
            "replicationcontroller": status("replicationcontroller", "old").get("readyReplicas") == 2,
            "job is done and gone": not cluster.get("job", "once", "-n", "a"),
            "pdb": status("pdb", "web").get("disruptionsAllowed") == 1,
            "claim": status("pvc", "data").get("phase") == "Bound",
            "endpointslices": len(cluster.items("endpointslices", "-n", "a")) >= 2,
            "quota": "pods" in (status("resourcequota", "some").get("used") or {}),
            "hpa": any(each["type"] == "AbleToScale" and each["status"] == "True" for each in conditions),
            "aggregated role": bool(cluster.get("clusterrole", "sum").get("rules")),
        }

    eventually(
        lambda: all(work().values()),
        "the controllers' work",
        90,
        pause=0.5,
        said=lambda: f"{work()}\n{cluster.logs()}",
    )
    assert MISSING not in cluster.logs()


def test_what_is_deleted_goes_with_the_same_rights(cluster: Cluster) -> None:
    def gone() -> dict[str, bool]:
        cluster.run_pods("a")
        pods = {pod["metadata"]["labels"]["app"] for pod in cluster.items("pods", "-n", "a")}
        return {
            "the Pods of the Deployment": "web" not in pods,
            "the ReplicaSets": not cluster.items("replicasets", "-n", "a"),
            "the volume": not cluster.get("pv", "disk"),
            "the class": not cluster.get("volumeattributesclass", "fast"),
            "the policy's observation": bool(
                cluster.get("validatingadmissionpolicy", "checked").get("status", {}).get("observedGeneration")
            ),
        }

    cluster.real.kubectl("-n", "a", "delete", "deployment/web", "pvc/data", "--wait=false")
    cluster.real.kubectl("delete", "pv/disk", "volumeattributesclass/fast", "--wait=false")
    eventually(lambda: all(gone().values()), "what was deleted is gone", 60, pause=0.5, said=gone)
    cluster.real.kubectl("delete", "namespace", "a", "--wait=false")

    def ended() -> bool:
        cluster.run_pods("a")
        return not cluster.get("namespace", "a")

    eventually(ended, "the namespace is gone", 60, pause=0.5, said=lambda: cluster.get("namespace", "a"))
    assert MISSING not in cluster.logs()


def test_a_right_that_is_taken_away_is_told_with_the_fix_and_the_work_goes_on_when_it_is_back(cluster: Cluster) -> None:
    role = "system:controller:job-controller"
    binding = cluster.get("clusterrolebinding", role)
    cluster.real.kubectl("delete", "clusterrolebinding", role)
    cluster.real.kubectl("create", "namespace", "b")
    cluster.apply({("batch/v1", "Job", "once"): {"spec": JOB}}, "b")
    account = "system:serviceaccount:kube-system:job-controller"
    told = f"{MISSING} of {account}: create pods in the namespace b. lastcall retries what needs it."
    eventually(lambda: told in cluster.logs(), "the missing right is told", 60, pause=0.2, said=cluster.logs)
    assert "--serviceaccount=kube-system:job-controller" in cluster.logs()
    assert not cluster.items("pods", "-n", "b")
    kept = {key: binding[key] for key in ("apiVersion", "kind", "roleRef", "subjects")}
    cluster.real.kubectl("create", "-f", "-", stdin={**kept, "metadata": {"name": role}})
    eventually(lambda: len(cluster.items("pods", "-n", "b")) == 1, "the Pod", 60, pause=0.5, said=cluster.logs)
