"""An existing cluster in the Python API, on an API server alone: what is created, refused, and removed again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from api_server import RunningServer, running_server
from api_snapshot import difference, whole_api

import lastcall
from lastcall.experiment.existing.leftovers import find_leftovers
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    CUSTOMRESOURCEDEFINITIONS,
    NAMESPACES,
    PODS,
    SERVICEACCOUNTS,
    SERVICES,
)

pytestmark = pytest.mark.loopback

MAP: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1", "b": "2"}}
SERVICE: Object = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}
POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "app", "image": "app"}]},
}
BOATS: Object = {
    "metadata": {"name": "boats.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "kind": "Boat"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}

Test = Callable[[RunningServer, lastcall.AsyncCluster], Awaitable[None]]


@pytest.fixture
def on_a_cluster(tmp_path: Path) -> Callable[[Test], None]:
    def run(test: Test, **options: Any) -> None:
        async def work() -> None:
            async with running_server() as running:
                await running.admin.create(NAMESPACES, {"metadata": {"name": "shop"}})
                await running.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "shop")
                file = tmp_path / "kubeconfig"
                file.write_text(running.kubeconfig)
                before = await whole_api(running.admin)
                there: Any = {"context": "test", "namespace": "shop", "kubeconfig": str(file), "yes": "test"} | options
                async with lastcall.AsyncCluster(**there) as cluster:
                    await test(running, cluster)
                assert difference(before, await whole_api(running.admin)) == []

        asyncio.run(work())

    return run


def test_what_is_applied_is_in_the_ledger_first_and_goes_with_the_block(on_a_cluster: Callable[[Test], None]) -> None:
    async def test(running: RunningServer, cluster: lastcall.AsyncCluster) -> None:
        await cluster.apply(MAP, SERVICE)
        found = await find_leftovers(running.admin, "", "shop")
        ((namespace, ledger),) = found.running
        assert namespace == "shop" and {each.target.name for each in ledger.entries} == {"settings", "web"}

    on_a_cluster(test)


def test_a_field_that_the_second_apply_leaves_out_goes(on_a_cluster: Callable[[Test], None]) -> None:
    async def test(running: RunningServer, cluster: lastcall.AsyncCluster) -> None:
        for data in ({"a": "1", "b": "2"}, {"b": "3"}, {"c": "4"}):
            await cluster.apply({**MAP, "data": data})
            assert (await cluster.get("cm/settings"))["data"] == data

    on_a_cluster(test)


@pytest.mark.parametrize(
    ("applied", "why"),
    [
        ([{**MAP, "metadata": {"name": "theirs"}}], "ConfigMap shop/theirs exists, .*: give it another name"),
        ([POD], "Service theirs, which already exists, would send requests to Pods"),
        ([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}], "it is cluster-scoped"),
        ([{**MAP, "metadata": {"name": "a", "namespace": "default"}}], "its namespace is default"),
        ([{**MAP, "metadata": {"generateName": "a-"}}], "it needs a fixed name"),
        ([{"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "a"}}], "removes only what it knows"),
    ],
)
def test_what_is_refused_leaves_everything_as_it_is(
    on_a_cluster: Callable[[Test], None], applied: list[Object], why: str
) -> None:
    async def test(running: RunningServer, cluster: lastcall.AsyncCluster) -> None:
        await running.admin.create(CUSTOMRESOURCEDEFINITIONS, BOATS)
        await running.admin.create(CONFIGMAPS, {"metadata": {"name": "theirs"}}, "shop")
        await running.admin.create(SERVICES, {**SERVICE, "metadata": {"name": "theirs"}}, "shop")
        with pytest.raises(lastcall.UserError, match=f"(?s)apply on context 'test': nothing was created.*{why}"):
            await cluster.apply(MAP, *applied)
        assert [each["metadata"]["name"] for each in await cluster.list("cm")] == ["theirs"]
        for resource, name in ((CONFIGMAPS, "theirs"), (SERVICES, "theirs")):
            await running.admin.delete(resource, name, "shop")
        await running.admin.delete(CUSTOMRESOURCEDEFINITIONS, "boats.example.com")

    on_a_cluster(test)


def test_what_others_created_is_not_deleted_but_a_pod_that_is_replaced(on_a_cluster: Callable[[Test], None]) -> None:
    async def test(running: RunningServer, cluster: lastcall.AsyncCluster) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
        owned = {**POD, "metadata": {"name": "owned", "ownerReferences": [owner]}}
        for each in (POD, owned):
            await running.admin.create(PODS, each, "shop")
        with pytest.raises(lastcall.UserError, match=r"Pod shop/web was not created by this program.*\nfix: "):
            await cluster.delete("web")
        ending = await cluster.delete("owned")
        assert [each.pod.name for each in ending.pods] == ["owned"]
        assert ending.as_dict()["cluster"]["context"] == "test"
        await running.admin.delete(PODS, "web", "shop", grace_period_seconds=0)

    on_a_cluster(test)


def test_nothing_is_changed_without_the_name_of_the_context(on_a_cluster: Callable[..., None]) -> None:
    async def test(running: RunningServer, cluster: lastcall.AsyncCluster) -> None:
        for change in (cluster.apply(MAP), cluster.rollout("deployment/web")):
            with pytest.raises(
                lastcall.UserError, match=r"nobody has allowed it\. Nothing was done\nfix: .*yes='test'"
            ):
                await change

    on_a_cluster(test, yes="")


def test_namespaces_of_kubernetes_are_refused(on_a_cluster: Callable[[Test], None]) -> None:
    async def test(running: RunningServer, cluster: lastcall.AsyncCluster) -> None:
        with pytest.raises(lastcall.UserError, match="namespace kube-system is Kubernetes's own"):
            await cluster.in_namespace("kube-system").apply(MAP)

    on_a_cluster(test)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"context": "a", "nodes": 2}, "nodes= is for a cluster of its own"),
        ({"context": "a", "options": ["--egress"]}, "options= is for a cluster of its own"),
        ({"context": "a", "name": "b"}, "name= is for a cluster of its own"),
        ({"namespace": "shop"}, 'namespace=, yes= and kubeconfig= are for an existing cluster: add context="NAME"'),
    ],
)
def test_arguments_that_exclude_each_other_are_named(options: dict[str, Any], why: str) -> None:
    for kind in (lastcall.Cluster, lastcall.AsyncCluster):
        with pytest.raises(lastcall.UserError, match=why):
            kind(**options)
