"""kube-controller-manager and kube-scheduler 1.36.2 on lastcall's API, with the flags and rights that kubeadm gives."""

import base64
import os
import re
from collections.abc import Iterator

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from engines.components import ControlPlane, cluster, missing_components
from kubectls import Kubectl, needs_kubectl
from waiting import eventually

pytestmark = [
    pytest.mark.real_kernel,
    needs_kubectl,
    pytest.mark.skipif(bool(missing_components()), reason=missing_components()),
]

ON_PURPOSE = re.compile(
    r"manifest file is empty|is not as new as written version|broadcaster already stopped|object has been modified"
    r"|kube-apiserver-legacy-service-account-token-tracking"
)
"""Errors in their logs that a real API server gives as well; but the last: ours does not follow the use of tokens."""


SKIPPED = {
    "cloud-node-lifecycle-controller", "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    "node-route-controller", "podcertificaterequest-cleaner-controller", "podgroup-protection-controller",
    "resourcepoolstatusrequest-controller", "service-lb-controller", "storage-version-migrator-controller",
    "storageversion-garbage-collector-controller",
}  # fmt: skip
"""Controllers that start on no cluster without a cloud and without alpha gates."""

IDLE = ("--", "sh", "-c", "trap exit TERM; sleep 1000 & wait")


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    home = tmp_path_factory.mktemp("controllers")
    options = ("--no-controllers", "--no-scheduler", "--state", str(home / "state"), "--nodes", "2")
    with cluster(f"real-{os.getpid()}", home, *options) as found:
        plane = ControlPlane(home / "state", home / "plane")
        with plane.controller_manager(), plane.scheduler():
            yield found
        for program in ("kube-controller-manager", "kube-scheduler"):
            log = plane.log(program)
            assert "the server could not find the requested resource" not in log, log[-5000:]
            assert not re.findall(r"^.*is forbidden: User \"system:.*$", log, re.M), log[-5000:]
            errors = [line for line in re.findall(r"^E\d{4} .*$", log, re.M) if not ON_PURPOSE.search(line)]
            assert not errors, errors
        skipped = set(re.findall(r'skipping controller" controller="([^"]*)"', plane.log("kube-controller-manager")))
        assert skipped == SKIPPED


def asked(kubectl: Kubectl, *words: str) -> str:
    code, out, _ = kubectl.run(*words)
    return out if code == 0 else ""


def applied(kubectl: Kubectl, text: str) -> None:
    kubectl("apply", "-f", "-", stdin=text)


def test_a_deployment_rolls_and_its_pods_are_spread_over_the_nodes(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=busybox", "--replicas=2", *IDLE)
    kubectl("rollout", "status", "deployment/web", "--timeout=200s", timeout=230)
    kubectl("set", "env", "deployment/web", "A=b")
    kubectl("rollout", "status", "deployment/web", "--timeout=200s", timeout=230)
    nodes = asked(kubectl, "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    assert set(nodes) == {"node-1", "node-2"}
    events = asked(kubectl, "get", "events", "-o", "jsonpath={.items[*].reason}").split()
    assert {"Scheduled", "ScalingReplicaSet", "SuccessfulCreate"} <= set(events)


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, command: [sh, -c, "exit 0"]}]
"""


def test_a_job_finishes(kubectl: Kubectl) -> None:
    applied(kubectl, JOB)
    kubectl("wait", "--for=condition=Complete", "job/once", "--timeout=200s", timeout=230)


CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - name: main
        image: busybox
        command: [sh, -c, "trap exit TERM; sleep 1000 & wait"]
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 80}]}
"""


def test_a_claim_is_bound_and_a_service_gets_its_endpoints(kubectl: Kubectl) -> None:
    applied(kubectl, CLAIM)
    kubectl("rollout", "status", "statefulset/db", "--timeout=200s", timeout=230)
    assert asked(kubectl, "get", "pvc", "data", "-o", "jsonpath={.status.phase}") == "Bound"
    address = asked(kubectl, "get", "pod", "db-0", "-o", "jsonpath={.status.podIP}")
    endpoints = ("get", "endpointslices", "-l", "kubernetes.io/service-name=db", "-o")
    eventually(
        lambda: asked(kubectl, *endpoints, "jsonpath={.items[*].endpoints[*].addresses[*]}") == address,
        "an endpoint",
        60,
    )


def test_garbage_goes_and_namespaces_end(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "gone")
    kubectl("create", "deployment", "web", "--image=busybox", "-n", "gone", *IDLE)
    kubectl("rollout", "status", "deployment/web", "-n", "gone", "--timeout=200s", timeout=230)
    kubectl("delete", "deployment", "web", "-n", "gone")
    eventually(lambda: not asked(kubectl, "get", "replicasets", "-n", "gone", "-o", "name"), "garbage collected", 100)
    kubectl("create", "configmap", "left", "-n", "gone")
    kubectl("delete", "namespace", "gone", "--timeout=200s", timeout=230)
    assert not asked(kubectl, "get", "namespace", "gone", "-o", "name")


def test_each_namespace_has_its_account_and_the_root_certificate(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "fresh")
    for kind, name in (("serviceaccount", "default"), ("configmap", "kube-root-ca.crt")):
        eventually(lambda: asked(kubectl, "get", kind, name, "-n", "fresh", "-o", "name"), f"{kind} {name}", 60)  # noqa: B023 - called here


def test_a_certificate_is_signed_for_a_user_whom_an_admin_approves(kubectl: Kubectl) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    encoded = base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()
    applied(
        kubectl,
        f"""
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {{name: jane}}
spec: {{signerName: kubernetes.io/kube-apiserver-client, usages: [client auth], request: {encoded}}}
""",
    )
    kubectl("certificate", "approve", "jane")
    path = ("get", "csr", "jane", "-o", "jsonpath={.status.certificate}")
    eventually(lambda: asked(kubectl, *path), "signed", 60)
    certificate = x509.load_pem_x509_certificate(base64.b64decode(asked(kubectl, *path)))
    assert certificate.subject == name


def test_a_node_that_is_lost_is_tainted_and_its_pods_are_elsewhere(kubectl: Kubectl) -> None:
    kubectl(
        "drain", "node-2", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=200s", timeout=230
    )
    nodes = ("get", "pods", "-o", "jsonpath={.items[?(@.status.phase=='Running')].spec.nodeName}")
    eventually(lambda: set(asked(kubectl, *nodes).split()) == {"node-1"}, "all Pods on node-1", 200)
    kubectl("uncordon", "node-2")


def test_every_controller_that_a_real_cluster_starts_is_started(kubectl: Kubectl) -> None:
    holders = asked(kubectl, "get", "leases", "-n", "kube-system", "-o", "jsonpath={.items[*].metadata.name}").split()
    assert {"kube-controller-manager", "kube-scheduler"} <= set(holders)
    accounts = asked(kubectl, "get", "serviceaccounts", "-n", "kube-system", "-o", "jsonpath={.items[*].metadata.name}")
    assert {
        "attachdetach-controller", "cronjob-controller", "disruption-controller", "endpointslice-controller",
        "generic-garbage-collector", "horizontal-pod-autoscaler", "namespace-controller", "node-controller",
        "persistent-volume-binder", "resource-claim-controller", "service-cidrs-controller", "token-cleaner",
        "validatingadmissionpolicy-status-controller", "volumeattributesclass-protection-controller",
    } <= set(accounts.split())  # fmt: skip
