"""HTTPClient against a small HTTPS server on loopback."""

import asyncio
import contextlib
import datetime
import gzip
import ipaddress
import itertools
import json
import ssl

import orjson
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import ENDPOINTSLICES, NODES, PODS
from lastcall.kube.client import answers as answering
from lastcall.kube.client.answers import Reading
from lastcall.kube.client.api import ConnectionLost, UnusableAnswer
from lastcall.kube.client.http import HTTPClient
from lastcall.kube.client.kubeconfig import make_ssl_context

pytestmark = pytest.mark.loopback


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    directory = tmp_path_factory.mktemp("pki")
    cert_file, key_file = directory / "tls.crt", directory / "tls.key"
    cert_file.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert_file, key_file


@contextlib.asynccontextmanager
async def serving(certificate, handler, **options):
    """A client of a server whose every request goes to `handler(request)`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    client = HTTPClient(
        f"https://127.0.0.1:{port}",
        ssl_context=make_ssl_context(ca_pem=certificate[0].read_bytes()),
        **options,
    )
    try:
        yield client
    finally:
        await client.close()
        await runner.cleanup()


def answers(*bodies, status=200):
    """A handler that notes requests and gives one JSON answer after the other."""
    seen = []
    left = list(bodies)

    async def handler(request):
        data = await request.read()
        seen.append((request.method, request.path_qs, dict(request.headers), orjson.loads(data) if data else None))
        return web.Response(body=orjson.dumps(left.pop(0)), status=status, content_type="application/json")

    handler.seen = seen
    return handler


async def test_verbs_become_the_methods_paths_and_bodies_of_kubernetes(certificate):
    handler = answers(*[{"metadata": {}} for _ in range(8)])
    async with serving(certificate, handler, token="secret", user_agent="test/1") as client:
        await client.get(PODS, "web", "default")
        await client.create(PODS, {"metadata": {"name": "web"}}, "default")
        await client.create(PODS, {"target": {}}, "default", name="web", subresource="binding")
        await client.update(PODS, {"metadata": {"name": "web"}}, "default", subresource="status")
        await client.patch(ENDPOINTSLICES, "s", {"a": None}, "default")
        await client.delete(PODS, "web", "default", grace_period_seconds=0, uid="u", resource_version="3")
        await client.delete(NODES, "n", propagation_policy="Foreground")
        await client.list(PODS, label_selector="app=web,tier in (a, b)", field_selector="spec.nodeName=n")
    assert [(method, path, body) for method, path, _, body in handler.seen] == [
        ("GET", "/api/v1/namespaces/default/pods/web", None),
        ("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "web"}}),
        ("POST", "/api/v1/namespaces/default/pods/web/binding", {"target": {}}),
        ("PUT", "/api/v1/namespaces/default/pods/web/status", {"metadata": {"name": "web"}}),
        ("PATCH", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/s", {"a": None}),
        (
            "DELETE",
            "/api/v1/namespaces/default/pods/web",
            {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u", "resourceVersion": "3"},
            },
        ),
        (
            "DELETE",
            "/api/v1/nodes/n",
            {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"},
        ),
        (
            "GET",
            "/api/v1/pods?labelSelector=app%3Dweb%2Ctier%20in%20%28a%2C%20b%29&fieldSelector=spec.nodeName%3Dn",
            None,
        ),
    ]
    headers = handler.seen[4][2]
    assert headers["Content-Type"] == "application/merge-patch+json"
    assert headers["Authorization"] == "Bearer secret"
    assert headers["User-Agent"] == "test/1"


async def test_a_name_cannot_break_out_of_its_place_in_the_path(certificate):
    handler = answers({})
    async with serving(certificate, handler) as client:
        await client.get(PODS, "../../secrets?x#", "default")
    assert handler.seen[0][1] == "/api/v1/namespaces/default/pods/..%2F..%2Fsecrets%3Fx%23"


async def test_listed_objects_carry_kind_and_api_version(certificate):
    handler = answers({"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "a"}}]})
    async with serving(certificate, handler) as client:
        result = await client.list(PODS, "default")
    assert result.resource_version == "9"
    assert result.items == [{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}]


async def test_an_empty_list_may_be_null(certificate):
    async with serving(certificate, answers({"metadata": {"resourceVersion": "9"}, "items": None})) as client:
        assert (await client.list(PODS)).items == []


async def test_connections_are_kept_alive(certificate):
    ports = []

    async def handler(request):
        ports.append(request.transport.get_extra_info("peername")[1])
        return web.json_response({})

    async with serving(certificate, handler) as client:
        for _ in range(5):
            await client.get(NODES, "n")
    assert len(set(ports)) == 1


@pytest.mark.parametrize(
    ("method", "times"), [("GET", 2), ("HEAD", 2), ("PUT", 1), ("DELETE", 1), ("POST", 1), ("PATCH", 1)]
)
async def test_only_what_changes_nothing_is_sent_again_when_a_kept_connection_breaks(certificate, method, times):
    """Of a PUT or DELETE without an answer nobody knows whether it was done: Go's net/http repeats neither."""
    seen = []

    async def handler(request):
        await request.read()
        seen.append(request.method)
        if len(seen) == 2:
            request.transport.abort()
        return web.json_response({})

    async with serving(certificate, handler) as client:
        await client.request("GET", "/version")
        if times == 1:
            with pytest.raises(ConnectionLost) as lost:
                await client.request(method, "/version", body={})
            assert lost.value.sent
        else:
            await client.request(method, "/version")
    assert seen == ["GET", *[method] * times]


async def test_a_status_body_becomes_a_status_error_with_headers(certificate):
    status = {"kind": "Status", "status": "Failure", "message": "no", "reason": "NotFound", "code": 404}
    async with serving(certificate, answers(status, status=404)) as client:
        with pytest.raises(StatusError) as refused:
            await client.get(PODS, "web", "default")
    assert (refused.value.code, refused.value.reason, refused.value.message) == (404, "NotFound", "no")
    assert refused.value.headers["Content-Type"].startswith("application/json")


@pytest.mark.parametrize(
    ("code", "method", "reason"),
    [
        (401, "GET", "Unauthorized"),
        (404, "GET", "NotFound"),
        (409, "PUT", "Conflict"),
        (409, "POST", "AlreadyExists"),
        (429, "GET", "TooManyRequests"),
        (500, "GET", "InternalError"),
        (502, "GET", "InternalError"),
        (418, "GET", ""),
    ],
)
async def test_an_error_that_is_no_status_gets_the_reason_of_its_code(certificate, code, method, reason):
    async def handler(request):
        return web.Response(text="<html>proxy says no", status=code)

    async with serving(certificate, handler) as client:
        with pytest.raises(StatusError) as refused:
            await client.request(method, "/api/v1/pods", body={} if method != "GET" else None)
    assert (refused.value.code, refused.value.reason) == (code, reason)
    assert "proxy says no" in str(refused.value.status)


async def test_an_answer_that_is_not_json_is_a_lost_connection(certificate):
    async def handler(request):
        return web.Response(text="<html>")

    async with serving(certificate, handler) as client:
        with pytest.raises(ConnectionLost, match="not a JSON object"):
            await client.get(NODES, "n")


async def test_a_server_that_is_not_there_is_a_lost_connection():
    client = HTTPClient("http://127.0.0.1:1", ssl_context=None)
    with pytest.raises(ConnectionLost):
        await client.get(NODES, "n")
    await client.close()
    with pytest.raises(ConnectionLost, match="closed"):
        await client.get(NODES, "n")


async def test_a_server_with_a_foreign_certificate_is_refused(certificate):
    async with serving(certificate, answers({})) as client:
        stranger = HTTPClient(client.server, ssl_context=ssl.create_default_context())
        with pytest.raises(ConnectionLost, match="certificate"):
            await stranger.get(NODES, "n")
        await stranger.close()


async def test_a_request_that_gets_no_answer_in_time_is_a_lost_connection(certificate):
    async def handler(request):
        await asyncio.sleep(30)  # a server that hangs

    async with serving(certificate, handler, request_timeout=0.2) as client:
        with pytest.raises(ConnectionLost, match="no answer in time"):
            await client.get(NODES, "n")


def streaming(*chunks, then="end"):
    async def handler(request):
        handler.paths.append(request.path_qs)
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0.01)  # so that each chunk comes alone
        if then == "hang":
            await asyncio.sleep(30)  # a server that hangs
        if then == "abort":
            request.transport.abort()
        return response

    handler.paths = []
    return handler


async def collect(client, **options):
    found = []
    async with client.watch(PODS, "default", **options) as events:
        async for event in events:
            found.append((event.type, event.object))
    return found


async def test_a_watch_gives_events_however_the_bytes_are_cut(certificate):
    big = {"type": "ADDED", "object": {"metadata": {"name": "x" * 300_000}}}
    data = b"".join(
        orjson.dumps(event) + b"\n"
        for event in ({"type": "ADDED", "object": {"n": 1}}, big, {"type": "DELETED", "object": {"n": "\n"}})
    )
    cuts = [0, 1, 7, 41, 42, 43, 1000, 250_000, len(data) - 1, len(data)]
    chunks = [data[a:b] for a, b in itertools.pairwise(cuts)]
    handler = streaming(*chunks)
    async with serving(certificate, handler) as client:
        found = await collect(client, resource_version="5", label_selector="a=b", bookmarks=True)
    assert [kind for kind, _ in found] == ["ADDED", "ADDED", "DELETED"]
    assert found[1][1] == big["object"]
    assert handler.paths == [
        "/api/v1/namespaces/default/pods?watch=true&labelSelector=a%3Db&resourceVersion=5&allowWatchBookmarks=true"
    ]


async def test_bookmarks_are_handed_on_only_when_asked_for(certificate):
    line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n'
    async with serving(certificate, streaming(line)) as client:
        assert await collect(client) == []
        assert [kind for kind, _ in await collect(client, bookmarks=True)] == ["BOOKMARK"]


async def test_an_error_event_is_handed_on(certificate):
    line = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'
    async with serving(certificate, streaming(line)) as client:
        assert await collect(client) == [("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})]


async def test_a_watch_refused_at_the_start_raises_on_entering(certificate):
    async with serving(certificate, answers({"kind": "Status", "reason": "Expired"}, status=410)) as client:
        with pytest.raises(StatusError) as refused:
            await collect(client)
    assert refused.value.code == 410


async def test_events_before_a_broken_connection_arrive_and_then_the_loss(certificate):
    line = b'{"type":"ADDED","object":{"n":1}}\n'
    async with serving(certificate, streaming(line, then="abort")) as client:
        async with client.watch(PODS) as events:
            assert (await anext(events)).object == {"n": 1}
            with pytest.raises(ConnectionLost):
                await anext(events)


async def test_half_an_event_at_the_end_is_a_loss(certificate):
    async with serving(certificate, streaming(b'{"type":"ADDED","obj')) as client:
        with pytest.raises(ConnectionLost, match="middle of an event"):
            await collect(client)


async def test_leaving_a_watch_frees_its_connection_at_once(certificate):
    async with serving(certificate, streaming(b'{"type":"ADDED","object":{"n":1}}\n', then="hang")) as client:
        async with asyncio.timeout(60):
            async with client.watch(PODS) as events:
                async for event in events:
                    assert event.object == {"n": 1}
                    break


async def test_a_watch_has_no_time_limit_of_its_own(certificate):
    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.sleep(0.5)  # longer than the client's timeout for requests
        await response.write(b'{"type":"ADDED","object":{"n":1}}\n')
        return response

    async with serving(certificate, handler, request_timeout=0.2) as client:
        assert await collect(client) == [("ADDED", {"n": 1})]


async def test_a_log_is_streamed_with_its_options(certificate):
    handler = streaming(b"one\ntw", b"o\n")
    async with serving(certificate, handler) as client:
        data = b""
        async for piece in client.pod_log(
            "default", "web", "app", follow=True, previous=True, timestamps=True, tail_lines=0, since_seconds=5
        ):
            data += piece
    assert data == b"one\ntwo\n"
    assert handler.paths == [
        "/api/v1/namespaces/default/pods/web/log?container=app&follow=true&previous=true&timestamps=true"
        "&tailLines=0&sinceSeconds=5"
    ]


async def test_a_log_that_is_refused_raises(certificate):
    async with serving(certificate, answers({"kind": "Status", "message": "waiting"}, status=400)) as client:
        with pytest.raises(StatusError, match="waiting"):
            async for _ in client.pod_log("default", "web"):
                pass


@pytest.mark.parametrize("server", ["127.0.0.1:6443", "ftp://h", "https://"])
def test_a_server_that_is_no_url_is_refused(server):
    with pytest.raises(ValueError, match="must be a URL"):
        HTTPClient(server, ssl_context=ssl.create_default_context())


async def test_a_proxy_with_tls_of_its_own_is_trusted_by_the_machines_authorities(certificate, monkeypatch):
    async def proxy(request):
        return web.json_response({"host": request.host})

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    async with serving(certificate, proxy) as behind:
        client = HTTPClient("http://api.example.com", ssl_context=None, proxy=behind.server)
        try:
            answer = json.loads(await client.request("GET", "/api/v1/namespaces"))
        finally:
            await client.close()
    assert answer["host"] == "api.example.com"


@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_an_answer_without_an_end_is_given_up(certificate, encoding):
    piece = gzip.compress(bytes(1 << 20)) if encoding else bytes(1 << 20)  # once: it takes this loop's time

    async def handler(request):
        response = web.StreamResponse(headers={"Content-Encoding": encoding} if encoding else {})
        response.enable_chunked_encoding()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(piece)
        return response

    async with serving(certificate, handler) as client:
        client._reading = Reading(most=4 << 20)
        with pytest.raises(UnusableAnswer) as lost:
            await client.list(PODS)
        assert lost.value.reason.startswith("the answers have more than 4 MiB: ask for less")


async def test_headers_without_an_end_are_given_up(certificate):
    sent = 0

    async def handler(request):
        nonlocal sent
        request.transport.write(b"HTTP/1.1 200 OK\r\n")
        while not request.transport.is_closing():
            sent += 1
            request.transport.write(b"X-%d: %s\r\n" % (sent, b"y" * 100))
            await asyncio.sleep(0)  # the client has its turn
        raise ConnectionResetError

    async with serving(certificate, handler) as client:
        with pytest.raises(ConnectionLost, match="Too many headers"):
            await client.list(PODS)
    assert sent < 100_000


async def test_answers_that_are_read_at_a_time_have_one_limit_and_those_before_do_not_count(certificate):
    async def handler(request):
        return web.json_response({"items": [], "x": "y" * 600_000})

    async with serving(certificate, handler) as client:
        client._reading = Reading(most=1 << 20)
        for _ in range(3):
            await client.list(PODS)
        ends = await asyncio.gather(*(client.list(PODS) for _ in range(20)), return_exceptions=True)
        assert any(isinstance(each, UnusableAnswer) for each in ends)
        await client.list(PODS)


async def test_an_event_of_a_watch_without_an_end_is_given_up(certificate, monkeypatch):
    monkeypatch.setattr(answering, "MOST_EVENT_BYTES", 1 << 20)
    small = orjson.dumps({"type": "ADDED", "object": {"metadata": {"name": "x" * 1000}}}) + b"\n"

    async def handler(request):
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            for _ in range(2000):
                await response.write(small)
            while True:
                await response.write(b"x" * 65536)
        return response

    async with serving(certificate, handler) as client, client.watch(PODS) as events:
        for _ in range(2000):
            await anext(events)
        with pytest.raises(UnusableAnswer, match="an event of the watch has more than 1 MiB"):
            await anext(events)


@pytest.mark.parametrize("body", [b"<html>\x1b[31m", b"[]", b"", b"null", b"[" * 100_000])
async def test_an_answer_that_is_not_an_object_is_named_without_what_a_terminal_would_obey(certificate, body):
    async def handler(request):
        return web.Response(body=body)

    async with serving(certificate, handler) as client:
        with pytest.raises(UnusableAnswer, match="the answer is not a JSON object") as lost:
            await client.get(PODS, "a", "b")
        assert "\x1b" not in str(lost.value) and len(str(lost.value)) < 400


async def test_a_message_of_a_websocket_that_is_too_large_is_not_kept(certificate, monkeypatch):
    monkeypatch.setattr("lastcall.kube.client.http.MOST_EVENT_BYTES", 1000)

    async def handler(request):
        socket = web.WebSocketResponse(protocols=["v5.channel.k8s.io"])
        await socket.prepare(request)
        for size in (999, 2000, 10):
            with contextlib.suppress(ConnectionError):
                await socket.send_bytes(bytes(size))
        await socket.receive()
        return socket

    async with (
        serving(certificate, handler) as client,
        client.websocket("/exec", (), ("v5.channel.k8s.io",)) as messages,
    ):
        assert [len(each.data) async for each in messages if isinstance(each.data, bytes)] == [999]
        assert messages.closed
