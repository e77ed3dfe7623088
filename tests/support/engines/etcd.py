"""A real etcd of a test's own, on loopback: one member or several, with TLS or without."""

import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from ports import reserve_port

KUBERNETES_HOME = Path(os.environ.get("KUBERNETES_HOME") or Path.home() / ".cache/kubernetes-1.36.2")
START_SECONDS = 60


def etcd_binary() -> str | None:
    """Where an etcd is: that of `$KUBERNETES_HOME`, else the one on the PATH; None without any."""
    own = KUBERNETES_HOME / "bin" / "etcd"
    return str(own) if own.exists() else shutil.which("etcd")


class Member:
    """One member; `start` again after `kill` continues with its data."""

    def __init__(self, directory: Path, name: str, arguments: list[str], client_port: int, scheme: str) -> None:
        self.directory, self.name, self.arguments = directory, name, arguments
        self.url = f"{scheme}://127.0.0.1:{client_port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        binary = etcd_binary()
        assert binary is not None, "no etcd"
        with (self.directory / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen([binary, *self.arguments], stdout=log, stderr=log)

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(60)
            self.process = None

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def log(self) -> str:
        return (self.directory / f"{self.name}.log").read_text(errors="replace")


class Etcd:
    """`with Etcd(tmp_path) as etcd: etcd.servers`. Data is not made durable: it is on a test's own disk."""

    def __init__(
        self, directory: Path, members: int = 1, *, tls: dict[str, str] | None = None, more: tuple[str, ...] = ()
    ):
        """`tls` names etcd's files: cert, key, and trusted-ca, which makes it ask for client certificates."""
        self.directory = directory
        self.tls = tls
        scheme = "https" if tls else "http"
        ports = [(reserve_port(), reserve_port(), reserve_port()) for _ in range(members)]
        cluster = ",".join(f"m{n}=http://127.0.0.1:{peer}" for n, (_, peer, _) in enumerate(ports))
        flags = [f"--{flag}-file={path}" for flag, path in (tls or {}).items()]
        if tls and "trusted-ca" in tls:
            flags.append("--client-cert-auth")
        self.members = [
            Member(
                directory,
                f"m{number}",
                [
                    f"--name=m{number}",
                    f"--data-dir={directory}/m{number}",
                    f"--listen-client-urls={scheme}://127.0.0.1:{client}",
                    f"--advertise-client-urls={scheme}://127.0.0.1:{client}",
                    f"--listen-peer-urls=http://127.0.0.1:{peer}",
                    f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
                    f"--initial-cluster={cluster}",
                    f"--listen-metrics-urls=http://127.0.0.1:{metrics}",
                    "--log-level=warn",
                    *flags,
                    *more,
                ],
                client,
                scheme,
            )
            for number, (client, peer, metrics) in enumerate(ports)
        ]
        self._metrics = [metrics for _, _, metrics in ports]

    @property
    def servers(self) -> str:
        return ",".join(member.url for member in self.members)

    def __enter__(self) -> "Etcd":
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            for member in self.members:
                member.start()
            for number in range(len(self.members)):
                self.wait_ready(number)
        except BaseException:
            self.stop()
            raise
        return self

    def wait_ready(self, number: int) -> None:
        """Return when a member serves."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics[number]}/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (OSError, urllib.error.URLError):
                pass
            time.sleep(0.05)  # pause of a poll
        raise AssertionError(f"etcd does not become healthy:\n{self.members[number].log()[-2000:]}")

    def stop(self) -> None:
        for member in self.members:
            member.kill()
            shutil.rmtree(member.directory / member.name, ignore_errors=True)

    def __exit__(self, *_: object) -> None:
        self.stop()


def missing_etcd() -> str:
    """Why there is no etcd, for a skip; empty where there is one."""
    return "" if etcd_binary() else f"no etcd in {KUBERNETES_HOME}/bin and none on the PATH"
