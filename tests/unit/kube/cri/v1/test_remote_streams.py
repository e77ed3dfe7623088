"""The client's side of a runtime's streams: against the kubelet's own server, and what a Go server does last."""

import asyncio
import socket
from contextlib import asynccontextmanager

import pytest
from streaming_fakes import POD, FakeRuntime

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.v1.remote.runtime import dial_here
from lastcall.kube.cri.v1.remote.streams import PROTOCOL, RemoteStreams, exit_code_of, open_session
from lastcall.kube.node.server import KubeletServer
from lastcall.kube.streaming.spdy_frames import Data, Decoder, Encoder, ResetStatus, RstStream, SynStream
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

FAILED = b'{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}'


class Pods:
    def get_pod_by_name(self, namespace, name):
        return POD


@asynccontextmanager
async def serving():
    """A runtime whose commands give their input back, and the URL of its streams."""
    runtime = FakeRuntime()
    runner = await KubeletServer(world=World(), runtime=runtime, pods=Pods()).start_unauthenticated("127.0.0.1", 0)
    host, port = runner.addresses[0]
    try:
        yield runtime, f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def echo(streams):
    streams.echo = True


async def opened(url, wanted, tasks):
    return await RemoteStreams.open(await open_session(url, PROTOCOL, dial_here, tasks), wanted, tasks, is_attach=False)


EXEC = "/exec/default/p/c?command=cat&input=1&output=1&error=1"
WANTED = ["stderr", "stdin", "stdout"]


def test_input_output_and_exit_code_go_through_a_server():
    async def scenario():
        async with serving() as (runtime, url), Tasks() as tasks:
            runtime.prepare = echo
            streams = await opened(f"{url}{EXEC}", WANTED, tasks)
            await streams.write_stdin(b"said")
            assert await streams.read_stdout() == b"said"
            runtime.streams[0].exit(7)
            assert await streams.read_stdout() == b""
            assert await streams.wait() == 7
            await streams.close()
            runtime.error = "no such file"
            none = await opened(f"{url}{EXEC}", WANTED, tasks)
            with pytest.raises(RuntimeServiceError, match="no such file"):
                await none.wait()
            await none.close()
            with pytest.raises(RuntimeServiceError, match="404"):
                await opened(f"{url}/elsewhere", ["stdout"], tasks)

    asyncio.run(scenario())


@pytest.mark.parametrize("said", [FAILED, b""])
def test_last_words_are_read_though_the_server_resets_their_stream_at_once(said):
    """As containerd does: Data and RST_STREAM in one segment."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        decoder, encoder, opened_streams = Decoder(), Encoder(), []
        while len(opened_streams) < 2:
            opened_streams += [each for each in decoder.feed(await reader.read(4096)) if isinstance(each, SynStream)]
        error = next(each.stream for each in opened_streams if each.headers["streamtype"] == "error")
        frames = ([Data(error, said)] if said else []) + [RstStream(error, ResetStatus.CANCEL)]
        writer.write(b"".join(map(encoder.encode, frames)))
        await writer.drain()
        await reader.read()
        writer.close()

    async def scenario():
        server = await asyncio.start_server(serve, "127.0.0.1", 0, family=socket.AF_INET)
        port = server.sockets[0].getsockname()[1]
        async with Tasks() as tasks:
            streams = await opened(f"http://127.0.0.1:{port}/exec/x", ["stdout"], tasks)
            if said:
                assert await streams.wait() == 3
            else:
                with pytest.raises(RuntimeServiceError, match="is not known"):
                    await streams.wait()
            await streams.close()
        server.close()

    asyncio.run(scenario())


def test_the_last_status_is_an_exit_code_or_an_error():
    assert exit_code_of(b"") == 0
    assert exit_code_of(b'{"status":"Success"}') == 0
    assert exit_code_of(FAILED) == 3
    with pytest.raises(RuntimeServiceError, match=r"^container gone$"):
        exit_code_of(b'{"status":"Failure","message":"Internal error occurred: container gone"}')
    with pytest.raises(RuntimeServiceError, match="plain text"):
        exit_code_of(b"plain text")
