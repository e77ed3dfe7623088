"""`trace --timeout` counts from the start of the command, whatever the server does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lastcall.cli.trace.session import Asked, _run, scope_of
from lastcall.contexts.connection import Chosen
from lastcall.contexts.options import ContextOptions
from lastcall.errors import UserError, WorldError
from lastcall.kube.client.access.config import ClientConfig
from lastcall.world.interrupts import Interrupts

pytestmark = pytest.mark.loopback
VERSION = b'{"major":"1","minor":"36","gitVersion":"v1.36.2"}'


@asynccontextmanager
async def answering(answer: Callable[[str], Awaitable[bytes | None]]) -> AsyncIterator[Chosen]:
    """A server whose answer to a path is `answer(path)`; None: none ever comes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            body = await answer(head.split()[1].decode())
            if body is None:
                await asyncio.Event().wait()
                return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield Chosen("x", url, "default", ClientConfig(server=url, context="x", cluster="c"), ContextOptions())
    finally:
        server.close()


def asked(timeout: float, *targets: str) -> Asked:
    nothing: dict[str, Any] = dict.fromkeys(Asked.__dataclass_fields__, "")
    wanted = {
        "targets": targets,
        "count": 0,
        "timeout": timeout,
        "output_file": None,
        "page": None,
        "logs": False,
        "agents": None,
    }
    return Asked(**nothing | wanted)


async def trace(chosen: Chosen, timeout: float, *targets: str) -> int:
    wanted = asked(timeout, *targets)
    return await _run(chosen, wanted, scope_of(wanted, "default"), Interrupts())


async def test_a_server_that_never_answers_ends_the_trace_in_time() -> None:
    async def never(path: str) -> None:
        return None

    async with answering(never) as chosen:
        with pytest.raises(WorldError, match=r"the API server has not answered within --timeout 0.2s; fix: "):
            await trace(chosen, 0.2)


async def test_lists_that_never_come_end_the_trace_in_time() -> None:
    async def only_the_version(path: str) -> bytes | None:
        return VERSION if path == "/version" else None

    async with answering(only_the_version) as chosen:
        with pytest.raises(WorldError, match=r"its Pods could not be listed within --timeout 0.5s; fix: "):
            await trace(chosen, 0.5)


async def empty(path: str) -> bytes | None:
    if "watch" in path:
        return None
    return VERSION if path == "/version" else b'{"metadata":{"resourceVersion":"5"},"items":[]}'


async def test_a_named_pod_that_never_came_is_told_and_ends_with_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    async with answering(empty) as chosen:
        with pytest.raises(WorldError, match=r"no Pod nope was there in namespace default within --timeout 1s"):
            await trace(chosen, 1, "pod/nope")
    assert "no Pod nope is there yet: waiting for it" in "".join(capsys.readouterr())


async def test_lists_that_come_end_the_trace_as_before() -> None:
    async with answering(empty) as chosen:
        assert await trace(chosen, 1) == 0


async def test_a_server_that_is_no_api_server_is_an_error_of_the_kubeconfig() -> None:
    async def page(path: str) -> bytes:
        return b"<html>\x1b[31m"

    async with answering(page) as chosen:
        with pytest.raises(UserError, match="correct server of cluster 'c' in the kubeconfig") as error:
            await trace(chosen, 5)
        assert "\x1b" not in str(error.value)
