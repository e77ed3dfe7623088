"""Machines as network namespaces, in one network of layer 2 or behind a router.

    with Lan("name", 3) as lan:
        lan.machines[0].run("ip", "address")

Addresses are 10.50.0.1 and so on; with `routed` the machine N is alone in 10.50.N.0/24, and a router is between them.
With `of_users` each machine is another ordinary user's, who is root of it and nobody elsewhere, as in an unprivileged
system container.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tree import named_namespace


def missing_lan() -> str:
    """Why there can be none here, "" when it can."""
    if os.getuid() != 0:
        return "network namespaces as machines need root"
    for program in ("ip", "bridge", "nft", "curl", "unshare"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    # In a namespace that ends with the command: others try it at the same moment.
    link = ["ip", "link", "add", "try", "type", "vxlan", "id", "9", "dstport", "4789"]
    done = subprocess.run(["unshare", "--net", *link], capture_output=True, check=False)
    return "this kernel has no VXLAN" if done.returncode else ""


FIRST_USER, IDS = 7001, 65_535
"""The user of the first machine, and how many ids each has beside the own one."""


@dataclass
class Machine:
    netns: str
    address: str
    uid: int = 0
    """Whose it is."""
    holder: "subprocess.Popen[str] | None" = None
    home: Path | None = None

    @property
    def first_id(self) -> int:
        """Of the ids that its user has beside the own one."""
        return self.uid * 100_000

    @property
    def inside(self) -> list[str]:
        """What comes before a command that is to run there."""
        if self.holder is None:
            return ["nsenter", f"--net=/run/netns/{self.netns}"]
        enter = ["nsenter", f"--target={self.holder.pid}", "--mount", "--net", "--user", "--setuid=0", "--setgid=0"]
        return [*enter, "env", f"HOME={self.home}", f"TMPDIR={self.home}"]

    def run(self, *command: str, check: bool = True, timeout: float = 60) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run([*self.inside, *command], capture_output=True, text=True, timeout=timeout, check=False)
        assert not check or done.returncode == 0, (command, done.stdout, done.stderr)
        return done

    def fetch(self, url: str) -> str:
        """What is served there, "" for nothing."""
        return self.run("curl", "-s", "-m", "5", url, check=False).stdout

    def left(self) -> list[str]:
        """What is there of a Pod network: links, routes, tables."""
        links = [line.split()[0].partition("@")[0] for line in self.run("ip", "-br", "link").stdout.splitlines()]
        found = [each for each in links if each not in ("lo", "eth0")]
        found += [each for each in self.run("ip", "route").stdout.splitlines() if " dev eth0 " not in each]
        found += self.run("ip", "route", "show", "proto", "108").stdout.splitlines()
        return found + self.run("nft", "list", "tables").stdout.splitlines()


@dataclass
class Lan:
    name: str
    count: int
    routed: bool = False
    of_users: Path | None = None
    """Where the users of the machines have their homes."""
    machines: list[Machine] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._between = named_namespace(f"{self.name}-lan")
        try:
            _ip("netns", "add", self._between)
            _ip("-n", self._between, "link", "set", "lo", "up")
            if self.routed:
                _sysctl(self._between, "net.ipv4.ip_forward=1")
            else:
                _ip("-n", self._between, "link", "add", "lan", "type", "bridge")
                _ip("-n", self._between, "link", "set", "lan", "up")
            for number in range(1, self.count + 1):
                self._add(number)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _add(self, number: int) -> None:
        name = named_namespace(f"{self.name}-m{number}")
        address = f"10.50.{number}.2" if self.routed else f"10.50.0.{number}"
        self.machines.append(self._owned(name, address, number) if self.of_users else _made(name, address))
        port = f"m{number}"
        _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", self._between)
        _ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", self._between, "link", "set", port, "up")
        if self.routed:
            router = f"10.50.{number}.1"
            _ip("-n", self._between, "addr", "add", f"{router}/24", "dev", port)
            _ip("-n", name, "route", "add", "default", "via", router, "dev", "eth0")
        else:
            _ip("-n", self._between, "link", "set", port, "master", "lan")
        _sysctl(name, "net.ipv4.ip_forward=1")
        # As most distributions have it: an answer that comes from elsewhere is dropped.
        for which in ("all", "default", "eth0"):
            _sysctl(name, f"net.ipv4.conf.{which}.rp_filter=1")

    def _owned(self, name: str, address: str, number: int) -> Machine:
        assert self.of_users is not None
        uid = FIRST_USER + number - 1
        home = self.of_users / f"home-{uid}"
        home.mkdir()
        os.chown(home, uid, uid)
        program = Path(__file__).with_name("machine_of_a_user.py")
        paths = os.pathsep.join(str(each) for each in (program.parents[1], Path(__file__).parents[3] / "src"))
        holder = subprocess.Popen(
            [sys.executable, str(program), str(uid)], env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        machine = Machine(name, address, uid, holder, home)
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "made\n"
            for which in ("uid_map", "gid_map"):
                Path(f"/proc/{holder.pid}/{which}").write_text(f"0 {uid} 1\n1 {machine.first_id} {IDS}\n")
            _ip("netns", "attach", name, str(holder.pid))
        except BaseException:
            _end(machine)
            raise
        return machine

    def cut(self, number: int, off: bool = True) -> None:
        """Pull the cable of a machine, or plug it in again."""
        _ip("-n", self._between, "link", "set", f"m{number}", "down" if off else "up")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for machine in self.machines:
            subprocess.run(["ip", "netns", "del", machine.netns], check=False)
            _end(machine)
        subprocess.run(["ip", "netns", "del", self._between], check=False)


def _made(name: str, address: str) -> Machine:
    _ip("netns", "add", name)
    return Machine(name, address)


def _end(machine: Machine) -> None:
    if machine.holder is not None:
        machine.holder.communicate()  # closes its input


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=60)


def _sysctl(netns: str, setting: str) -> None:
    subprocess.run(["ip", "netns", "exec", netns, "sysctl", "-qw", setting], check=True, timeout=60)
