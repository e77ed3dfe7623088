"""A cluster of `lastcall up`, and controllers and scheduler as processes beside it: lastcall's or Kubernetes's."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubectls import CURRENT, Kubectl
from ports import reserve_port

from engines.etcd import KUBERNETES_HOME
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.client.kubeconfig import render_kubeconfig

LASTCALL = [sys.executable, "-m", "lastcall.cli.main"]


@contextmanager
def cluster(name: str, home: Path, *options: str) -> Iterator[Kubectl]:
    """Up; down with the block."""
    started = subprocess.run(
        [*LASTCALL, "up", name, "--detach", "--timeout", "200", "-o", "json", *options],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert started.returncode == 0, started.stderr
    try:
        yield Kubectl(CURRENT, json.loads(started.stdout)["kubeconfig"], str(home))
    finally:
        ended = subprocess.run([*LASTCALL, "down", name], capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0, ended.stderr


@contextmanager
def component(*arguments: str, kubeconfig: str, log: Path) -> Iterator[Any]:
    """One of lastcall's."""
    with _running([*LASTCALL, *arguments, "--kubeconfig", kubeconfig], log, signal.SIGINT) as process:
        yield process


class ControlPlane:
    """kube-controller-manager and kube-scheduler with the flags that kubeadm gives them, for a cluster of `up --state`.

    Each is known by its certificate, and the controllers by ServiceAccounts of their own: what they may is what the
    cluster's default roles say.
    """

    def __init__(self, state: Path, directory: Path, services: str = "10.96.0.0/16") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self._services = directory, services
        kept = json.loads((state / "credentials.json").read_text())
        self._ca = ClusterCA.load(kept["caCertificate"].encode(), kept["caKey"].encode())
        self._url = f"https://127.0.0.1:{kept['apiPort']}"
        for name, key in (("ca.crt", "caCertificate"), ("ca.key", "caKey"), ("sa.key", "serviceAccountKey")):
            self._file(name, kept[key])

    def log(self, program: str) -> str:
        return (self.directory / f"{program}.log").read_text(errors="replace")

    @contextmanager
    def controller_manager(self, pods: str = "10.244.0.0/16") -> Iterator[int]:
        """Its port on the loopback."""
        ca, key = str(self.directory / "ca.crt"), str(self.directory / "ca.key")
        more = (
            f"--client-ca-file={ca}", f"--cluster-signing-cert-file={ca}", f"--cluster-signing-key-file={key}",
            f"--root-ca-file={ca}", f"--service-account-private-key-file={self.directory / 'sa.key'}",
            "--use-service-account-credentials=true", "--controllers=*,bootstrapsigner,tokencleaner",
            "--allocate-node-cidrs=true", f"--cluster-cidr={pods}", f"--service-cluster-ip-range={self._services}",
        )  # fmt: skip
        with self._component("kube-controller-manager", more) as port:
            yield port

    @contextmanager
    def scheduler(self) -> Iterator[int]:
        """Its port on the loopback."""
        with self._component("kube-scheduler", ()) as port:
            yield port

    @contextmanager
    def _component(self, program: str, more: Sequence[str]) -> Iterator[int]:
        port, kubeconfig = reserve_port(), self._kubeconfig(f"system:{program}", program)
        argv = [
            str(KUBERNETES_HOME / "bin" / program), "--v=2", f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={self.directory / program}",
            "--leader-elect=true", *more,
        ]  # fmt: skip
        with _running(argv, self.directory / f"{program}.log", signal.SIGTERM):
            yield port

    def _kubeconfig(self, user: str, name: str) -> str:
        certificate, key = self._ca.issue_client(user, [])
        text = render_kubeconfig(name, self._url, self._ca.certificate_pem, cert_pem=certificate, key_pem=key)
        return self._file(f"{name}.kubeconfig", text)

    def _file(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o600)
        return str(path)


@contextmanager
def _running(argv: list[str], log: Path, ended_by: signal.Signals) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(ended_by)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(60)


def missing_components() -> str:
    """Why there are none of Kubernetes's, for a skip; empty where there are."""
    absent = [
        each for each in ("kube-controller-manager", "kube-scheduler") if not (KUBERNETES_HOME / "bin" / each).exists()
    ]
    return f"not in {KUBERNETES_HOME / 'bin'}: {', '.join(absent)}" if absent else ""
