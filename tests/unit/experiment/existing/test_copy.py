"""A workload of somebody's cluster, with all that its Pods need, as manifests; and what differs here."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from api_server import ADMIN, running_server

from lastcall.errors import UserError
from lastcall.experiment.existing.clean_objects import cleaned
from lastcall.experiment.existing.copy import Taken, Taking, parsed_workload
from lastcall.experiment.existing.differences import fitted
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    HORIZONTALPODAUTOSCALERS,
    INGRESSES,
    NAMESPACES,
    NETWORKPOLICIES,
    PERSISTENTVOLUMECLAIMS,
    PODDISRUPTIONBUDGETS,
    PODS,
    ROLEBINDINGS,
    ROLES,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.server import APIServer

pytestmark = pytest.mark.loopback

SHOP = "shop"
LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}
PORTS = [{"port": 80}]
TERM = {"labelSelector": SELECTOR, "topologyKey": "kubernetes.io/hostname"}
POD_SPEC: Object = {
    "serviceAccountName": "web",
    "nodeSelector": {"disk": "ssd"},
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
    "containers": [
        {
            "name": "app",
            "image": "registry.example.com/web:1",
            "env": [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
            "envFrom": [{"configMapRef": {"name": "settings"}}, {"configMapRef": {"name": "gone", "optional": True}}],
        }
    ],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "files"}}],
}
WORKLOAD: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "annotations": {"owner": "us", "deployment.kubernetes.io/revision": "7"}},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": POD_SPEC},
    },
}
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
THERE: list[tuple[Resource, Object]] = [
    (CONFIGMAPS, {"metadata": {"name": "settings"}, "data": {"a": "b"}}),
    (CONFIGMAPS, {"metadata": {"name": "of-somebody-else"}}),
    (SECRETS, {"metadata": {"name": "db"}, "stringData": {"password": "x"}}),
    (SECRETS, {"metadata": {"name": "regcred"}, "stringData": {"a": "b"}}),
    (SERVICEACCOUNTS, {"metadata": {"name": "web"}, "imagePullSecrets": [{"name": "regcred"}]}),
    (
        PERSISTENTVOLUMECLAIMS,
        {
            "metadata": {"name": "files"},
            "spec": {
                "storageClassName": "fast",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ),
    (SERVICES, {"metadata": {"name": "web"}, "spec": {"type": "NodePort", "selector": LABELS, "ports": PORTS}}),
    (SERVICES, {"metadata": {"name": "other"}, "spec": {"selector": {"app": "x"}, "ports": PORTS}}),
    (PODDISRUPTIONBUDGETS, {"metadata": {"name": "web"}, "spec": {"selector": SELECTOR, "minAvailable": 2}}),
    (
        HORIZONTALPODAUTOSCALERS,
        {
            "metadata": {"name": "web"},
            "spec": {
                "minReplicas": 2,
                "maxReplicas": 10,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            },
        },
    ),
    (INGRESSES, {"metadata": {"name": "front"}, "spec": {"rules": [{"host": "shop.example.com", "http": {"paths": [
        {"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}]}}),
    (NETWORKPOLICIES, {"metadata": {"name": "closed"}, "spec": {"podSelector": {"matchLabels": LABELS}}}),
    (DEPLOYMENTS, WORKLOAD),
]  # fmt: skip


def there(test: Callable[[APIServer], Awaitable[Any]], *, without: tuple[Resource, ...] = ()) -> Any:
    """Run on an API server that has the shop."""

    async def run() -> Any:
        async with running_server() as running:
            await running.admin.create(NAMESPACES, {"metadata": {"name": SHOP}})
            for resource, obj in THERE:
                if resource not in without:
                    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **copy_object(obj)}
                    await running.admin.create(resource, whole, SHOP)
            try:
                return await test(running.server)
            except UserError as error:  # past the server's group of tasks
                return error

    result = asyncio.run(run())
    if isinstance(result, UserError):
        raise result
    return result


async def taken(server: APIServer, user: UserInfo = ADMIN, asked: str = "deployment/web") -> Taken:
    return await Taking(server.client(user), "context 'prod'", SHOP).run(asked)


def test_all_that_the_pods_need_comes_along_and_what_they_do_not_need_stays() -> None:
    found: Taken = there(taken)
    names = [f"{each.resource.kind}/{each.obj['metadata']['name']}" for each in found.manifests]
    assert sorted(names) == [
        "ConfigMap/settings",
        "Deployment/web",
        "HorizontalPodAutoscaler/web",
        "PersistentVolumeClaim/files",
        "PodDisruptionBudget/web",
        "Secret/db",
        "Secret/regcred",
        "Service/web",
        "ServiceAccount/web",
    ]
    assert names[-1] == "Deployment/web"
    objects = {f"{each.resource.kind}/{each.obj['metadata']['name']}": each.obj for each in found.manifests}
    for obj in objects.values():
        assert obj.keys().isdisjoint({"status"}) and obj["metadata"]["namespace"] == SHOP
        assert obj["metadata"].keys() <= {"name", "namespace", "labels", "annotations"}
    workload = objects["Deployment/web"]
    assert workload["metadata"]["annotations"] == {"owner": "us"} and workload["spec"]["replicas"] == 3
    pod_spec = workload["spec"]["template"]["spec"]
    assert pod_spec["imagePullSecrets"] == [{"name": "regcred"}]  # those of its ServiceAccount, as admission gives them
    assert "affinity" not in pod_spec and "nodeSelector" not in pod_spec
    assert objects["Service/web"]["spec"]["type"] == "ClusterIP"
    assert objects["Service/web"]["spec"].keys().isdisjoint({"clusterIP", "clusterIPs"})
    assert objects["Secret/db"]["data"] == {"password": "eA=="}


def test_what_differs_here_is_told() -> None:
    found: Taken = there(taken)
    assert [each.line for each in found.notes] == [
        "differs here: Deployment web runs here without nodeSelector, affinity: this cluster has one node of its own",
        "differs here: Service web is of type NodePort there and has only a cluster's address here",
        "differs here: ServiceAccount web has no permissions here: no Role was copied",
        "differs here: ConfigMap gone does not exist there either",
        "differs here: PersistentVolumeClaim files is empty here: no data was copied",
        "differs here: HorizontalPodAutoscaler web (2 to 10 replicas) finds no metrics here: "
        "the 3 replicas of now stay",
        "differs here: Ingress front (shop.example.com) is not here: requests go to the Service itself",
        "differs here: NetworkPolicy closed is not here: it lets all traffic through",
    ]


def test_containers_that_something_there_puts_into_pods_and_nodes_are_told() -> None:
    async def with_pods(server: APIServer) -> Taken:
        admin = server.client(ADMIN)
        for number in (1, 2):
            spec = {"nodeName": f"n{number}", "containers": [{"name": name, "image": "x"} for name in ("app", "proxy")]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{number}", "labels": LABELS}}
            await admin.create(PODS, {**pod, "spec": {**spec, "serviceAccountName": "web"}}, SHOP)
        return await taken(server)

    texts = [each.text for each in there(with_pods).notes]
    assert "the Pods run on 2 nodes there" in texts
    assert (
        "the Pods there have containers that are not in their template (proxy): these containers do not run here"
        in texts
    )


def test_a_copy_for_the_same_cluster_keeps_where_its_pods_run_and_is_not_scaled() -> None:
    async def copied(server: APIServer) -> Taken:
        return await Taking(server.client(ADMIN), "context 'prod'", SHOP, stays=True).run("deployment/web")

    found: Taken = there(copied)
    assert [each.resource.kind for each in found.manifests if each.resource == HORIZONTALPODAUTOSCALERS] == []
    pod_spec = found.manifests[-1].obj["spec"]["template"]["spec"]
    assert pod_spec["nodeSelector"] == {"disk": "ssd"} and "podAntiAffinity" in pod_spec["affinity"]
    claim = next(each.obj for each in found.manifests if each.resource == PERSISTENTVOLUMECLAIMS)
    assert claim["spec"]["storageClassName"] == "fast"
    assert [each.text for each in found.notes] == [
        "ServiceAccount web has no permissions here: no Role was copied",
        "ConfigMap gone does not exist there either",
        "PersistentVolumeClaim files is empty here: no data was copied",
    ]


async def as_alice(server: APIServer, *rules: Object) -> Taken:
    admin = server.client(ADMIN)
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": [*rules]}
    await admin.create(ROLES, role, SHOP)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    await admin.create(ROLEBINDINGS, binding, SHOP)
    return await taken(server, UserInfo("alice", ("system:authenticated",)))


def rule(groups: list[str], kinds: list[str], verbs: list[str]) -> Object:
    return {"apiGroups": groups, "resources": kinds, "verbs": verbs}


def test_a_right_that_the_pods_need_ends_it_with_the_command_that_gives_it() -> None:
    rules = (rule(["apps", ""], ["deployments", "services", "configmaps", "serviceaccounts"], ["get", "list"]),)
    with pytest.raises(UserError) as raised:
        there(lambda server: as_alice(server, *rules))
    first, *lines = str(raised.value).splitlines()
    assert first == "context 'prod': the user may not get secrets in namespace shop: Secret regcred: the Pods need it"
    role = "  kubectl -n shop create role lastcall-1 --verb=get --resource=secrets"
    assert f"{role} --resource-name=regcred --resource-name=db" in lines
    assert any("--resource=persistentvolumeclaims --resource-name=files" in line for line in lines)


def test_what_is_only_worth_knowing_and_may_not_be_read_is_told_as_unknown() -> None:
    kinds = ["deployments", "services", "configmaps", "serviceaccounts", "secrets", "persistentvolumeclaims"]
    found: Taken = there(lambda server: as_alice(server, rule(["apps", ""], kinds, ["get", "list"])))
    unknown = [each.text for each in found.notes if "not known" in each.text]
    assert [text.split(" exists there")[0] for text in unknown] == [
        "whether a PodDisruptionBudget",
        "whether a HorizontalPodAutoscaler",
        "whether a Ingress",
        "whether a NetworkPolicy",
        "whether a Pod",
    ]
    assert {each.resource.kind for each in found.manifests} >= {"Deployment", "Service", "Secret"}


def test_a_workload_that_is_not_there_and_one_that_may_not_be_read() -> None:
    with pytest.raises(UserError, match=r"namespace shop has no Deployment weeb \(did you mean web\?\); there are web"):
        there(lambda server: taken(server, asked="deploy/weeb"))
    with pytest.raises(
        UserError, match=r"create role lastcall --verb=get --resource=deployments\.apps --resource-name=web"
    ):
        there(lambda server: as_alice(server))


@pytest.mark.parametrize("asked", ["web", "pod/web", "deployment/", "/web", "deployment/a/b", ""])
def test_what_is_no_workload_is_refused_before_anybody_is_asked(asked: str) -> None:
    with pytest.raises(
        UserError,
        match=r"write KIND/NAME, such as deployment/web; KIND is deployment, statefulset, daemonset, replicaset",
    ):
        parsed_workload(asked)


def test_a_headless_service_stays_headless_and_a_token_s_account_is_not_taken() -> None:
    service = {"metadata": {"name": "a"}, "spec": {"clusterIP": "None", "clusterIPs": ["None"], "ports": [{"port": 1}]}}
    assert cleaned(SERVICES, service)["spec"] == {"clusterIP": "None", "ports": [{"port": 1}]}
    account = {"metadata": {"name": "a", "uid": "u"}, "secrets": [{"name": "a-token"}]}
    assert cleaned(SERVICEACCOUNTS, account) == {
        "metadata": {"name": "a"},
        "apiVersion": "v1",
        "kind": "ServiceAccount",
    }


def test_defaults_that_the_server_set_are_not_called_a_difference() -> None:
    workload = copy_object(WORKLOAD)
    workload["spec"]["template"]["spec"] = {"schedulerName": "default-scheduler", "priority": 0, "containers": []}
    fit, notes = fitted(DEPLOYMENTS, workload)
    assert notes == [] and fit["spec"]["template"]["spec"] == {"containers": []}
