"""The members of an etcd cluster: one channel each, one of them in use; the next one when it fails.

Reads are asked of each member until one answers. A write goes to another one only where the first has not seen it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
from grpc import aio

from lastcall.kube.store.api import StoreError
from lastcall.kube.store.etcd import messages
from lastcall.kube.store.etcd.failures import Failure, as_store_error, failure
from lastcall.kube.store.etcd.options import EtcdOptions
from lastcall.world.clock import monotonic
from lastcall.world.world import World

READ_SECONDS = 3.0
"""For one member to answer a read; etcd itself gives one up after 7 s (5 s and two elections)."""
WRITE_SECONDS = 10.0
PATIENCE_SECONDS = 10.0
"""How long all members together may not answer."""
PAUSE_SECONDS = 0.1
"""Before members are asked again, all of which have failed."""

_CHANNEL = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # kube-apiserver's (storagebackend/factory/etcd3.go: keepaliveTime, keepaliveTimeout)
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)
_log = logging.getLogger("lastcall.kube.store")


class CompactedByServer(Exception):
    """etcd has forgotten the asked revision."""


class LeaseGone(Exception):
    """The lease has run out, or was revoked."""


class Connection:
    """`close` at the end. Every method raises StoreError: StoreFull, StoreUnsure for writes whose end is not known."""

    def __init__(self, world: World, options: EtcdOptions) -> None:
        self._clock, self._options = world.clock, options
        self._channels = [self._channel(number) for number in range(len(options.servers))]
        self._calls: list[dict[str, Any]] = [{} for _ in self._channels]
        self.current = 0
        self._token = ""
        self._closed = False

    def _channel(self, number: int) -> aio.Channel:
        options = self._options
        if not options.tls:
            return aio.insecure_channel(options.target(number), _CHANNEL)
        credentials = grpc.ssl_channel_credentials(options.ca or None, options.key or None, options.certificate or None)
        more: tuple[tuple[str, Any], ...] = ()
        if options.targets:
            more = (("grpc.ssl_target_name_override", options.host(number)),)
        return aio.secure_channel(options.target(number), credentials, (*_CHANNEL, *more))

    @property
    def server(self) -> str:
        """Return the member in use."""
        return self._options.servers[self.current]

    @property
    def members(self) -> int:
        return len(self._channels)

    def leave(self, number: int) -> None:
        """Use the next member because `number` has failed, unless another task has done so already."""
        if number == self.current:
            self.current = (number + 1) % len(self._channels)

    def _call(self, number: int, method: str) -> Any:
        calls = self._calls[number]
        if method not in calls:
            write, read = messages.serializers(method)
            calls[method] = self._channels[number].unary_unary(
                method, request_serializer=write, response_deserializer=read
            )
        return calls[method]

    async def read(self, method: str, request: Any) -> Any:
        """Return the answer of the first member that gives one. Also raises CompactedByServer."""
        return await self._ask(method, request, READ_SECONDS, lambda failed: failed.meaning in ("not sent", "unsure"))

    async def write(self, method: str, request: Any) -> Any:
        """Send a request that writes, and return its answer. Also raises LeaseGone, CompactedByServer."""
        return await self._ask(method, request, WRITE_SECONDS, lambda failed: failed.meaning == "not sent")

    async def _ask(self, method: str, request: Any, seconds: float, again: Callable[[Failure], bool]) -> Any:
        until = monotonic(self._clock) + PATIENCE_SECONDS
        tried = logins = 0
        while True:
            number = self.current
            if self._options.user and not self._token:
                await self._log_in(number)
            token = self._token
            try:
                return await self._call(number, method)(request, timeout=seconds, metadata=self._metadata())
            except aio.AioRpcError as error:
                failed = failure(error.code().name, error.details() or "")
            except (aio.UsageError, asyncio.InvalidStateError):
                raise StoreError(f"etcd {self.server}: the store is closed") from None
            server = self._options.servers[number]
            if failed.meaning == "compacted":
                raise CompactedByServer
            if failed.meaning == "lease":
                raise LeaseGone
            if failed.meaning == "token" and self._options.user and logins < 2:
                logins += 1
                if token == self._token:
                    self._token = ""
                continue
            if not again(failed) or self._closed or monotonic(self._clock) >= until:
                if failed.meaning in ("not sent", "unsure"):
                    self.leave(number)
                raise as_store_error(server, failed)
            self.leave(number)
            tried += 1
            if tried % len(self._channels) == 0:
                await self._clock.sleep(PAUSE_SECONDS)

    async def _log_in(self, number: int) -> None:
        request = messages.AuthenticateRequest(name=self._options.user, password=self._options.password)
        try:
            answer = await self._call(number, messages.AUTHENTICATE)(request, timeout=READ_SECONDS)
        except aio.AioRpcError as error:
            failed = failure(error.code().name, error.details() or "")
            if failed.meaning in ("not sent", "unsure"):
                # The request itself goes to this member next, and reports what is wrong.
                self.leave(number)
                failed = Failure("not sent", failed.text)
            raise as_store_error(self._options.servers[number], failed) from None
        self._token = answer.token

    def _metadata(self, *, leader: bool = False) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        if self._token:
            found.append(("token", self._token))
        if leader:
            found.append(("hasleader", "true"))
        return tuple(found)

    async def watch(self, request: Any) -> "WatchCall":
        """Open a stream of watches at the member in use, one that has a leader."""
        number = self.current
        if self._options.user and not self._token:
            await self._log_in(number)
        write, read = messages.serializers(messages.WATCH)
        method = self._channels[number].stream_stream(
            messages.WATCH, request_serializer=write, response_deserializer=read
        )
        call = WatchCall(self, number, method(metadata=self._metadata(leader=True)))
        try:
            async with asyncio.timeout(READ_SECONDS):
                await call.send(messages.WatchRequest(create_request=request))
        except TimeoutError:
            call.end()
            raise StoreError(f"etcd {self._options.servers[number]}: does not answer") from None
        return call

    def forget_token(self) -> None:
        self._token = ""

    def stream_error(self, number: int, error: aio.AioRpcError) -> tuple[Failure, StoreError]:
        """Return what ended a stream at member `number`, and the error for its readers."""
        failed = failure(error.code().name, error.details() or "")
        return failed, as_store_error(self._options.servers[number], failed)

    async def close(self) -> None:
        self._closed = True
        for channel in self._channels:
            await channel.close()


class WatchCall:
    """One stream of watches. `send` and `answers` raise StoreError when it has ended, `end` included."""

    def __init__(self, connection: Connection, number: int, call: Any) -> None:
        self._connection, self.number, self._call = connection, number, call
        self._server = connection.server

    async def send(self, request: Any) -> None:
        try:
            await self._call.write(request)
        except (aio.AioRpcError, asyncio.InvalidStateError, aio.UsageError) as error:
            raise self._failed(error) from None
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            raise self._failed(None) from None

    async def answers(self) -> AsyncIterator[Any]:
        while True:
            try:
                answer = await self._call.read()
            except (aio.AioRpcError, asyncio.InvalidStateError, aio.UsageError) as error:
                raise self._failed(error) from None
            except asyncio.CancelledError:
                if _is_cancelled():
                    raise
                raise self._failed(None) from None
            if answer is aio.EOF:
                raise self._failed(None)
            yield answer

    def _failed(self, error: BaseException | None) -> StoreError:
        if not isinstance(error, aio.AioRpcError):
            return StoreError(f"etcd {self._server}: the watch has ended")
        failed, store_error = self._connection.stream_error(self.number, error)
        if failed.meaning == "token":
            self._connection.forget_token()
        return store_error

    def end(self) -> None:
        self._call.cancel()


def _is_cancelled() -> bool:
    """Whether a cancellation is the task's, and not that of a stream, whose reader hears of it in the same way."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
