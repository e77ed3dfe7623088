"""httpGet hooks with the real dialer against small servers: HTTPS, its fallback, headers (node-semantics 7)."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lastcall.kube.node.prober.dialer import RealDialer
from lastcall.kube.node.stopping.hooks import HandlerRunner, HookError
from lastcall.kube.node.versions import behaviour_of
from lastcall.world.clock import RealClock

pytestmark = pytest.mark.loopback

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
POD = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"containers": [{"name": "app"}]}}


class Events:
    def __init__(self) -> None:
        self.told: list[tuple[str, str, str, str]] = []

    def event(self, obj: Any, event_type: str, reason: str, message: str, *, field_path: str = "") -> None:
        self.told.append((event_type, reason, message, field_path))


@asynccontextmanager
async def server(answer: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Answers anything at all, as soon as something has come."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(4096))
        writer.write(answer)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield listening.sockets[0].getsockname()[1], heard
    finally:
        listening.close()


async def run_hook(action: dict[str, Any], events: Events) -> None:
    runtime: Any = None
    runner = HandlerRunner(
        clock=RealClock(), runtime=runtime, dialer=RealDialer(), events=events, behaviour=behaviour_of("1.36")
    )

    async def no_ip() -> str:
        return ""

    async with asyncio.timeout(30):
        await runner.run("id", POD, {"name": "app"}, {"httpGet": {"host": "127.0.0.1", **action}}, no_ip)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """Of a certificate that nobody trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "elsewhere")])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=1))
    )
    certificate = made.sign(key, hashes.SHA256())
    path: Path = tmp_path_factory.mktemp("tls") / "both.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    made_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made_context.load_cert_chain(path)
    return made_context


@pytest.mark.rule("node-semantics 7/http-request")
async def test_https_is_not_verified_and_headers_may_be_replaced(context: ssl.SSLContext) -> None:
    events = Events()
    headers = [{"name": "Host", "value": "shop.example"}, {"name": "User-Agent", "value": "mine"}]
    async with server(OK, context) as (port, heard):
        await run_hook({"port": port, "scheme": "HTTPS", "path": "/bye", "httpHeaders": headers}, events)
    (request,) = heard
    lines = request.decode().split("\r\n")
    assert lines[0] == "GET /bye HTTP/1.1"
    assert "Host: shop.example" in lines and "User-Agent: mine" in lines and "Accept: */*" in lines
    assert sum(line.lower().startswith(("host:", "user-agent:")) for line in lines) == 2
    assert events.told == []


@pytest.mark.rule("node-semantics 7/https-fallback")
async def test_an_https_hook_answered_in_plain_http_is_repeated_without_credentials() -> None:
    events = Events()
    headers = [{"name": "Authorization", "value": "Bearer secret"}, {"name": "X-Other", "value": "kept"}]
    async with server(OK) as (port, heard):
        await run_hook({"port": port, "scheme": "HTTPS", "path": "/bye", "httpHeaders": headers}, events)
    assert heard[0].startswith(b"\x16\x03") and heard[-1].startswith(b"GET /bye HTTP/1.1\r\n")
    assert b"X-Other: kept" in heard[-1] and b"Bearer" not in b"".join(heard)
    text = f"request to HTTPS lifecycle hook 127.0.0.1:{port} got HTTP response, retry with HTTP succeeded"
    assert events.told == [("Warning", "LifecycleHTTPFallback", text, "spec.containers{app}")]


@pytest.mark.rule("node-semantics 7/https-fallback")
async def test_what_is_neither_is_a_failure() -> None:
    events = Events()
    async with server(b"SSH-2.0-OpenSSH_9.9\r\n") as (port, _):
        with pytest.raises(HookError, match="first record does not look like a TLS handshake"):
            await run_hook({"port": port, "scheme": "HTTPS"}, events)
    assert events.told == []
