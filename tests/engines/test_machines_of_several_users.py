"""The machines of one cluster belong to several ordinary users, each of whom is root of one and nobody elsewhere.

As in unprivileged system containers on one host, or on several: namespaces for users, mounts and the network. VXLAN
goes between them, with a router in the middle.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from engines.lan import IDS, Lan, missing_lan
from engines.several_machines import NODES, Cluster, running
from kubectls import needs_kubectl
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl, pytest.mark.skipif(bool(missing_lan()), reason=missing_lan())]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Not one of pytest's, which are its user's alone."""
    with TemporaryDirectory(prefix="lastcall-test-") as made:
        found = Path(made)
        found.chmod(0o755)
        yield found


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[Cluster]:
    with (
        Lan("users", 3, routed=True, of_users=home) as lan,
        running(lan, f"users-{os.getpid()}", home, "vxlan") as found,
    ):
        yield found


def test_each_machine_is_another_user_s(cluster: Cluster) -> None:
    owners = {each.uid for each in cluster.lan.machines}
    assert len(owners) == 3 and 0 not in owners
    for node in ("node-1", *NODES):
        machine = cluster.machine(node)
        allowed = {machine.uid, *range(machine.first_id, machine.first_id + IDS)}
        (status,) = json.loads(cluster.lastcall(node, "status", cluster.own_name(node), "-o", "json").stdout)[
            "clusters"
        ]
        tree = _tree(status["pid"])
        assert len(tree) > 2 and {_uid(pid) for pid in tree} <= allowed


@pytest.mark.parametrize("client", ["node-1", "two", "three"])
def test_every_pod_and_the_service_are_reached_from_every_machine(cluster: Cluster, client: str) -> None:
    pods = {node: found[0] for node, found in cluster.pods().items()}
    assert sorted(pods) == ["node-1", "three", "two"]
    asking = pods[client][0]
    for name, address in pods.values():
        fetch = f"timeout 5 wget -q -O - http://{address}:8080/"
        got = lambda fetch=fetch: cluster.asked("exec", asking, "--", "sh", "-c", fetch).stdout.strip()  # noqa: E731
        eventually(lambda name=name, got=got: got() == name, fetch)
    ask = "for i in $(seq 30); do timeout 5 wget -q -O - http://web.default.svc.cluster.local/; done"
    all_names = {name for name, _ in pods.values()}
    eventually(lambda: set(cluster("exec", asking, "--", "sh", "-c", ask).split()) == all_names, "all answer")
    assert "hello" in cluster("logs", asking)


def test_an_end_is_told_on_its_machine_by_its_user(cluster: Cluster) -> None:
    ((name, _),) = cluster.pods()["two"]
    cluster("delete", "pod", name, "--wait=true")
    there = cluster.lastcall("two", "story", name, "--name", cluster.own_name("two")).stdout
    assert "SIGTERM" in there and "exit code 0 (Completed)" in there, there
    cluster("rollout", "status", "daemonset/web", "--timeout=60s")


def _tree(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        try:
            children = Path(f"/proc/{each}/task/{each}/children").read_text()
        except OSError:
            continue  # it has ended
        found += [int(child) for child in children.split()]
    return found


def _uid(pid: int) -> int:
    return os.stat(f"/proc/{pid}").st_uid
