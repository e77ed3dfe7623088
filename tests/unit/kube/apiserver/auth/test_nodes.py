"""What a node may follows its Pods, at once and for as long as they are there."""

import asyncio
from collections.abc import Callable

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import (
    BINDINGS,
    CONFIGMAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    SECRETS,
    SERVICEACCOUNTS,
)
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.apiserver.strategies.pod import PodsOfNodes
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.store.memory import MemoryStore

N1 = UserInfo("system:node:n1", ("system:nodes",))


def pod(name: str = "p", secret: str = "s", **spec: object) -> dict:
    volumes = [{"name": "v", "secret": {"secretName": secret}}]
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "busybox:1.36"}], "volumes": volumes, **spec},
    }


async def code(call) -> int:
    try:
        await call
    except StatusError as error:
        return error.code
    return 200


def test_a_node_reads_the_secret_of_a_pod_from_the_moment_it_hears_of_it_until_the_pod_is_gone(
    virtual: Callable,
) -> None:
    async def scenario(api) -> None:
        await api.admin.create(SECRETS, {"metadata": {"name": "s"}}, "default")
        await api.admin.create(PODS, pod(), "default")
        assert await code(api.node.get(SECRETS, "s", "default")) == 403
        seen = []

        async def kubelet() -> None:
            async with api.node.watch(PODS, field_selector="spec.nodeName=n1") as events:
                async for event in events:
                    seen.append((event.type, await code(api.node.get(SECRETS, "s", "default"))))

        task = asyncio.ensure_future(kubelet())
        await api.world.clock.sleep(0.01)
        await api.admin.create(BINDINGS, {"metadata": {"name": "p"}, "target": {"name": "n1"}}, "default")
        await api.world.clock.sleep(0.01)
        await api.admin.delete(PODS, "p", "default", grace_period_seconds=0)
        await api.world.clock.sleep(0.01)
        assert seen[0] == ("ADDED", 200)
        assert seen[-1] == ("DELETED", 403)
        task.cancel()

    virtual(scenario)


def test_a_refused_pod_of_the_same_name_takes_nothing_from_the_one_that_is_there(virtual: Callable) -> None:
    async def scenario(api) -> None:
        await api.admin.create(SECRETS, {"metadata": {"name": "s"}}, "default")
        await api.admin.create(PODS, pod(nodeName="n1"), "default")
        assert await code(api.admin.create(PODS, pod(nodeName="n1"), "default")) == 409
        assert await code(api.node.get(SECRETS, "s", "default")) == 200

    virtual(scenario)


def test_the_index_of_pods_knows_who_of_two_with_one_name_went() -> None:
    index = PodsOfNodes()

    def one(uid: str) -> dict:
        return {"metadata": {"name": "p", "namespace": "a", "uid": uid}, "spec": {"nodeName": "n"}}

    index.add(one("1"))
    index.add(one("2"))  # the next one of a StatefulSet, before who removed the first has said so
    index.discard(one("1"))
    assert list(index.newest("n", "a")) == ["p"]
    index.discard(one("2"))
    index.discard(one("2"))
    assert list(index.newest("n", "a")) == []
    assert index._uids == {"n": {}}


def test_a_server_that_starts_on_what_is_stored_knows_the_pods_of_its_nodes(virtual: Callable) -> None:
    async def scenario(api) -> None:
        await api.admin.create(SECRETS, {"metadata": {"name": "s"}}, "default")
        await api.admin.create(PODS, pod(nodeName="n1"), "default")
        store = MemoryStore()
        store.restore((await api.server.storage.store.list(""))[0], await api.server.storage.store.revision())
        second = APIServer(world=api.world, store=store, recorder=api.records, config=APIServerConfig())
        await second.bootstrap()
        assert await code(second.client(N1).get(SECRETS, "s", "default")) == 200

    virtual(scenario)


def test_a_selector_that_only_looks_like_the_node_s_own_gives_nothing(virtual: Callable) -> None:
    async def scenario(api) -> None:
        for selector in (
            "",
            "spec.nodeName=n2",
            "spec.nodeName!=n2",
            r"metadata.namespace!=a\,spec.nodeName=n1",
            r"metadata.namespace!=\,spec.nodeName=n1",
            "spec.nodeName=n1,x",
            "metadata.namespace=default",
        ):
            assert await code(api.node.list(PODS, field_selector=selector)) == 403, selector
            with pytest.raises(StatusError):
                async with api.node.watch(PODS, field_selector=selector):
                    pass
        for selector in ("spec.nodeName=n1", "spec.nodeName==n1", "status.phase!=Failed,spec.nodeName=n1"):
            assert await code(api.node.list(PODS, field_selector=selector)) == 200, selector

    virtual(scenario)


def test_a_mirror_pod_gives_its_node_nothing(virtual: Callable) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CONFIGMAPS, {"metadata": {"name": "c"}}, "default")
        mirror = pod(nodeName="n1")
        mirror["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "c"}}]
        mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        await api.admin.create(PODS, mirror, "default")
        assert await code(api.node.get(CONFIGMAPS, "c", "default")) == 403
        assert await code(api.node.get(PODS, "p", "default")) == 200

    virtual(scenario)


def test_a_volume_and_its_secret_are_the_node_s_through_the_claim_of_its_pod(virtual: Callable) -> None:
    async def scenario(api) -> None:
        other = api.server.client(UserInfo("system:node:n2", ("system:nodes",)))
        request = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        size = {"resources": {"requests": {"storage": "1Gi"}}}
        await api.admin.create(
            PERSISTENTVOLUMECLAIMS, {"metadata": {"name": "c"}, "spec": {**request, **size}}, "default"
        )
        volume = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": "c"},
            "csi": {
                "driver": "d.example",
                "volumeHandle": "h",
                "nodeStageSecretRef": {"namespace": "default", "name": "stage"},
                "controllerPublishSecretRef": {"namespace": "default", "name": "controller"},
            },
        }
        await api.admin.create(PERSISTENTVOLUMES, {"metadata": {"name": "v"}, "spec": volume})
        claimed = pod(nodeName="n1")
        claimed["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
        await api.admin.create(PODS, claimed, "default")
        for name in ("stage", "controller"):
            await api.admin.create(SECRETS, {"metadata": {"name": name}}, "default")
        assert await code(api.node.get(PERSISTENTVOLUMES, "v")) == 200
        assert await code(api.node.get(SECRETS, "stage", "default")) == 200
        assert await code(api.node.get(SECRETS, "controller", "default")) == 403
        assert await code(other.get(PERSISTENTVOLUMES, "v")) == 403
        assert await code(other.get(SECRETS, "stage", "default")) == 403

    virtual(scenario)


def test_a_body_that_came_before_from_a_controller_is_no_node_s_to_send(virtual: Callable) -> None:
    async def scenario(api) -> None:
        body = {**pod(), "metadata": {"generateName": "p-"}}
        await api.admin.create(PODS, body, "default")
        await api.admin.create(PODS, body, "default")
        assert await code(api.node.create(PODS, body, "default")) == 403

    virtual(scenario)


def test_a_node_that_may_not_read_events_finds_its_own_again(virtual: Callable) -> None:
    """The answer to the first try got lost, and the second is told that there is one."""

    async def scenario(api) -> None:
        node = await api.admin.create(NODES, {"metadata": {"name": "n1"}})
        recorder = EventRecorder(api.node, api.world, "kubelet", "n1")
        event = recorder._make_event(node, "Normal", "Reason", "message", "")
        await api.admin.create(EVENTS, event, "default")
        assert (await recorder._create(event, "default"))["metadata"]["name"] == event["metadata"]["name"]
        assert recorder.dropped == 0
        assert len((await api.admin.list(EVENTS, "default")).items) == 1

    virtual(scenario)


def test_a_denied_node_costs_one_look_at_its_pods_of_the_namespace_only(virtual: Callable) -> None:
    async def scenario(api) -> None:
        await api.admin.create(NAMESPACES, {"metadata": {"name": "other"}})
        await api.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "other")
        for number in range(20):
            await api.admin.create(PODS, pod(f"p{number}", nodeName="n2"), "default")
            await api.admin.create(PODS, pod(f"p{number}", nodeName="n1"), "other")
        authorizer = api.server.operations.authorizer
        asked = RequestInfo(True, "", "get", "", "v1", "default", "secrets", "s")
        assert not (await authorizer.authorize(N1, asked)).allowed
        found: list[tuple] = []
        graph, get = authorizer._graph, authorizer._graph._get

        async def counting(*what):
            found.append(what)
            return await get(*what)

        graph._get = counting
        assert not (await authorizer.authorize(N1, asked)).allowed
        assert found == []
        assert (await authorizer.authorize(N1, asked._replace(namespace="other"))).allowed
        assert len(found) == 1

    virtual(scenario)
