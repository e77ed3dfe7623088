"""The kubelet's exec, attach, run and portForward: WebSocket and SPDY clients against a runtime of the test's."""

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streaming_fakes import POD, FakeRuntime, FakeStreams, SpdyConnection, all_of

from lastcall.kube.cri.api import ContainerState, PodSandboxMetadata, PodSandboxState, PodSandboxStatus
from lastcall.kube.node.server import KubeletServer
from lastcall.kube.node.streaming import endpoints
from lastcall.kube.node.streaming.port_forward import parse_port
from lastcall.kube.node.streaming.remote_command import parse_size
from lastcall.kube.node.streaming.websocket_client import pack, unpack
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
SUCCESS = {"metadata": {}, "status": "Success"}


class Pods:
    def get_pod_by_name(self, namespace: str, name: str):
        return POD if (namespace, name) == ("default", "p") else None

    def get_pods(self):
        return [POD]

    def get_pod_status(self, uid: str):
        return None


class Kubelet:
    def __init__(self, runtime: FakeRuntime, url: str, session: aiohttp.ClientSession) -> None:
        self.runtime, self.url, self.session = runtime, url, session

    def websocket(self, path: str, *protocols: str):
        return self.session.ws_connect(f"{self.url}{path}", protocols=protocols)

    async def spdy(self, path: str, *protocols: str) -> SpdyConnection:
        parts = urlsplit(self.url)
        return await SpdyConnection.open(parts.hostname or "", parts.port or 0, path, protocols)

    async def streams(self) -> FakeStreams:
        await self.runtime.until(lambda: self.runtime.streams)
        return self.runtime.streams[-1]


@asynccontextmanager
async def kubelet() -> AsyncIterator[Kubelet]:
    runtime = FakeRuntime()
    server = KubeletServer(world=World(), runtime=runtime, pods=Pods())
    runner = await server.start_unauthenticated("127.0.0.1", 0)
    host, port = runner.addresses[0]
    try:
        async with aiohttp.ClientSession() as session:
            yield Kubelet(runtime, f"http://{host}:{port}", session)
    finally:
        await runner.cleanup()


async def frames(socket: aiohttp.ClientWebSocketResponse) -> list[tuple[int, bytes]]:
    """Everything until the server closes."""
    found = []
    async with asyncio.timeout(60):
        async for message in socket:
            assert message.type is aiohttp.WSMsgType.BINARY
            found.append((message.data[0], message.data[1:]))
    assert socket.close_code == 1000
    return found


# -- exec over WebSocket ----------------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 17.3/endpoints")
async def test_v5_carries_both_outputs_the_end_of_the_input_and_the_exit_code() -> None:
    async with kubelet() as node:
        path = "/exec/default/p/c?command=sh&command=-c&command=x&input=1&output=1&error=1"
        async with node.websocket(path, V5, V4) as socket:
            assert socket.protocol == V5
            streams = await node.streams()
            assert node.runtime.calls == [("exec", "c-id", ("sh", "-c", "x"), False, True)]
            await socket.send_bytes(b"\0some \xff input")
            await socket.send_bytes(b"\xff\0")
            await asyncio.wait_for(streams.stdin_closed.wait(), 60)
            assert b"".join(streams.stdin) == b"some \xff input"
            streams.stdout.put_nowait(b"out\0")
            streams.stderr.put_nowait(b"err")
            streams.exit(3)
            got = await frames(socket)
        assert got[0] == (1, b"")
        assert sorted(got[1:3]) == [(1, b"out\0"), (2, b"err")]
        assert [(channel, json.loads(data)) for channel, data in got[3:]] == [
            (
                3,
                {
                    "metadata": {},
                    "status": "Failure",
                    "message": "command terminated with non-zero exit code: command terminated with exit code 3",
                    "reason": "NonZeroExitCode",
                    "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
                },
            )
        ]
        assert streams.closed.is_set()


async def test_a_text_message_counts_and_so_does_its_size() -> None:
    async with kubelet() as node:
        async with node.websocket("/exec/default/p/c?command=sh&input=1&output=1&error=1&tty=1", V5) as socket:
            streams = await node.streams()
            await socket.send_str("\4" + '{"Height": 33, "Width": 99}')
            await socket.send_str("\0typed\n")
            await node.runtime.until(lambda: streams.sizes and streams.stdin)
            assert (streams.sizes, streams.stdin) == ([(99, 33)], [b"typed\n"])
            assert node.runtime.calls[0][3] is True
            streams.stderr.put_nowait(b"nobody asked: a terminal has one output")
            streams.exit()
            assert [(channel, json.loads(data)) for channel, data in (await frames(socket))[1:]] == [(3, SUCCESS)]


@pytest.mark.parametrize("protocol", [V4, "channel.k8s.io", ""])
async def test_older_protocols_have_no_half_close_and_the_oldest_no_status(protocol: str) -> None:
    async with kubelet() as node:
        async with node.websocket("/exec/default/p/c?command=x&output=1&input=1", *filter(None, [protocol])) as socket:
            streams = await node.streams()
            await socket.send_bytes(b"\xff\0")
            await socket.send_bytes(b"\0x")
            await node.runtime.until(lambda: streams.stdin)
            assert not streams.stdin_closed.is_set()
            streams.exit(0 if protocol == V4 else 7)
            last = (await frames(socket))[-1]
        if protocol == V4:
            assert json.loads(last[1]) == SUCCESS
        else:
            assert last == (3, b"command terminated with non-zero exit code: command terminated with exit code 7")


async def test_browsers_get_base64() -> None:
    async with kubelet() as node:
        async with node.websocket("/exec/default/p/c?command=x&output=1&input=1", "v4.base64.channel.k8s.io") as socket:
            streams = await node.streams()
            await socket.send_str("0" + base64.b64encode(b"in\xff").decode())
            await socket.send_str("0not base64!")
            await node.runtime.until(lambda: streams.stdin)
            assert streams.stdin == [b"in\xff"]
            streams.stdout.put_nowait(b"out\xfe")
            streams.exit()
            texts = [message.data async for message in socket]
        assert texts[:2] == ["1", "1" + base64.b64encode(b"out\xfe").decode()]
        assert json.loads(base64.b64decode(texts[2][1:])) == SUCCESS


async def test_a_command_that_cannot_start_is_an_internal_error_told_twice_to_v5() -> None:
    async with kubelet() as node:
        node.runtime.error = "failed to exec in container: no such"
        said = {}
        for protocol in (V5, V4):
            async with node.websocket("/exec/default/p/c?command=x&output=1", protocol) as socket:
                said[protocol] = json.loads((await frames(socket))[-1][1])
        text = "error executing command in container: failed to exec in container: no such"
        assert said[V4] == {
            "metadata": {},
            "status": "Failure",
            "message": f"Internal error occurred: {text}",
            "reason": "InternalError",
            "details": {"causes": [{"message": text}]},
            "code": 500,
        }
        assert said[V5]["message"] == f"Internal error occurred: Internal error occurred: {text}"


async def test_a_runtime_that_is_gone_is_an_error_like_any_other() -> None:
    async with kubelet() as node:
        async with node.websocket("/exec/default/p/c?command=x&output=1", V4) as socket:
            (await node.streams()).exit(-1)
            status = json.loads((await frames(socket))[-1][1])
        assert (status["reason"], status["code"]) == ("InternalError", 500)
        assert status["message"].endswith("container: the connection to the shim is gone")


async def test_a_command_may_be_as_long_as_go_lets_a_header_be() -> None:
    async with kubelet() as node:
        text = "x" * 300_000
        async with node.websocket(f"/exec/default/p/c?command=sh&command={text}&output=1", V4) as socket:
            (await node.streams()).exit()
            await frames(socket)
        assert node.runtime.calls[0][2] == ("sh", text)


async def test_a_client_that_goes_away_lets_go_of_the_command() -> None:
    async with kubelet() as node:
        socket = await node.websocket("/exec/default/p/c?command=x&output=1&input=1", V5)
        streams = await node.streams()
        assert socket._response.connection is not None
        socket._response.connection.transport.abort()
        await asyncio.wait_for(streams.closed.wait(), 60)
        assert not streams.exited.is_set()


async def test_input_that_nobody_reads_is_thrown_away() -> None:
    async with kubelet() as node:

        def prepare(streams: FakeStreams) -> None:
            streams.reads_stdin = False

        node.runtime.prepare = prepare
        async with node.websocket("/exec/default/p/c?command=true&output=1&input=1", V5) as socket:
            streams = await node.streams()
            for _ in range(200):
                await socket.send_bytes(b"\0" + bytes(10_000))
            streams.exit()
            assert json.loads((await frames(socket))[-1][1]) == SUCCESS


async def test_what_makes_no_sense_is_ignored() -> None:
    async with kubelet() as node:
        async with node.websocket("/exec/default/p/c?command=x&output=1&tty=1", V5) as socket:
            streams = await node.streams()
            for message in (
                b"",
                b"\0not wanted",
                b"\x09?",
                b"\xff",
                b"\xff\x09",
                b"\4{}",
                b'\4{"Width": 70000, "Height": 1}',
            ):
                await socket.send_bytes(message)
            await socket.send_bytes(b'\4{"Width": 1, "Height": 2}\n')
            await node.runtime.until(lambda: streams.sizes)
            assert (streams.sizes, streams.stdin) == ([(1, 2)], [])
            streams.exit()
            assert json.loads((await frames(socket))[-1][1]) == SUCCESS


@pytest.mark.rule("node-semantics 1/streams-idle")
async def test_a_session_in_which_nothing_is_said_ends_after_its_idle_time() -> None:
    runtime = FakeRuntime()
    app = aiohttp.web.Application()
    endpoints.StreamingEndpoints(World(), runtime, Pods().get_pod_by_name, idle_timeout=2.0).add_to(app)
    runner = aiohttp.web.AppRunner(app)
    await runner.setup()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    try:
        async with aiohttp.ClientSession() as session:
            url = f"http://{host}:{port}/exec/default/p/c?command=x&output=1"
            async with session.ws_connect(url, protocols=[V5]) as socket:
                await runtime.until(lambda: runtime.streams)
                for _ in range(8):
                    await asyncio.sleep(0.3)  # output in pieces, for longer than the idle timeout
                    runtime.streams[0].stdout.put_nowait(b".")
                assert not runtime.streams[0].closed.is_set()
                got = [message async for message in socket]
        assert len(got) == 9
        assert runtime.streams[0].closed.is_set()
    finally:
        await runner.cleanup()


# -- exec over SPDY ---------------------------------------------------------------------------------------------------


async def test_spdy_carries_the_same() -> None:
    async with kubelet() as node:
        node.runtime.prepare = lambda streams: setattr(streams, "echo", True)
        path = "/exec/default/p/c?command=cat&input=1&output=1&error=1"
        async with await node.spdy(path, V4, "v3.channel.k8s.io") as client:
            assert "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n" in client.head
            streams = await client.remote_command("stdin", "stdout", "stderr")
            data = bytes(range(256)) * 2000

            async def send() -> None:
                await streams["stdin"].write(data)
                await streams["stdin"].close_write()

            sending = asyncio.create_task(send())
            assert await all_of(streams["stdout"]) == data
            assert await all_of(streams["stderr"]) == b""
            assert json.loads(await all_of(streams["error"])) == SUCCESS
            await sending


async def test_spdy_has_a_stream_for_sizes_and_older_protocols_tell_errors_as_text() -> None:
    async with kubelet() as node:
        path = "/exec/default/p/c?command=sh&input=1&output=1&tty=1"
        async with await node.spdy(path, "v3.channel.k8s.io") as client:
            opened = await client.remote_command("stdin", "stdout", "resize")
            await opened["resize"].write(b'{"Width":80,"Height":24}\n{"Width":81,"Height":25}\n')
            streams = await node.streams()
            await node.runtime.until(lambda: streams.sizes)
            assert streams.sizes == [(81, 25)]
            streams.exit(9)
            assert (await all_of(opened["error"])).decode().endswith("command terminated with exit code 9")
        async with await node.spdy(path, "v2.channel.k8s.io") as client:
            opened = await client.remote_command("stdin", "stdout")
            await node.runtime.until(lambda: len(node.runtime.streams) == 2)
            node.runtime.streams[-1].exit()
            assert await all_of(opened["error"]) == b""


async def test_a_spdy_client_that_goes_away_lets_go_and_a_broken_one_too() -> None:
    async with kubelet() as node:
        for number, last in enumerate((b"", b"\x80\x07garbage and more garbage")):
            client = await node.spdy("/exec/default/p/c?command=x&output=1", V4)
            async with client:
                await client.remote_command("stdout")
                await node.runtime.until(lambda number=number: len(node.runtime.streams) > number)
                client.writer.write(last)
                await client.writer.drain()
                if not last:
                    client.writer.close()
                await asyncio.wait_for(node.runtime.streams[number].closed.wait(), 60)


async def test_a_stream_of_no_known_kind_is_reset() -> None:
    async with kubelet() as node:
        async with await node.spdy("/exec/default/p/c?command=x&output=1", V4) as client:
            odd = await client.session.open({"streamtype": "odd"})
            assert await odd.read() == b""
            assert odd.was_reset
            opened = await client.remote_command("stdout")
            (await node.streams()).exit()
            assert json.loads(await all_of(opened["error"])) == SUCCESS


# -- attach, run, refusals --------------------------------------------------------------------------------------------


async def test_attach_asks_for_what_the_client_wants_and_ends_with_success() -> None:
    async with kubelet() as node:
        async with node.websocket("/attach/default/p/uid-1/c?output=1&error=1", V5) as socket:
            streams = await node.streams()
            assert node.runtime.calls == [("attach", "c-id", False, True, True)]
            streams.stdout.put_nowait(b"seen")
            streams.exit()
            got = await frames(socket)
        assert got[:2] == [(1, b""), (1, b"seen")]
        assert json.loads(got[2][1]) == SUCCESS


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/exec/default/p/c?command=x", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec/default/p/c?command=x&error=1&tty=1", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec/default/none/c?command=x&output=1", 404, "pod does not exist"),
        ("/exec/default/p/other-uid/c?command=x&output=1", 404, "pod does not exist"),
        ("/exec/default/p/zzz?command=x&output=1", 500, 'container not found ("zzz")'),
        ("/attach/default/p/zzz?output=1", 500, 'container not found ("zzz")'),
        ("/exec/default/p/c?command=x&output=1", 400, "unable to upgrade: missing upgrade headers in request"),
        ("/portForward/default/none", 404, "pod does not exist"),
        ("/run/default/none/c?cmd=ls", 404, "pod does not exist"),
        ("/run/default/p/other-uid/c?cmd=ls", 404, "pod does not exist"),
        ("/run/default/p/zzz?cmd=ls", 500, 'container not found ("zzz")'),
        ("/run/default/p/c?cmd=echo%20a%20b", 200, "echo a b"),
        ("/run/default/p/c?cmd=false", 500, "command terminated with exit code 1"),
    ],
)
async def test_what_cannot_be_is_refused_in_the_kubelet_s_words(path: str, status: int, text: str) -> None:
    async with kubelet() as node:
        async with node.session.post(f"{node.url}{path}") as answer:
            assert answer.status == status
            assert (await answer.text()).startswith(text)


@pytest.mark.rule("node-semantics 17.3/not-running")
async def test_a_container_that_does_not_run_is_not_found() -> None:
    async with kubelet() as node:
        node.runtime.state = ContainerState.CONTAINER_EXITED
        client = await node.spdy("/exec/default/p/c?command=x&output=1", V4)
        assert client.head.startswith("HTTP/1.1 500 ")
        assert client.body == b'container not found ("c")'
        client.writer.close()


async def test_a_protocol_that_nobody_serves_is_forbidden() -> None:
    async with kubelet() as node:
        client = await node.spdy("/exec/default/p/c?command=x&output=1", "v9.channel.k8s.io")
        assert client.head.startswith("HTTP/1.1 403 ")
        assert client.body.startswith(b"unable to upgrade: unable to negotiate protocol: client supports [v9.channel")
        assert "X-Accepted-Stream-Protocol-Versions: v4.channel.k8s.io\r\n" in client.head
        client.writer.close()
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await node.websocket("/exec/default/p/c?command=x&output=1", "v9.channel.k8s.io")
        assert caught.value.status == 403


# -- portForward ------------------------------------------------------------------------------------------------------


async def pair(client: SpdyConnection, port: int, request: int):
    common = {"port": str(port), "requestid": str(request)}
    error = await client.session.open({"streamtype": "error", **common})
    await error.close_write()
    return error, await client.session.open({"streamtype": "data", **common})


async def test_ports_are_those_of_the_newest_sandbox_that_is_ready() -> None:
    """kuberuntime_sandbox.go:getSandboxIDByPodUID: the runtime lists the newest first."""

    def sandbox(name: str, attempt: int, state: PodSandboxState) -> PodSandboxStatus:
        return PodSandboxStatus(name, PodSandboxMetadata("p", "uid-1", "default", attempt), state, attempt)

    async def listed(pod_uid: str = "") -> list[PodSandboxStatus]:
        ready, gone = PodSandboxState.SANDBOX_READY, PodSandboxState.SANDBOX_NOTREADY
        return [sandbox("third", 2, gone), sandbox("second", 1, ready), sandbox("first", 0, ready)]

    async with kubelet() as node:
        node.runtime.list_pod_sandbox = listed  # type: ignore[method-assign]
        async with await node.spdy("/portForward/default/p", "portforward.k8s.io") as client:
            error, _ = await pair(client, 9999, 1)
            assert b"error forwarding port 9999 to pod second, uid" in await all_of(error)


async def test_spdy_forwards_many_connections_and_each_ends_for_itself() -> None:
    async with kubelet() as node:
        async with await node.spdy("/portForward/default/p", "portforward.k8s.io") as client:
            assert "X-Stream-Protocol-Version: portforward.k8s.io\r\n" in client.head
            pairs = [await pair(client, 8080, number) for number in range(5)]
            for number, (_, data) in enumerate(pairs):
                await data.write(f"hello {number} ".encode())
                await data.close_write()
            for number, (error, data) in enumerate(pairs):
                assert await all_of(data) == f"HELLO {number} end".encode()
                assert await all_of(error) == b""
            refused, data = await pair(client, 9999, 7)
            assert (await all_of(refused)).decode() == (
                "error forwarding port 9999 to pod s-id, uid : failed to connect to localhost:9999"
            )
            assert await all_of(data) == b""
            _, data = await pair(client, 8080, 8)
            await data.write(b"bye")
            assert await all_of(data) == b""  # the Pod has closed first
            _, data = await pair(client, 8080, 9)
            await data.write(b"x")
            assert await data.read() == b"X"
            await data.reset()
            await node.runtime.until(lambda: all(port.closed.is_set() for port in node.runtime.ports))


@pytest.mark.parametrize(
    "headers",
    [{"streamtype": "data"}, {"streamtype": "data", "port": "0"}, {"streamtype": "odd", "port": "1"}, {"port": "1"}],
)
async def test_a_stream_without_its_headers_is_reset(headers: dict[str, str]) -> None:
    async with kubelet() as node:
        async with await node.spdy("/portForward/default/p", "portforward.k8s.io") as client:
            stream = await client.session.open(headers)
            assert await stream.read() == b""
            assert stream.was_reset


async def test_the_same_session_travels_in_websocket_messages(caplog: pytest.LogCaptureFixture) -> None:
    from lastcall.kube.node.streaming.port_forward import WebSocketStream
    from lastcall.kube.streaming.spdy_session import SpdySession

    async with kubelet() as node:
        async with node.websocket("/portForward/default/p", "SPDY/3.1+portforward.k8s.io") as socket:
            assert socket.protocol == "SPDY/3.1+portforward.k8s.io"
            session = SpdySession(WebSocketStream(socket), client=True)
            run = asyncio.create_task(session.run())
            common = {"port": "8080", "requestid": "0"}
            await session.open({"streamtype": "error", **common})
            data = await session.open({"streamtype": "data", **common})
            await data.write(b"tunnel")
            assert await data.read() == b"TUNNEL"
            await session.close()
            await run
        await node.runtime.until(lambda: node.runtime.ports[0].closed.is_set())
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


async def test_channels_begin_with_their_port_and_errors_have_their_own(caplog: pytest.LogCaptureFixture) -> None:
    async with kubelet() as node:
        async with node.websocket("/portForward/default/p?port=8080&port=9999", V5, V4) as socket:
            assert socket.protocol == V4
            first = [await socket.receive_bytes() for _ in range(4)]
            assert first == [b"\0\x90\x1f", b"\1\x90\x1f", b"\2\x0f\x27", b"\3\x0f\x27"]
            assert await socket.receive_bytes() == (
                b"\3error forwarding port 9999 to pod s-id, uid : failed to connect to localhost:9999"
            )
            await socket.send_bytes(b"\0hello")
            assert await socket.receive_bytes() == b"\0HELLO"
            await socket.send_bytes(b"\1not for you")
            await socket.send_bytes(b"\x63nobody")
            await socket.send_bytes(b"\0bye")
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        for query in ("", "?port=0", "?port=http"):
            with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
                await node.websocket(f"/portForward/default/p{query}", V4)
            assert caught.value.status == 400
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


# -- values -----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 9), st.binary(max_size=300), st.booleans())
def test_messages_survive_the_way(channel: int, data: bytes, as_base64: bool) -> None:
    assert unpack(pack(channel, data, as_base64=as_base64), as_base64=as_base64) == (channel, data)


@given(st.binary(max_size=80))
def test_no_size_does_worse_than_nothing(data: bytes) -> None:
    size = parse_size(data)
    assert size is None or all(0 <= value < 1 << 16 for value in size)


@given(st.text(max_size=8) | st.integers(-10, 100_000).map(str))
def test_a_port_is_a_port_or_refused_in_words(text: str) -> None:
    if text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 1 << 16:
        assert parse_port(text) == int(text)
    else:
        with pytest.raises(ValueError, match="port"):
            parse_port(text)
