"""lastcall's API server and a real kube-apiserver as processes, on an etcd of the test's own."""

import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from ports import reserve_port

from engines.etcd import KUBERNETES_HOME
from lastcall.kube.apiserver.auth.pki import ClusterCA

SERVICE_RANGE = "10.96.0.0/24"
START_SECONDS = 120


class Keys:
    """Certificates and keys of one control plane, as files."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.ca = ClusterCA.create()
        self.ca_file = self.write("ca.crt", self.ca.certificate_pem)
        self.server = self._pair("server", self.ca.issue_server(["127.0.0.1", "localhost"]))
        self.client = self._pair("admin", self.ca.issue_client("kubernetes-admin", ["system:masters"]))
        self.signing = self.write("sa.key", self.ca.new_key_pem())
        private = serialization.load_pem_private_key(Path(self.signing).read_bytes(), None)
        public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        self.verifying = self.write("sa.pub", public)

    def _pair(self, name: str, pair: tuple[bytes, bytes]) -> tuple[str, str]:
        return self.write(f"{name}.crt", pair[0]), self.write(f"{name}.key", pair[1])

    def write(self, name: str, content: bytes) -> str:
        path = self.directory / name
        path.write_bytes(content)
        path.chmod(0o600)
        return str(path)

    @property
    def trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.ca.certificate_pem.decode())
        context.load_cert_chain(*self.client)
        return context


@dataclass
class Answer:
    status: int
    body: Any


class Server:
    """A server that answers HTTPS; `kill` and `start` as often as wanted."""

    def __init__(self, argv: list[str], port: int, keys: Keys, log: Path) -> None:
        self.argv, self.port, self.keys, self.log_file = argv, port, keys, log
        self.process: subprocess.Popen[bytes] | None = None
        self._trust = keys.trust

    def start(self) -> None:
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(self.argv, stdout=log, stderr=log)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                if self.ask("GET", "/readyz").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.2)  # pause of a poll
        raise AssertionError(f"{self.argv[0]} is not ready:\n{self.log()[-3000:]}")

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
            self.process = None

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None

    def ask(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", seconds: float = 60
    ) -> Answer:
        """One request with the admin's certificate."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", data, method=method)
        if data is not None:
            request.add_header("Content-Type", kind)
        try:
            with urllib.request.urlopen(request, timeout=seconds, context=self._trust) as answer:
                return Answer(answer.status, _content(answer.read()))
        except urllib.error.HTTPError as error:
            return Answer(error.code, _content(error.read()))

    def made(self, path: str, body: Any) -> Any:
        """The object that a POST creates."""
        answer = self.ask("POST", path, body)
        assert answer.status == 201, answer
        return answer.body

    def got(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.body

    @contextmanager
    def watch(self, path: str) -> Iterator[Iterator[Any]]:
        """The events of a watch."""
        url = f"https://127.0.0.1:{self.port}{path}"
        with urllib.request.urlopen(url, timeout=60, context=self._trust) as answer:
            yield (json.loads(line) for line in answer)


def _content(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace")


def etcd_arguments(servers: str, tls: dict[str, str] | None = None) -> list[str]:
    return [f"--etcd-servers={servers}", *(f"--etcd-{name}={path}" for name, path in (tls or {}).items())]


def ours(directory: Path, keys: Keys, etcd: list[str], port: int = 0) -> Server:
    """lastcall's."""
    port = port or reserve_port()
    argv = [
        sys.executable, "-m", "lastcall.cli.main", "apiserver", *etcd, f"--secure-port={port}",
        f"--tls-cert-file={keys.server[0]}", f"--tls-private-key-file={keys.server[1]}",
        f"--client-ca-file={keys.ca_file}", f"--service-account-signing-key-file={keys.signing}",
        f"--service-cluster-ip-range={SERVICE_RANGE}", "--advertise-address=192.0.2.2",
    ]  # fmt: skip
    return Server(argv, port, keys, directory / f"lastcall-{port}.log")


def real(directory: Path, keys: Keys, etcd: list[str], port: int = 0, more: tuple[str, ...] = ()) -> Server:
    """Kubernetes's."""
    port = port or reserve_port()
    argv = [
        str(KUBERNETES_HOME / "bin" / "kube-apiserver"), *etcd, "--bind-address=127.0.0.1",
        f"--secure-port={port}", "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
        f"--service-cluster-ip-range={SERVICE_RANGE}", "--authorization-mode=Node,RBAC",
        "--allow-privileged=true", f"--client-ca-file={keys.ca_file}",
        f"--tls-cert-file={keys.server[0]}", f"--tls-private-key-file={keys.server[1]}", f"--cert-dir={directory}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={keys.verifying}", f"--service-account-signing-key-file={keys.signing}", *more,
    ]  # fmt: skip
    return Server(argv, port, keys, directory / f"kube-apiserver-{port}.log")


def missing_kubernetes() -> str:
    """Why there is no real kube-apiserver, for a skip; empty where there is one."""
    path = KUBERNETES_HOME / "bin" / "kube-apiserver"
    return "" if os.access(path, os.X_OK) else f"no kube-apiserver in {path.parent}"
