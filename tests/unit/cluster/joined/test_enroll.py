"""What a node that joins does with the certificates that it has: those of another cluster look as good."""

import asyncio
import logging
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import orjson
import pytest

from lastcall.apiserver.auth.pki import ClusterCA
from lastcall.apiserver.auth.tls import server_context
from lastcall.client.access.config import ClientConfig
from lastcall.cluster.joined.asked import Asked
from lastcall.cluster.joined.enroll import (
    KEPT,
    EnrollError,
    address_elsewhere,
    enroll,
    forget_another_cluster,
    keep_cluster,
)
from lastcall.cluster.joined.files import KUBE_PROXY, KUBELET_CLIENT, KUBELET_SERVER, Pair, PairFile
from lastcall.world.world import World

OLD, NEW = ClusterCA.create(), ClusterCA.create()
REFUSES = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def has_joined(pki: Path, authority: ClusterCA, server: str = "https://10.0.0.1:6443") -> list[PairFile]:
    """The state of a node of that cluster."""
    kept = {"server": server, "ca": authority.certificate_pem.decode(), "tlsServerName": ""}
    (pki / KEPT).write_bytes(orjson.dumps(kept))
    files = [PairFile(pki, name) for name in (KUBELET_CLIENT, KUBELET_SERVER, KUBE_PROXY)]
    for file in files:
        file.write(Pair(*authority.issue_client("system:node:n1", ["system:nodes"])))
    files[1].keep_pending(b"key")
    return files


@pytest.mark.parametrize(
    ("authorities", "kept"),
    [(NEW.certificate_pem, False), (OLD.certificate_pem, True), (NEW.certificate_pem + OLD.certificate_pem, True)],
)
def test_certificates_of_another_cluster_are_forgotten(authorities: bytes, kept: bool, tmp_path: Path) -> None:
    files = has_joined(tmp_path, OLD)
    forget_another_cluster(ClientConfig("https://10.0.0.9:6443", ca_pem=authorities), str(tmp_path))
    assert [file.read() is not None for file in files] == [kept] * 3
    assert (files[1].pending_key() != b"") is kept


@pytest.mark.parametrize(("authority", "kept"), [(NEW, False), (OLD, True)])
def test_what_containers_of_another_cluster_left_is_forgotten_when_the_new_one_has_taken_the_node(
    authority: ClusterCA, kept: bool, tmp_path: Path
) -> None:
    pki, record = tmp_path / "pki", tmp_path / "runtime" / "container-1.json"
    pki.mkdir()
    record.parent.mkdir()
    record.write_text("{}")
    has_joined(pki, OLD)
    said: list[str] = []
    config = ClientConfig("https://10.0.0.9:6443", ca_pem=authority.certificate_pem)
    forget_another_cluster(config, str(pki))
    assert record.exists(), "the new cluster may refuse the node"
    for _ in range(2):
        keep_cluster(config, str(pki), said.append)
        assert record.exists() is kept
    assert orjson.loads((pki / KEPT).read_bytes())["server"] == config.server
    told = "the node was one of https://10.0.0.1:6443: what it knew of that cluster's containers is forgotten"
    assert said == [told][: not kept]


ENROLLS = """
import sys
from lastcall.client.access.config import ClientConfig
from lastcall.cluster.joined.asked import Asked
from lastcall.cluster.joined.enroll import Enrolling
enrolling = Enrolling(Asked("n1", ClientConfig(sys.argv[1], token="t")), sys.argv[2])
print(enrolling._pid, flush=True)
for _ in enrolling.messages():
    pass
"""


def test_whoever_makes_the_node_known_ends_with_the_command_that_asked_for_it(tmp_path: Path) -> None:
    """The API server takes the connection, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        front = subprocess.Popen([sys.executable, "-c", ENROLLS, url, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        with front:
            assert front.stdout is not None
            child = os.pidfd_open(int(front.stdout.readline()))
            try:
                with silent.accept()[0]:
                    signal.pidfd_send_signal(child, signal.SIGSTOP)  # so that it cannot end by itself
                    front.kill()
                    assert select.select([child], [], [], 20)[0]
            finally:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(child, signal.SIGKILL)
                os.close(child)


def test_a_node_of_a_cluster_that_is_gone_asks_the_next_one_with_what_it_was_given(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An API server that takes no certificate of strangers ends the connection, and says nothing of why."""
    caplog.set_level(logging.CRITICAL, "asyncio")

    async def story() -> None:
        async with refusing_server() as server:
            has_joined(tmp_path, OLD)
            config = ClientConfig(server, ca_pem=NEW.certificate_pem, token="abcdef.0123456789abcdef")
            with pytest.raises(EnrollError, match=r"the API server refuses.*fix: a token or kubeconfig"):
                await enroll(World(), Asked("n1", config), str(tmp_path), print)

    asyncio.run(story())


def test_a_node_without_a_certificate_is_told_the_ways_to_join(tmp_path: Path) -> None:
    for file in has_joined(tmp_path, OLD):
        file.forget()
    with pytest.raises(EnrollError, match="node n1 has no client certificate that is good now; fix: --kubeconfig FILE"):
        asyncio.run(enroll(World(), Asked("n1"), str(tmp_path), print))
    (tmp_path / KEPT).unlink()
    with pytest.raises(EnrollError, match="joined no cluster before; fix: --kubeconfig FILE"):
        asyncio.run(enroll(World(), Asked("n1"), str(tmp_path), print))


@pytest.mark.parametrize(
    ("ready", "addresses", "elsewhere"),
    [
        ("True", ["10.0.0.3"], "10.0.0.3"),
        ("True", ["10.0.0.2"], ""),
        ("True", ["fd00::2", "10.0.0.2"], ""),
        ("Unknown", ["10.0.0.3"], ""),
        ("False", ["10.0.0.3"], ""),
        ("True", [], ""),
    ],
)
def test_a_name_is_taken_when_another_machine_is_ready_under_it(
    ready: str, addresses: list[str], elsewhere: str
) -> None:
    told = [{"type": "Hostname", "address": "n1"}, *({"type": "InternalIP", "address": each} for each in addresses)]
    node = {"status": {"conditions": [{"type": "Ready", "status": ready}], "addresses": told}}
    assert address_elsewhere(node, "10.0.0.2") == elsewhere
    assert address_elsewhere({"status": {"addresses": told}}, "10.0.0.2") == "", "it has never been Ready"


@asynccontextmanager
async def refusing_server() -> AsyncIterator[str]:
    """Its URL; it knows nobody."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(REFUSES)
        await writer.drain()
        writer.close()

    context = server_context(*NEW.issue_server(["127.0.0.1"]), client_ca=NEW.certificate_pem)
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
