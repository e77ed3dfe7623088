"""node-semantics 17.2: reading CRI logs, and the endpoint that serves them."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from kubelet_server import serving
from waiting import until

from lastcall.kube.cri.api import ContainerMetadata, ContainerState, ContainerStatus
from lastcall.kube.node.logs.reader import LogOptions, read_logs
from lastcall.kube.node.logs.target import LogsNotAvailable, log_container_id
from lastcall.kube.node.server import KubeletServer
from lastcall.world import listeners
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

pytestmark = pytest.mark.loopback


def line(second: int, text: str, tag: str = "F", stream: str = "stdout") -> str:
    return f"2030-01-01T00:00:{second:02d}.123456789Z {stream} {tag} {text}\n"


LOG = line(1, "one") + line(2, "er", stream="stderr") + line(3, "th", "P") + line(3, "ree") + line(4, "four")


async def ended() -> bool:
    return False


async def read(path: Path, **options: Any) -> str:
    blocks = [b async for b in read_logs(path, LogOptions(**options), world=World(), is_running=ended)]
    return b"".join(blocks).decode()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "one\ner\nthree\nfour\n"),
        ({"follow": True}, "one\ner\nthree\nfour\n"),
        ({"tail_lines": 1}, "four\n"),
        ({"tail_lines": 3}, "three\nfour\n"),
        ({"tail_lines": 0}, ""),
        ({"tail_lines": 99}, "one\ner\nthree\nfour\n"),
        ({"limit_bytes": 5}, "one\ne"),
        ({"since": datetime(2030, 1, 1, 0, 0, 3, tzinfo=UTC)}, "three\nfour\n"),
        ({"stream": "stderr"}, "er\n"),
        (
            {"timestamps": True, "tail_lines": 3},
            "2030-01-01T00:00:03.123456789Z three\n2030-01-01T00:00:04.123456789Z four\n",
        ),
    ],
)
async def test_log_options(tmp_path: Path, options: dict[str, Any], expected: str) -> None:
    (tmp_path / "0.log").write_text(LOG)
    assert await read(tmp_path / "0.log", **options) == expected


async def test_lines_that_come_while_the_last_ones_are_read_are_not_among_them(tmp_path: Path) -> None:
    """pkg/kubelet/kuberuntime/logs: with tail and without follow, as many lines as asked for and no more."""
    path = tmp_path / "0.log"
    path.write_text("".join(line(1, "x" * 1000) for _ in range(300)))
    read = list[bytes]()
    async for block in read_logs(path, LogOptions(tail_lines=200), world=World(), is_running=ended):
        read.append(block)
        if len(read) < 9:
            with path.open("a") as file:
                file.write(line(2, "later"))
    assert b"".join(read).count(b"\n") == 200 and b"later" not in b"".join(read)


@pytest.mark.rule("node-semantics 17.2/follow")
async def test_a_followed_log_ends_with_the_container_and_misses_no_line(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text(line(1, "one"))
    running = True

    async def is_running() -> bool:
        return running

    seen: list[bytes] = []

    async def follow() -> None:
        async for block in read_logs(path, LogOptions(follow=True), world=World(), is_running=is_running):
            seen.append(block)

    async with Tasks() as tasks:
        task = tasks.spawn(follow(), name="follow")
        await until(lambda: seen == [b"one\n"])
        path.rename(tmp_path / "0.log.20300101-000000")
        path.write_text(line(2, "two"))
        await until(lambda: b"".join(seen) == b"one\ntwo\n")
        with path.open("a") as file:
            file.write(line(3, "last"))
        running = False
        await asyncio.wait_for(task, 60)
    assert b"".join(seen) == b"one\ntwo\nlast\n"


def status(state: dict[str, Any], last: str = "") -> dict[str, Any]:
    container = {"name": "app", "containerID": "lastcall://now", "state": state, "lastState": {}}
    if last:
        container["lastState"] = {"terminated": {"containerID": last, "exitCode": 1}}
    return {"containerStatuses": [container]}


POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "n", "uid": "u"},
    "spec": {"containers": [{"name": "app"}]},
}


@pytest.mark.rule("node-semantics 17.2/previous, 17.2/errors")
@pytest.mark.parametrize(
    ("container_status", "previous", "expected"),
    [
        (status({"running": {}}), False, "lastcall://now"),
        (status({"running": {}}, "lastcall://old"), True, "lastcall://old"),
        (status({"terminated": {"containerID": "lastcall://end"}}), False, "lastcall://end"),
        (status({"waiting": {"reason": "CrashLoopBackOff"}}, "lastcall://old"), False, "lastcall://old"),
        (status({"running": {}}), True, 'previous terminated container "app" in pod "p" not found'),
        (status({"waiting": {"reason": "X"}}), False, 'container "app" in pod "p" is waiting to start: X'),
        (
            status({"waiting": {"reason": "ErrImagePull"}}),
            False,
            'container "app" in pod "p" is waiting to start: image can\'t be pulled',
        ),
        ({}, False, 'container "app" in pod "p" is not available'),
    ],
)
def test_which_instance_a_log_request_means(container_status: dict[str, Any], previous: bool, expected: str) -> None:
    try:
        found = log_container_id(POD, container_status, "app", previous)
    except LogsNotAvailable as error:
        found = str(error)
    assert found == expected


class Node:
    """The Pods and the runtime behind the endpoint."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.running = False

    def get_pod_by_name(self, namespace: str, name: str) -> dict[str, Any] | None:
        return POD if (namespace, name) == ("n", "p") else None

    def get_pods(self) -> list[dict[str, Any]]:
        return [POD]

    def get_pod_status(self, uid: str) -> dict[str, Any]:
        return status({"running": {}})

    async def container_status(self, container_id: str) -> ContainerStatus:
        assert container_id == "now"
        state = ContainerState.CONTAINER_RUNNING if self.running else ContainerState.CONTAINER_EXITED
        return ContainerStatus(
            "now", ContainerMetadata("app"), "s", state, "i", "r", created_at=1, log_path=str(self.path)
        )


@pytest.mark.rule("node-semantics 17.2/errors")
@pytest.mark.parametrize(
    ("url", "code", "text"),
    [
        ("/healthz", 200, "ok"),
        ("/containerLogs/n/p/app", 200, "one\ner\nthree\nfour\n"),
        ("/containerLogs/n/p/app?tailLines=1&follow=true", 200, "four\n"),
        ("/containerLogs/n/p/app?limitBytes=3", 200, "one"),
        ("/containerLogs/n/p/app?previous=true", 400, 'previous terminated container "app" in pod "p" not found'),
        ("/containerLogs/n/x/app", 404, 'pod "x" cannot be found - no logs available\n'),
        ("/containerLogs/n/p/zzz", 404, 'container "zzz" not found in pod "p"\n'),
        ("/containerLogs/n/p/app?tailLines=-1", 422, "tailLines: -1 must be greater than or equal to 0\n"),
        ("/containerLogs/n/p/app?sinceTime=now", 422, "sinceTime: 'now' is not an RFC 3339 time\n"),
    ],
)
async def test_the_endpoint(tmp_path: Path, url: str, code: int, text: str) -> None:
    (tmp_path / "0.log").write_text(LOG)
    node = Node(tmp_path / "0.log")
    runner = await KubeletServer(world=World(), runtime=node, pods=node).start_unauthenticated("127.0.0.1", 0)  # type: ignore[arg-type]
    port = runner.addresses[0][1]
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{url}") as response:
            assert (response.status, await response.text()) == (code, text)
    finally:
        await runner.cleanup()


async def test_who_stops_following_a_log_leaves_no_error_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "0.log").write_text(LOG)
    node = Node(tmp_path / "0.log")
    node.running = True
    runner = await KubeletServer(world=World(), runtime=node, pods=node).start_unauthenticated("127.0.0.1", 0)  # type: ignore[arg-type]
    port = runner.addresses[0][1]
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/containerLogs/n/p/app?follow=true") as response:
                assert await response.content.readline() == b"one\n"
        node.running = False
    finally:
        await runner.cleanup()  # waits for the handler
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_only_the_api_servers_client_certificate_may_read_logs(tmp_path: Path) -> None:
    from lastcall.kube.apiserver.auth.pki import ClusterCA
    from lastcall.kube.apiserver.auth.tls import client_context, server_context

    authority, stranger = ClusterCA.create(), ClusterCA.create()
    tls = server_context(*authority.issue_server(["127.0.0.1"]), client_ca=authority.certificate_pem)
    (tmp_path / "0.log").write_text(LOG)
    node = Node(tmp_path / "0.log")
    kubelet = KubeletServer(world=World(), runtime=node, pods=node)  # type: ignore[arg-type]
    async with serving(kubelet, tls) as port:
        url = f"https://127.0.0.1:{port}/containerLogs/n/p/app"

        async def ask(certificate: tuple[bytes, bytes] | None) -> int:
            context = client_context(authority.certificate_pem, *(certificate or ()))
            async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as response:
                return response.status

        assert await ask(authority.issue_client("kube-apiserver-kubelet-client", ["system:masters"])) == 200
        assert await ask(authority.issue_client("system:node:node-1", ["system:nodes"])) == 403
        with pytest.raises(aiohttp.ClientError):
            await ask(None)
        with pytest.raises(aiohttp.ClientError):
            await ask(stranger.issue_client("kube-apiserver-kubelet-client", ["system:masters"]))


async def test_clients_that_do_not_begin_tls_do_not_grow_the_kubelet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lastcall.kube.apiserver.auth.pki import ClusterCA
    from lastcall.kube.apiserver.auth.tls import server_context

    monkeypatch.setattr(listeners, "MOST_HANDSHAKES", 1)
    authority, node = ClusterCA.create(), Node(tmp_path / "0.log")
    tls = server_context(*authority.issue_server(["127.0.0.1"]), client_ca=authority.certificate_pem)
    kubelet = KubeletServer(world=World(), runtime=node, pods=node)  # type: ignore[arg-type]
    async with serving(kubelet, tls) as port:
        first, kept = await asyncio.open_connection("127.0.0.1", port)
        _, second = await asyncio.open_connection("127.0.0.1", port)
        with suppress(ConnectionResetError):
            assert await first.read() == b""
        kept.close()
        second.close()
