"""What a command says of a cluster that cannot be used: certificates, clocks, tokens, servers that are not there."""

import asyncio
import base64
import json
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from lastcall.cli.terminal import note
from lastcall.contexts.connection import choose, connected
from lastcall.contexts.diagnosis import clock_of, clock_sentence
from lastcall.contexts.options import ContextOptions
from lastcall.contexts.untrusted_server import clock_sample, read_certificate
from lastcall.errors import LastcallError
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.client.access.certificates import client_sentence, format_span, token_sentence
from lastcall.kube.client.kubeconfig import render_kubeconfig

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def dated(seconds: float, took: float = 0.1) -> str:
    """The sentence about a server whose clock is so far ahead of ours."""
    sent = NOW.timestamp()
    return clock_sentence(clock_of(clock_sample(format_datetime(NOW + timedelta(seconds=seconds)), sent, sent + took)))


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (0, ""),
        (45, ""),
        (-45, ""),
        (3600, "this machine's clock is 1 h behind the API server's"),
        (-3720, "this machine's clock is 1 h 2 min ahead of the API server's"),
    ],
)
def test_a_clock_that_is_wrong_is_told_by_how_much_and_in_which_direction(ahead, words):
    told = dated(ahead)
    assert told.startswith(words) and bool(told) is bool(words)


def test_nothing_is_said_of_a_clock_inside_the_error_and_without_a_date():
    assert dated(90, took=300) == ""
    assert clock_sentence(clock_of(clock_sample("yesterday", 0, 1))) == ""


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(seconds=0), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(hours=1, minutes=2, seconds=3), "1 h 2 min"),
        (timedelta(days=-400, hours=0), "400 d"),
        (timedelta(days=1, minutes=5), "1 d"),
    ],
)
def test_a_span_is_told_by_its_two_greatest_units(span, words):
    assert format_span(span) == words


def jwt(claims: object) -> str:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{part}.sig"


def test_a_token_that_has_expired_is_said_to_have():
    told = token_sentence(jwt({"exp": (NOW - timedelta(hours=2)).timestamp()}), NOW)
    assert told.startswith("the token expired at 2026-06-01T10:00:00Z, 2 h ago")
    later = jwt({"exp": (NOW + timedelta(hours=2)).timestamp()})
    for token in (later, "opaque", "a.b.c", jwt([]), jwt({"exp": "soon"}), jwt({"exp": 1e300}), ""):
        assert token_sentence(token, NOW) == ""


def test_a_client_certificate_that_has_expired_is_said_to_have():
    certificate = read_certificate(ClusterCA.create().issue_client("jane")[0])
    assert certificate is not None and certificate.subject == "CN=jane"
    assert client_sentence(certificate, certificate.ends - timedelta(hours=1)) == ""
    assert "expired at" in client_sentence(certificate, certificate.ends + timedelta(days=3))
    assert "3 d ago" in client_sentence(certificate, certificate.ends + timedelta(days=3))
    assert "later than this machine's clock" in client_sentence(certificate, certificate.begins - timedelta(days=3))
    assert read_certificate(b"nonsense") is None


class Server:
    """Answers /version over TLS with a certificate of its own."""

    def __init__(self, tmp_path, *, ahead: float = 0, code: int = 200) -> None:
        self.folder, self.ahead, self.code = tmp_path, ahead, code
        self.authorizations: list[str] = []

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.authorizations.append(request.headers.get("Authorization", ""))
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=self.ahead), usegmt=False)
        return web.json_response({"gitVersion": "v1.99.0"}, status=self.code, headers={"Date": date})

    async def connect(self, ca: ClusterCA, pair: tuple[bytes, bytes]) -> str:
        (self.folder / "server.pem").write_bytes(pair[0] + pair[1])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.folder / "server.pem")
        runner = web.ServerRunner(web.Server(self.handle), shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
            await site.start()
            port = site._server.sockets[0].getsockname()[1]
            config = self.folder / "config"
            config.write_text(render_kubeconfig("c", f"https://127.0.0.1:{port}", ca.certificate_pem, token="secret"))
            async with connected(choose(ContextOptions(str(config))), agent="test", warn=note) as cluster:
                return cluster.version
        finally:
            await runner.cleanup()


def certificate(ca: ClusterCA, begins: timedelta, ends: timedelta) -> tuple[bytes, bytes]:
    """A server's, valid from and until so long after now."""
    cert, key = ca.issue_server(["127.0.0.1"])
    found = x509.load_pem_x509_certificate(cert)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(found.subject)
        .issuer_name(found.issuer)
        .public_key(found.public_key())
        .serial_number(7)
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
    )
    for extension in found.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    signed = builder.sign(load_pem_private_key(ca.key_pem, None), SHA256())
    return signed.public_bytes(Encoding.PEM), key


DAY = timedelta(days=1)


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("begins", "ends", "words"),
    [
        (-3 * DAY, -2 * DAY, "the API server's certificate expired at"),
        (2 * DAY, 3 * DAY, "the API server's certificate is not valid before"),
    ],
)
def test_a_certificate_at_the_wrong_time_is_told_with_the_time_and_the_server_s_clock(tmp_path, begins, ends, words):
    ca = ClusterCA.create()
    server = Server(tmp_path, ahead=-7200)
    with pytest.raises(LastcallError) as refused:
        asyncio.run(server.connect(ca, certificate(ca, begins, ends)))
    assert words in str(refused.value)
    assert "this machine's clock is 2 h ahead of the API server's" in str(refused.value)
    assert server.authorizations == [""], "whoever cannot be trusted gets no credentials"


@pytest.mark.loopback
def test_a_clock_that_is_an_hour_behind_is_warned_of_where_all_else_is_well(tmp_path, capsys):
    ca = ClusterCA.create()
    assert asyncio.run(Server(tmp_path, ahead=3600).connect(ca, ca.issue_server(["127.0.0.1"]))) == "v1.99.0"
    assert "warning: this machine's clock is" in capsys.readouterr().err


@pytest.mark.loopback
def test_a_401_says_what_was_not_accepted(tmp_path):
    ca = ClusterCA.create()
    with pytest.raises(LastcallError, match=r"You must be logged in to the server .* it does not accept a token"):
        asyncio.run(Server(tmp_path, code=401).connect(ca, ca.issue_server(["127.0.0.1"])))


@pytest.mark.loopback
def test_a_server_without_tls_is_told(tmp_path):
    async def connect() -> None:
        async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(close, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            config = tmp_path / "config"
            ca = ClusterCA.create().certificate_pem
            config.write_text(render_kubeconfig("c", f"https://127.0.0.1:{port}", ca, token="secret"))
            async with connected(choose(ContextOptions(str(config))), agent="test", warn=note):
                raise AssertionError("it speaks no TLS")

    with pytest.raises(LastcallError, match="does not speak TLS"):
        asyncio.run(connect())
