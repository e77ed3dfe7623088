"""A real etcd and kube-apiserver on loopback ports, in a folder of their own, without any controller.

    @pytest.fixture(scope="module")
    def real(tmp_path_factory) -> Iterator[RealAPIServer]:
        with real_api_server(tmp_path_factory.mktemp("real")) as server:
            yield server

    pytestmark = needs("kube-apiserver", "etcd", "kubectl")

`real.kubeconfig` is the admin's file, `real.user("jane", "devs")` makes another user's; `real.stop("kube-apiserver")`
and `real.start("kube-apiserver")` restart it on the same port. Binaries: `$KUBERNETES_HOME/bin`.
"""

import http.client
import json
import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from ports import reserve_port

from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.client.kubeconfig import render_kubeconfig

HOME = Path(os.environ.get("KUBERNETES_HOME", Path.home() / ".cache" / "kubernetes-1.36.2"))
BINARIES = HOME / "bin"
START_SECONDS = 120.0
SERVICE_RANGE = "10.125.0.0/16"


def missing(*programs: str) -> list[str]:
    """Which of the programs are not installed."""
    return [each for each in programs if not (BINARIES / each).exists()]


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skips a test, by name, where one of the programs is not installed."""
    absent = missing(*programs)
    return pytest.mark.skipif(bool(absent), reason=f"not in {BINARIES}: {', '.join(absent)}")


class RealAPIServer:
    """One of each. `flags` and `etcd_flags` are added to what the programs are started with.

    With `etcd` (a URL) no etcd is started: several API servers of one store, or a store that the test made.
    """

    def __init__(self, folder: Path, flags: Sequence[str] = (), etcd_flags: Sequence[str] = (), etcd: str = "") -> None:
        self.folder = folder
        self.ca = ClusterCA.create()
        self.port = reserve_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.etcd = etcd or f"http://127.0.0.1:{reserve_port()}"
        self.kubeconfig = str(folder / "kubeconfig")
        self._commands: dict[str, list[str]] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._keys()
        if not etcd:
            peers = f"http://127.0.0.1:{reserve_port()}"
            self._commands["etcd"] = [
                f"--data-dir={folder}/etcd", "--unsafe-no-fsync", "--log-level=error",
                f"--listen-client-urls={self.etcd}", f"--advertise-client-urls={self.etcd}",
                f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}",
                f"--initial-cluster=default={peers}", *etcd_flags,
            ]  # fmt: skip
        self._commands["kube-apiserver"] = [
            f"--etcd-servers={self.etcd}", "--bind-address=127.0.0.1", f"--secure-port={self.port}",
            "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
            f"--service-cluster-ip-range={SERVICE_RANGE}", "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
            f"--client-ca-file={folder}/ca.crt",
            f"--tls-cert-file={folder}/server.crt", f"--tls-private-key-file={folder}/server.key",
            f"--cert-dir={folder}/certs", "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={folder}/sa.pub", f"--service-account-signing-key-file={folder}/sa.key",
            *flags,
        ]  # fmt: skip

    def start(self, *programs: str) -> None:
        """Start the programs (all), and wait until the API server is ready. Raises LookupError when it is not."""
        for each in programs or tuple(self._commands):
            self._start(each)
        self.wait_ready()

    def stop(self, *programs: str) -> None:
        """SIGKILL, and wait for the end."""
        for each in programs or tuple(reversed(self._commands)):
            process = self._processes.pop(each, None)
            if process is not None:
                process.kill()
                process.wait()

    def pid(self, program: str) -> int:
        return self._processes[program].pid

    def issue(self, name: str, *groups: str) -> tuple[bytes, bytes]:
        """A client certificate and its key, PEM."""
        return self.ca.issue_client(name, list(groups))

    def user(self, name: str, *groups: str, namespace: str = "") -> str:
        """The path of a kubeconfig for a new user, with the context `real`."""
        cert, key = self.issue(name, *groups)
        text = render_kubeconfig(
            "real", self.url, self.ca.certificate_pem, cert_pem=cert, key_pem=key, namespace=namespace
        )
        return str(self._file(f"{name.replace(':', '_').replace('/', '_')}.kubeconfig", text.encode()))

    def kubectl(self, *arguments: str, stdin: object = None, check: bool = True, kubeconfig: str = "") -> str:
        """What kubectl prints; "" when it fails, if that is not an error (`check`). `stdin` is sent as JSON."""
        done = self.run_kubectl(*arguments, stdin=stdin, kubeconfig=kubeconfig)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout if done.returncode == 0 else ""

    def run_kubectl(
        self, *arguments: str, stdin: object = None, kubeconfig: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return self.run_kubectl_with({"KUBECONFIG": kubeconfig or self.kubeconfig}, *arguments, stdin=stdin)

    def run_kubectl_with(
        self, variables: dict[str, str], *arguments: str, stdin: object = None
    ) -> subprocess.CompletedProcess[str]:
        """With no kubeconfig but what the variables say."""
        return subprocess.run(
            [str(BINARIES / "kubectl"), *arguments],
            stdin=subprocess.DEVNULL if stdin is None else None,
            input=None if stdin is None else json.dumps(stdin),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, "HOME": str(self.folder), **variables},
        )

    def admin_tls(self) -> ssl.SSLContext:
        """Trusts the server, and is the admin's."""
        trust = ssl.create_default_context(cadata=self.ca.certificate_pem.decode())
        trust.load_cert_chain(self.folder / "admin.crt", self.folder / "admin.key")
        return trust

    def wait_ready(self) -> None:
        """Raises LookupError."""
        trust, until = self.admin_tls(), time.monotonic() + START_SECONDS
        process = self._processes["kube-apiserver"]
        while time.monotonic() < until and process.poll() is None:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=trust)
            try:
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            time.sleep(0.2)  # pause of a poll
        raise LookupError(f"kube-apiserver is not ready:\n{self.log('kube-apiserver')[-2000:]}")

    def log(self, program: str) -> str:
        return (self.folder / f"{program}.log").read_text(errors="replace")

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)

    def _start(self, program: str) -> None:
        assert program not in self._processes, f"{program} runs"
        with open(self.folder / f"{program}.log", "ab") as log:
            self._processes[program] = subprocess.Popen(
                [str(BINARIES / program), *self._commands[program]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )

    def _keys(self) -> None:
        private = self.ca.new_key_pem()
        key: Any = load_pem_private_key(private, None)
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        server, admin = self.ca.issue_server(["127.0.0.1", "localhost"]), self.issue("admin", "system:masters")
        files = {"ca.crt": self.ca.certificate_pem, "sa.key": private, "sa.pub": public}
        for name, (cert, own) in (("server", server), ("admin", admin)):
            files |= {f"{name}.crt": cert, f"{name}.key": own}
        text = render_kubeconfig("real", self.url, self.ca.certificate_pem, cert_pem=admin[0], key_pem=admin[1])
        for name, content in {**files, "kubeconfig": text.encode()}.items():
            self._file(name, content)

    def _file(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        path.chmod(0o600)
        return path


@contextmanager
def real_api_server(
    folder: Path, flags: Sequence[str] = (), etcd_flags: Sequence[str] = (), etcd: str = ""
) -> Iterator[RealAPIServer]:
    """Started and ready; ended with the block. Raises LookupError where it is not installed or does not start."""
    if absent := missing("kube-apiserver", *(() if etcd else ("etcd",))):
        raise LookupError(f"not in {BINARIES}: {', '.join(absent)}: install it there, or set KUBERNETES_HOME")
    server = RealAPIServer(folder, flags, etcd_flags, etcd)
    try:
        server.start()
        yield server
    finally:
        server.close()
