"""The controllers' process killed between any two of its writes: what comes of it is what comes of it undisturbed.

One story for each controller (`STORIES`). An undisturbed run counts the writes; then the whole manager is killed before
each of them reaches the API server, and after it has, and a new one starts that knows nothing. The objects that are
left are compared, and how often each was made: nothing twice, nothing forgotten.
"""

import base64
import json
from collections import Counter

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from killed_manager import Kill, Outcome, Story, differences, kills, run_killed
from virtual_cluster import VirtualCluster, pod_manifest, service
from workloads import template, workload

from lastcall.kube.api.meta import Object, copy_object, name_of
from lastcall.kube.api.resources import (
    CERTIFICATESIGNINGREQUESTS,
    CONFIGMAPS,
    DEPLOYMENTS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    REPLICASETS,
    RESOURCEQUOTAS,
    SERVICES,
    VALIDATINGADMISSIONPOLICIES,
    VOLUMEATTRIBUTESCLASSES,
)
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH
from lastcall.kube.controllers.manager import NAMES
from lastcall.kube.cri.simulated_program import Program

DRAINS = {
    "app": Program(drain_seconds=2),
    "quick": Program(exits_after=1.0),
    "fails": Program(exits_after=1.0, natural_exit_code=1),
}


def labelled(kind: str, name: str, image: str = "app:1", **spec: object) -> Object:
    """`kind` with its own selector and one container."""
    pods = template(image)
    pods["metadata"]["labels"] = {"app": name}
    made = workload(kind, name=name, pods=pods, **spec)
    made["spec"]["selector"] = {"matchLabels": {"app": name}}
    return made


async def any_pod(cluster: VirtualCluster, prefix: str = "") -> str:
    """The name of the oldest Pod that is not ending."""
    found = [
        pod for pod in (await cluster.client.list(PODS, cluster.namespace)).items if name_of(pod).startswith(prefix)
    ]
    alive = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
    return name_of(min(alive, key=lambda pod: int(pod["metadata"]["resourceVersion"])))


DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


async def replica_sets(cluster: VirtualCluster) -> None:
    lone = pod_manifest("lone", labels={"app": "web"}, annotations={DELETION_COST: "9"})
    await cluster.create(lone, workload("ReplicaSet", replicas=4))
    await cluster.sleep(10)
    await cluster.patch("replicaset/web", {"spec": {"replicas": 2}})
    await cluster.sleep(10)
    await cluster.delete(f"pod/{await any_pod(cluster, 'web-')}")
    await cluster.sleep(10)
    await cluster.patch("pod/lone", {"metadata": {"labels": {"app": "other"}}})
    await cluster.sleep(15)


async def replication_controllers(cluster: VirtualCluster) -> None:
    spec = {"replicas": 3, "template": template()}
    meta = {"name": "web"}
    await cluster.create({"apiVersion": "v1", "kind": "ReplicationController", "metadata": meta, "spec": spec})
    await cluster.sleep(20)
    await cluster.patch("replicationcontroller/web", {"spec": {"replicas": 1}})
    await cluster.sleep(40)


async def deployments(cluster: VirtualCluster) -> None:
    await cluster.create(workload("Deployment", replicas=2, revisionHistoryLimit=0))
    await cluster.sleep(15)
    await cluster.patch("deployment/web", {"spec": {"template": template("app:2")}})
    await cluster.sleep(20)
    await cluster.patch("deployment/web", {"spec": {"replicas": 1}})
    await cluster.sleep(15)


async def recreated_deployments(cluster: VirtualCluster) -> None:
    await cluster.create(workload("Deployment", replicas=2, strategy={"type": "Recreate"}))
    await cluster.sleep(15)
    await cluster.patch("deployment/web", {"spec": {"template": template("app:2")}})
    await cluster.sleep(20)


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


async def stateful_sets(cluster: VirtualCluster) -> None:
    spec = {"serviceName": "web", "volumeClaimTemplates": [CLAIM]}
    await cluster.create(workload("StatefulSet", replicas=2, **spec))
    await cluster.sleep(15)
    await cluster.patch("statefulset/web", {"spec": {"template": template("app:2")}})
    await cluster.sleep(20)
    await cluster.delete("pod/web-0")
    await cluster.sleep(15)
    await cluster.patch("statefulset/web", {"spec": {"replicas": 1}})
    await cluster.sleep(15)


async def daemon_sets(cluster: VirtualCluster) -> None:
    await cluster.create(labelled("DaemonSet", "agent"))
    await cluster.sleep(10)
    changed = labelled("DaemonSet", "agent", "app:2")["spec"]["template"]
    await cluster.patch("daemonset/agent", {"spec": {"template": changed}})
    await cluster.sleep(20)
    changed["spec"]["nodeSelector"] = {"zone": "1"}
    await cluster.patch("daemonset/agent", {"spec": {"template": changed}})
    await cluster.sleep(20)


def job(name: str, image: str = "quick:1", **spec: object) -> Object:
    pods = {"spec": {"containers": [{"name": "main", "image": image}], "restartPolicy": "Never"}}
    meta = {"name": name}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": pods, **spec}}


async def jobs(cluster: VirtualCluster) -> None:
    await cluster.create(
        job("many", completions=3, parallelism=2),
        job("each", completions=2, parallelism=2, completionMode="Indexed"),
        job("never", "fails:1", backoffLimit=0),
    )
    await cluster.sleep(20)
    await cluster.create(job("late", "app:1", activeDeadlineSeconds=5), job("stopped", "app:1"))
    await cluster.sleep(4)
    await cluster.patch("job/stopped", {"spec": {"suspend": True}})
    await cluster.sleep(20)


async def failing_jobs(cluster: VirtualCluster) -> None:
    await cluster.create(job("again", "fails:1", backoffLimit=1), job("gone", "app:1", backoffLimit=3))
    await cluster.sleep(5)
    await cluster.delete(f"pod/{await any_pod(cluster, 'gone-')}")
    await cluster.sleep(60)


async def finished_jobs(cluster: VirtualCluster) -> None:
    await cluster.create(job("one", ttlSecondsAfterFinished=5), job("two", ttlSecondsAfterFinished=20), job("kept"))
    await cluster.sleep(90)


def cron_job(name: str, image: str = "quick:1", **spec: object) -> Object:
    made = {"spec": job("", image)["spec"]}
    spec = {"schedule": "* * * * *", "jobTemplate": made, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}


async def cron_jobs(cluster: VirtualCluster) -> None:
    await cluster.create(
        cron_job("minutely", successfulJobsHistoryLimit=1),
        cron_job("once", "app:1", concurrencyPolicy="Forbid"),
        cron_job("newest", "app:1", concurrencyPolicy="Replace"),
    )
    await cluster.sleep(60 * 2 + 30)


async def cron_jobs_of_a_minute(cluster: VirtualCluster) -> None:
    """A time that is due while there is no manager is started late, and once."""
    await cluster.create(cron_job("minutely"))
    await cluster.sleep(60 * 3 + 10)
    await cluster.patch("cronjob/minutely", {"spec": {"suspend": True}})
    await cluster.sleep(90)


async def deleted_owners(cluster: VirtualCluster) -> None:
    await cluster.create(labelled("Deployment", "one", replicas=1), labelled("Deployment", "two", replicas=1))
    await cluster.create(labelled("ReplicaSet", "three", replicas=1), labelled("StatefulSet", "four", serviceName="s"))
    await cluster.sleep(15)
    await cluster.delete("deployment/one", propagation="Foreground")
    await cluster.delete("deployment/two", propagation="Background")
    await cluster.delete("replicaset/three", propagation="Orphan")
    await cluster.delete("statefulset/four", propagation="Foreground")
    await cluster.sleep(20)


def budget(name: str, **spec: object) -> Object:
    spec = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


async def budgets(cluster: VirtualCluster) -> None:
    await cluster.create(workload("ReplicaSet", replicas=3), budget("guard", maxUnavailable=1))
    await cluster.sleep(20)
    victim = await any_pod(cluster)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": victim}}
    await cluster.client.create(PODS, body, "default", name=victim, subresource="eviction")
    await cluster.sleep(20)
    await cluster.patch("poddisruptionbudget/guard", {"spec": {"maxUnavailable": 2}})
    await cluster.sleep(180)


async def namespaces(cluster: VirtualCluster) -> None:
    client = cluster.client
    await client.create(NAMESPACES, {"metadata": {"name": "gone"}})
    await cluster.sleep(2)
    held = {"finalizers": ["example.com/held"]}
    await client.create(CONFIGMAPS, {"metadata": {"name": "kept", **held}}, "gone")
    await client.create(REPLICASETS, workload("ReplicaSet", replicas=2), "gone")
    await cluster.sleep(20)
    await client.delete(NAMESPACES, "gone")
    await cluster.sleep(30)
    await client.patch(CONFIGMAPS, "kept", {"metadata": {"finalizers": None}}, "gone")
    await cluster.sleep(30)


async def lost_pods(cluster: VirtualCluster) -> None:
    await cluster.create(*[pod_manifest(f"p-{number}", nodeName="node-2") for number in range(3)])
    unplaced = pod_manifest("unplaced", schedulingGates=[{"name": "example.com/wait"}], finalizers=["example.com/held"])
    await cluster.create(unplaced)
    await cluster.sleep(10)
    await cluster.kill_kubelet("node-2")
    await cluster.delete("node/node-2")
    await cluster.sleep(120)
    await cluster.patch("pod/unplaced", {"metadata": {"finalizers": None}})
    await cluster.sleep(5)


async def lost_nodes(cluster: VirtualCluster) -> None:
    await cluster.create(pod_manifest("p", nodeName="node-2"), pod_manifest("q", nodeName="node-3"))
    await cluster.sleep(10)
    await cluster.kill_kubelet("node-2")
    await cluster.sleep(120)
    cluster.start_kubelet("node-2")
    await cluster.sleep(60)
    await cluster.patch("node/node-3", {"spec": {"unschedulable": True}})
    await cluster.sleep(10)


async def nodes_that_stay_lost(cluster: VirtualCluster) -> None:
    await cluster.create(pod_manifest("p", nodeName="node-2"), pod_manifest("q", nodeName="node-2"), service("svc"))
    await cluster.sleep(10)
    await cluster.kill_kubelet("node-2")
    await cluster.sleep(120)


async def tainted(cluster: VirtualCluster) -> None:
    def tolerating(name: str, **more: object) -> Object:
        toleration = {"key": "example.com/t", "operator": "Exists", "effect": "NoExecute", **more}
        return pod_manifest(name, nodeName="node-1", tolerations=[toleration])

    await cluster.create(
        pod_manifest("none-a", nodeName="node-1"),
        pod_manifest("none-b", nodeName="node-1"),
        tolerating("ten", tolerationSeconds=10),
        tolerating("hundred", tolerationSeconds=100),
        tolerating("ever"),
    )
    await cluster.sleep(10)
    taint = {"key": "example.com/t", "value": "v", "effect": "NoExecute"}
    await cluster.patch("node/node-1", {"spec": {"taints": [taint]}}, content_type=STRATEGIC_MERGE_PATCH)
    await cluster.sleep(60)
    await cluster.patch("node/node-1", {"spec": {"taints": None}})
    await cluster.sleep(120)


async def new_nodes(cluster: VirtualCluster) -> None:
    for name in ("extra-1", "extra-2"):
        node = {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}
        await cluster.create({"kind": "Node", **node})
        await cluster.sleep(2)
    await cluster.sleep(20)


def part(name: str, *resources: str) -> Object:
    """A ClusterRole for the one that aggregates."""
    rules = [{"apiGroups": [""], "resources": [each], "verbs": ["get"]} for each in resources]
    return {"kind": "ClusterRole", "metadata": {"name": name, "labels": {"into": "whole"}}, "rules": rules}


async def aggregated_roles(cluster: VirtualCluster) -> None:
    rule = {"clusterRoleSelectors": [{"matchLabels": {"into": "whole"}}]}
    await cluster.create({"kind": "ClusterRole", "metadata": {"name": "whole"}, "aggregationRule": rule})
    for name, resource in (("part-1", "pods"), ("part-2", "services")):
        await cluster.create(part(name, resource))
        await cluster.sleep(10)
    await cluster.patch("clusterrole/part-1", {"rules": part("part-1", "pods", "nodes")["rules"]})
    await cluster.sleep(10)
    await cluster.delete("clusterrole/part-2")
    await cluster.sleep(10)


async def services(cluster: VirtualCluster) -> None:
    await cluster.create(service("svc", app="web"), workload("ReplicaSet", replicas=3), service("none", app="nobody"))
    await cluster.sleep(20)
    await cluster.delete(f"pod/{await any_pod(cluster)}")
    await cluster.sleep(20)
    await cluster.patch("service/svc", {"spec": {"ports": [{"port": 80, "targetPort": 9090}]}})
    await cluster.sleep(20)
    await cluster.delete("service/none")
    await cluster.sleep(20)


async def pods_of_services(cluster: VirtualCluster) -> None:
    await cluster.create(service("svc", app="web"), workload("ReplicaSet", replicas=2))
    await cluster.sleep(10)
    await cluster.patch("service/svc", {"metadata": {"labels": {"tier": "front"}}})
    await cluster.sleep(10)
    await cluster.patch("replicaset/web", {"spec": {"replicas": 0}})
    await cluster.sleep(10)
    await cluster.delete("service/svc")
    await cluster.sleep(10)


async def endpoints_of_a_user(cluster: VirtualCluster) -> None:
    made = service("svc")
    made["spec"].pop("selector")
    addresses = [{"ip": f"192.0.2.{number}"} for number in (1, 2)]
    subset = {"addresses": addresses, "ports": [{"port": 80, "protocol": "TCP"}]}
    endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "svc"}, "subsets": [subset]}
    await cluster.create(made, endpoints)
    await cluster.sleep(10)
    await cluster.patch("endpoints/svc", {"subsets": [{**subset, "addresses": addresses[:1]}]})
    await cluster.sleep(10)
    six = {"addresses": [{"ip": "2001:db8::1"}], "ports": [{"port": 81, "protocol": "TCP"}]}
    await cluster.patch("endpoints/svc", {"subsets": [subset, six]})
    await cluster.sleep(10)
    await cluster.delete("endpoints/svc")
    await cluster.sleep(10)


async def load_balancers(cluster: VirtualCluster) -> None:
    """Addresses are given once, and those of others are left to them."""
    for number, name in enumerate(("one", "two", "three")):
        made = service(name)
        made["spec"]["type"] = "LoadBalancer"
        made["spec"]["ports"][0]["nodePort"] = 30000 + number
        await cluster.create(made)
        await cluster.sleep(6)
    await cluster.patch("service/two", {"spec": {"type": "ClusterIP"}})
    await cluster.sleep(10)


def check_load_balancers(cluster: VirtualCluster) -> None:
    given: dict[str, str] = {}
    for seen in cluster.history[SERVICES]:
        for ingress in (seen.object["status"].get("loadBalancer") or {}).get("ingress") or []:
            assert given.setdefault(seen.name, ingress["ip"]) == ingress["ip"]
    assert sorted(given) == ["one", "three", "two"]


async def accounts(cluster: VirtualCluster) -> None:
    client = cluster.client
    for name in ("one", "two"):
        await client.create(NAMESPACES, {"metadata": {"name": name}})
    await cluster.sleep(5)
    await cluster.delete("serviceaccount/default")
    changed = copy_object(await client.get(CONFIGMAPS, "kube-root-ca.crt", "one"))
    await client.update(CONFIGMAPS, {**changed, "data": {"ca.crt": "another"}}, "one")
    await client.delete(CONFIGMAPS, "kube-root-ca.crt", "two")
    await cluster.sleep(20)


async def token_secrets(cluster: VirtualCluster) -> None:
    for name in ("robot", "other"):
        note = {"kubernetes.io/service-account.name": name}
        meta = {"name": f"{name}-token", "annotations": note}
        await cluster.create(
            {"kind": "ServiceAccount", "metadata": {"name": name}},
            {"kind": "Secret", "metadata": meta, "type": "kubernetes.io/service-account-token"},
        )
    await cluster.sleep(5)
    await cluster.patch("secret/robot-token", {"data": {"ca.crt": None}})
    await cluster.delete("serviceaccount/other")
    await cluster.sleep(20)


def claim(name: str, **spec: object) -> Object:
    return {**CLAIM, "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {**CLAIM["spec"], **spec}}


def volume(name: str) -> Object:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": f"/mnt/{name}"}}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def user_of(name: str, claim_name: str) -> Object:
    return pod_manifest(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}])


async def claims(cluster: VirtualCluster) -> None:
    """One finds a volume that is there, one gets a new one, one waits; then one goes with its data."""
    await cluster.create(volume("one"), claim("static", storageClassName=""))
    await cluster.create(claim("made"), user_of("p", "made"), claim("waits"))
    await cluster.sleep(20)
    await cluster.delete("pod/p")
    await cluster.sleep(5)
    await cluster.delete("persistentvolumeclaim/made")
    await cluster.delete("persistentvolumeclaim/static")
    await cluster.sleep(20)
    assert not cluster.directories.names


async def claims_in_use(cluster: VirtualCluster) -> None:
    await cluster.create(claim("data"), user_of("p", "data"), user_of("q", "data"))
    await cluster.sleep(20)
    await cluster.delete("persistentvolumeclaim/data")
    await cluster.delete("pod/p")
    await cluster.sleep(10)
    assert await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data", "default")
    await cluster.delete("pod/q")
    await cluster.sleep(20)
    assert not cluster.directories.names


async def volumes_in_use(cluster: VirtualCluster) -> None:
    await cluster.create(volume("one"), claim("data", storageClassName=""))
    await cluster.sleep(20)
    await cluster.delete("persistentvolume/one")
    await cluster.sleep(10)
    assert await cluster.client.get(PERSISTENTVOLUMES, "one")
    await cluster.delete("persistentvolumeclaim/data")
    await cluster.sleep(20)


async def attributes_classes_in_use(cluster: VirtualCluster) -> None:
    made = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttributesClass",
        "driverName": "d",
        "parameters": {"a": "b"},
    }
    await cluster.create(*[{**made, "metadata": {"name": name}} for name in ("gold", "silver")])
    await cluster.create(claim("data", storageClassName="", volumeAttributesClassName="gold"))
    await cluster.sleep(10)
    await cluster.delete("volumeattributesclass/silver")
    await cluster.delete("volumeattributesclass/gold")
    await cluster.sleep(10)
    assert [name_of(each) for each in (await cluster.client.list(VOLUMEATTRIBUTESCLASSES)).items] == ["gold"]
    await cluster.delete("persistentvolumeclaim/data")
    await cluster.sleep(20)
    assert not (await cluster.client.list(VOLUMEATTRIBUTESCLASSES)).items


async def ephemeral_volumes(cluster: VirtualCluster) -> None:
    source = {"volumeClaimTemplate": {"spec": CLAIM["spec"]}}
    await cluster.create(*[pod_manifest(each, volumes=[{"name": "s", "ephemeral": source}]) for each in "pq"])
    await cluster.sleep(20)
    await cluster.delete("pod/p")
    await cluster.sleep(20)
    assert len(cluster.directories.names) == 1


async def stateful_sets_whose_claims_go(cluster: VirtualCluster) -> None:
    policy = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    spec = {"serviceName": "web", "volumeClaimTemplates": [CLAIM], "persistentVolumeClaimRetentionPolicy": policy}
    await cluster.create(workload("StatefulSet", replicas=2, **spec))
    await cluster.sleep(20)
    await cluster.patch("statefulset/web", {"spec": {"replicas": 1}})
    await cluster.sleep(20)
    assert len(cluster.directories.names) == 1


async def quotas(cluster: VirtualCluster) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
    await cluster.create({**quota, "spec": {"hard": {"pods": "3", "count/replicasets.apps": "2"}}})
    await cluster.sleep(10)
    await cluster.create(workload("ReplicaSet", replicas=2))
    await cluster.sleep(10)
    await cluster.patch("replicaset/web", {"spec": {"replicas": 1}})
    await cluster.sleep(20)
    await cluster.patch("resourcequota/few", {"spec": {"hard": {"pods": "5", "secrets": "1"}}})
    await cluster.sleep(10)
    assert (await cluster.client.get(RESOURCEQUOTAS, "few", "default"))["status"] == {
        "hard": {"count/replicasets.apps": "2", "pods": "5", "secrets": "1"},
        "used": {"count/replicasets.apps": "1", "pods": "1", "secrets": "0"},
    }


def _pkcs10() -> str:
    """A node's request for a client certificate, as it stands in an object."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = ((NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, "system:node:n"))
    subject = x509.Name([x509.NameAttribute(oid, name) for oid, name in names])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()


PKCS10 = _pkcs10()


async def certificates(cluster: VirtualCluster) -> None:
    """Nobody has the authority's key here: a node's request is approved, and cleared away a day later."""
    request = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    signer = "kubernetes.io/kube-apiserver-client-kubelet"
    spec = {"signerName": signer, "request": PKCS10, "usages": ["digital signature", "client auth"]}
    for name in ("m", "n"):
        await cluster.create({**request, "metadata": {"name": name}, "spec": spec})
    await cluster.sleep(10)
    for name in ("m", "n"):
        found = await cluster.client.get(CERTIFICATESIGNINGREQUESTS, name)
        assert [each["type"] for each in found["status"]["conditions"]] == ["Approved"]


async def autoscalers(cluster: VirtualCluster) -> None:
    """Bounds need no metrics."""
    await cluster.create(workload("Deployment", replicas=4))
    await cluster.sleep(10)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}
    await cluster.create({**autoscaler, "spec": {"scaleTargetRef": target, "maxReplicas": 2}})
    await cluster.sleep(40)
    assert (await cluster.client.get(DEPLOYMENTS, "web", "default"))["spec"]["replicas"] == 2


async def policies(cluster: VirtualCluster) -> None:
    """Each is checked once for each generation, against the schemas that the server publishes."""
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]}
    for name in ("m", "n"):
        spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": f"object.{name} == 1"}]}
        kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
        await cluster.create({**kind, "metadata": {"name": name}, "spec": spec})
    await cluster.sleep(10)
    await cluster.client.patch(
        VALIDATINGADMISSIONPOLICIES, "n", {"spec": {"validations": [{"expression": "object.spec.replicas > 1"}]}}
    )
    await cluster.sleep(10)
    found = {name: await cluster.client.get(VALIDATINGADMISSIONPOLICIES, name) for name in ("m", "n")}
    assert [each["status"]["observedGeneration"] for each in found.values()] == [1, 2]
    warnings = found["m"]["status"]["typeChecking"]["expressionWarnings"]
    assert "undefined field 'm'" in warnings[0]["warning"]
    assert found["n"]["status"]["typeChecking"] == {}


TWO_NODES = {"nodes": 2, "node_labels": lambda name: {"zone": name[-1]}}

STORIES: dict[str, Story] = {
    "replicaset-controller": Story(replica_sets, DRAINS),
    "replication-controller": Story(replication_controllers, DRAINS),
    "deployment-controller": Story(deployments, DRAINS),
    "deployment-controller (Recreate)": Story(
        recreated_deployments,
        DRAINS,
        may_differ={
            r"Deployment .*\[Progressing\]\.message": "who finds the new ReplicaSet made, and no old Pods, takes the "
            "Deployment for complete and leaves the condition as it is (progress.go:syncRolloutStatus)"
        },
    ),
    "garbage-collector-controller": Story(
        deleted_owners,
        DRAINS,
        may_differ={
            "created controllerrevisions four-": "as in Kubernetes a StatefulSet that is being deleted makes its "
            "revision anew with each event of its Pods, and the garbage collector deletes it"
        },
    ),
    "statefulset-controller": Story(stateful_sets, DRAINS),
    "statefulset-controller (retention policy)": Story(stateful_sets_whose_claims_go, DRAINS),
    "daemonset-controller": Story(daemon_sets, DRAINS, TWO_NODES),
    "disruption-controller": Story(budgets, DRAINS),
    "namespace-controller": Story(namespaces, DRAINS),
    "pod-garbage-collector-controller": Story(lost_pods, DRAINS, TWO_NODES),
    "node-lifecycle-controller": Story(lost_nodes, DRAINS, {"nodes": 3}),
    "node-lifecycle-controller (a node stays lost)": Story(nodes_that_stay_lost, DRAINS, {"nodes": 2}),
    "taint-eviction-controller": Story(tainted, DRAINS),
    "ttl-controller": Story(new_nodes, DRAINS),
    "clusterrole-aggregation-controller": Story(aggregated_roles, DRAINS),
    "job-controller": Story(jobs, DRAINS),
    "job-controller (back-off)": Story(failing_jobs, DRAINS),
    "ttl-after-finished-controller": Story(finished_jobs, DRAINS),
    "cronjob-controller": Story(cron_jobs, DRAINS),
    "cronjob-controller (away when it is due)": Story(
        cron_jobs_of_a_minute, DRAINS, downs=(61.0,), before_the_first=False
    ),
    "endpointslice-controller": Story(services, DRAINS),
    "endpoints-controller": Story(pods_of_services, DRAINS),
    "endpointslice-mirroring-controller": Story(endpoints_of_a_user, DRAINS),
    "service-lb-controller": Story(load_balancers, DRAINS, {"watched": (SERVICES,)}, check_load_balancers),
    "serviceaccount-controller": Story(accounts, DRAINS),
    "serviceaccount-token-controller": Story(
        token_secrets,
        DRAINS,
        may_differ={
            r"Secret .*\.token": "each token has an id of its own",
            "created serviceaccounts": "a token that was asked for and not stored is asked for again",
        },
    ),
    "resourcequota-controller": Story(quotas, DRAINS),
    "certificatesigningrequest-signing-controller": Story(
        certificates,
        DRAINS,
        may_differ={"created subjectaccessreviews": "a question, which may be asked again"},
    ),
    "horizontal-pod-autoscaler": Story(
        autoscalers,
        DRAINS,
        may_differ={
            r"HorizontalPodAutoscaler .*status\.(desiredReplicas|lastScaleTime)": "without metrics the next look finds "
            "the bounds kept and does not know who did it (horizontal.go:setCurrentReplicasInStatus)",
            r"HorizontalPodAutoscaler .*status\.conditions\[ScaledToZero\]": "since 1.37 it is written behind the "
            "scale, and by no look that changes nothing (horizontal.go:reconcileAutoscaler)",
        },
    ),
    "validatingadmissionpolicy-status-controller": Story(policies, DRAINS),
    "persistentvolume-binder-controller": Story(claims, DRAINS),
    "persistentvolumeclaim-protection-controller": Story(claims_in_use, DRAINS),
    "persistentvolume-protection-controller": Story(volumes_in_use, DRAINS),
    "volumeattributesclass-protection-controller": Story(attributes_classes_in_use, DRAINS),
    "ephemeral-volume-controller": Story(ephemeral_volumes, DRAINS),
}
"""By the controller's name; several stories of one have something in brackets."""


def test_every_controller_has_a_story():
    assert set(NAMES) == {name.partition(" (")[0] for name in STORIES}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", STORIES)
def test_a_manager_killed_at_any_of_its_writes_comes_to_the_same_end(name: str):
    story = STORIES[name]
    undisturbed = run_killed(story)
    assert len(undisturbed.writes) >= 3, undisturbed.writes
    wrong = []
    for kill in kills(story, len(undisturbed.writes)):
        if found := differences(story, undisturbed, run_killed(story, kill)):
            wrong.append("\n  ".join([f"{kill}: {undisturbed.writes[kill.write - 1]}", *found[:20]]))
    assert not wrong, f"{len(wrong)} kills of {name} did harm:\n" + "\n".join(wrong[:8])


@pytest.mark.parametrize(
    "name",
    ["node-lifecycle-controller (a node stays lost)", "replication-controller", "taint-eviction-controller",
     "endpoints-controller", "endpointslice-mirroring-controller", "serviceaccount-controller"],
)  # fmt: skip
def test_a_write_of_a_dead_manager_that_arrives_late_changes_nothing_in_the_end(name: str):
    """It may make a thing that the next manager has made meanwhile; one of the two goes again."""
    story = STORIES[name]
    undisturbed = run_killed(story)
    for number in range(1, len(undisturbed.writes) + 1):
        killed = run_killed(story, Kill(number, "late", down=0.5))
        killed.created = undisturbed.created
        assert not differences(story, undisturbed, killed), f"late {number}: {undisturbed.writes[number - 1]}"


def outcome(*objects: Object, created: dict[str, int] | None = None) -> Outcome:
    return Outcome(objects=[json.dumps(each) for each in objects], created=Counter(created or {}))


def config(name: str, value: str = "1") -> Object:
    return {"kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"key": value}}


@pytest.mark.parametrize(
    ("killed", "told"),
    [
        (outcome(config("a"), created={"jobs a": 1}), []),
        (outcome(created={"jobs a": 1}), ["- ConfigMap default/a"]),
        (outcome(config("a"), config("a"), created={"jobs a": 1}), ["+ ConfigMap default/a"]),
        (
            outcome(config("a", "2"), created={"jobs a": 1}),
            ['ConfigMap default/a .data.key: "1" undisturbed, "2" here'],
        ),
        (outcome(config("a"), created={"jobs a": 2}), ["created jobs a: 1 times undisturbed, 2 times here"]),
        (outcome(config("a")), ["created jobs a: 1 times undisturbed, 0 times here"]),
    ],
)
def test_what_is_missing_too_much_other_or_made_twice_is_told(killed: Outcome, told: list[str]):
    story = Story(new_nodes, may_differ={"nothing": "else"})
    assert differences(story, outcome(config("a"), created={"jobs a": 1}), killed) == told


def test_a_difference_that_may_be_is_not_told():
    story = Story(new_nodes, may_differ={r"ConfigMap .*\.key": "says why"})
    assert differences(story, outcome(config("a")), outcome(config("a", "2"), config("b"))) == ["+ ConfigMap default/b"]


def test_a_dead_manager_writes_nothing_more():
    story = STORIES["replicaset-controller"]
    writes = run_killed(story).writes
    for moment in ("lost", "unanswered", "answered"):
        killed = run_killed(story, Kill(3, moment, down=1000.0))
        assert killed.writes == writes[:3]
        assert killed.created.total() == len([each for each in writes[:3] if each.startswith("create")]) - (
            moment == "lost"
        )
