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

from lastcall.kube.api.errors import StatusError, too_many_requests
from lastcall.kube.apiserver.auth.authentication import NODES_GROUP, UserInfo, is_superuser

MOST_OF_ALL_BYTES = 128 << 20
"""Bytes that all users together make the server hold."""
MOST_BYTES = 48 << 20
"""Bytes that one user makes the server hold: connections and streams at their prices, large bodies and lists."""
MOST_LARGE_BYTES = 32 << 20
"""Of these, bytes of large bodies and lists that are worked on at once; one that is larger is alone. They wait for
their turn, so that there is always room left for connections and streams, which do not wait."""

CONNECTION_BYTES = 40 << 10
"""What an open connection takes: TLS, the parser, what is read ahead."""
STREAM_BYTES = 80 << 10
"""What a stream takes whose client reads nothing: a piece of it, once plain and once encrypted."""
READ_AHEAD_BYTES = 256 << 10
"""What a large body takes before its turn: what one read of its connection brought, and its copy in TLS."""

MOST_CONNECTIONS = 400
MOST_STREAMS = 300
"""Open watches, logs, execs, port-forwards and proxied requests."""
MOST_REQUESTS = 100
"""Other requests that are worked on at once."""
SMALL_BYTES = 64 << 10
"""Bodies and lists up to this size are bounded by the number of requests."""

WAIT_SECONDS = 15.0
"""How long a request waits for the user's earlier ones (queueset.go: a quarter of the request's time)."""
RETRY_AFTER_SECONDS = 1
_OF_ALL = f"all users have {MOST_OF_ALL_BYTES >> 20} MiB of connections, streams, bodies and answers"
_SERVICE_ACCOUNT = "system:serviceaccount:"


class Room:
    """A total that holders share. A request that finds too little left waits its turn."""

    def __init__(self, total: int, words: str = "", within: "Room | None" = None) -> None:
        """`words` answer a request that gets no room. What is held here is held `within` a larger room, too."""
        self.total = self.left = total
        self._words = words
        self._within = within
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
                raise self._error() from None
        else:
            self.left -= size
        try:
            if self._within is None:
                yield
            else:
                async with self._within.hold(size, patience):
                    yield
        finally:
            self._give_back(size)

    def take(self, size: int) -> None:
        """Take `size` until `give_back`. Raises the 429 StatusError if there is too little left."""
        if size > self.left:
            raise self._error()
        if self._within is not None:
            self._within.take(size)
        self.left -= size

    def give_back(self, size: int) -> None:
        """Return what `take` took."""
        self._give_back(size)
        if self._within is not None:
            self._within.give_back(size)

    def _error(self) -> StatusError:
        return too_many_requests(self._words, RETRY_AFTER_SECONDS)

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
    """What one flow of requests holds now, `within` what all of them may hold."""

    def __init__(self, flow: str, within: Room | None = None) -> None:
        self.flow = flow
        self.connections = self.streams = 0
        self.requests = Room(MOST_REQUESTS, _words(flow, f"{MOST_REQUESTS} requests under way"))
        words = f"{MOST_BYTES >> 20} MiB of connections, streams, bodies and answers"
        self.memory = Room(MOST_BYTES, _words(flow, words), within)
        words = f"{MOST_LARGE_BYTES >> 20} MiB of bodies and answers under way"
        self.bytes = Room(MOST_LARGE_BYTES, _words(flow, words), self.memory)

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
        with self._holding(STREAM_BYTES):
            self.streams += 1
            try:
                yield
            finally:
                self.streams -= 1

    @asynccontextmanager
    async def request(self, body_bytes: int) -> AsyncIterator[None]:
        """Hold what a request with such a body takes, when it is its turn. Raises the 429 StatusError."""
        if body_bytes <= SMALL_BYTES:
            async with self.requests.hold(1):
                yield
            return
        with self._holding(READ_AHEAD_BYTES):
            # What is made of a body is larger than the body: the object, the stored one, the answer.
            async with self.requests.hold(1), self.bytes.hold(3 * body_bytes):
                yield

    @contextmanager
    def _holding(self, size: int) -> Iterator[None]:
        self.memory.take(size)
        try:
            yield
        finally:
            self.memory.give_back(size)


class Shares:
    """The shares of all users."""

    def __init__(self) -> None:
        self._of_all = Room(MOST_OF_ALL_BYTES, f"Too many requests, please try again later: {_OF_ALL}")
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
            share = self._shares[flow] = Share(flow, self._of_all)
        return share

    def own(self, connection: object, share: Share) -> None:
        """Count a connection for a share. Raises the 429 StatusError if there are too many."""
        before = self._owners.get(connection)
        if before is share:
            return
        try:
            if share.connections >= MOST_CONNECTIONS:
                words = _words(share.flow, f"{MOST_CONNECTIONS} connections")
                raise too_many_requests(words, RETRY_AFTER_SECONDS)
            share.memory.take(CONNECTION_BYTES)
        except StatusError as error:
            error.headers["Connection"] = "close"
            raise
        self.lost(connection)
        share.connections += 1
        self._owners[connection] = share

    def lost(self, connection: object) -> None:
        """Give back what a connection held that has ended."""
        if (share := self._owners.pop(connection, None)) is not None:
            share.connections -= 1
            share.memory.give_back(CONNECTION_BYTES)


def flow_of(user: UserInfo) -> str | None:
    """Return the name of the flow that a user's requests belong to, None for components of the system."""
    if is_superuser(user) or NODES_GROUP in user.groups:
        return None
    if user.name.startswith(_SERVICE_ACCOUNT):
        return user.name.rpartition(":")[0]
    return user.name


def _words(flow: str, what: str) -> str:
    return f"Too many requests, please try again later: {flow} has {what}, the most that one user may have"
