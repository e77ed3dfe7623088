"""An API server in the virtual world."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from shared_objects import shared_objects_stay_as_they_are  # noqa: F401 (a fixture of every test here)

from lastcall.kube.api.resources import SERVICEACCOUNTS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.client.api import Client
from lastcall.kube.store.memory import MemoryStore
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

ADMIN = UserInfo("admin", ("system:masters",))
NODE = UserInfo("system:node:n1", ("system:nodes",))


@dataclass
class Records:
    kinds: list[str] = field(default_factory=list)
    facts: list[dict] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)

    def record(self, kind: str, *, rule: str = "", facts: dict | None = None, **_: object) -> str:
        self.kinds.append(kind)
        self.rules.append(rule)
        self.facts.append(facts or {})
        return ""


@dataclass
class API:
    """A started server with namespace default and its ServiceAccount."""

    world: World
    server: APIServer
    records: Records
    admin: Client
    node: Client


@pytest.fixture
def virtual() -> Callable[[Callable[[API], Awaitable[None]]], None]:
    """`virtual(scenario)` runs `async def scenario(api)` on a fresh server in virtual time."""

    def run(scenario: Callable[[API], Awaitable[None]]) -> None:
        async def main(world: World) -> None:
            records = Records()
            server = APIServer(world=world, store=MemoryStore(), recorder=records, config=APIServerConfig())
            await server.bootstrap()
            admin = server.client(ADMIN)
            await admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
            await scenario(API(world, server, records, admin, server.client(NODE)))

        run_virtual(main)

    return run
