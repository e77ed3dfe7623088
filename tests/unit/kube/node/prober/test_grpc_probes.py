"""gRPC probes: the client against a real gRPC server, and the words of every outcome."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from lastcall.kube.node.interfaces import DialError, RPCError
from lastcall.kube.node.prober.dialer import RealDialer
from lastcall.kube.node.prober.probe import Probed, run_probe
from lastcall.kube.node.status.features import status_features

pytestmark = pytest.mark.loopback

FEATURES = status_features("1.36")


class Health(grpc.GenericRpcHandler):
    """grpc.health.v1.Health by hand: service names are one-byte-length fields here."""

    def __init__(self) -> None:
        self.agents: list[str] = []

    def service(self, details: Any) -> Any:
        if details.method != "/grpc.health.v1.Health/Check":
            return None
        self.agents.append(dict(details.invocation_metadata)["user-agent"])
        return grpc.unary_unary_rpc_method_handler(self.check)

    async def check(self, request: bytes, context: Any) -> bytes:
        name = request[2 : 2 + request[1]].decode() if request else ""
        if name == "slow":
            await asyncio.sleep(60)  # a server that hangs
        if name == "down":
            return b"\x08\x02"
        if name == "silent":
            return b""
        if name == "strange":
            return b"\x12\x03abc\x08\x01"  # a field of a later version before the status
        if name:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service: ü")
        return b"\x08\x01"


@pytest.fixture
async def health() -> AsyncIterator[tuple[Health, int]]:
    server, handler = grpc.aio.server(), Health()
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield handler, port
    await server.stop(None)


async def probed(port: int, service: str = "", timeout: float = 10) -> Probed:
    probe = {"grpc": {"port": port, "service": service}, "timeoutSeconds": timeout}
    runtime: Any = None
    return await run_probe(probe, {}, "id", "127.0.0.1", runtime=runtime, dialer=RealDialer(), features=FEATURES)


@pytest.mark.rule("node-semantics 13/grpc")
async def test_a_serving_service_is_a_success_and_the_probe_says_who_it_is(health: tuple[Health, int]) -> None:
    handler, port = health
    assert await probed(port) == Probed("success", "service healthy")
    assert await probed(port, "strange") == Probed("success", "service healthy")
    assert handler.agents == ["kube-probe/1.36", "kube-probe/1.36"]


@pytest.mark.rule("node-semantics 13/grpc")
@pytest.mark.parametrize(
    ("service", "timeout", "text"),
    [
        ("down", 10, 'service unhealthy (responded with "NOT_SERVING")'),
        ("silent", 10, 'service unhealthy (responded with "UNKNOWN")'),
        ("other", 10, "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service: ü"),
        ("slow", 1, "timeout: health rpc did not complete within 1s"),
    ],
)
async def test_anything_else_is_a_failure_in_kubernetes_s_words(
    health: tuple[Health, int], service: str, timeout: float, text: str
) -> None:
    assert await probed(health[1], service, timeout) == Probed("failure", text)


async def test_a_server_without_the_health_service_is_told_so() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    result = await probed(port)
    await server.stop(None)
    assert result.outcome == "failure"
    assert result.output.startswith("error: this server does not implement the grpc health protocol (grpc.health.v1.")


async def test_nobody_there_or_somebody_who_speaks_no_http2_is_a_time_out() -> None:
    async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(says_nothing, "127.0.0.1", 0)
    mute = server.sockets[0].getsockname()[1]
    expected = 'timeout: failed to connect service "127.0.0.1:{}" within 500ms: context deadline exceeded'
    assert await probed(mute, timeout=0.5) == Probed("failure", expected.format(mute))
    server.close()
    await server.wait_closed()
    assert await probed(mute, timeout=0.5) == Probed("failure", expected.format(mute))


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\4\0\0\0\0\0\xff" * 9])
async def test_nonsense_from_a_server_is_a_failure_and_never_more(answer: bytes) -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
    with pytest.raises((DialError, RPCError)):
        await RealDialer().grpc_health("127.0.0.1", server.sockets[0].getsockname()[1], "", 0.5, "agent")
    server.close()
