"""A request with a Host that is not the server's, or in another HTTP, is refused."""

import asyncio

import pytest
from api_server import running_server
from asker import raw_answer

from lastcall.kube.streaming.hosts import host_name

pytestmark = pytest.mark.loopback


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:6443", "localhost"),
        ("kubernetes.default.svc.cluster.local.", "kubernetes.default.svc.cluster.local"),
        ("127.0.0.1:6443", "127.0.0.1"),
        ("[::1]:6443", "::1"),
        ("[::1]", "::1"),
        ("", ""),
        (":80", ""),
        ("evil.example", "evil.example"),
        *((bad, None) for bad in ("a b", "a/b", "u@a", "a:x", "[::1", "::1", "a\x80", "a:80:80", "[evil]", "a?b")),
    ],
)  # fmt: skip
def test_a_host_has_a_name_or_is_malformed(header: str, name: str | None) -> None:
    assert host_name(header) == name


GOOD = (b"localhost", b"localhost:1", b"127.0.0.1:6443", b"127.8.8.8", b"[::1]:6443", b"", b"kubernetes",
        b"kubernetes.default", b"KUBERNETES.default.svc:443", b"kubernetes.default.svc.cluster.local.", b"10.96.0.1",
        b"own.example:1234")  # fmt: skip


async def test_the_api_answers_its_own_names_and_refuses_all_others() -> None:
    async with running_server(hosts=("own.example",)) as running:
        for version in (b"HTTP/1.1", b"HTTP/1.0"):
            for host in GOOD:
                answer = await ask(running, b"GET /version " + version, b"Host: " + host)
                assert answer.startswith(version + b" 200"), (host, answer)
            for host in (
                b"evil.example",
                b"localhost.evil.example",
                b"evil.example:6443",
                b"192.0.2.1",
                b"own.example.x",
            ):
                answer = await ask(running, b"GET /version " + version, b"Host: " + host)
                assert answer.startswith(version + b" 421"), (host, answer)
                assert b"gitVersion" not in answer
            for host in (b"a b", b"u@localhost", b"localhost/", b"localhost:x", b"\xff"):
                answer = await ask(running, b"GET /version " + version, b"Host: " + host)
                assert answer.startswith(version + b" 400"), (host, answer)
        for line in (b"https://localhost/version", b"https://[::1]:6443/version"):
            answer = await ask(running, b"GET " + line + b" HTTP/1.1", b"Host: localhost")
            assert answer.startswith(b"HTTP/1.1 200")
        for line, host in ((b"https://evil/version", b"localhost"), (b"https://localhost/version", b"evil")):
            answer = await ask(running, b"GET " + line + b" HTTP/1.1", b"Host: " + host)
            assert answer.startswith(b"HTTP/1.1 421"), answer


@pytest.mark.parametrize("version", [b"", b" HTTP/0.9", b" HTTP/2.0", b" HTTP/3.7"])
async def test_another_http_is_a_bad_request(version: bytes) -> None:
    async with running_server() as running:
        answer = await ask(running, b"GET /version" + version)
        assert b" 400 " in answer.split(b"\r\n")[0]
        assert b"gitVersion" not in answer


async def ask(running, *lines: bytes) -> bytes:
    return await asyncio.to_thread(raw_answer, running, b"\r\n".join([*lines, b"Connection: close", b"", b""]))
