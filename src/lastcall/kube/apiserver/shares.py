"""What one user may hold open or send at once, so that nobody makes the server grow without bound.

Watches and other streams above the limit get a 429, requests wait a while for the user's earlier ones. System
components are exempt. The ServiceAccounts of a namespace share one limit, because a user who may edit the namespace
can act as each of them.

Source: apiserver pkg/server/filters/priority-and-fairness.go (tooManyRequests), pkg/apis/flowcontrol/bootstrap (exempt,
system).
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from lastcall.kube.api.errors import too_many_requests
from lastcall.kube.apiserver.auth.authentication import NODES_GROUP, UserInfo, may_everything

MOST_CONNECTIONS = 400
MOST_STREAMS = 300
"""Open watches, logs, execs, port-forwards and proxied requests."""
MOST_REQUESTS = 100
"""Other requests that are worked on at once."""
MOST_BYTES = 32 << 20
"""Bytes of large bodies and lists that are worked on at once; one that is larger is alone."""
SMALL_BYTES = 64 << 10
"""Bodies and lists up to this size are bounded by the number of requests."""

WAIT_SECONDS = 15.0
"""How long a request waits for the user's earlier ones (queueset.go: a quarter of the request's time)."""
RETRY_AFTER_SECONDS = 1
_SERVICE_ACCOUNT = "system:serviceaccount:"


class Room:
    """A total that holders share. A request that finds too little left waits its turn."""

    def __init__(self, total: int, words: str = "") -> None:
        """`words` are the answer to a request that timed out waiting."""
        self.total = self.left = total
        self._words = words
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, size: int, patience: float | None = WAIT_SECONDS) -> AsyncIterator[None]:
        """Hold `size`, or everything if it is more than there is, as long as the block runs.

        Raises the 429 StatusError after `patience` seconds without success; None: never.
        """
        size = min(size, self.total)
        if self._waiting or size > self.left:
            try:
                async with asyncio.timeout(patience):
                    await self._wait(size)
            except TimeoutError:
                raise too_many_requests(self._words, RETRY_AFTER_SECONDS) from None
        else:
            self.left -= size
        try:
            yield
        finally:
            self._give_back(size)

    async def _wait(self, size: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back(size)
            else:
                self._waiting.remove((size, turn))
                self._give_back(0)
            raise

    def _give_back(self, size: int) -> None:
        self.left += size
        while self._waiting and self._waiting[0][0] <= self.left:
            size, turn = self._waiting.popleft()
            if not turn.done():
                self.left -= size
                turn.set_result(None)


class Share:
    """What one flow of requests holds now."""

    def __init__(self, flow: str) -> None:
        self.flow = flow
        self.connections = self.streams = 0
        self.requests = Room(MOST_REQUESTS, _words(flow, f"{MOST_REQUESTS} requests under way"))
        self.bytes = Room(MOST_BYTES, _words(flow, f"{MOST_BYTES >> 20} MiB of bodies and answers under way"))

    @property
    def unused(self) -> bool:
        return not (self.connections or self.streams) and self.requests.left == self.requests.total

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Raise the 429 StatusError if there are too many streams."""
        if self.streams >= MOST_STREAMS:
            raise too_many_requests(
                _words(self.flow, f"{MOST_STREAMS} open watches and other streams"), RETRY_AFTER_SECONDS
            )
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1


class Shares:
    """The shares of all users."""

    def __init__(self) -> None:
        self._shares: dict[str, Share] = {}
        self._owners: dict[object, Share] = {}
        """By connection."""

    def of(self, user: UserInfo) -> Share | None:
        """Return the share of a user, None for one who is exempt."""
        flow = flow_of(user)
        if flow is None:
            return None
        if (share := self._shares.get(flow)) is None:
            self._shares = {name: each for name, each in self._shares.items() if not each.unused}
            share = self._shares[flow] = Share(flow)
        return share

    def own(self, connection: object, share: Share) -> None:
        """Count a connection for a share. Raises the 429 StatusError if there are too many."""
        before = self._owners.get(connection)
        if before is share:
            return
        if share.connections >= MOST_CONNECTIONS:
            error = too_many_requests(_words(share.flow, f"{MOST_CONNECTIONS} connections"), RETRY_AFTER_SECONDS)
            error.headers["Connection"] = "close"
            raise error
        self.lost(connection)
        share.connections += 1
        self._owners[connection] = share

    def lost(self, connection: object) -> None:
        """A connection has ended."""
        if (share := self._owners.pop(connection, None)) is not None:
            share.connections -= 1


def flow_of(user: UserInfo) -> str | None:
    """Return the name of the flow that a user's requests belong to, None for components of the system."""
    if may_everything(user) or NODES_GROUP in user.groups:
        return None
    if user.name.startswith(_SERVICE_ACCOUNT):
        return user.name.rpartition(":")[0]
    return user.name


def _words(flow: str, what: str) -> str:
    return f"Too many requests, please try again later: {flow} has {what}, the most that one user may have"
