"""One gRPC channel to a container runtime's Unix socket, with calls by their CRI names.

Errors have the texts that Go's gRPC gives them, which the kubelet shows to users
(google.golang.org/grpc/internal/status).
"""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

from grpc import aio

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.v1 import messages

MOST_BYTES = 16 << 20
"""Of one message (kubelet cri-client pkg/remote_runtime.go: maxMsgSize)."""
_CHANNEL = (
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.max_send_message_length", MOST_BYTES),
    # kubelet cri-client pkg/remote_runtime.go: baseBackoffDelay, maxBackoffDelay, minConnectionTimeout
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 10_000),  # how long one try may take: a busy runtime answers late
    ("grpc.max_reconnect_backoff_ms", 3_000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.default_authority", "localhost"),  # Go's servers refuse a path there
)
_NAMESPACE = (("containerd-namespace", "k8s.io"),)
_CODE = re.compile(r"^rpc error: code = \w+ desc = ")
_REASONS = {"NOT_FOUND": "NotFound", "DEADLINE_EXCEEDED": "DeadlineExceeded", "UNIMPLEMENTED": "Unimplemented"}


class RuntimeConnection:
    """`close` at the end. Inside asyncio."""

    def __init__(self, socket: str) -> None:
        """`socket` is the absolute path of the runtime's Unix socket; nothing is connected yet."""
        self.socket = socket
        self._channel = aio.insecure_channel(f"unix:{socket}", _CHANNEL)
        self._calls: dict[str, Any] = {}

    def _call(self, service: str, name: str) -> Any:
        found = self._calls.get(name)
        if found is None:
            path, write, read = messages.method_of(service, name)
            stream = name == messages.EVENTS[0]
            make = self._channel.unary_stream if stream else self._channel.unary_unary
            found = self._calls[name] = make(path, request_serializer=write, response_deserializer=read)
        return found

    async def runtime(self, name: str, request: Any, seconds: float | None = None) -> Any:
        """Ask the RuntimeService; return its answer. Raises RuntimeServiceError; cancelling cancels the call, too."""
        return await self._ask(messages.RUNTIME_SERVICE, name, request, seconds)

    async def images(self, name: str, request: Any, seconds: float | None = None) -> Any:
        """Ask the ImageService likewise."""
        return await self._ask(messages.IMAGE_SERVICE, name, request, seconds)

    async def downloads(self, seconds: float) -> dict[str, tuple[int, int]]:
        """Return layer → (bytes so far, bytes of all) of all that containerd downloads now.

        Raises RuntimeServiceError, reason Unimplemented of another runtime.
        """
        request = messages.new(messages.DOWNLOADS[1])
        answer = await self._ask(messages.CONTENT_SERVICE, messages.DOWNLOADS[0], request, seconds, _NAMESPACE)
        return {each.ref: (each.offset, each.total) for each in answer.statuses if each.ref.startswith("layer-")}

    async def _ask(
        self, service: str, name: str, request: Any, seconds: float | None, metadata: tuple[tuple[str, str], ...] = ()
    ) -> Any:
        try:
            return await self._call(service, name)(request, timeout=seconds, metadata=metadata)
        except aio.AioRpcError as error:
            raise failure(self.socket, error.code().name, error.details() or "") from None
        except (aio.UsageError, asyncio.InvalidStateError):
            raise RuntimeServiceError(f"unix://{self.socket}: the connection is closed") from None

    async def events(self) -> AsyncIterator[Any]:
        """Yield what GetContainerEvents streams. Raises RuntimeServiceError, reason Unimplemented if it has none."""
        request = messages.new(messages.EVENTS[1])
        try:
            async for event in self._call(messages.RUNTIME_SERVICE, messages.EVENTS[0])(request):
                yield event
        except aio.AioRpcError as error:
            raise failure(self.socket, error.code().name, error.details() or "") from None

    async def close(self) -> None:
        await self._channel.close()


def plain(error: RuntimeServiceError) -> str:
    """Return the runtime's own words, as the kubelet shows them (kuberuntime_container.go:startContainer)."""
    return _CODE.sub("", str(error))


def failure(socket: str, code: str, details: str) -> RuntimeServiceError:
    """Return a gRPC code (`NOT_FOUND`) and its text as the kubelet shows them."""
    if code == "UNAVAILABLE":
        text = f"the container runtime at unix://{socket} does not answer: {details}"
        return RuntimeServiceError(f"rpc error: code = Unavailable desc = {text}")
    name = "".join(part.capitalize() for part in code.split("_"))
    return RuntimeServiceError(f"rpc error: code = {name} desc = {details}", _REASONS.get(code, ""))
