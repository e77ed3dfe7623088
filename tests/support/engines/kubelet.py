"""A real kubelet and kube-proxy 1.36.2 on Debian's containerd, in the namespaces of that: a node of somebody's cluster.

What the kubelet would change on the machine (sysctls, /var/lib, /var/log) are files and file systems of its own.
"""

import os
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from waiting import eventually

from engines.containerd import HOME, missing_containerd

ADDRESS = "10.126.0.2"
"""Of the machine that the node is: the network namespace of its containerd."""
PROGRAMS = ("kubelet", "kube-proxy")
SYSCTLS = (
    "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)  # fmt: skip
PREPARE = """
set -e
mount -t tmpfs tmpfs /var/lib; mount -t tmpfs tmpfs /var/log
"""
OWN_SYSCTLS = """
set -e
mount --make-rprivate /proc
for f in {sysctls}; do
  mkdir -p /run/sysctl/${{f%/*}}; cat /proc/sys/$f > /run/sysctl/$f; mount --bind /run/sysctl/$f /proc/sys/$f
done
exec "$@"
"""
"""In a mount namespace of the kubelet's own: over the runtime's /proc nothing may lie, or it cannot mount others."""
KUBELET = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /{groups}
containerRuntimeEndpoint: unix://{socket}
address: 0.0.0.0
authentication:
  anonymous: {{enabled: false}}
  webhook: {{enabled: true}}
  x509: {{clientCAFile: {directory}/ca.crt}}
authorization: {{mode: Webhook}}
rotateCertificates: true
serverTLSBootstrap: true
clusterDomain: cluster.local
resolvConf: {directory}/resolv.conf
failSwapOn: false
oomScoreAdj: 0
evictionHard: {{memory.available: 10Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}}
"""
PROXY = """apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: 0.0.0.0
hostnameOverride: {name}
mode: iptables
oomScoreAdj: 0
clientConnection: {{kubeconfig: {directory}/proxy.kubeconfig}}
conntrack: {{maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s, udpTimeout: 0s,
  udpStreamTimeout: 0s}}
"""


def missing_kubelet() -> str:
    """Why there is none here, "" when there is one."""
    for program in PROGRAMS:
        if not (HOME / "bin" / program).exists():
            return f"{program} is not in {HOME / 'bin'}"
    return missing_containerd()


class Home(Protocol):
    """What a runtime is in: a network namespace, and the first process of its other namespaces."""

    directory: Path
    netns: str

    @property
    def first(self) -> int: ...


class OtherNode:
    """The node `name` on `containerd`. `prepare`, then `start_kubelet`; nothing of it is left at the end of `with`."""

    def __init__(
        self,
        containerd: Home,
        name: str,
        address: str = "",
        cluster_dns: str = "",
        socket: Path | None = None,
        more: str = "",
    ) -> None:
        """`address` is one of its machine's, "" for one that it makes. `socket`: of the runtime; containerd's own by
        default. `more`: lines of the kubelet's configuration."""
        self.containerd, self.name, self.more = containerd, name, more
        self.address, self._owns_address, self._cluster_dns = address or ADDRESS, not address, cluster_dns
        self._socket = socket or containerd.directory / "containerd.sock"
        self.directory = containerd.directory / "node"
        self.groups = f"lastcall-kubelet-{os.getpid()}"
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self.directory.mkdir()
        (self.directory / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        if self._owns_address:
            on_lo = ["addr", "add", f"{ADDRESS}/32", "dev", "lo"]
            subprocess.run(["ip", "-n", self.containerd.netns, *on_lo], check=True, timeout=30)
        self._inside("sh", "-c", PREPARE)
        for each in _hierarchies():
            group = each / self.groups
            group.mkdir()
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (each / name).exists():
                    (group / name).write_text((each / name).read_text())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for program in list(self._running):
            self.kill(program)

    def remove_groups(self) -> None:
        """After the end of containerd, and with it of all containers."""
        left = [each / self.groups for each in (*_hierarchies(), Path("/sys/fs/cgroup/unified"))]
        left = [each for each in left if each.exists()]
        for _ in range(50):
            for each in left:
                subprocess.run(
                    ["find", str(each), "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"],
                    capture_output=True, check=False,
                )  # fmt: skip
            if not any(each.exists() for each in left):
                return
            time.sleep(0.1)
        raise AssertionError(f"control groups are left: {[str(each) for each in left if each.exists()]}")

    def start_kubelet(self, bootstrap_kubeconfig: str, ca: str) -> None:
        (self.directory / "ca.crt").write_text(ca)
        text = KUBELET.format(directory=self.directory, groups=self.groups, socket=self._socket)
        if self._cluster_dns:
            text += f"clusterDNS: [{self._cluster_dns}]\n"
        text += self.more
        (self.directory / "kubelet.yaml").write_text(text)
        self._start(
            "kubelet",
            f"--config={self.directory / 'kubelet.yaml'}", f"--root-dir={self.directory / 'kubelet'}",
            f"--bootstrap-kubeconfig={bootstrap_kubeconfig}", f"--kubeconfig={self.directory / 'kubelet.kubeconfig'}",
            f"--cert-dir={self.directory / 'pki'}", f"--hostname-override={self.name}", f"--node-ip={self.address}",
        )  # fmt: skip

    def start_proxy(self, kubeconfig: str) -> None:
        (self.directory / "proxy.kubeconfig").write_text(kubeconfig)
        (self.directory / "proxy.yaml").write_text(PROXY.format(directory=self.directory, name=self.name))
        self._start("kube-proxy", f"--config={self.directory / 'proxy.yaml'}")

    def kill(self, program: str) -> None:
        """SIGKILL, and nothing else: containers go on."""
        process = self._running.pop(program)
        for pid in _children(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait(30)

    def log(self, program: str) -> str:
        return (self.directory / f"{program}.log").read_text(errors="replace")

    def _start(self, program: str, *arguments: str) -> None:
        # Never a directory with files in it: the kubelet's log manager removes what a container without a log path has.
        nowhere = self.directory / "nowhere"
        nowhere.mkdir(exist_ok=True)
        own = (
            "unshare",
            "--mount",
            "--propagation",
            "unchanged",
            "sh",
            "-c",
            OWN_SYSCTLS.format(sysctls=" ".join(SYSCTLS)),
        )
        with (self.directory / f"{program}.log").open("ab") as log:
            self._running[program] = subprocess.Popen(
                [*self._enter(), *own, program, str(HOME / "bin" / program), "--v=2", *arguments],
                stdout=log, stderr=log, cwd=nowhere, env={"PATH": os.environ["PATH"], "HOME": str(self.directory)},
            )  # fmt: skip
        process = self._running[program]
        eventually(lambda: bool(_children(process.pid)), f"{program} runs", 30)

    def _enter(self) -> list[str]:
        first = self.containerd.first
        return ["nsenter", "-t", str(first), "-m", "-p", "-n", f"--wd={self.directory / 'nowhere'}", "--"]

    def _inside(self, *command: str) -> None:
        done = subprocess.run(
            ["nsenter", "-t", str(self.containerd.first), "-m", "-p", "-n", "--", *command],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def _hierarchies() -> list[Path]:
    """Of control groups: one with version 2, one for each controller with version 1."""
    top = Path("/sys/fs/cgroup")
    if (top / "cgroup.controllers").exists():
        return [top]
    found = [each for each in top.iterdir() if (each / "cgroup.procs").exists() and not each.is_symlink()]
    return [each for each in found if each.name != "unified"]


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
