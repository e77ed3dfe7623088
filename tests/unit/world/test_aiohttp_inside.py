"""The release of aiohttp that is installed has what world/aiohttp_inside uses of it."""

import asyncio
import contextlib
import inspect
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http_exceptions import BadHttpMethod, HttpProcessingError
from aiohttp.http_writer import StreamWriter

from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.world.aiohttp_inside import server
from lastcall.world.aiohttp_inside.bounded import BoundedServer
from lastcall.world.aiohttp_inside.connector import DialledConnector, KeptConnections
from lastcall.world.aiohttp_inside.methods import AnyMethodParser
from lastcall.world.aiohttp_inside.runner import BoundedRunner
from lastcall.world.aiohttp_inside.session import send_once


def test_a_connector_still_makes_its_connections_by_the_method_that_is_overridden() -> None:
    theirs = inspect.signature(aiohttp.BaseConnector._create_connection)
    assert inspect.iscoroutinefunction(aiohttp.BaseConnector._create_connection)
    assert list(theirs.parameters) == list(inspect.signature(DialledConnector._create_connection).parameters)


def test_a_request_still_has_what_its_connection_is_kept_by() -> None:
    connect = inspect.signature(aiohttp.BaseConnector.connect)
    assert list(connect.parameters) == list(inspect.signature(KeptConnections.connect).parameters)
    assert "ssl" in getattr(ConnectionKey, "_fields", ())
    assert isinstance(inspect.getattr_static(ResponseHandler, "should_close"), property)


async def test_a_connector_still_has_the_loop_and_the_factory_of_protocols() -> None:
    async with aiohttp.TCPConnector() as connector:
        assert connector._loop is not None and callable(connector._factory)


async def test_a_session_still_has_what_keeps_it_from_repeating_a_request() -> None:
    async with aiohttp.ClientSession() as session:
        assert session._retry_connection is True
        assert send_once(session)._retry_connection is False


def test_the_parts_of_a_server_are_those_of_the_public_module() -> None:
    from aiohttp import web

    for name in ("BaseRequest", "HTTPException", "Response", "Server", "StreamResponse", "WebSocketResponse"):
        assert getattr(server, name) is getattr(web, name)


@pytest.mark.loopback
@pytest.mark.parametrize(
    "module", ["cluster.embedded", "client.lost", "streaming.upgrade", "node.prober.dialer", "apiserver.http"]
)
def test_whichever_module_comes_first_aiohttp_reads_no_authorities_of_the_machine(module: str, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(ClusterCA.create().certificate_pem)
    code = (
        "import ssl; own, read = ssl.SSLContext.load_default_certs, []\n"
        "def load(self, *purpose): own(self, *purpose); read.append(self.cert_store_stats()['x509_ca'])\n"
        "ssl.SSLContext.load_default_certs = load\n"
        f"import lastcall.kube.{module}, lastcall.kube.client.http, sys; print('aiohttp' in sys.modules, sum(read))\n"
        "ssl.create_default_context(); print(read[-1])"
    )
    environment = {**os.environ, "SSL_CERT_FILE": str(tmp_path / "ca.pem"), "SSL_CERT_DIR": os.devnull}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "0", "1"]


def read_by_a_server(*chunks: bytes) -> list[tuple[str, str]]:
    """Return (method, path) of each request in `chunks`, as a connection of a server reads them."""
    loop = asyncio.get_running_loop()
    protocol = BoundedServer(None, most=1)().protocol
    assert isinstance(protocol._parser, AnyMethodParser) and protocol._loop is loop
    return [(message.method, message.path) for each in chunks for message, _ in protocol._parser.feed_data(each)[0]]


async def test_a_method_that_no_rfc_knows_reaches_the_server() -> None:
    head = b"Host: a\r\n\r\n"
    assert read_by_a_server(b"FOO /x HTTP/1.1\r\n", head) == [("FOO", "/x")]
    body = b"FOO /x HTTP/1.1\r\nContent-Length: 1\r\n" + head + b"b"
    assert read_by_a_server(body + b"GET /y HTTP/1.1\r\n" + head, b"get /z HTTP/1.1\r\n" + head) == [
        ("FOO", "/x"),
        ("GET", "/y"),
        ("get", "/z"),
    ]


@pytest.mark.parametrize("line", [b"F\x01O /x HTTP/1.1", b"FOO", b"FOO /x"])
async def test_what_is_no_request_is_refused_as_before(line: bytes) -> None:
    with pytest.raises(HttpProcessingError):
        read_by_a_server(line + b"\r\nHost: a\r\n\r\n")


async def test_what_follows_a_body_is_not_read_as_one_line_with_it() -> None:
    head = b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n"
    with pytest.raises(BadHttpMethod):
        read_by_a_server(head, b"GET /aBAR HTTP/1.1\r\nHost: a\r\n\r\n")


class Transport:
    def __init__(self) -> None:
        self.aborted = False
        self.limits: list[int] = []

    def set_write_buffer_limits(self, high: int) -> None:
        self.limits.append(high)

    def get_extra_info(self, name: str) -> None:
        return None

    def abort(self) -> None:
        self.aborted = True


class Handler:
    """A connection: `_waiter` is there while no request is worked on."""

    _task_handler = None

    def __init__(self, *, busy: bool = False) -> None:
        self._waiter = None if busy else object()


async def test_one_connection_too_many_takes_the_place_of_one_without_a_request_or_else_of_an_idle_one() -> None:
    lost: list[object] = []
    bounded = BoundedServer(None, most=3, buffer=100, on_lost=lost.append)
    handlers = [Handler(busy=True), Handler(), Handler(), Handler(), Handler()]
    transports = [Transport() for _ in handlers]

    def connect(number: int) -> list[int]:
        bounded.connection_made(handlers[number], transports[number])
        closed = [each for each, transport in enumerate(transports) if transport.aborted and each not in gone]
        for each in closed:
            bounded.connection_lost(handlers[each])
            gone.append(each)
        return closed

    gone: list[int] = []
    assert [connect(number) for number in range(3)] == [[], [], []]
    with contextlib.suppress(AttributeError):  # there is no message here to make a request of
        bounded.request_factory(None, None, handlers[1], None, None)
    assert connect(3) == [2], "the first one is busy, the second one is idle after a request"
    bounded._silent.clear()
    assert connect(4) == [1]
    assert lost == [handlers[2], handlers[1]] and len(bounded.connections) == 3
    assert transports[0].limits == [100]


@pytest.mark.parametrize("asked", [True, False])
async def test_a_connection_on_which_no_request_came_is_closed(asked: bool) -> None:
    bounded, transport, handler = (
        BoundedServer(None, most=3, buffer=100, on_lost=lambda it: None),
        Transport(),
        Handler(),
    )
    bounded.connection_made(handler, transport)
    if asked:
        with contextlib.suppress(AttributeError):  # there is no message here to make a request of
            bounded.request_factory(None, None, handler, None, None)
    bounded._close_silent(handler)
    assert transport.aborted is not asked


@pytest.mark.loopback
async def test_an_application_is_served_within_bounds() -> None:
    from aiohttp import web

    @web.middleware
    async def named(request: web.Request, handler: Callable[[web.Request], Awaitable[web.Response]]) -> web.Response:
        answer = await handler(request)
        answer.headers["X-Name"] = "y"
        return answer

    async def size(request: web.Request) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    application = web.Application(client_max_size=10, middlewares=[named])
    application.router.add_post("/", size)
    runner = BoundedRunner(application, most=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    silent, kept = await asyncio.open_connection("127.0.0.1", port)
    async with aiohttp.ClientSession() as session:
        async with session.post(f"http://127.0.0.1:{port}/", data=b"12345") as answer:
            assert (await answer.text(), answer.headers["X-Name"]) == ("5", "y")
        async with session.post(f"http://127.0.0.1:{port}/", data=b"x" * 11) as answer:
            assert answer.status == 413
    with contextlib.suppress(ConnectionResetError):
        assert await silent.read() == b""
    kept.close()
    await runner.cleanup()


async def test_a_connection_still_says_whether_a_request_is_worked_on() -> None:
    assert BoundedServer(None, most=1, buffer=100, on_lost=lambda it: None)().protocol._waiter is None


def test_a_response_still_has_what_its_writers_wait_on() -> None:
    assert "_payload_writer" in inspect.getsource(server.StreamResponse)
    assert inspect.iscoroutinefunction(StreamWriter.drain)
