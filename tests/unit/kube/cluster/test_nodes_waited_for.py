"""Front waits for its nodes though nobody answers at first."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.cluster.health.nodes_ready import api_answers, nodes_ready
from lastcall.world.clock import RealClock
from lastcall.world.virtual import run_virtual

pytestmark = pytest.mark.loopback

READY = {"metadata": {"name": "node-1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


class Server:
    """Does not answer the first watches; the next one breaks off, and the one after that tells of a node."""

    def __init__(self, silent: int) -> None:
        self.silent = silent
        self.asked = 0

    async def list(self, *_: object) -> None:
        self.asked += 1
        if self.asked <= self.silent:
            raise ConnectionLost("no answer in time")

    @asynccontextmanager
    async def watch(self, *_: object, **__: object) -> AsyncIterator[Any]:
        self.asked += 1
        if self.asked <= self.silent:
            raise ConnectionLost("no answer in time")

        async def events() -> AsyncIterator[Any]:
            if self.asked > self.silent + 1:
                yield SimpleNamespace(type="ADDED", object=READY)

        yield events()


async def test_a_busy_machine_on_which_nobody_answers_in_time_is_asked_again() -> None:
    server = Server(2)
    await nodes_ready(server, ["node-1"], RealClock(), controllers=True)  # type: ignore[arg-type]
    assert server.asked == 4


async def test_a_server_that_never_answers_is_not_waited_for_for_ever() -> None:
    with pytest.raises(ConnectionLost):
        await nodes_ready(Server(1_000_000), ["node-1"], RealClock(), 0.3, controllers=True)  # type: ignore[arg-type]
    with pytest.raises(ConnectionLost):
        await api_answers(Server(1_000_000), RealClock(), 0.3)  # type: ignore[arg-type]


def test_an_api_server_that_takes_long_to_begin_is_asked_as_long_as_its_caller_waits() -> None:
    server = Server(2_000)  # 100 s
    run_virtual(lambda world: api_answers(server, world.clock, 300))  # type: ignore[arg-type]
    assert server.asked == 2_001
