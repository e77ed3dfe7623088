"""`rollout --context` on a cluster that cannot be used: one error, with what is the matter, and nothing is done."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from lastcall.cli.rollout.command import rollout
from lastcall.errors import LastcallError, UserError
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.client.kubeconfig import render_kubeconfig

pytestmark = pytest.mark.loopback


def expired(ca: ClusterCA) -> bytes:
    """A server's certificate of the day before yesterday, with its key."""
    cert, key = ca.issue_server(["127.0.0.1"])
    was, now = x509.load_pem_x509_certificate(cert), datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(was.subject).issuer_name(was.issuer).serial_number(7)
    builder = builder.public_key(was.public_key()).not_valid_before(now - timedelta(days=3))
    builder = builder.not_valid_after(now - timedelta(days=2))
    for each in was.extensions:
        builder = builder.add_extension(each.value, each.critical)
    return builder.sign(load_pem_private_key(ca.key_pem, None), SHA256()).public_bytes(Encoding.PEM) + key  # type: ignore[arg-type]


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def server(tmp_path: Path, asked: list[str]) -> Iterator[tuple[ClusterCA, int]]:
    ca = ClusterCA.create()
    (tmp_path / "server.pem").write_bytes(expired(ca))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.pem")
    loop, port = asyncio.new_event_loop(), list[int]()

    async def handle(request: web.BaseRequest) -> web.Response:
        asked.append(f"{request.method} {request.headers.get('Authorization', '')}".strip())
        return web.json_response({"gitVersion": "v1.99.0"})

    async def begin() -> web.ServerRunner:
        runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port.append(site._server.sockets[0].getsockname()[1])  # type: ignore[union-attr]
        return runner

    runner = loop.run_until_complete(begin())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield ca, port[0]
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def refused(config: Path, context: str) -> LastcallError:
    arguments = ["deployment/web", "--kubeconfig", str(config), "--context", context, f"--yes={context}"]
    result = CliRunner().invoke(rollout, arguments)
    assert isinstance(result.exception, LastcallError), (result.exception, result.output)
    return result.exception


def test_an_expired_certificate_is_told_with_its_time_and_the_server_is_asked_for_nothing(
    tmp_path: Path, server: Any, asked: list[str]
) -> None:
    ca, port = server
    config = tmp_path / "config"
    config.write_text(render_kubeconfig("theirs", f"https://127.0.0.1:{port}", ca.certificate_pem, token="secret"))
    name = "theirs"
    error = refused(config, name)
    assert "the API server's certificate expired at" in str(error)
    assert asked == ["HEAD"], "whoever cannot be trusted gets no credentials"


def test_a_cluster_that_is_not_there_and_a_context_that_is_not_known(tmp_path: Path) -> None:
    ca = ClusterCA.create()
    config = tmp_path / "config"
    config.write_text(render_kubeconfig("theirs", "https://127.0.0.1:1", ca.certificate_pem, token="secret"))
    assert "was refused" in str(refused(config, "theirs"))
    error = refused(config, "others")
    assert "others" in str(error) and isinstance(error, UserError)
