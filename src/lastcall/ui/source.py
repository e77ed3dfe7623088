"""Where the page's facts come from: a cluster that stays, by its control socket and its kubeconfig."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import field
from typing import Any, Protocol

from lastcall.endings import Ending
from lastcall.kube.api import Object, Resource
from lastcall.kube.client import Client, client_for, load_kubeconfig
from lastcall.kube.cluster import ControlClient, NotRunning
from lastcall.records.record import Record
from lastcall.world.dataclass import dataclass


class NoMore(Exception):
    """Raised when the cluster has ended and no other follows."""


ObjectHandler = Callable[[Resource, str, Object], None]
"""Called with what kind of object it is, `ADDED`, `MODIFIED` or `DELETED`, and the object."""


class PageClient(Client, Protocol):
    """What the page needs of a client: `lastcall.kube.client.http.HTTPClient`."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Any = (),
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes: ...
    def websocket(self, path: str, query: Any, protocols: Any) -> Any: ...
    async def close(self) -> None: ...


@dataclass(slots=True)
class Opened:
    """A cluster while it runs. `identity` differs after it was started again.

    If its objects are watched already, `watch` hands them on, and there is no other watch; and `ending` returns the
    story of a Pod from the same watch, None for a Pod that it does not follow.
    """

    facts: dict[str, Any]
    identity: str
    client: PageClient
    records: AsyncIterator[Record]
    may_write: bool = field(default=True)
    watch: Callable[[ObjectHandler], None] | None = None
    ending: Callable[[str], Ending | None] | None = None


class Source(Protocol):
    """`open` raises what `ControlClient` raises, KubeconfigError, and NoMore when there is nothing to wait for."""

    name: str

    async def open(self) -> Opened: ...


class StayingCluster:
    """The cluster of that name that `lastcall up` started; with `once` only until it has ended."""

    def __init__(self, name: str, *, once: bool = False) -> None:
        self.name = name
        self._once = once
        self._opened = False

    async def open(self) -> Opened:
        control = ControlClient(self.name)
        loop = asyncio.get_running_loop()
        try:
            facts = await loop.run_in_executor(None, control.status)
        except NotRunning:
            if self._once and self._opened:
                raise NoMore from None
            raise
        self._opened = True
        config = await loop.run_in_executor(None, load_kubeconfig, str(facts["kubeconfig"]))
        records = await control.records(follow=True)
        shown = {
            key: facts.get(key) for key in ("name", "server", "kubernetesVersion", "kubeconfig", "since", "lastcall")
        }
        client = client_for(config, user_agent="lastcall-ui")
        return Opened(shown, f"{facts.get('pid')} {facts.get('since')}", client, records)
