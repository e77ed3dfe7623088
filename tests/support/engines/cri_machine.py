"""A machine for a CRI runtime: network, mount and PID namespaces of its own, with the registries that critest names.

`with Machine() as machine:`; at its end every process, mount and link of it is gone. Runtimes are started in it:
`LastcallRuntime(machine)`, `Containerd(machine)`; critest by `run_critest`.
"""

import datetime
import ipaddress
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tree import named_namespace
from waiting import eventually

from engines import cri_images
from engines.containerd import CNI, CONFIG, missing_containerd

CRITEST = cri_images.HOME / "bin/critest"
DIGEST_IN_CRITEST = b"sha256:9700f9a2f5bf2c45f2f605a0bd3bce7cf37420ec9d3ed50ac2758413308766bf"
"""Of an image that nobody here has: replaced by the stand-in's in the copy of critest that runs."""
PREPARE = """
set -e
mount --make-rshared /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/netns /run/etc && printf '127.0.0.1 localhost {hosts}\n' > /run/etc/hosts
mount --bind /run/etc/hosts /etc/hosts
mount -t tmpfs tmpfs /var/lib/kubelet 2>/dev/null || true
touch {directory}/kept
exec sleep infinity
"""


def missing_critest() -> str:
    """Why critest cannot run here, "" when it can."""
    if os.getuid() != 0:
        return "critest needs root"
    if not CRITEST.exists():
        return f"{CRITEST} is not there"
    if not Path("/usr/lib/cni/bridge").exists():
        return "the CNI plugins are not installed"
    if shutil.which("iptables") is None:
        return "iptables, which CNI's portmap needs, is not installed"
    return cri_images.missing_images()


class Machine:
    def __init__(self, *, registry: bool = True) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="cri-machine-", dir="/var/tmp"))
        self.netns = named_namespace("cri-machine")
        self.digest, self._namespace = "", 0
        self.shell: Path | None = None
        self._has_registry = registry
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _begin(self) -> None:
        self.directory.chmod(0o755)  # critest's containers look into it
        subprocess.run(["ip", "netns", "add", self.netns], check=True, timeout=30)
        subprocess.run(["ip", "-n", self.netns, "link", "set", "lo", "up"], check=True, timeout=30)
        script = PREPARE.format(directory=self.directory, hosts=" ".join(cri_images.HOSTS))
        keeper = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{self.netns}", "unshare", "--mount", "--propagation", "private", "--pid",
             "--fork", "--kill-child", "--mount-proc", "sh", "-c", script],
            start_new_session=True,
        )  # fmt: skip
        self._running.append(keeper)
        eventually((self.directory / "kept").exists, "the machine's namespaces")
        self.first = int(Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split()[0])
        self._namespace = os.stat(f"/proc/{self.first}/ns/pid").st_ino
        self("sysctl", "-qw", "net.ipv4.ip_forward=1")
        if self._has_registry:
            self._start_registry()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for process in reversed(self._running):
            process.kill()
            process.wait(30)
        subprocess.run(["ip", "netns", "del", self.netns], check=True, timeout=30)
        self._remove_groups()
        for _ in range(50):
            shutil.rmtree(self.directory, ignore_errors=True)
            if not self.directory.exists():
                return
            time.sleep(0.1)

    def _remove_groups(self) -> None:
        """Of what was killed with the machine."""
        for _ in range(50):
            command = ["find", "/sys/fs/cgroup", "-type", "d", "-name", f"lastcall-runtime*-ns{self._namespace}-*"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
            found = [Path(line) for line in done.stdout.split()]
            found += [*Path("/sys/fs/cgroup").glob("*/k8s.io")]
            for path in found:
                remove = ["find", str(path), "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"]
                subprocess.run(remove, capture_output=True, check=False, timeout=30)
            if not any(path.exists() for path in found if path.name != "k8s.io"):
                return
            time.sleep(0.1)

    @property
    def inside(self) -> list[str]:
        return ["nsenter", "-t", str(self.first), "-m", "-n", "-p", "--"]

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "KUBERNETES_HOME": str(cri_images.HOME),
            "TMPDIR": str(self.directory),
            "SSL_CERT_FILE": str(self.directory / "ca.crt"),
        }

    def __call__(self, *command: str, timeout: float = 120) -> str:
        done = self.run(*command, timeout=timeout)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def run(self, *command: str, timeout: float = 120) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self.inside, *command], capture_output=True, text=True, timeout=timeout, env=self.environment, check=False
        )

    def start(self, name: str, *command: str, **environment: str) -> "subprocess.Popen[bytes]":
        """In the background until the end; its output in `log(name)`."""
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*self.inside, *command], stdout=log, stderr=log, cwd="/", env={**self.environment, **environment}
            )
        self._running.append(process)
        return process

    def lastcall(self, *arguments: str, timeout: float = 240.0) -> "subprocess.CompletedProcess[str]":
        """In its network alone: the command makes namespaces of its own."""
        return subprocess.run(
            ["nsenter", f"--net=/run/netns/{self.netns}", sys.executable, "-m", "lastcall.cli.main", *arguments],
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip

    def log(self, name: str) -> str:
        path = self.directory / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _start_registry(self) -> None:
        certificate, key = self.directory / "ca.crt", self.directory / "registry.key"
        _certificate(certificate, key)
        support = str(Path(__file__).parent.parent)
        self.shell = cri_images.fetch_shell(self.directory / "shell")
        arguments = ("443", str(certificate), str(key), str(self.shell or ""))
        self.start("registry", sys.executable, "-m", "engines.cri_images", *arguments, PYTHONPATH=support)
        eventually(lambda: self.log("registry").startswith("sha256:"), "the registry", 60)
        self.digest = self.log("registry").split()[0]


class Runtime(Protocol):
    socket: Path


class LastcallRuntime:
    """`lastcall runtime` in a machine."""

    def __init__(self, machine: Machine, *options: str) -> None:
        self.machine, self._options = machine, options
        self.socket, self.root = machine.directory / "lastcall.sock", machine.directory / "lastcall"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        before = self.machine.log("runtime").count("serves CRI v1")
        self.process = self.machine.start(
            "runtime", sys.executable, "-m", "lastcall.cli.main", "runtime", "--listen", f"unix://{self.socket}",
            "--root", str(self.root), "--image-store", str(self.machine.directory / "store"), *self._options,
        )  # fmt: skip
        eventually(lambda: self.machine.log("runtime").count("serves CRI v1") > before, "lastcall runtime serves", 60)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """A signal to the runtime process alone."""
        assert self.process is not None
        for child in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            os.kill(int(child), number)
        self.process.wait(60)

    def end(self) -> None:
        """SIGTERM; without sandboxes nothing is left then."""
        self.kill(signal.SIGTERM)


class Containerd:
    """Debian's containerd in a machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.socket = machine, machine.directory / "containerd.sock"

    def start(self) -> None:
        directory = self.machine.directory
        (directory / "cni").mkdir()
        (directory / "cni/10-pods.conflist").write_text(CNI.format(directory=directory))
        config = CONFIG.format(directory=directory, snapshotter="overlayfs")
        (directory / "config.toml").write_text(config.replace("pause:3.10", "pause:3.9"))
        self.machine.start("containerd", "containerd", "-c", str(directory / "config.toml"))
        answers = ("ctr", "-a", str(self.socket), "version")
        eventually(lambda: self.machine.run(*answers).returncode == 0, "containerd answers", 60)


@dataclass(frozen=True)
class Spec:
    """One of critest's. `state` is passed, failed, skipped …; `text` why it failed."""

    name: str
    state: str
    text: str = ""


def run_critest(
    machine: Machine, runtime: Runtime, *, focus: str = "", skip: str = "", timeout: float = 1800
) -> list[Spec]:
    """All specs that were to run, by name."""
    program, report = machine.directory / "critest", machine.directory / "critest.json"
    assert len(machine.digest) == len(DIGEST_IN_CRITEST)
    program.write_bytes(CRITEST.read_bytes().replace(DIGEST_IN_CRITEST, machine.digest.encode()))
    program.chmod(0o755)
    nowhere = machine.directory / "nowhere"
    nowhere.mkdir(exist_ok=True)
    endpoint = f"unix://{runtime.socket}"
    options = [f"--ginkgo.focus={focus}"] if focus else []
    options += [f"--ginkgo.skip={skip}"] if skip else []
    with (machine.directory / "critest.log").open("ab") as log:
        subprocess.run(
            [*machine.inside, str(program), "--runtime-endpoint", endpoint, "--image-endpoint", endpoint,
             "--ginkgo.no-color", f"--ginkgo.json-report={report}", *options],
            stdout=log, stderr=log, cwd=nowhere, env=machine.environment, timeout=timeout, check=False,
        )  # fmt: skip
    (found,) = json.loads(report.read_text())
    return sorted((_spec(each) for each in found["SpecReports"] if each["LeafNodeType"] == "It"), key=lambda s: s.name)


def _spec(report: dict[str, object]) -> Spec:
    containers: Sequence[str] = report["ContainerHierarchyTexts"] or ()  # type: ignore[assignment]
    name = " ".join([*containers, str(report["LeafNodeText"])]).removeprefix("[k8s.io] ")
    failure: dict[str, str] = report.get("Failure") or {}  # type: ignore[assignment]
    return Spec(name, str(report["State"]), failure.get("Message", ""))


def _certificate(certificate: Path, key: Path) -> None:
    """For the hosts of the images, signed by itself."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "registries of a test")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(host) for host in (*cri_images.HOSTS, "localhost")]
    built = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([*names, x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(private, hashes.SHA256())
    )  # fmt: skip
    certificate.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    key.write_bytes(private.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))


__all__ = ["Containerd", "LastcallRuntime", "Machine", "Spec", "missing_containerd", "missing_critest", "run_critest"]
