"""`lastcall controller-manager` on the API server of a real Kubernetes: kinds that lastcall has no table for.

etcd and kube-apiserver run on loopback ports, without any controller of their own. Skipped where they are not installed
(`KUBERNETES_HOME`).
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from waiting import eventually

from lastcall.apiserver.auth.pki import ClusterCA
from lastcall.client.discovery import AGGREGATED
from lastcall.client.kubeconfig import client_for, load_kubeconfig, render_kubeconfig

HOME = Path(os.environ.get("KUBERNETES_HOME", Path.home() / ".cache/kubernetes-1.36.2"))
KUBECTL = str(HOME / "bin/kubectl")

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not (HOME / "bin/kube-apiserver").exists(), reason="no kube-apiserver is installed"),
]

CAPACITY = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "storageClassName": "x", "capacity": "1Gi"}
REQUEST = {"name": "a", "exactly": {"deviceClassName": "x"}}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "spec": {"spec": {"devices": {"requests": [REQUEST]}}},
}
BOTH = "csistoragecapacities,resourceclaimtemplates"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


class RealAPIServer:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen] = []
        self.kubeconfig = str(folder / "kubeconfig")

    def start(self) -> None:
        folder = self.folder
        etcd, peer, port = free_port(), free_port(), free_port()
        ca = ClusterCA.create()
        private = ca.new_key_pem()
        public = load_pem_private_key(private, None).public_key()
        public_pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        for name, pem in (("ca.crt", ca.certificate_pem), ("sa.key", private), ("sa.pub", public_pem)):
            self._file(name, pem)
        for name, pair in (
            ("server", ca.issue_server(["127.0.0.1"])),
            ("admin", ca.issue_client("admin", ["system:masters"])),
        ):
            self._file(f"{name}.crt", pair[0])
            self._file(f"{name}.key", pair[1])
        url = f"http://127.0.0.1:{etcd}"
        peers = f"http://127.0.0.1:{peer}"
        self._start(
            "etcd", f"--data-dir={folder}/etcd", f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
        )  # fmt: skip
        self._start(
            "kube-apiserver", f"--etcd-servers={url}", "--bind-address=127.0.0.1", f"--secure-port={port}",
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.97.0.0/16", "--authorization-mode=RBAC", f"--client-ca-file={folder}/ca.crt",
            f"--tls-cert-file={folder}/server.crt", f"--tls-private-key-file={folder}/server.key",
            f"--cert-dir={folder}/certs", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder}/sa.pub", f"--service-account-signing-key-file={folder}/sa.key",
        )  # fmt: skip
        text = render_kubeconfig(
            "real",
            f"https://127.0.0.1:{port}",
            ca.certificate_pem,
            cert_pem=(folder / "admin.crt").read_bytes(),
            key_pem=(folder / "admin.key").read_bytes(),
        )
        self._file("kubeconfig", text.encode())
        eventually(lambda: self.kubectl("get", "namespace", "default", check=False) != "", "kube-apiserver answers")

    def _file(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.write_bytes(content)
        path.chmod(0o600)

    def _start(self, program: str, *arguments: str) -> None:
        with open(self.folder / f"{program}.log", "wb") as log:
            command = [str(HOME / "bin" / program), *arguments]
            self.processes.append(
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
            )

    def kubectl(self, *arguments: str, stdin: object = None, check: bool = True) -> str:
        command = [KUBECTL, "--kubeconfig", self.kubeconfig, *arguments]
        text = None if stdin is None else json.dumps(stdin)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout if done.returncode == 0 else ""

    def create(self, obj: dict, name: str, namespace: str, owner: str = "") -> None:
        meta: dict = {"name": name, "namespace": namespace}
        if owner:
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}
            meta["ownerReferences"] = [reference]
        self.kubectl("create", "-f", "-", stdin={**obj, "metadata": meta})

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAPIServer]:
    folder = tmp_path_factory.mktemp("real")
    server = RealAPIServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def manager(real: RealAPIServer) -> Iterator[None]:
    names = "namespace-controller,garbage-collector-controller"
    command = [sys.executable, "-m", "lastcall.cli.main", "controller-manager", "--kubeconfig", real.kubeconfig]
    with open(real.folder / "manager.log", "wb") as log:
        process = subprocess.Popen([*command, "--controllers", names], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.mark.usefixtures("manager")
def test_what_lastcall_has_no_table_for_goes_with_its_owner_and_with_its_namespace(real: RealAPIServer) -> None:
    real.kubectl("create", "namespace", "a")
    real.kubectl("-n", "a", "create", "configmap", "owner")
    uid = real.kubectl("-n", "a", "get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
    for name, owner in (("owned", uid), ("free", "")):
        real.create(CAPACITY, name, "a", owner)
        real.create(TEMPLATE, name, "a", owner)

    def left() -> list[str]:
        return sorted(real.kubectl("-n", "a", "get", BOTH, "-o", "name").split())

    kinds = ("csistoragecapacity.storage.k8s.io", "resourceclaimtemplate.resource.k8s.io")
    real.kubectl("-n", "a", "delete", "configmap", "owner")
    eventually(lambda: left() == [f"{kind}/free" for kind in kinds], f"what had an owner is gone: {left()}")
    real.kubectl("delete", "namespace", "a", "--timeout=60s")
    for path in ("storage.k8s.io/v1/csistoragecapacities", "resource.k8s.io/v1/resourceclaimtemplates"):
        assert json.loads(real.kubectl("get", "--raw", f"/apis/{path}"))["items"] == []


@pytest.mark.usefixtures("manager")
def test_a_namespace_waits_while_a_group_cannot_be_discovered(real: RealAPIServer) -> None:
    service = {"name": "none", "namespace": "default"}
    spec = {
        "group": "broken.example.com",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "service": service,
        "insecureSkipTLSVerify": True,
    }
    broken = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": spec}
    real.kubectl("create", "-f", "-", stdin={**broken, "metadata": {"name": "v1.broken.example.com"}})
    real.kubectl("create", "namespace", "b")
    real.create(CAPACITY, "c", "b")
    stale = "stale GroupVersion discovery: broken.example.com/v1"
    eventually(lambda: "Stale" in aggregated(real), "the group is known to fail")
    real.kubectl("delete", "namespace", "b", "--wait=false")

    def failure() -> dict:
        conditions = json.loads(real.kubectl("get", "namespace", "b", "-o", "json"))["status"].get("conditions") or []
        return next((each for each in conditions if each["type"] == "NamespaceDeletionDiscoveryFailure"), {})

    eventually(lambda: failure().get("status") == "True", "the condition")
    assert (failure()["reason"], failure()["message"]) == (
        "DiscoveryFailed",
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
        f"broken.example.com/v1: {stale}",
    )
    assert real.kubectl("-n", "b", "get", BOTH, "-o", "name") == ""
    real.kubectl("delete", "apiservice", "v1.broken.example.com")
    eventually(lambda: real.kubectl("get", "namespace", "b", check=False) == "", "the namespace is gone")


def aggregated(real: RealAPIServer) -> str:
    async def ask() -> bytes:
        client = client_for(load_kubeconfig(real.kubeconfig, ""), user_agent="test")
        try:
            return await client.request("GET", "/apis", accept=AGGREGATED)
        finally:
            await client.close()

    return asyncio.run(ask()).decode()
