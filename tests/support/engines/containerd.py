"""containerd as the container runtime of lastcall's node, in namespaces of its own: Debian's, of several releases.

Its network namespace is also that of the lastcall that uses it. A keeper holds its PID and mount namespace: when that
is killed, containers, shims and mounts are gone, whatever state they were in.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from tree import named_namespace
from waiting import eventually

PROJECT = Path(__file__).resolve().parents[3]
HOME = Path(os.environ.get("KUBERNETES_HOME") or Path.home() / ".cache/kubernetes-1.36.2")
IMAGES = HOME / "images"
CONFIG = """version = 2
root = "{directory}/root"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "{directory}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10"
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{directory}/cni"
"""
CNI = """{{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
    "ipam": {{"type": "host-local", "dataDir": "{directory}/addresses", "ranges": [[{{"subnet": "10.77.0.0/24"}}]],
              "routes": [{{"dst": "0.0.0.0/0"}}]}}}},
  {{"type": "portmap", "capabilities": {{"portMappings": true}}}}]}}
"""


UNPACKED = {"1.6": "", "1.7": ".containerd-trixie", "2": ".containerd-sid"}
"""Version → where `tools/get-debian-containerd` has unpacked it; "" is the installed one."""


def path_of(version: str) -> str:
    """The PATH with which a version's programs are found."""
    usual, folder = os.environ["PATH"], UNPACKED[version]
    return f"{PROJECT / folder}/usr/bin:{usual}" if folder else usual


def missing_containerd(version: str = "1.6") -> str:
    """Why it cannot be used here, "" when it can."""
    if os.getuid() != 0:
        return "containerd needs root"
    for program in ("containerd", "runc", "ctr"):
        found = shutil.which(program, path=path_of(version))
        if found is None:
            return f"{program} is not installed"
    done = subprocess.run([shutil.which("containerd", path=path_of(version)) or "", "--version"], capture_output=True)
    if f" {version}." not in done.stdout.decode():
        suite = UNPACKED[version].rpartition("-")[2]
        return f"containerd {version} is not here" + (f": tools/get-debian-containerd {suite}" if suite else "")
    if not Path("/usr/lib/cni/bridge").exists():
        return "the CNI plugins are not installed"
    if shutil.which("iptables") is None:
        return "iptables, which CNI's portmap needs, is not installed"
    if not (IMAGES / "busybox.tar").exists():
        return f"the images of {IMAGES} are not there"
    return ""


VERSIONS = [
    pytest.param(each, marks=pytest.mark.skipif(bool(missing_containerd(each)), reason=missing_containerd(each)))
    for each, folder in UNPACKED.items()
    if each != "2" or (PROJECT / folder).is_dir()
]
"""For fixtures: each version, skipped where it is not here. Containerd 2 is among them if it was unpacked."""


class Containerd:
    """`with Containerd() as containerd:`; at the end nothing of it is left."""

    def __init__(self, version: str = "1.6") -> None:
        self.version, self._path = version, path_of(version)
        self.directory = Path(tempfile.mkdtemp(prefix="containerd-", dir="/var/tmp"))
        self.socket = self.directory / "containerd.sock"
        self.netns = named_namespace("containerd")
        self._keeper: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"unix://{self.socket}"

    def __enter__(self) -> Self:
        _ip("netns", "add", self.netns)
        _ip("-n", self.netns, "link", "set", "lo", "up")
        self._run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        (self.directory / "cni").mkdir()
        (self.directory / "cni/10-pods.conflist").write_text(CNI.format(directory=self.directory))
        snapshotter = os.environ.get("SNAPSHOTTER", "overlayfs")
        config = CONFIG.format(directory=self.directory, snapshotter=snapshotter)
        (self.directory / "config.toml").write_text(config)
        prepare = f"mount -t tmpfs tmpfs /run && touch {self.directory}/kept && exec sleep infinity"
        self._keeper = subprocess.Popen(
            [*self.inside, "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
             "--mount-proc", "sh", "-c", prepare],
        )  # fmt: skip
        eventually((self.directory / "kept").exists, "containerd's namespaces")
        self.start()
        for archive in sorted(IMAGES.glob("*.tar")):
            self.ctr("-n", "k8s.io", "images", "import", "--snapshotter", snapshotter, str(archive))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
        if self._keeper is not None:
            self._keeper.kill()
            self._keeper.wait(30)
        _remove_groups()
        _ip("netns", "del", self.netns)
        shutil.rmtree(self.directory)

    @property
    def inside(self) -> list[str]:
        """What comes before a command that is to run in its network."""
        return ["nsenter", f"--net=/run/netns/{self.netns}"]

    def _run(self, *command: str) -> str:
        done = subprocess.run([*self.inside, *command], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def ctr(self, *arguments: str) -> str:
        return self._run("ctr", "-a", str(self.socket), *arguments)

    def _first(self) -> int:
        """The first process of its namespaces."""
        assert self._keeper is not None
        children = Path(f"/proc/{self._keeper.pid}/task/{self._keeper.pid}/children")
        eventually(lambda: bool(children.read_text().split()), "the keeper's child")
        (first,) = children.read_text().split()
        return int(first)

    def start(self) -> None:
        first = str(self._first())
        log = open(self.directory / "log", "ab")  # noqa: SIM115
        self._process = subprocess.Popen(
            ["nsenter", "-t", first, "-m", "-p", "-n", "--", "containerd", "-c", str(self.directory / "config.toml")],
            stdout=log, stderr=log,
            env={**os.environ, "TMPDIR": str(self.directory), "HOME": str(self.directory), "PATH": self._path},
        )  # fmt: skip
        log.close()
        eventually(self._answers, "containerd answers", 60)

    def _answers(self) -> bool:
        done = subprocess.run(["ctr", "-a", str(self.socket), "version"], capture_output=True, timeout=30, check=False)
        return done.returncode == 0

    def stop(self) -> None:
        """SIGSTOP: it answers nobody. `go_on` ends that."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        for child in _descendants(self._process.pid):
            if Path(f"/proc/{child}/comm").read_text().strip() == "containerd":
                os.kill(child, number)

    def kill(self) -> None:
        """SIGKILL to containerd alone: what it runs goes on."""
        self._signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait(30)
        self._process = None

    def sandboxes(self) -> list[str]:
        """All containers and sandboxes that it has."""
        return self.ctr("-n", "k8s.io", "containers", "ls", "-q").split()

    @staticmethod
    def lastcall_command(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "lastcall.cli.main", *arguments]

    def lastcall(
        self, *arguments: str, timeout: float = 240.0, cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.inside, *self.lastcall_command(*arguments)],
            capture_output=True, text=True, timeout=timeout, cwd=cwd, env={**os.environ, **environment},
        )  # fmt: skip


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += _descendants(int(word))
    return found


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=30)


def _remove_groups() -> None:
    """Control groups of what was killed with the keeper; those of a containerd that runs are not empty, and stay."""
    for _ in range(20):
        left = [path for path in Path("/sys/fs/cgroup").glob("*/k8s.io/*") if path.is_dir()]
        left += [path for path in Path("/sys/fs/cgroup").glob("k8s.io/*") if path.is_dir()]
        for path in left:
            subprocess.run(
                ["find", str(path), "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"], capture_output=True
            )
        if not any(path.exists() for path in left):
            break
        time.sleep(0.1)  # pause of a retry
    for path in (*Path("/sys/fs/cgroup").glob("*/k8s.io"), Path("/sys/fs/cgroup/k8s.io")):
        try:
            path.rmdir()
        except OSError:
            continue
