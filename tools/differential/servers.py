"""The two servers: a real etcd and kube-apiserver on loopback ports, and lastcall's API server, with no controllers."""

import base64
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from differential.request import JSON, Request, settled
from lastcall.apiserver.auth.pki import ClusterCA

HOME = Path(os.environ.get("KUBERNETES_HOME", Path.home() / ".cache" / "kubernetes-1.36.2"))
AGENT = "differential/1"
START_SECONDS = 90
SERVICE_RANGE = "10.125.0.0/16"


@dataclass(frozen=True, slots=True)
class Answer:
    """`headers` has lower-case names; those that come several times are joined with a newline."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The JSON of the body, None for anything else."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


@dataclass(slots=True)
class Server:
    """One of the two. `held` is the newest state of every object that it answered with, by path."""

    url: str
    trust: ssl.SSLContext
    token: str = ""
    held: dict[str, Any] = field(default_factory=dict)
    _connection: http.client.HTTPSConnection | None = None

    def ask(self, request: Request) -> Answer:
        """One request on a connection that is kept; a broken one is tried once more. Without an answer the status is 0.

        Raises OSError."""
        query = urlencode([(key, settled(value, self.held)) for key, value in request.query])
        body = request.body
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(settled(body, self.held)).encode()
        headers = {"User-Agent": AGENT, "Accept": JSON, **request.headers}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        path = quote(request.path, safe="/:%@!$&'()*+,;=~") + (f"?{query}" if query else "")
        for _ in range(2):
            try:
                return self._ask(request.method, path, body, headers)
            except http.client.RemoteDisconnected:
                self.close()
            except TimeoutError:
                self.close()
                return Answer(0, {}, b"no answer in time")
        return Answer(0, {}, b"connection closed without an answer")

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        if self._connection is None:
            parts = urlsplit(self.url)
            assert parts.hostname is not None
            self._connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=60, context=self.trust)
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        found: dict[str, str] = {}
        for key, value in answer.getheaders():
            found[key.lower()] = f"{found[key.lower()]}\n{value}" if key.lower() in found else value
        return Answer(answer.status, found, answer.read())

    def get(self, path: str, accept: str = JSON) -> Any:
        """The JSON there. Raises LookupError."""
        answer = self.ask(Request("GET", path, "", "get", headers={"Accept": accept}))
        if answer.status != 200:
            raise LookupError(f"{path}: {answer.status} {answer.body[:200]!r}")
        return answer.document

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def _process(argv: list[str], log: Path, **more: Any) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdout=more.pop("stdout", out), stderr=out, **more)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def real_server(scratch: Path, more: tuple[str, ...] = ()) -> Iterator[Server]:
    """A new etcd and kube-apiserver; `more` are flags of the latter. Raises LookupError when it does not start."""
    binaries = HOME / "bin"
    if not (binaries / "kube-apiserver").exists():
        raise LookupError(f"no kube-apiserver in {binaries}: install it there, or set KUBERNETES_HOME")
    ca = ClusterCA.create()
    pki = scratch / "pki"
    pki.mkdir(mode=0o700)

    def write(name: str, content: bytes) -> str:
        path = pki / name
        path.write_bytes(content)
        path.chmod(0o600)
        return str(path)

    ca_file = write("ca.crt", ca.certificate_pem)
    certificate, key = (
        write(f"server.{i}", each) for i, each in enumerate(ca.issue_server(["127.0.0.1", "localhost"]))
    )
    admin = [
        write(f"admin.{i}", each) for i, each in enumerate(ca.issue_client("kubernetes-admin", ["system:masters"]))
    ]
    signing = write("sa.key", ca.new_key_pem())
    public = serialization.load_pem_private_key(Path(signing).read_bytes(), None).public_key()
    verifying = write("sa.pub", public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    etcd, peer, port = _free_port(), _free_port(), _free_port()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, scratch / "etcd", ignore_errors=True)
        argv = [
            str(binaries / "etcd"), "--data-dir", str(scratch / "etcd"), "--unsafe-no-fsync", "--log-level", "error",
            f"--listen-client-urls=http://127.0.0.1:{etcd}", f"--advertise-client-urls=http://127.0.0.1:{etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}", f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
        ]  # fmt: skip
        stack.enter_context(_process(argv, scratch / "etcd.log"))
        argv = [
            str(binaries / "kube-apiserver"), f"--etcd-servers=http://127.0.0.1:{etcd}", "--bind-address=127.0.0.1",
            f"--secure-port={port}", "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
            f"--service-cluster-ip-range={SERVICE_RANGE}", "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true", f"--client-ca-file={ca_file}",
            f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}", f"--cert-dir={scratch}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={verifying}", f"--service-account-signing-key-file={signing}", *more,
        ]  # fmt: skip
        process = stack.enter_context(_process(argv, scratch / "kube-apiserver.log"))
        trust = ssl.create_default_context(cadata=ca.certificate_pem.decode())
        trust.load_cert_chain(*admin)
        server = stack.enter_context(Server(f"https://127.0.0.1:{port}", trust))
        _wait_ready(server, process, scratch / "kube-apiserver.log")
        yield server


def _wait_ready(server: Server, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            if server.ask(Request("GET", "/readyz", "", "get")).status == 200:
                return
        except OSError:
            server.close()
        time.sleep(0.3)
    raise LookupError(f"kube-apiserver is not ready:\n{log.read_text()[-2000:]}")


@contextmanager
def our_server(scratch: Path) -> Iterator[Server]:
    """lastcall's API server, in a process of its own. Raises LookupError when it does not start."""
    kubeconfig = scratch / "lastcall.kubeconfig"
    script = Path(__file__).resolve().parents[2] / "tests" / "support" / "api_server.py"
    argv = [sys.executable, str(script), "--kubeconfig", str(kubeconfig)]
    with _process(argv, scratch / "lastcall.log", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        if not url:
            raise LookupError(f"lastcall's API server did not start:\n{(scratch / 'lastcall.log').read_text()[-2000:]}")
        config = yaml.safe_load(kubeconfig.read_text())
        pem = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        token = config["users"][0]["user"]["token"]
        with Server(url, ssl.create_default_context(cadata=pem), token) as server:
            yield server
