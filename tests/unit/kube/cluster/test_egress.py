"""The way out of a cluster: dialing, proxies, credentials, and a node that was started anew."""

import asyncio
import base64
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until

from lastcall.kube.cluster.egress.dial_out import DialOutError, Proxy, dial_out, is_loopback, proxy_for
from lastcall.kube.cluster.egress.pair import EgressClient, EgressServer, egress_pair, local_way_out
from lastcall.kube.cri.api import AuthConfig, RuntimeServiceError
from lastcall.kube.cri.sandbox.images.way_out import DialError

pytestmark = pytest.mark.loopback


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """A server that sends back what it gets."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                while data := connection.recv(4096):
                    connection.sendall(data)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()[:2]
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(60)


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


async def settled(before: int) -> bool:
    """As many fds are open again; the echo server's end closes a moment later."""
    return await until(lambda: open_fds() == before, f"{before} open descriptors", said=open_fds)


async def test_the_host_dials_and_hands_the_connection_in(echo: tuple[str, int]) -> None:
    with local_way_out() as way_out:
        sock = await way_out.dial(*echo, tls=False)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(sock, b"hello")
        assert await loop.sock_recv(sock, 10) == b"hello"
        assert not os.get_inheritable(sock.fileno())
        sock.close()


@pytest.mark.parametrize(
    ("host", "port", "text"),
    [
        ("127.0.0.1", 9, "dial tcp 127.0.0.1:9: connect: connection refused"),
        ("::1", 9, "dial tcp [::1]:9: connect: "),
        ("no-such-host.invalid", 443, "dial tcp: lookup no-such-host.invalid: no such host"),
        ("127.0.0.1", 0, "an address is a host and a port"),
        ("127.0.0.1", 70000, "an address is a host and a port"),
        ("", 443, "dial tcp"),
    ],
)
async def test_no_connection_is_told_in_go_s_words(host: str, port: int, text: str) -> None:
    with local_way_out() as way_out:
        with pytest.raises(DialError) as caught:
            await way_out.dial(host, port, tls=True)
    assert str(caught.value).startswith(text)


async def test_many_ask_at_once_and_nothing_leaks(echo: tuple[str, int]) -> None:
    before = open_fds()
    with local_way_out() as way_out:
        sockets = await asyncio.gather(*(way_out.dial(*echo, tls=False) for _ in range(20)))
        assert len({sock.getsockname() for sock in sockets}) == 20
        for sock in sockets:
            sock.close()
    assert await settled(before)


async def test_a_cancelled_dial_leaks_nothing(echo: tuple[str, int]) -> None:
    before = open_fds()
    with local_way_out() as way_out:
        tasks = [asyncio.ensure_future(way_out.dial(*echo, tls=False)) for _ in range(10)]
        for number, task in enumerate(tasks):
            await asyncio.sleep(0.001 * (number % 3))  # cancel at different stages; any is right
            task.cancel()
        for each in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(each, socket.socket):
                each.close()
        (await way_out.dial(*echo, tls=False)).close()  # what was asked before is answered before
        await asyncio.sleep(0.1)  # late answers would come now
    assert await settled(before)


async def test_a_node_that_was_started_anew_drops_answers_that_are_not_its_own(echo: tuple[str, int]) -> None:
    before = open_fds()
    front, node = egress_pair()
    server = EgressServer(front)
    server.start()
    # The one that dies: asks, and never reads the answer.
    node.send(json.dumps({"call": "old-1", "verb": "dial", "host": echo[0], "port": echo[1], "tls": False}).encode())
    await asyncio.sleep(0.1)  # the server has taken the call
    client = EgressClient(node)
    (await client.dial(*echo, tls=False)).close()
    client.close()
    server.close()
    assert await settled(before)


async def test_when_front_is_gone_the_asker_is_told(echo: tuple[str, int]) -> None:
    front, node = egress_pair()
    client = EgressClient(node)
    asking = asyncio.ensure_future(client.dial(*echo, tls=False))
    await asyncio.sleep(0)
    front.close()
    with pytest.raises(DialError, match="the host's end is gone"):
        await asking
    with pytest.raises(DialError, match="the host's end is gone"):
        await client.dial(*echo, tls=False)
    with pytest.raises(RuntimeServiceError, match="the host's end is gone"):
        await client.credentials("r.example/app")
    client.close()


@pytest.mark.parametrize("nonsense", [b"{", b"[]", b"{}", b'{"call": 1}', b"\xff", b'{"call": [], "verb": []}'])
async def test_nonsense_from_inside_is_answered_and_does_no_harm(nonsense: bytes, echo: tuple[str, int]) -> None:
    front, node = egress_pair()
    server = EgressServer(front)
    server.start()
    node.send(nonsense)
    node.setblocking(True)
    node.settimeout(60)
    refused = json.loads(await asyncio.to_thread(node.recv, 65536))
    assert refused["error"].startswith("unknown verb") and "dial_outside" in refused["error"]
    client = EgressClient(node)
    (await client.dial(*echo, tls=False)).close()
    client.close()
    server.close()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"verb": "dial", "host": "x", "port": "80", "tls": False}, "port must be int, not '80'"),
        ({"verb": "dial", "host": "x", "port": True, "tls": False}, "port must be int, not True"),
        ({"verb": "dial", "host": "x", "port": 80}, "dial needs tls"),
        ({"verb": "resolve", "name": "x", "family": "A", "ttl": 1}, "resolve has no field 'ttl'"),
    ],
)
async def test_wrong_fields_are_answered_with_what_is_wrong(asked: dict[str, object], said: str) -> None:
    front, node = egress_pair()
    server = EgressServer(front)
    server.start()
    node.send(json.dumps({"call": "1", **asked}).encode())
    node.settimeout(60)
    assert json.loads(await asyncio.to_thread(node.recv, 65536)) == {"answer": "1", "error": said}
    node.close()
    server.close()


async def test_credentials_come_from_the_docker_config_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with local_way_out() as way_out:
        assert await way_out.credentials("r.example/app") is None
        (tmp_path / "config.json").write_text('{"auths": {"r.example": {"username": "u", "password": "p"}}}')
        assert await way_out.credentials("r.example/app") == AuthConfig("u", "p")
        assert await way_out.credentials("other.example/app") is None
        (tmp_path / "config.json").write_text("{")
        with pytest.raises(RuntimeServiceError, match=r"config\.json: it is not JSON"):
            await way_out.credentials("r.example/app")


# -- proxies -------------------------------------------------------------------------------------------------------

PROXY = {"HTTPS_PROXY": "http://user:p%40ss@proxy.example:3128", "HTTP_PROXY": "plain.example:80"}


@pytest.mark.parametrize(
    ("host", "tls", "no_proxy", "proxy"),
    [
        ("r.example", True, "", "proxy.example"),
        ("r.example", False, "", "plain.example"),
        ("127.0.0.1", True, "", ""),
        ("127.1.2.3", True, "", ""),
        ("localhost", True, "", ""),
        ("::1", True, "", ""),
        ("r.example", True, "*", ""),
        ("r.example", True, "other.example, r.example", ""),
        ("a.r.example", True, "r.example", ""),
        ("a.r.example", True, ".r.example", ""),
        ("a.r.example", True, "*.r.example", ""),
        ("r.example", True, ".r.example", "proxy.example"),
        ("xr.example", True, "r.example", "proxy.example"),
        ("r.example", True, "r.example:443", ""),
        ("r.example", True, "r.example:8443", "proxy.example"),
        ("10.1.2.3", True, "10.0.0.0/8", ""),
        ("11.1.2.3", True, "10.0.0.0/8", "proxy.example"),
        ("10.1.2.3", True, "10.1.2.3", ""),
    ],
)
def test_the_environment_names_the_proxy(host: str, tls: bool, no_proxy: str, proxy: str) -> None:
    found = proxy_for(host, 443, tls=tls, environ={**PROXY, "NO_PROXY": no_proxy})
    assert (found.host if found else "") == proxy


def test_a_proxy_s_credentials_are_sent_to_it() -> None:
    found = proxy_for("r.example", 443, tls=True, environ=PROXY)
    token = base64.b64encode(b"user:p@ss").decode()
    assert found == Proxy("proxy.example", 3128, f"Basic {token}")


@pytest.mark.parametrize("url", ["https://proxy.example:3128", "socks5://proxy.example", "http://", "http://p:99999"])
def test_a_proxy_that_cannot_be_used_is_named(url: str) -> None:
    with pytest.raises(DialOutError, match="only http://HOST:PORT proxies can be used"):
        proxy_for("r.example", 443, tls=True, environ={"https_proxy": url})


def test_loopback_is_told_by_name_alone() -> None:
    assert [is_loopback(host) for host in ("localhost", "127.9.9.9", "::1", "10.0.0.1", "localhost.example")] == [
        True, True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n", ""),
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407 Proxy Authentication Required"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "502 Bad Gateway"),
        (b"", "does not answer as a proxy"),
        (b"x" * 20000, "does not answer as a proxy"),
    ],
)
def test_a_tunnel_through_the_proxy(answer: bytes, error: str) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    asked: list[bytes] = []

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            asked.append(connection.recv(4096))
            connection.sendall(answer + b"first bytes")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    environ = {"HTTPS_PROXY": f"http://127.0.0.1:{server.getsockname()[1]}"}
    if error:
        with pytest.raises(DialOutError, match=error):
            dial_out("r.example", 443, tls=True, environ=environ)
    else:
        with dial_out("r.example", 443, tls=True, environ=environ) as sock:
            assert sock.recv(100) == b"first bytes", "the proxy's answer is not the registry's"
    thread.join(60)
    server.close()
    assert asked == [b"CONNECT r.example:443 HTTP/1.1\r\nHost: r.example:443\r\n\r\n"]


def test_a_host_name_cannot_smuggle_a_header() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    environ = {"HTTPS_PROXY": f"http://127.0.0.1:{server.getsockname()[1]}"}
    with pytest.raises(DialOutError, match="is not a host name"):
        dial_out("r.example\r\nX: y", 443, tls=True, environ=environ)
    server.close()
