"""`up --pod-network` on one machine: what is there, what is left when its processes are killed, what is refused."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines.lan import Lan, Machine, missing_lan
from kubectls import KUBECTL, needs_kubectl
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl, pytest.mark.skipif(bool(missing_lan()), reason=missing_lan())]

LASTCALL = str(Path(sys.executable).parent / "lastcall")
NAME = f"alone-{os.getpid()}"


@pytest.fixture
def machine() -> Iterator[Machine]:
    with Lan("alone", 1) as lan:
        (found,) = lan.machines
        try:
            yield found
        finally:
            found.run(LASTCALL, "down", NAME, check=False)
            eventually(lambda: found.left() == [], "nothing is left", 20, said=lambda: str(found.left()))


def up(machine: Machine, *options: str, mode: str = "vxlan") -> int:
    """The pid of its front."""
    words = ("up", NAME, "--detach", "-o", "json", "--listen", machine.address, "--pod-network", mode)
    return int(json.loads(machine.run(LASTCALL, *words, *options, timeout=120).stdout)["pid"])


def keepers(machine: Machine) -> list[int]:
    """The children that remove what front made, by their network namespace."""
    own = machine.run("readlink", "/proc/self/ns/net").stdout.strip()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "comm").read_text() == "lastcall-keeper\n" and os.readlink(path / "ns/net") == own:
                found.append(int(path.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("mode", ["vxlan", "host-gw"])
def test_a_front_that_is_killed_leaves_nothing_on_its_machine(machine: Machine, mode: str) -> None:
    front = up(machine, mode=mode)
    assert "lastcall-pods" in " ".join(machine.left())
    assert len(keepers(machine)) == 1
    os.kill(front, signal.SIGKILL)
    eventually(lambda: machine.left() == [], "nothing is left", 10, said=lambda: str(machine.left()))
    eventually(lambda: keepers(machine) == [], "its child has ended", 60)


def test_what_is_left_when_all_are_killed_at_once_the_next_start_removes(machine: Machine) -> None:
    front = up(machine)
    (keeper,) = keepers(machine)
    machine.run("ip", "route", "add", "10.244.77.0/24", "via", "10.50.0.99", "proto", "108")
    os.kill(keeper, signal.SIGKILL)
    os.kill(front, signal.SIGKILL)
    eventually(lambda: "lastcall-pods" not in " ".join(machine.left()), "the link went with the cluster", 60)
    assert "lastcall-vxlan" in " ".join(machine.left())
    up(machine)
    eventually(lambda: "10.244.77.0/24" not in " ".join(machine.left()), "the old route is gone", 60)


def test_a_keeper_that_is_killed_alone_hinders_nobody(machine: Machine) -> None:
    up(machine)
    os.kill(*keepers(machine), signal.SIGKILL)
    machine.run(LASTCALL, "down", NAME)
    assert machine.left() == []


def test_a_table_that_somebody_flushes_comes_back(machine: Machine) -> None:
    up(machine)
    before = machine.run("nft", "list", "ruleset").stdout
    assert "masquerade" in before
    machine.run("nft", "flush", "ruleset")
    eventually(lambda: machine.run("nft", "list", "ruleset").stdout == before, "the same rules", 60)


def test_the_pods_of_several_nodes_here_are_reached_from_the_machine(machine: Machine) -> None:
    up(machine, "--nodes", "2")
    facts = json.loads(machine.run(LASTCALL, "status", NAME, "-o", "json").stdout)["clusters"][0]
    kubectl = (str(KUBECTL), "--kubeconfig", facts["kubeconfig"])
    for node in ("node-1", "node-2"):
        override = json.dumps({"spec": {"nodeName": node}})
        serve = "mkdir -p /www; hostname > /www/index.html; exec httpd -f -p 8080 -h /www"
        machine.run(*kubectl, "run", node, "--image=busybox:1.36", "--overrides", override, "--", "sh", "-c", serve)
        machine.run(*kubectl, "wait", "--for=condition=Ready", "--timeout=60s", f"pod/{node}", timeout=90)
        address = machine.run(*kubectl, "get", "pod", node, "-o", "jsonpath={.status.podIP}").stdout
        eventually(lambda node=node, at=address: machine.fetch(f"http://{at}:8080/").strip() == node, node, 60)


def test_doctor_looks_for_rules_that_compare_packets_with_ours(machine: Machine) -> None:
    def firewalls() -> dict[str, str]:
        told = machine.run(LASTCALL, "doctor", "--listen", machine.address, "-o", "json", check=False).stdout
        return {each["name"]: each["status"] for each in json.loads(told)["needs"] if "firewall" in each["name"]}

    assert firewalls() == {"firewall": "ok"}
    rules = ["add table inet guard"]
    for hook in ("input", "forward"):
        rules.append(f"add chain inet guard {hook} {{ type filter hook {hook} priority 0; policy drop; }}")
        # 10.244, 4789 and 10250 as numbers that only look like those of packets.
        rules += [f"add rule inet guard {hook} counter packets {n} bytes {n} drop" for n in (2804, 4789, 10250)]
    machine.run("nft", "; ".join(rules))
    assert firewalls() == {"firewall guard input": "degraded", "firewall guard forward": "degraded"}
    accepts = ("forward ip saddr 10.244.0.0/16", "input udp dport 4789", "input tcp dport 10250")
    machine.run("nft", "; ".join(f"insert rule inet guard {each} accept" for each in accepts))
    assert firewalls() == {"firewall guard input": "ok", "firewall guard forward": "ok"}
    machine.run("nft", "flush", "ruleset")


def test_what_cannot_be_is_refused_with_the_way_out(machine: Machine) -> None:
    words = ("up", NAME, "--detach", "--listen", machine.address, "--pod-network", "vxlan")

    def refused(*command: str) -> str:
        done = machine.run(LASTCALL, *command, check=False, timeout=120)
        assert done.returncode in (1, 2), done.stdout
        assert "Traceback" not in done.stderr
        assert machine.left() == []
        return " ".join(done.stderr.split())

    assert "fix: add --listen ADDRESS" in refused("up", NAME, "--detach", "--pod-network", "vxlan")
    elsewhere = ("up", NAME, "--detach", "--listen", "10.50.0.77", "--pod-network", "vxlan")
    assert "10.50.0.77" in refused(*elsewhere)
    machine.run("sysctl", "-qw", "net.ipv4.ip_forward=0")
    assert "fix: sudo sysctl -w net.ipv4.ip_forward=1" in refused(*words)
    machine.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
    machine.run("ip", "route", "add", "172.18.0.0/16", "dev", "eth0")
    assert "172.18.0.0/16 is routed elsewhere on this machine; fix: ip route del 172.18.0.0/16" in refused(*words)
    machine.run("ip", "route", "del", "172.18.0.0/16")
    up(machine)
    done = machine.run(LASTCALL, "up", f"{NAME}-2", *words[2:], check=False, timeout=120)
    assert done.returncode == 1
    assert "another process of lastcall has the Pod network of this machine; fix: end that one" in done.stderr
