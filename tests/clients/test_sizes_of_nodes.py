"""`--node-capacity` on the kernel: a small node runs out of memory and storage, and its neighbour notices nothing."""

import json
from itertools import count
from pathlib import Path

import ordinary_user
import pytest
from kept_run import has_cgroups
from kubectls import needs_kubectl
from pods import Manifest, container, pod
from run_command import Lastcall
from staying import Place
from tree import cgroups_named
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

MI = 1 << 20
FILLS = "dd if=/dev/zero of={} bs=1048576 count={} 2>/dev/null; while true; do sleep 0.05; done"


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest):
    with Place(request.param) as made:
        yield made


class Cluster:
    """Two nodes, of which the first is small."""

    def __init__(self, place: Place, *sizes: str) -> None:
        self.place = place
        options = [word for size in sizes for word in ("--node-capacity", size)]
        self.kubeconfig = place.up("--nodes", "2", *options)["kubeconfig"]

    def kubectl(self, *arguments: str, **options) -> str:
        return self.place.kubectl(self.kubeconfig, *arguments, **options)

    def create(self, *pods: Manifest) -> None:
        self.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))

    def get(self, kind: str, name: str) -> Manifest:
        return json.loads(self.kubectl("get", kind, name, "-o", "json"))

    def status(self, name: str) -> Manifest:
        return self.get("pod", name)["status"]

    def pressure(self, node: str, condition: str) -> str:
        return next(
            each["status"] for each in self.get("node", node)["status"]["conditions"] if each["type"] == condition
        )

    def memory(self, node: str) -> dict[str, int]:
        return json.loads(self.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/stats/summary"))["node"]["memory"]

    def story(self, name: str) -> str:
        return " ".join(self.place.run("story", name).out.split())


def on(node: str, name: str, script: str, resources: Manifest | None = None, **spec) -> Manifest:
    runs = container("app", script, resources=resources or {}, **spec.pop("fields", {}))
    return pod(name, runs, nodeSelector={"kubernetes.io/hostname": node}, restartPolicy="Never", **spec)


def cpu_quotas(front: int, node: str) -> set[int]:
    """Return the microseconds of each 100 ms that the Pods of a node may use."""
    found = set()
    for group in cgroups_named(f"*/lastcall-*-{front}-*/{node}/kubepods"):
        for name in ("cpu.cfs_quota_us", "cpu.max"):
            if (file := Path(group, name)).exists():
                found.add(int(file.read_text().split()[0]))
    return found


def ran_out_of_memory(cluster: Cluster) -> str:
    """Return the name of a Pod that the kernel ended: one that the kubelet found first was evicted.

    It takes all at once, and has CPU for it: `tail`, at 200m of an emulated processor, was evicted each time.
    """
    for number in count():
        name = f"out-{number}"
        limits = {"limits": {"memory": "1Gi"}, "requests": {"memory": "100Mi"}}
        cluster.create({**on("node-1", name, "exec dd if=/dev/zero of=/dev/null bs=400M count=1", limits)})
        eventually(lambda name=name: cluster.status(name)["phase"] == "Failed", f"{name} ends")
        if cluster.status(name).get("reason") != "Evicted":
            return name
    raise AssertionError


def test_a_node_that_runs_out_of_memory_ends_its_own_pods_only() -> None:
    user = ordinary_user.USERS[0]
    if not has_cgroups(user):
        pytest.skip("no control groups of its own for this user")
    with Place(user) as place:
        cluster = Cluster(place, "cpu=1,memory=1Gi", "node-1:memory=256Mi,cpu=800m")
        cluster.create(on("node-2", "neighbour", "trap 'exit 0' TERM; while true; do sleep 0.05; done"))
        eventually(lambda: cluster.status("neighbour")["phase"] == "Running", "the neighbour runs")
        neighbour = cluster.status("neighbour")["containerStatuses"]

        name = ran_out_of_memory(cluster)
        (ended,) = cluster.status(name)["containerStatuses"]
        assert (ended["state"]["terminated"]["reason"], ended["state"]["terminated"]["exitCode"]) == ("OOMKilled", 137)
        below = "more than the memory that its Pod or its node had left, below its own limit of 1Gi"
        eventually(lambda: below in cluster.story(name), "the story says whose memory it was")

        front = place.pids()["front"]
        assert cpu_quotas(front, "node-1") == {80_000} and cpu_quotas(front, "node-2") == {100_000}
        # A limit above the node's CPU is allowed, as anywhere.
        limits = {"limits": {"cpu": "2"}, "requests": {"cpu": "100m", "memory": "10Mi"}}
        mount = {"volumeMounts": [{"name": "held", "mountPath": "/held"}]}
        held = [{"name": "held", "emptyDir": {"medium": "Memory"}}]  # files on disk do not count
        cluster.create(on("node-1", "greedy", FILLS.format("/held/file", 170), limits, fields=mount, volumes=held))
        eventually(lambda: cluster.status("greedy")["phase"] == "Failed", "greedy is evicted")
        found = cluster.status("greedy")
        assert found["reason"] == "Evicted", found
        assert found["message"].startswith(
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: "
        )
        assert (cluster.pressure("node-1", "MemoryPressure"), cluster.pressure("node-2", "MemoryPressure")) == (
            "True",
            "False",
        )
        eventually(lambda: "the kubelet evicted it: The node was low" in cluster.story("greedy"), "the story says so")
        for node, size in (("node-1", 256 * MI), ("node-2", 1024 * MI)):
            memory = cluster.memory(node)
            assert memory["availableBytes"] + memory["workingSetBytes"] == size
        assert cluster.status("neighbour")["containerStatuses"] == neighbour


def test_the_scheduler_counts_with_the_size_that_a_node_has(place: Place) -> None:
    """And so do its Pods: what they may use is a limit that they did not set."""
    cluster = Cluster(place, "cpu=1,memory=1Gi", "node-1:memory=256Mi,cpu=200m,ephemeral-storage=1Gi")
    status = cluster.get("node", "node-1")["status"]
    assert {name: status["capacity"][name] for name in ("cpu", "memory", "ephemeral-storage")} == {
        "cpu": "200m",
        "memory": "256Mi",
        "ephemeral-storage": "1Gi",
    }
    assert (status["allocatable"]["memory"], status["allocatable"]["cpu"]) == ("156Mi", "200m")
    limit = {"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}}
    cluster.create(
        on("node-1", "memory", "sleep 100", {"requests": {"memory": "157Mi"}}),
        on("node-1", "cpu", "sleep 100", {"requests": {"cpu": "201m"}}),
        on("node-1", "storage", "sleep 100", {"requests": {"ephemeral-storage": "2Gi"}}),
        on("node-1", "fits", "echo $LIMIT", {"requests": {"memory": "156Mi"}}, fields={"env": [limit]}),
    )
    for name, words in (("memory", "memory"), ("cpu", "cpu"), ("storage", "ephemeral-storage")):

        def refused(name: str = name) -> Manifest | None:
            conditions = cluster.status(name).get("conditions") or []
            return next((each for each in conditions if each.get("reason") == "Unschedulable"), None)

        found = eventually(refused, f"{name} is refused")
        assert f"1 Insufficient {words}" in found["message"]
    eventually(lambda: cluster.status("fits")["phase"] == "Succeeded", "fits runs")
    assert cluster.kubectl("logs", "fits") == "156\n"


def test_a_node_whose_storage_is_full_evicts_the_pod_that_filled_it(place: Place) -> None:
    cluster = Cluster(place, "node-1:ephemeral-storage=100Mi")
    scratch = {"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}
    cluster.create(
        on("node-1", "filler", FILLS.format("/scratch/file", 95), fields=scratch,
           volumes=[{"name": "scratch", "emptyDir": {}}]),
        on("node-2", "neighbour", FILLS.format("/file", 95)),
    )  # fmt: skip
    eventually(lambda: cluster.status("filler").get("reason") == "Evicted", "filler is evicted")
    assert "The node was low on resource: ephemeral-storage." in cluster.status("filler")["message"]
    assert (cluster.pressure("node-1", "DiskPressure"), cluster.pressure("node-2", "DiskPressure")) == ("True", "False")
    assert cluster.status("neighbour")["phase"] == "Running"


def test_more_than_the_machine_has_is_refused_where_it_would_be_enforced(place: Place) -> None:
    asked = ("up", "--detach", "--node-capacity", "memory=1Pi,ephemeral-storage=1Pi")
    result = place.run(*asked)
    if has_cgroups(place.user):
        assert result.status == 2
        assert "--node-capacity memory=1Pi of node-1: this machine has memory=" in result.err
        result = place.run(*asked[:-1], "ephemeral-storage=1Pi")
    else:
        assert "--node-capacity memory=1Pi of node-1; ephemeral-storage=1Pi of node-1: declared only" in result.err
    assert result.status == 0, result.err
    assert len(result.err.splitlines()) == 1 and "ephemeral-storage=1Pi of node-1: declared only" in result.err
    place.watch(place.pids()["front"])


PROGRAM = """
import lastcall
with lastcall.Cluster(nodes=2, node_capacity=["cpu=1,memory=400Mi", "node-2:cpu=500m"]) as cluster:
    sizes = [cluster.get(f"node/node-{n}")["status"]["capacity"] for n in (1, 2)]
print([(each["cpu"], each["memory"]) for each in sizes])
with lastcall.Cluster(node_capacity="memory=300Mi") as cluster:
    print(cluster.get("node/node-1")["status"]["allocatable"]["memory"])
try:
    lastcall.Cluster(node_capacity="node-2:cpu=1").start()
except lastcall.ClusterError as error:
    print(error)
"""


@pytest.mark.parametrize("user", ordinary_user.USERS)
def test_a_program_gives_its_nodes_a_size(user: str) -> None:
    with Lastcall([], program=("-c", PROGRAM), user=user) as command:
        result = command.finish(180)
    assert result.status == 0, result.err
    assert result.out.splitlines() == [
        "[('1', '400Mi'), ('500m', '400Mi')]",
        "200Mi",
        "--node-capacity node-2:…: no such node: the cluster has node-1",
    ]
