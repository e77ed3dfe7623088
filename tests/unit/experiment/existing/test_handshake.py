"""The handshake with an https entrance before anything is asked: each way to fail has its words and its fix."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lastcall.errors import UserError, WorldError
from lastcall.experiment.existing.entrance import of_url
from lastcall.experiment.existing.handshake import certificate_sentence, check_handshake, read_ca
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.client.access.certificates import Certificate, Problem

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def certificate(**changes: object) -> Certificate:
    known: dict[str, object] = {"subject": "CN=a", "issuer": "CN=acme", "names": ("a.example",)}
    times = {"begins": NOW - timedelta(days=1), "ends": NOW + timedelta(days=1)}
    return Certificate(**{**known, **times, **changes})  # type: ignore[arg-type]


SENTENCES: list[tuple[Problem, Certificate | None, str]] = [
    ("expired", certificate(ends=NOW - timedelta(hours=25)), "its certificate expired 1 d 1 h ago"),
    ("expired", None, "its certificate expired\nfix: renew it"),
    ("not yet valid", certificate(begins=NOW + timedelta(hours=2)), "not valid yet for another 2 h"),
    ("unknown authority", certificate(), "a CA (CN=acme) that this machine does not trust\nfix: --url-ca FILE"),
    ("another name", certificate(), "is valid for a.example, not for b.example\nfix: use one of its names in --url"),
    ("other", None, "its certificate is not accepted: because"),
]


@pytest.mark.parametrize(("problem", "seen", "told"), SENTENCES)
def test_what_is_wrong_with_a_certificate_is_told_with_the_fix(
    problem: Problem, seen: Certificate | None, told: str
) -> None:
    assert told in certificate_sentence(problem, "because", seen, "b.example", NOW)


async def handshake(tls: ssl.SSLContext | None, ca_pem: str, host: str = "localhost") -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        await check_handshake(of_url(f"https://{host}:{server.sockets[0].getsockname()[1]}"), ca_pem)
    finally:
        server.close()


def of(authority: ClusterCA, folder: Path, name: str = "localhost") -> ssl.SSLContext:
    file = folder / "server.pem"
    file.write_bytes(b"".join(authority.issue_server([name])))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@pytest.mark.loopback
async def test_a_server_that_is_trusted_is_no_error(tmp_path: Path) -> None:
    authority = ClusterCA.create()
    await handshake(of(authority, tmp_path), authority.certificate_pem.decode())


@pytest.mark.loopback
async def test_each_way_to_fail_is_told(tmp_path: Path) -> None:
    authority = ClusterCA.create()
    trusted = authority.certificate_pem.decode()
    with pytest.raises(WorldError, match="this machine does not trust\nfix: --url-ca FILE"):
        await handshake(of(authority, tmp_path), ClusterCA.create().certificate_pem.decode())
    with pytest.raises(WorldError, match=r"valid for other.example, not for localhost"):
        await handshake(of(authority, tmp_path, "other.example"), trusted)
    with pytest.raises(WorldError, match=r"does not complete the TLS handshake.*\nfix: write http://"):
        await handshake(None, trusted)
    with pytest.raises(WorldError, match=r"127\.0\.0\.1:1 cannot be reached: "):
        await check_handshake(of_url("https://127.0.0.1:1"), trusted)


@pytest.mark.parametrize("content", [b"", b"\n", b"nothing", b"\xff\xfe", None])
def test_a_file_without_certificates_is_refused_by_name(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=f"--url-ca {file}: "):
        read_ca(file)


def test_without_a_file_this_machines_authorities_are_trusted() -> None:
    assert read_ca(None) == ""
