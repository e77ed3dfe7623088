"""Our clients without what Kubernetes 1.27 to 1.35 lack: a real 1.36 behind a proxy that takes it away."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from engines.api_server import RealAPIServer, needs
from engines.older import AGGREGATED_V2, LACKS, Older, older

from lastcall.cli.terminal import note
from lastcall.contexts.connection import Connected, choose, connected
from lastcall.contexts.options import ContextOptions
from lastcall.kube.api.resources import PODS
from lastcall.kube.client.access.reviews import denied, user_name
from lastcall.kube.client.access.rights import Right
from lastcall.kube.client.discovery import discover

pytestmark = [pytest.mark.timeout(300), needs("etcd", "kube-apiserver", "kubectl")]

POD: dict[str, Any] = {
    "metadata": {"name": "web"},
    "spec": {
        "serviceAccountName": "client",
        "initContainers": [{"name": "side", "image": "x", "restartPolicy": "Always"}],
        "containers": [{"name": "app", "image": "x", "lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}],
    },
}


@pytest.fixture(scope="module")
def token(real: RealAPIServer) -> str:
    real.kubectl("create", "serviceaccount", "client")
    real.kubectl(
        "create", "clusterrolebinding", "client", "--clusterrole=cluster-admin", "--serviceaccount=default:client"
    )
    return real.kubectl("create", "token", "client").strip()


@pytest.fixture(params=[27, 29, 30, 33, 34, 35], ids=lambda minor: f"1.{minor}")
def server(request: pytest.FixtureRequest, real: RealAPIServer) -> Iterator[Older]:
    with older(real, request.param) as made:
        yield made


def ask(server: Older, token: str, question: Any) -> Any:
    async def asked() -> Any:
        async with connected(choose(ContextOptions(server.kubeconfig(token))), agent="test", warn=note) as cluster:
            assert cluster.version == f"v1.{server.minor}.0"
            return await question(cluster)

    return asyncio.run(asked())


def test_discovery_finds_what_is_there_and_nothing_that_is_not(server, token):
    async def question(cluster: Connected) -> Any:
        return await discover(cluster.client.request)

    found = ask(server, token, question)
    assert found.error == ""
    served = {(kind.resource.api_version, kind.resource.plural) for kind in found.kinds}
    needed = {("v1", "pods"), ("apps/v1", "deployments"), ("policy/v1", "poddisruptionbudgets")}
    assert needed | {("discovery.k8s.io/v1", "endpointslices")} <= served
    for lack in LACKS:
        if not lack.kind:
            there = {plural for version, plural in served if version == lack.group_version}
            gone = server.minor < lack.since
            named = {each for each in lack.kinds if "/" not in each}
            assert not (gone and (there & named or (not lack.kinds and there))), lack
            assert gone or not named or named <= there, lack
    assert server.minor < AGGREGATED_V2 or len(served) > 40


def test_who_we_are_and_what_we_may_do_is_asked_with_what_there_is(server, token):
    async def question(cluster: Connected) -> Any:
        request = cluster.client.request
        return await user_name(request), await denied(
            request, [Right("", "list", "pods"), Right("", "get", path="/metrics")]
        )

    name, missing = ask(server, token, question)
    # The proxy cannot give the v1beta1 that 1.27 had: then the name is not known, and nothing fails.
    assert name == ("" if server.minor < 28 else "system:serviceaccount:default:client")
    assert missing == []


def test_pods_are_written_listed_and_watched_without_the_fields_that_came_later(server, token):
    async def question(cluster: Connected) -> Any:
        client = cluster.client
        await client.create(PODS, POD, "default")
        listed = await client.list(PODS, "default")
        async with client.watch(PODS, "default") as events:
            async for event in events:
                seen = event.object
                break
        await client.delete(PODS, "web", "default", grace_period_seconds=0)
        return listed.items[0], seen

    for pod in ask(server, token, question):
        container = pod["spec"]["containers"][0]
        assert ("sleep" in container.get("lifecycle", {}).get("preStop", {})) == (server.minor >= 30)
        assert ("restartPolicy" in pod["spec"]["initContainers"][0]) == (server.minor >= 29)
