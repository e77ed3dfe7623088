"""Both services of CRI on a gRPC server: methods by their names, codes of errors as containerd has them."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from lastcall.cri.api import RuntimeServiceError
from lastcall.cri.v1 import messages
from lastcall.cri.v1.service import Service
from lastcall.world import walls

MOST_BYTES = 16 << 20
"""Of one message, either way (containerd's defaults.DefaultMaxRecvMsgSize)."""
_CODES = {
    "NotFound": grpc.StatusCode.NOT_FOUND,
    "ImageNotFound": grpc.StatusCode.NOT_FOUND,
    "InvalidArgument": grpc.StatusCode.INVALID_ARGUMENT,
    "InvalidImageName": grpc.StatusCode.INVALID_ARGUMENT,
    "DeadlineExceeded": grpc.StatusCode.DEADLINE_EXCEEDED,
    "Unimplemented": grpc.StatusCode.UNIMPLEMENTED,
    "ResourceExhausted": grpc.StatusCode.RESOURCE_EXHAUSTED,
}


def add_to(server: grpc.aio.Server, service: Service) -> None:
    """Both services on one server, as containerd has them."""
    runtime = {name: _unary(service, name) for name in messages.RUNTIME_METHODS}
    name, asked, _ = messages.EVENTS
    runtime[name] = grpc.unary_stream_rpc_method_handler(
        _streamed(service.get_container_events), messages.classes[asked].FromString, _written
    )
    images = {name: _unary(service, name) for name in messages.IMAGE_METHODS}
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(messages.RUNTIME_SERVICE, runtime),
            grpc.method_handlers_generic_handler(messages.IMAGE_SERVICE, images),
        )
    )


def new_server() -> grpc.aio.Server:
    return grpc.aio.server(
        options=[("grpc.max_receive_message_length", MOST_BYTES), ("grpc.max_send_message_length", MOST_BYTES + 65536)]
    )


def _written(message: Any) -> bytes:
    return bytes(message.SerializeToString())


def _unary(service: Service, name: str) -> Any:
    do: Callable[[Any], Awaitable[Any]] = service.method(snake_case(name))

    async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        try:
            return await do(request)
        except RuntimeServiceError as error:
            await context.abort(_CODES.get(error.reason, grpc.StatusCode.UNKNOWN), str(error))
        except Exception as error:  # one call may not cost the others
            walls.caught("CRI server", name, error)
            await context.abort(grpc.StatusCode.INTERNAL, f"{name}: {type(error).__name__}")

    return grpc.unary_unary_rpc_method_handler(call, messages.classes[f"{name}Request"].FromString, _written)


def _streamed(do: Callable[[Any], AsyncIterator[Any]]) -> Any:
    async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
        try:
            async for each in do(request):
                yield each
        except RuntimeServiceError as error:
            await context.abort(_CODES.get(error.reason, grpc.StatusCode.UNKNOWN), str(error))

    return call


def snake_case(name: str) -> str:
    """`run_pod_sandbox` of RunPodSandbox."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
