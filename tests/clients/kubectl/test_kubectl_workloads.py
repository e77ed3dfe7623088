"""kubectl's verbs for what owns Pods, with the kubectl on PATH and with Debian's 1.20, on the real kernel."""

import json
import re

import pytest
from kubectls import Kubectl
from waiting import eventually

pytestmark = pytest.mark.real_kernel

STATEFUL_SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, labels: {app: db}}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "quick:1"}]}
"""
DAEMON_SET = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, labels: {app: agent}}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "quick:1"}]}
"""


def deploy(kubectl: Kubectl, name: str = "web", replicas: int = 2) -> None:
    out = kubectl("create", "deployment", name, "--image=quick:1", f"--replicas={replicas}")
    assert out == f"deployment.apps/{name} created\n"
    rolled_out(kubectl, f"deployment/{name}")


def rolled_out(kubectl: Kubectl, what: str) -> str:
    return kubectl("rollout", "status", what, "--timeout=60s")


def is_observed(deployment: dict) -> bool:
    """Whether the controller has seen it as it is now."""
    return deployment["status"].get("observedGeneration") == deployment["metadata"]["generation"]


def images(kubectl: Kubectl, selector: str) -> set[str]:
    """The images of the Pods that are not on their way out."""
    pods = kubectl.get("pods", "-l", selector)["items"]
    return {p["spec"]["containers"][0]["image"] for p in pods if "deletionTimestamp" not in p["metadata"]}


# -- rollout -------------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_deployment_rolls_forward_and_back_through_its_revisions(kubectl: Kubectl) -> None:
    deploy(kubectl)
    assert kubectl("set", "image", "deployment/web", "quick=busybox:1.36", "-o", "name") == "deployment.apps/web\n"
    eventually(lambda: len(kubectl.get("replicasets")["items"]) == 2)  # else both changes are one revision
    command = [{"op": "add", "path": "/spec/template/spec/containers/0/command", "value": ["sleep", "3600"]}]
    kubectl("patch", "deployment", "web", "--type=json", "-p", json.dumps(command))
    out = rolled_out(kubectl, "deployment/web")
    assert out.endswith('deployment "web" successfully rolled out\n')
    assert images(kubectl, "app=web") == {"busybox:1.36"}
    history = kubectl("rollout", "history", "deployment/web")
    assert [line.split() for line in history.splitlines()[1:] if line] == [
        ["REVISION", "CHANGE-CAUSE"], ["1", "<none>"], ["2", "<none>"], ["3", "<none>"],
    ]  # fmt: skip
    assert "Image:\tquick:1\n" in kubectl("rollout", "history", "deployment/web", "--revision=1")
    assert kubectl("rollout", "undo", "deployment/web", "--to-revision=1") == "deployment.apps/web rolled back\n"
    rolled_out(kubectl, "deployment/web")
    assert images(kubectl, "app=web") == {"quick:1"}
    assert "error: unable to find specified revision 9 in history" in kubectl(
        "rollout", "undo", "deployment/web", "--to-revision=9", status=1
    )


def test_a_paused_deployment_holds_its_change_until_it_is_resumed(kubectl: Kubectl) -> None:
    deploy(kubectl)
    assert kubectl("rollout", "pause", "deployment/web") == "deployment.apps/web paused\n"
    assert 'deployments.apps "web" is already paused' in kubectl("rollout", "pause", "deployment/web", status=1)
    assert kubectl("set", "env", "deployment/web", "LEVEL=debug") == "deployment.apps/web env updated\n"
    assert "can't restart paused deployment" in kubectl("rollout", "restart", "deployment/web", status=1)
    eventually(lambda: is_observed(kubectl.get("deployment", "web")))
    assert len(kubectl.get("replicasets")["items"]) == 1
    assert kubectl("rollout", "resume", "deployment/web") == "deployment.apps/web resumed\n"
    rolled_out(kubectl, "deployment/web")
    container = kubectl.get("deployment", "web")["spec"]["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "LEVEL", "value": "debug"}]
    assert len(kubectl.get("replicasets")["items"]) == 2


def test_a_restart_replaces_every_pod(kubectl: Kubectl) -> None:
    deploy(kubectl)
    before = {pod["metadata"]["uid"] for pod in kubectl.get("pods")["items"]}
    assert kubectl("rollout", "restart", "deployment/web") == "deployment.apps/web restarted\n"
    rolled_out(kubectl, "deployment/web")
    alive = [pod for pod in kubectl.get("pods")["items"] if "deletionTimestamp" not in pod["metadata"]]
    assert len(alive) == 2
    assert not {pod["metadata"]["uid"] for pod in alive} & before


def test_a_rollout_that_makes_no_progress_is_waited_for_no_longer_than_asked(kubectl: Kubectl) -> None:
    deploy(kubectl)
    kubectl("set", "image", "deployment/web", "quick=nowhere.invalid/none:1")
    code, out, err = kubectl.run("rollout", "status", "deployment/web", "--timeout=10s")
    assert code == 1
    assert "out of 2 new replicas have been updated" in out
    assert "timed out" in err


def test_a_stateful_set_rolls_forward_and_back(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=STATEFUL_SET)
    assert "partitioned roll out complete: 2 new pods have been updated" in rolled_out(kubectl, "statefulset/db")
    kubectl("set", "env", "statefulset/db", "A=1")
    rolled_out(kubectl, "statefulset/db")
    assert all(pod["spec"]["containers"][0].get("env") for pod in kubectl.get("pods")["items"])
    assert kubectl("rollout", "undo", "statefulset/db") == "statefulset.apps/db rolled back\n"
    rolled_out(kubectl, "statefulset/db")
    assert not any(pod["spec"]["containers"][0].get("env") for pod in kubectl.get("pods")["items"])
    history = kubectl("rollout", "history", "statefulset/db").splitlines()
    assert [line.split()[0] for line in history[2:] if line] == ["2", "3"]
    assert kubectl("scale", "statefulset", "db", "--replicas=1") == "statefulset.apps/db scaled\n"
    eventually(lambda: [pod["metadata"]["name"] for pod in kubectl.get("pods")["items"]] == ["db-0"])


def test_a_daemon_set_rolls_forward_and_back(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=DAEMON_SET)
    assert 'daemon set "agent" successfully rolled out' in rolled_out(kubectl, "daemonset/agent")
    kubectl("set", "env", "daemonset/agent", "A=1")
    rolled_out(kubectl, "daemonset/agent")
    assert kubectl("rollout", "undo", "daemonset/agent") == "daemonset.apps/agent rolled back\n"
    rolled_out(kubectl, "daemonset/agent")
    assert kubectl("rollout", "restart", "daemonset/agent") == "daemonset.apps/agent restarted\n"
    rolled_out(kubectl, "daemonset/agent")
    assert "Desired Number of Nodes Scheduled: 1" in kubectl("describe", "daemonset", "agent")


# -- scale, expose, autoscale --------------------------------------------------------------------------------------


def test_scale_changes_the_number_of_pods_and_keeps_its_preconditions(kubectl: Kubectl) -> None:
    deploy(kubectl)
    assert kubectl("scale", "deployment", "web", "--replicas=3") == "deployment.apps/web scaled\n"
    rolled_out(kubectl, "deployment/web")
    assert len(kubectl.get("pods")["items"]) == 3
    error = kubectl("scale", "deployment", "web", "--current-replicas=7", "--replicas=1", status=1)
    assert "Expected replicas to be 7, was 3" in error.replace("expected replicas", "Expected replicas")
    assert kubectl("scale", "--replicas=0", "deployment/web") == "deployment.apps/web scaled\n"
    eventually(lambda: not kubectl.get("pods", "-l", "app=web")["items"])


@pytest.mark.core
def test_expose_makes_a_service_with_endpoints(kubectl: Kubectl) -> None:
    deploy(kubectl)
    assert kubectl("expose", "deployment", "web", "--port=80", "--target-port=8080") == "service/web exposed\n"
    service = kubectl.get("service", "web")
    assert service["spec"]["selector"] == {"app": "web"}
    assert service["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 8080}]

    def addresses() -> list[str]:
        slices = kubectl.get("endpointslices", "-l", "kubernetes.io/service-name=web")["items"]
        return sorted(e["addresses"][0] for s in slices for e in s["endpoints"] or ())

    eventually(lambda: addresses() == sorted(pod["status"]["podIP"] for pod in kubectl.get("pods")["items"]))


def test_autoscale_stores_an_autoscaler_that_both_versions_show(kubectl: Kubectl) -> None:
    deploy(kubectl)
    out = kubectl("autoscale", "deployment", "web", "--min=1", "--max=4", "--cpu-percent=60")
    assert out == "horizontalpodautoscaler.autoscaling/web autoscaled\n"
    header, row = kubectl("get", "hpa").splitlines()
    assert header.split() == ["NAME", "REFERENCE", "TARGETS", "MINPODS", "MAXPODS", "REPLICAS", "AGE"]
    assert re.split(r"\s{2,}", row)[:5] == ["web", "Deployment/web", "cpu: <unknown>/60%", "1", "4"]
    # REPLICAS is 0 until the autoscaler's controller has looked for the first time.
    eventually(lambda: kubectl("get", "hpa", "web", "--no-headers").split()[-2] == "2")
    old = kubectl.get("horizontalpodautoscalers.v1.autoscaling", "web")
    assert old["spec"]["targetCPUUtilizationPercentage"] == 60
    new = kubectl.get("horizontalpodautoscalers.v2.autoscaling", "web")
    assert new["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 60}
    assert re.search(r"Max replicas: +4\n", kubectl("describe", "hpa", "web"))


# -- create, run, set, label ---------------------------------------------------------------------------------------

CREATED = (
    ("configmap/c", ("configmap", "c", "--from-literal=a=b")),
    ("secret/s", ("secret", "generic", "s", "--from-literal=a=b")),
    ("role.rbac.authorization.k8s.io/r", ("role", "r", "--verb=get", "--resource=pods")),
    ("rolebinding.rbac.authorization.k8s.io/rb", ("rolebinding", "rb", "--role=r", "--user=bob")),
    ("resourcequota/q", ("quota", "q", "--hard=pods=20")),
    ("serviceaccount/sa", ("serviceaccount", "sa")),
    ("service/svc", ("service", "clusterip", "svc", "--tcp=80:8080")),
    ("ingress.networking.k8s.io/ing", ("ingress", "ing", "--rule=a/b=svc:80")),
    ("job.batch/j", ("job", "j", "--image=busybox:1.36", "--", "true")),
)
SINCE_1_21 = (
    ("cronjob.batch/cj", ("cronjob", "cj", "--image=busybox:1.36", "--schedule=*/5 * * * *", "--", "true")),
    ("poddisruptionbudget.policy/p", ("poddisruptionbudget", "p", "--selector=app=web", "--min-available=1")),
)
"""kubectl 1.20 asks for beta versions of these, which Kubernetes no longer serves."""


def test_create_makes_every_kind_it_has_a_generator_for(kubectl: Kubectl) -> None:
    newer = SINCE_1_21 if kubectl.version >= (1, 21) else ()
    for name, arguments in (*CREATED, *newer):
        assert kubectl("create", *arguments) == f"{name} created\n"
        # Whatever is sent as protobuf comes back as it was meant.
        assert kubectl.get(name)["metadata"]["name"] == name.partition("/")[2]
    assert kubectl.get("configmap", "c")["data"] == {"a": "b"}
    assert kubectl.get("secret", "s")["data"] == {"a": "Yg=="}
    port = {"name": "80-8080", "port": 80, "protocol": "TCP", "targetPort": 8080}
    assert kubectl.get("service", "svc")["spec"]["ports"] == [port]
    if kubectl.version >= (1, 24):
        assert kubectl("create", "token", "sa").count(".") == 2
    assert kubectl.get("role", "r")["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    if newer:
        assert kubectl.get("cronjob", "cj")["spec"]["schedule"] == "*/5 * * * *"
        assert re.search(r"Min available: +1\n", kubectl("describe", "pdb", "p"))
        assert kubectl("get", "cronjob").splitlines()[1].split()[:2] == ["cj", "*/5"]
    assert re.search(r"Completions: +1\n", kubectl("describe", "job", "j"))


def test_run_makes_a_pod_that_wait_can_follow_to_its_end(kubectl: Kubectl) -> None:
    out = kubectl("run", "solo", "--image=busybox:1.36", "--restart=Never", "--labels=app=solo", "--", "sleep", "3600")
    assert out == "pod/solo created\n"
    assert kubectl("wait", "--for=condition=Ready", "pod/solo", "--timeout=60s") == "pod/solo condition met\n"
    if kubectl.version >= (1, 23):
        waited = kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/solo", "--timeout=60s")
        assert waited == "pod/solo condition met\n"
    assert kubectl("delete", "pod", "solo", "--wait=false", "--grace-period=1").startswith('pod "solo" deleted')
    eventually(lambda: kubectl.run("get", "pod", "solo")[0] == 1)
    assert kubectl.run("wait", "--for=delete", "pod/solo", "--timeout=60s")[0] == (kubectl.version < (1, 21))
    error = kubectl("wait", "--for=condition=Ready", "pod/solo", "--timeout=1s", status=1)
    assert 'pods "solo" not found' in error


def test_set_label_and_annotate_change_a_deployment(kubectl: Kubectl) -> None:
    deploy(kubectl)
    for arguments, words in (
        (("set", "resources", "deployment", "web", "--limits=memory=64Mi"), "resource requirements updated"),
        (("set", "serviceaccount", "deployment", "web", "default"), "serviceaccount updated"),
        (("label", "deployment", "web", "tier=front"), "labeled"),
        (("annotate", "deployment", "web", "kubernetes.io/change-cause=why"), "annotated"),
    ):
        assert kubectl(*arguments) == f"deployment.apps/web {words}\n"
    rolled_out(kubectl, "deployment/web")
    deployment = kubectl.get("deployment", "web")
    spec = deployment["spec"]["template"]["spec"]
    assert spec["containers"][0]["resources"] == {"limits": {"memory": "64Mi"}}
    assert spec["serviceAccountName"] == "default"
    assert deployment["metadata"]["labels"] == {"app": "web", "tier": "front"}
    assert kubectl("rollout", "history", "deployment/web").splitlines()[-2:][0].split()[-1] == "why"
    assert "overwrite is false" in kubectl("label", "deployment", "web", "tier=back", status=1)
    assert kubectl("label", "deployment", "web", "tier-") in (
        "deployment.apps/web unlabeled\n", "deployment.apps/web labeled\n",
    )  # fmt: skip


# -- get, describe, delete -----------------------------------------------------------------------------------------


def test_get_all_and_describe_show_a_deployment_with_its_parts(kubectl: Kubectl) -> None:
    deploy(kubectl)
    kubectl("expose", "deployment", "web", "--port=80")
    rows = [line.split() for line in kubectl("get", "all").splitlines() if "/" in line.split(" ")[0]]
    assert [row[0].partition("/")[0] for row in rows] == [
        "pod", "pod", "service", "deployment.apps", "replicaset.apps",
    ]  # fmt: skip
    replica_set = kubectl.get("replicasets")["items"][0]["metadata"]["name"]
    counts = {row[0]: row[1:4] for row in rows}
    assert counts["deployment.apps/web"] == ["2/2", "2", "2"]
    assert counts[f"replicaset.apps/{replica_set}"] == ["2", "2", "2"]
    text = kubectl("describe", "deployment", "web")
    assert "2 desired | 2 updated | 2 total | 2 available | 0 unavailable" in text
    assert re.search(rf"NewReplicaSet: +{replica_set} \(2/2 replicas created\)", text)
    eventually(
        lambda: (
            re.search(
                rf"ScalingReplicaSet .*Scaled up replica set {replica_set} from 0 to 2",
                kubectl("describe", "deployment", "web"),
            )
            is not None
        )
    )
    text = kubectl("describe", "rs", replica_set)
    assert re.search(r"Controlled By: +Deployment/web\n", text)
    assert re.search(r"Pods Status: +2 Running / 0 Waiting / 0 Succeeded / 0 Failed", text)


def test_deleting_a_deployment_deletes_its_pods_unless_they_are_orphaned(kubectl: Kubectl) -> None:
    deploy(kubectl)
    deploy(kubectl, "kept", 1)
    orphan = "--cascade=orphan" if kubectl.version >= (1, 20) else "--cascade=false"
    assert kubectl("delete", "deployment", "kept", orphan).startswith('deployment.apps "kept" deleted')
    assert kubectl("delete", "deployment", "web").startswith('deployment.apps "web" deleted')
    eventually(lambda: not kubectl.get("pods", "-l", "app=web")["items"])
    eventually(lambda: not kubectl.get("replicasets", "-l", "app=web")["items"])
    left = kubectl.get("replicasets,pods")["items"]
    assert sorted(each["kind"] for each in left) == ["Pod", "ReplicaSet"]
    assert "ownerReferences" not in next(each for each in left if each["kind"] == "ReplicaSet")["metadata"]
