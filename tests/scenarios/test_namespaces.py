"""A namespace that is deleted (control-plane-semantics 2.11; golden namespace-delete-finalizer)."""

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, run_cluster

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import copy_object, name_of
from lastcall.kube.api.resources import APISERVICES, CONFIGMAPS, NAMESPACES, PODS, SECRETS
from lastcall.kube.client.api import Client
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds


def test_a_deleted_namespace_waits_for_its_pods_and_takes_everything_else_with_it() -> None:
    seen = {}

    async def scenario(cluster: VirtualCluster) -> None:
        client = cluster.client
        await client.create(NAMESPACES, {"metadata": {"name": "gone"}})
        await cluster.sleep(0.1)
        await client.create(CONFIGMAPS, {"metadata": {"name": "kept", "finalizers": ["example.com/held"]}}, "gone")
        pod = pod_manifest(containers=[container()])
        pod["metadata"] = {"name": "p", "namespace": "gone"}
        await client.create(PODS, pod, "gone")
        await cluster.sleep(2)
        await client.delete(NAMESPACES, "gone")
        await cluster.sleep(2)
        seen["pods while draining"] = [p["metadata"]["name"] for p in (await client.list(PODS, "gone")).items]
        config = await client.get(CONFIGMAPS, "kept", "gone")
        seen["config while draining"] = config["metadata"].get("deletionTimestamp")
        await cluster.sleep(3)
        seen["pods after"] = (await client.list(PODS, "gone")).items
        seen["held by"] = (await client.get(NAMESPACES, "gone"))["status"]["phase"]
        await client.patch(CONFIGMAPS, "kept", {"metadata": {"finalizers": None}}, "gone")
        await cluster.sleep(2)
        with pytest.raises(StatusError) as missing:
            await client.get(NAMESPACES, "gone")
        seen["code"] = missing.value.code

    run_cluster(scenario, {"": Program(drain_seconds=3)})
    assert seen == {
        "pods while draining": ["p"],
        "config while draining": None,
        "pods after": [],
        "held by": "Terminating",
        "code": 404,
    }


async def conditions(cluster: VirtualCluster, name: str = "gone") -> dict[str, tuple[str, str]]:
    """Condition type → (status, message)."""
    status = (await cluster.client.get(NAMESPACES, name))["status"]
    return {each["type"]: (each["status"], each["message"]) for each in status.get("conditions") or []}


async def is_gone(cluster: VirtualCluster, name: str = "gone") -> bool:
    try:
        await cluster.client.get(NAMESPACES, name)
    except StatusError as error:
        return error.code == 404
    return False


async def fill(client: Client, *, pod: bool = False, finalizer: str = "", grace: int = 30) -> None:
    await client.create(NAMESPACES, {"metadata": {"name": "gone"}})
    if pod:
        manifest = pod_manifest(containers=[container()], terminationGracePeriodSeconds=grace)
        manifest["metadata"]["namespace"] = "gone"
        manifest["spec"]["serviceAccountName"] = "default"
        await client.create(PODS, manifest, "gone")
    if finalizer:
        await client.create(CONFIGMAPS, {"metadata": {"name": "kept", "finalizers": [finalizer]}}, "gone")


def test_an_empty_namespace_is_gone_at_once() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await fill(cluster.client)
        await cluster.client.create(SECRETS, {"metadata": {"name": "s"}}, "gone")
        await cluster.sleep(1)
        at = cluster.now
        await cluster.client.delete(NAMESPACES, "gone")
        await cluster.wait_until_async(lambda: is_gone(cluster))
        assert cluster.now - at < 0.1

    run_cluster(scenario)


def test_the_conditions_say_what_a_finalizer_holds() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await fill(cluster.client, finalizer="example.com/held")
        await cluster.client.delete(NAMESPACES, "gone")
        await cluster.sleep(1)
        found = await conditions(cluster)
        assert list(found) == [
            "NamespaceDeletionDiscoveryFailure",
            "NamespaceDeletionGroupVersionParsingFailure",
            "NamespaceDeletionContentFailure",
            "NamespaceContentRemaining",
            "NamespaceFinalizersRemaining",
        ]
        assert found["NamespaceContentRemaining"] == (
            "True",
            "Some resources are remaining: configmaps. has 1 resource instances",
        )
        assert found["NamespaceFinalizersRemaining"] == (
            "True",
            "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances",
        )
        version = (await cluster.client.get(NAMESPACES, "gone"))["metadata"]["resourceVersion"]
        await cluster.sleep(600)
        assert (await cluster.client.get(NAMESPACES, "gone"))["metadata"]["resourceVersion"] == version
        at = cluster.now
        await cluster.client.patch(CONFIGMAPS, "kept", {"metadata": {"finalizers": None}}, "gone")
        await cluster.wait_until_async(lambda: is_gone(cluster))
        assert cluster.now - at < 0.1

    run_cluster(scenario)


BROKEN = {
    "metadata": {"name": "v1beta1.custom.metrics.k8s.io"},
    "spec": {
        "group": "custom.metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"name": "custom-metrics", "namespace": "kube-system"},
    },
}


@pytest.mark.parametrize("by", ["the API comes back", "the API is removed"])
def test_a_namespace_waits_while_the_api_of_another_server_does_not_answer(by: str) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        client = cluster.client
        service = await client.create(APISERVICES, BROKEN)
        await fill(client)
        await client.create(CONFIGMAPS, {"metadata": {"name": "c"}}, "gone")
        await client.delete(NAMESPACES, "gone")
        await cluster.sleep(20)
        stale = "custom.metrics.k8s.io/v1beta1: stale GroupVersion discovery: custom.metrics.k8s.io/v1beta1"
        found = await conditions(cluster)
        assert found.pop("NamespaceDeletionDiscoveryFailure") == (
            "True",
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
            + stale,
        )
        assert {status for status, _ in found.values()} == {"False"}
        assert (await client.list(CONFIGMAPS, "gone")).items == [], "what is known goes"
        if by == "the API is removed":
            await client.delete(APISERVICES, name_of(service))
        else:
            now = await client.get(APISERVICES, name_of(service))
            available = {"type": "Available", "status": "True", "reason": "Passed"}
            await client.update(APISERVICES, {**now, "status": {"conditions": [available]}}, subresource="status")
        at = cluster.now
        await cluster.wait_until_async(lambda: is_gone(cluster))
        assert cluster.now - at < 1

    run_cluster(scenario)


def test_an_api_of_this_server_holds_no_namespace() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        spec = {
            each: value for each, value in BROKEN["spec"].items() if each not in ("service", "insecureSkipTLSVerify")
        }
        await cluster.client.create(APISERVICES, {**BROKEN, "spec": spec})
        await fill(cluster.client)
        await cluster.client.delete(NAMESPACES, "gone")
        await cluster.sleep(1)
        assert await is_gone(cluster)

    run_cluster(scenario)


def test_pods_that_outlive_their_grace_period_are_an_error() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await fill(cluster.client)
        await cluster.sleep(0.1)
        manifest = pod_manifest(containers=[container()], finalizers=["example.com/held"])
        manifest["metadata"]["namespace"] = "gone"
        manifest["spec"]["terminationGracePeriodSeconds"] = 10
        await cluster.client.create(PODS, manifest, "gone")
        await cluster.sleep(2)
        await cluster.client.delete(NAMESPACES, "gone")
        await cluster.sleep(1)
        assert {status for status, _ in (await conditions(cluster)).values()} == {"False"}
        (decided,) = cluster.records(kinds.DELETION_DECIDED)
        assert decided.facts["why"] == "its namespace gone is deleted"
        await cluster.sleep(20)
        # A finalizer explains it, so this is still no error.
        assert {status for status, _ in (await conditions(cluster)).values()} == {"False"}

    run_cluster(scenario, {"": Program(drain_seconds=30)})


def test_a_pod_that_should_be_gone_is_named() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await fill(cluster.client)
        await cluster.sleep(0.1)
        manifest = pod_manifest(containers=[container()])
        manifest["metadata"]["namespace"] = "gone"
        manifest["spec"] |= {"terminationGracePeriodSeconds": 10, "nodeName": "nowhere"}
        await cluster.client.create(PODS, manifest, "gone")
        await cluster.client.delete(NAMESPACES, "gone")
        await cluster.sleep(15)
        status, message = (await conditions(cluster))["NamespaceDeletionContentFailure"]
        assert status == "True"
        assert message == (
            "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: gone for "
            "gvr: /v1, Resource=pods"
        )
        await cluster.client.delete(PODS, "p", "gone", grace_period_seconds=0)
        await cluster.wait_until_async(lambda: is_gone(cluster))

    run_cluster(scenario)


def test_a_finalizer_of_somebody_else_keeps_the_empty_namespace() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.client.create(
            NAMESPACES, {"metadata": {"name": "gone"}, "spec": {"finalizers": ["example.com/mine"]}}
        )
        await cluster.client.delete(NAMESPACES, "gone")
        await cluster.sleep(1)
        namespace = copy_object(await cluster.client.get(NAMESPACES, "gone"))
        assert namespace["spec"]["finalizers"] == ["example.com/mine"]
        assert {status for status, _ in (await conditions(cluster)).values()} == {"False"}
        namespace["spec"]["finalizers"] = []
        await cluster.client.update(NAMESPACES, namespace, subresource="finalize")
        assert await is_gone(cluster)

    run_cluster(scenario)
