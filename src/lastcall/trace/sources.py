"""Watch one resource: list, then watch, then again when it is lost; report what was missed meanwhile.

Unlike `client.informer` it keeps no objects: their handlers keep what they need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Protocol, cast

import orjson

from lastcall.kube.api import Object, Resource, StatusError
from lastcall.kube.client import MOST_ANSWER_BYTES, Client, ConnectionLost, UnusableAnswer, decoded, unusable
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

PAGE = 500
"""Objects of one answer to a list, as kubectl asks for them."""
MOST_PAGES = 2000
"""Of one list: a million objects."""
FIRST_BACKOFF = 0.1
MAX_BACKOFF = 5.0
REFUSED_SECONDS = 60.0
"""How long until a right that was missing is asked for again."""
SHORT_WATCH = 1.0


class Requester(Protocol):
    """`HTTPClient.request`: lists in pages. A client without it is asked for everything at once."""

    async def request(self, method: str, path: str, *, query: Any = ()) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Gap:
    """A watch was interrupted. `lost`: what happened meanwhile was not seen, only its result; else it came late."""

    what: str
    seconds: float
    lost: bool
    why: str

    @property
    def sentence(self) -> str:
        if self.lost:
            return (
                f"For {self.seconds:.1f} s the {self.what} were not watched ({self.why}): the report has only what was "
                "left of them."
            )
        return (
            f"For {self.seconds:.1f} s no news of {self.what} arrived ({self.why}): the report shows what happened "
            "then too late."
        )


@dataclass(slots=True)
class Source:
    """`on_list` gets all objects of a list, complete; `on_event` each event of the watch, `on_gap` each gap.

    `on_refused` gets what the server says to a request that is not allowed; it is asked again every REFUSED_SECONDS.
    Without `on_list` nothing is listed: the watch begins with what comes next.
    """

    client: Client
    resource: Resource
    namespace: str
    world: World
    on_event: Callable[[str, Object], None]
    on_list: Callable[[Iterable[Object]], None] | None
    on_gap: Callable[[Gap], None]
    on_refused: Callable[[StatusError], None]
    on_synced: Callable[[], None]
    on_trouble: Callable[[str], None] = lambda text: None
    """Called with each new reason why nothing is known yet."""
    label_selector: str = ""
    field_selector: str = ""
    synced: bool = False
    requests: int = 0
    """How many lists (by page) and watches were asked for."""
    connected: bool = False
    """A watch is open, or was closed in order and is opened again now."""
    watches: int = 0
    """How often one was opened."""
    gaps: int = 0
    """How often something was lost."""
    _backoff: float = FIRST_BACKOFF
    _broken: float | None = None
    _why: str = ""

    async def run(self) -> None:
        """Follow until cancelled."""
        version = ""
        while True:
            try:
                if not version:
                    version = await self._list()
                version = await self._watch(version)
            except UnusableAnswer as error:
                version = ""
                self._breaks(error.reason)
                await self.world.clock.sleep(REFUSED_SECONDS)
            except ConnectionLost as error:
                self._breaks(error.reason or str(error))
                await self._wait()
            except StatusError as error:
                if error.code in (401, 403):
                    self.connected = False
                    self.on_refused(error)
                    await self.world.clock.sleep(REFUSED_SECONDS)
                    continue
                if error.code == 410:
                    version = ""  # the history that we want is compacted
                    self._breaks("the API server no longer had the history")
                    if self._backoff > FIRST_BACKOFF:
                        await self._wait()
                    self._backoff *= 2
                    continue
                self._breaks(error.message)
                await self._wait()
                if error.code == 404:
                    self.on_refused(error)  # a server that does not serve this
                    await self.world.clock.sleep(REFUSED_SECONDS)
            except Exception as error:
                crash_guard.caught(f"trace {self.resource.plural}", "", error)
                await self._wait()

    def _breaks(self, why: str) -> None:
        self.connected = False
        if not self.synced and why != self._why:
            self._why = why
            self.on_trouble(f"{self.resource.plural} cannot be listed yet: {why}")
        if self.synced and self._broken is None:
            self._broken, self._why = monotonic(self.world.clock), why

    async def _wait(self) -> None:
        delay = self._backoff * (1.0 + self.world.random.random())
        self._backoff = min(self._backoff * 2, MAX_BACKOFF)
        await self.world.clock.sleep(delay)

    def _whole_again(self, *, lost: bool) -> None:
        if self._broken is not None:
            seconds = monotonic(self.world.clock) - self._broken
            self._broken = None
            self.gaps += lost
            self.on_gap(Gap(self.resource.plural, seconds, lost, self._why))

    async def _list(self) -> str:
        if self.on_list is None:
            version = await self._version()
        else:
            objects, version = await self._objects()
            self.on_list(objects)
        self._whole_again(lost=True)
        if not self.synced:
            self.synced = True
            self.on_synced()
        return version

    async def _objects(self) -> tuple[Iterable[Object], str]:
        """All pages of a list; what came of one that breaks off is dropped.

        When the history of its first page is compacted meanwhile, everything is asked for at once.
        Source: client-go tools/pager/pager.go:ListWithAlloc.
        """
        if not hasattr(self.client, "request"):
            self.requests += 1
            answer = await self.client.list(
                self.resource,
                self.namespace,
                label_selector=self.label_selector,
                field_selector=self.field_selector,
            )
            return answer.items, answer.resource_version
        pages: list[bytes] = []  # as they came: as objects they take many times the room
        limit, rest = PAGE, ""
        while True:
            try:
                page = await self._page(limit, rest)
            except StatusError as error:
                if error.code != 410 or not rest:
                    raise
                pages, limit, rest = [], 0, ""
                continue
            pages.append(page)
            url = self.resource.path(self.namespace)
            if sum(map(len, pages)) > MOST_ANSWER_BYTES or len(pages) > MOST_PAGES:
                why = f"the list has more than {MOST_ANSWER_BYTES >> 20} MiB or {MOST_PAGES} pages"
                raise unusable("GET", url, f"{why}: ask for less (--namespace, --selector)")
            last = decoded(page, "GET", url)
            meta = last.get("metadata") or {}
            rest = str(meta.get("continue") or "") if limit else ""
            if not rest:
                return self._of_pages(pages[:-1], last), str(meta.get("resourceVersion") or "")
            del last  # before the next one is there

    def _of_pages(self, earlier: list[bytes], last: Object) -> Iterator[Object]:
        for page in chain(map(orjson.loads, earlier), (last,)):
            for item in page.get("items") or []:
                item.setdefault("kind", self.resource.kind)
                yield item

    async def _page(self, limit: int, rest: str = "") -> bytes:
        query = []
        for key, value in (
            ("limit", str(limit or "")),
            ("continue", rest),
            ("labelSelector", self.label_selector),
            ("fieldSelector", self.field_selector),
        ):
            if value:
                query.append((key, value))
        self.requests += 1
        asks = cast(Requester, self.client)
        return await asks.request("GET", self.resource.path(self.namespace), query=query)

    async def _version(self) -> str:
        """Where a watch begins that wants nothing of the past."""
        if hasattr(self.client, "request"):
            page = decoded(await self._page(1), "GET", self.resource.path(self.namespace))
            return str((page.get("metadata") or {}).get("resourceVersion") or "")
        self.requests += 1
        return (await self.client.list(self.resource, self.namespace)).resource_version

    async def _watch(self, version: str) -> str:
        started, seen = monotonic(self.world.clock), 0
        self.requests += 1
        async with self.client.watch(
            self.resource,
            self.namespace,
            resource_version=version,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            bookmarks=True,
        ) as events:
            self._whole_again(lost=False)
            self.connected, self.watches = True, self.watches + 1
            async for type_, obj in events:
                seen += 1
                self._backoff = FIRST_BACKOFF
                if type_ == "ERROR":
                    raise StatusError(obj)
                version = obj["metadata"].get("resourceVersion") or version
                if type_ == "BOOKMARK":
                    continue
                try:
                    self.on_event(type_, obj)
                except Exception as error:
                    crash_guard.caught(f"trace {self.resource.plural}", str(obj["metadata"].get("name")), error)
        if not seen and monotonic(self.world.clock) - started < SHORT_WATCH:
            await self._wait()
        return version
