"""A container runtime that does not do what it should: each way has its sentence, and none of them holds others up."""

import asyncio
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager

import grpc
import pytest
from cri_server import Faults, serving
from fake_api import ListRecorder
from waiting import until

from lastcall.kube.cluster.runtime.other import checks, place, sweep
from lastcall.kube.cri import api
from lastcall.kube.cri.simulated import Durations, SimulatedRuntime
from lastcall.kube.cri.v1.remote import images as remote_images
from lastcall.kube.cri.v1.remote.connection import RuntimeConnection
from lastcall.kube.cri.v1.remote.images import RemoteImages
from lastcall.kube.cri.v1.remote.runtime import RemoteRuntime
from lastcall.kube.node import runtime_deadlines
from lastcall.kube.node.runtime_deadlines import RuntimeWithDeadlines
from lastcall.records import kinds
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

pytestmark = pytest.mark.loopback


@asynccontextmanager
async def faulty(tmp_path, faults):
    """The path of a runtime's socket."""
    world, path = World(), f"{tmp_path}/cri.sock"
    async with SimulatedRuntime(world, ListRecorder(world), {}, durations=Durations(0, 0, 0, 0, 0, 0)) as simulated:
        async with serving(simulated, path, faults):
            yield path


@contextmanager
def answering(path: str, answer: bytes | None) -> Iterator[None]:
    """A server of something else: it writes `answer` and hangs up; None: it never says anything."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(8)
    kept: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            kept.append(sock)
            if answer is not None:
                sock.sendall(answer)
                sock.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(30)
        for sock in kept:
            sock.close()


@pytest.fixture(autouse=True)
def nobody_else(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "ROOT", str(tmp_path / "root"))
    monkeypatch.setattr(sweep, "ANSWER_SECONDS", 1.0)


def asked(path: str) -> str:
    """Why the runtime at `path` cannot be used."""
    with pytest.raises(api.RuntimeServiceError) as caught:
        asyncio.run(sweep.begin(path))
    return sweep.why_unusable(caught.value)


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        (
            Faults(errors={"Version": (grpc.StatusCode.UNIMPLEMENTED, "unknown service runtime.v1.RuntimeService")}),
            r"does not serve CRI v1 \(.*unknown service runtime.v1.RuntimeService\); fix: switch on its CRI plugin",
        ),
        (Faults(hangs={"Version"}), "has not answered within 1 s; fix: start the runtime again"),
        (Faults(hangs={"ListPodSandbox"}), "has not answered within 1 s; fix: start the runtime again"),
        (
            Faults(errors={"ListPodSandbox": (grpc.StatusCode.UNKNOWN, "server is not initialized yet")}),
            "server is not initialized yet; fix: see the log of the runtime",
        ),
    ],
    ids=["no CRI", "a hang", "a hang later", "not ready"],
)
def test_a_runtime_that_cannot_be_used_is_told_with_the_way_out(tmp_path, faults, said):
    async def scenario():
        async with faulty(tmp_path, faults) as path:
            with pytest.raises(api.RuntimeServiceError) as caught:
                await sweep.begin(path)
            return sweep.why_unusable(caught.value)

    why = asyncio.run(scenario())
    assert re.search(said, why), why


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", b""], ids=["HTTP/1", "none"]
)
def test_a_server_of_something_else_is_told(tmp_path, answer):
    with answering(f"{tmp_path}/x.sock", answer):
        why = asked(f"{tmp_path}/x.sock")
    assert "does not speak gRPC, or hung up" in why or "has not answered" in why, why
    assert "; fix: " in why


def test_a_server_that_never_says_anything_is_given_up(tmp_path):
    with answering(f"{tmp_path}/x.sock", None):
        why = asked(f"{tmp_path}/x.sock")
    assert "; fix: start the runtime again" in why, why


def test_no_socket_and_one_without_a_listener_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr("os.getuid", lambda: 0)
    assert checks.why_not(f"{tmp_path}/none.sock").startswith("no such file or directory; fix: start the runtime")
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left.bind(f"{tmp_path}/left.sock")
    left.close()
    assert "its socket is left from an earlier run" in checks.why_not(f"{tmp_path}/left.sock")
    (tmp_path / "file").touch()
    assert checks.why_not(f"{tmp_path}/file") == "not a socket; fix: name the runtime's socket"
    assert checks.why_not(str(tmp_path)) == "not a socket; fix: name the runtime's socket"
    monkeypatch.setattr("os.getuid", lambda: 1000)
    assert (
        checks.why_not(f"{tmp_path}/left.sock") == "needs root, for the runtime's socket and its Pod network; fix: sudo"
    )


def sandbox(uid):
    labels = {"io.kubernetes.pod.uid": uid}
    return api.PodSandboxConfig(metadata=api.PodSandboxMetadata(uid, uid, "x"), labels=labels)


def test_a_call_that_hangs_for_one_pod_ends_by_its_deadline_and_holds_no_other_up(tmp_path, monkeypatch):
    monkeypatch.setattr(runtime_deadlines, "RUNTIME_REQUEST_TIMEOUT", 0.5)

    async def scenario():
        faults = Faults(hangs={"RunPodSandbox", "StopPodSandbox"}, only_for="u-1")
        async with faulty(tmp_path, faults) as path:
            remote = RemoteRuntime(World(), RuntimeConnection(path), cluster="ours")
            runtime = RuntimeWithDeadlines(remote, World().clock)
            async with Tasks() as tasks:
                failed = []

                async def hang():
                    try:
                        await runtime.run_pod_sandbox(sandbox("u-1"))
                    except api.RuntimeServiceError as error:
                        failed.append(error)

                tasks.spawn(hang(), name="hang")
                await until(lambda: "RunPodSandbox" in faults.asked)
                other = await runtime.run_pod_sandbox(sandbox("u-2"))
                assert [each.id for each in await runtime.list_pod_sandbox()] == [other]
                await runtime.stop_pod_sandbox(other)
                await until(lambda: failed)
            assert failed[0].reason == "DeadlineExceeded"
            await runtime.close()

    asyncio.run(scenario())


def test_a_runtime_that_dies_is_named_and_used_again_when_it_is_back(tmp_path):
    async def scenario():
        connection = None
        async with faulty(tmp_path, Faults()) as path:
            connection = RuntimeConnection(path)
            runtime = RemoteRuntime(World(), connection, cluster="ours")
            await runtime.run_pod_sandbox(sandbox("u-1"))
        with pytest.raises(api.RuntimeServiceError, match=r"at unix:///.*cri\.sock does not answer"):
            await runtime.list_pod_sandbox()
        async with faulty(tmp_path, Faults()):

            async def back():
                try:
                    return await runtime.list_pod_sandbox() == []
                except api.RuntimeServiceError:
                    return False

            await until(back, "it answers again")
        await runtime.close()

    asyncio.run(scenario())


def test_an_image_that_cannot_be_pulled_is_told_in_the_runtimes_words(tmp_path):
    async def scenario():
        text = 'failed to resolve reference "registry.example/x:1": dial tcp: lookup registry.example: no such host'
        faults = Faults(errors={"PullImage": (grpc.StatusCode.UNKNOWN, text)})
        async with faulty(tmp_path, faults) as path:
            images = RemoteImages(RuntimeConnection(path))
            with pytest.raises(api.RuntimeServiceError) as caught:
                await images.pull_image("registry.example/x:1")
            assert str(caught.value) == f"rpc error: code = Unknown desc = {text}"
            await images._connection.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("says", [True, False], ids=["containerd", "another runtime"])
def test_how_far_a_pull_is_is_told_until_it_ends(tmp_path, monkeypatch, says):
    monkeypatch.setattr(remote_images, "PROGRESS_SECONDS", 0.2)
    unimplemented = (grpc.StatusCode.UNIMPLEMENTED, "unknown service")

    async def scenario():
        faults = Faults(hangs={"PullImage"}, errors={} if says else {"ListStatuses": unimplemented})
        recorder = ListRecorder(World())
        async with faulty(tmp_path, faults) as path:
            images = RemoteImages(RuntimeConnection(path), recorder, World().clock)
            async with Tasks() as tasks:
                tasks.spawn(images.pull_image("big:1"), name="pull")
                await until(lambda: "PullImage" in faults.asked, "the pull")
                faults.downloads = [("layer-sha256:1", 1 << 20, 3 << 20), ("layer-sha256:2", 0, 3 << 20)]
                told = len(recorder.records)
                await until(lambda: len(recorder.records) >= told + 2, "progress")
                tasks.cancel()
            told = len(recorder.records)
            faults.hangs.clear()
            await images.pull_image("big:1")
            assert len(recorder.records) - told < 20
            await images._connection.close()
        newest = recorder.records[told - 1]
        facts = newest["facts"]
        assert newest["kind"] == kinds.IMAGE_PULL_PROGRESS
        assert (facts["bytes"], facts["total"]) == ((1 << 20, 6 << 20) if says else (None, None))
        assert faults.asked.count("ListStatuses") >= 2 if says else faults.asked.count("ListStatuses") == 1

    asyncio.run(scenario())


def test_the_downloads_of_others_are_not_told_as_the_pulls_own(tmp_path, monkeypatch):
    """Neither those that went on before, nor those of a second pull beside it: whose they are nobody knows."""
    monkeypatch.setattr(remote_images, "PROGRESS_SECONDS", 0.2)

    async def scenario():
        faults = Faults(hangs={"PullImage"}, downloads=[("layer-sha256:0", 5 << 20, 9 << 20)])
        recorder = ListRecorder(World())

        def told(image):
            facts = [each["facts"] for each in recorder.records if each["facts"]["image"] == image]
            return (facts[-1]["bytes"], facts[-1]["total"]) if facts else ()

        async with faulty(tmp_path, faults) as path:
            images = RemoteImages(RuntimeConnection(path), recorder, World().clock)
            async with Tasks() as tasks:
                tasks.spawn(images.pull_image("one:1"), name="one")
                await until(lambda: "PullImage" in faults.asked, "the pull")
                faults.downloads.append(("layer-sha256:1", 1 << 20, 3 << 20))
                await until(lambda: told("one:1") == (1 << 20, 3 << 20), "its own layer")
                tasks.spawn(images.pull_image("two:1"), name="two")
                await until(lambda: told("two:1") == told("one:1") == (None, None), "two pulls")
                tasks.cancel()
            await images._connection.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("looks", "found"),
    [
        ([{}], (0, 0)),
        ([{"a": (1, 3), "b": (0, 4)}], (1, 7)),
        ([{"a": (1, 3)}, {"b": (1, 4)}], (4, 7)),  # a layer that is no longer downloaded is there
        ([{"a": (1, 3)}, {}], (3, 3)),
        ([{"others": (2, 9), "a": (1, 3)}], (1, 3)),
    ],
)
def test_what_a_pull_has_downloaded_never_becomes_less(looks, found):
    layers = remote_images.Layers(frozenset({"others"}))
    assert [layers.look(each) for each in looks][-1] == found


def test_a_stream_of_events_that_breaks_is_opened_again(tmp_path):
    async def scenario():
        faults = Faults(errors={"GetContainerEvents": (grpc.StatusCode.INTERNAL, "broken")})
        async with faulty(tmp_path, faults) as path:
            runtime = RemoteRuntime(World(), RuntimeConnection(path), cluster="ours")
            async with Tasks() as tasks:
                tasks.spawn(runtime.run(), name="runtime")
                await until(lambda: faults.asked.count("GetContainerEvents") >= 2, "a second try")
                faults.errors.clear()
                await until(lambda: runtime.has_events, "the stream")
                tasks.cancel()
            await runtime.close()

    asyncio.run(scenario())


def test_a_runtime_without_events_is_listed(tmp_path):
    async def scenario():
        faults = Faults(errors={"GetContainerEvents": (grpc.StatusCode.UNIMPLEMENTED, "unknown method")})
        async with faulty(tmp_path, faults) as path:
            runtime = RemoteRuntime(World(), RuntimeConnection(path), cluster="ours")
            async with Tasks() as tasks:
                tasks.spawn(runtime.run(), name="runtime")
                await until(lambda: "GetContainerEvents" in faults.asked and not runtime.has_events, "the answer")
                seen = []

                async def follow():
                    async for event in runtime.get_container_events():
                        seen.append(event.pod_uid)

                tasks.spawn(follow(), name="follow")
                await until(lambda: "ListPodSandbox" in faults.asked, "the first listing")
                await runtime.run_pod_sandbox(sandbox("u-3"))
                await until(lambda: "u-3" in seen, "the listing")
                assert faults.asked.count("GetContainerEvents") == 1
                tasks.cancel()
            await runtime.close()

    asyncio.run(scenario())
