"""A real API server that is killed and comes back: requests wait for it, and the user is told."""

import asyncio
from collections.abc import Iterator

import pytest
from engines.api_server import RealAPIServer, needs, real_api_server

from lastcall.cli.terminal import note
from lastcall.contexts.connection import choose, connected
from lastcall.contexts.options import ContextOptions
from lastcall.kube.api.resources import CONFIGMAPS

pytestmark = [pytest.mark.timeout(300), needs("etcd", "kube-apiserver")]


@pytest.fixture
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAPIServer]:
    with real_api_server(tmp_path_factory.mktemp("mortal")) as server:
        yield server


def test_requests_wait_for_an_api_server_that_restarts(mortal, capsys):
    async def scenario() -> list[str]:
        async with connected(choose(ContextOptions(mortal.kubeconfig)), agent="test", warn=note) as cluster:
            client = cluster.client
            await client.create(CONFIGMAPS, {"metadata": {"name": "before"}}, "default")
            mortal.stop("kube-apiserver")
            back = asyncio.create_task(asyncio.to_thread(mortal.start, "kube-apiserver"))
            await client.list(CONFIGMAPS, "default")
            await client.create(CONFIGMAPS, {"metadata": {"name": "after"}}, "default")
            found = await client.list(CONFIGMAPS, "default")
            await back
            return [each["metadata"]["name"] for each in found.items]

    names = asyncio.run(scenario())
    assert {"before", "after"} <= set(names)
    told = capsys.readouterr().err
    assert told.count("does not answer: ") == told.count("answers again, after") == 1, told
