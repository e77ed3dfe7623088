"""Two runs with one seed are byte-identical, whatever Python's hash seed is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
pytestmark = pytest.mark.timeout(900)  # clusters in processes of their own, which a busy machine lets wait

SCRIPT = """
import hashlib, logging, sys
sys.path.insert(0, sys.argv[1])
logging.disable(logging.CRITICAL)
from scenario.replay import Replay
for name in sys.argv[3:]:
    data = Replay(name).run(seed=int(sys.argv[2])).cluster.serialised()
    print(name, len(data), hashlib.sha256(data).hexdigest())
"""

NAMES = (
    "graceful-exit0",
    "sidecar-prestop-simultaneous",
    "delete-exit-matrix",
    "natural-exit-matrix",
    "kubelet-restart-in-prestop",
    "crashloop-three",
    "endpointslice-variants",
    "force-delete-nohook",
    "readiness-fails-in-termination",
    "preemption",
    "taint-noexecute-nokubelet",
)


NODES = """
import hashlib, logging, sys
sys.path.insert(0, sys.argv[1])
logging.disable(logging.CRITICAL)
from virtual_cluster import pod_manifest, run_cluster
from workloads import workload
async def scenario(cluster):
    await cluster.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"},
                          "value": 10})
    await cluster.create(workload("Deployment", replicas=7))
    await cluster.sleep(5)
    asking = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "1500m"}}}
    for number in range(4):
        await cluster.create(pod_manifest(f"low-{number}", containers=[asking]))
    await cluster.sleep(5)
    await cluster.create(pod_manifest("high", containers=[asking], priorityClassName="high"))
    await cluster.sleep(40)
    await cluster.kill_kubelet("node-2")
    await cluster.sleep(400)
data = run_cluster(scenario, seed=int(sys.argv[2]), nodes=3, node_labels=lambda name: {"zone": name[-1]}).serialised()
print(len(data), hashlib.sha256(data).hexdigest())
"""


WHOLE = """
import hashlib, logging, sys
sys.path.insert(0, sys.argv[1])
logging.disable(logging.CRITICAL)
from lastcall.kube.api.resources import NAMESPACES
from virtual_cluster import run_cluster, service
from workloads import template, workload
def named(kind, name, **spec):
    made = workload(kind, name=name, pods={"metadata": {"labels": {"app": name}}, "spec": template()["spec"]}, **spec)
    made["spec"]["selector"] = {"matchLabels": {"app": name}}
    return made
def job(**spec):
    pods = {"spec": {"containers": [{"name": "main", "image": "once:1"}], "restartPolicy": "Never"}}
    return {"template": pods, **spec}
async def scenario(cluster):
    selector = {"selector": {"matchLabels": {"app": "web"}}}
    await cluster.create(
        named("Deployment", "web", replicas=9), named("StatefulSet", "db", serviceName="db", replicas=3),
        named("DaemonSet", "agent"), service("svc", app="web"),
        {"kind": "Job", "metadata": {"name": "j"}, "spec": job(completions=4, parallelism=2)},
        {"kind": "CronJob", "metadata": {"name": "c"},
         "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job(ttlSecondsAfterFinished=30)}}},
        {"kind": "PodDisruptionBudget", "metadata": {"name": "guard"}, "spec": {"maxUnavailable": 1, **selector}},
    )
    await cluster.sleep(30)
    changed = named("Deployment", "web")["spec"]["template"]
    changed["spec"]["containers"][0]["image"] = "app:2"
    await cluster.patch("deployment/web", {"spec": {"template": changed}})
    await cluster.sleep(0.01)
    await cluster.kill_manager()
    cluster.start_manager()
    await cluster.sleep(60)
    for name in ("node-2", "node-3"):
        await cluster.kill_kubelet(name)
    await cluster.sleep(420)
    cluster.start_kubelet("node-2")
    await cluster.delete("deployment/web", propagation="Foreground")
    await cluster.delete("statefulset/db", propagation="Orphan")
    await cluster.client.delete(NAMESPACES, "shop")
    await cluster.sleep(60)
cluster = run_cluster(scenario, seed=int(sys.argv[2]), nodes=5, namespace="shop")
data = cluster.serialised()
print(len(data), hashlib.sha256(data).hexdigest())
"""


def run(hash_seed: str, seed: int = 0, script: str = SCRIPT, names: tuple[str, ...] = NAMES) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, str(SUPPORT), str(seed), *names],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_hash_seeds_give_byte_identical_records_and_objects() -> None:
    first = run("1")
    assert len(first.splitlines()) == len(NAMES)
    assert first == run("2")


def test_several_nodes_are_as_deterministic_as_one() -> None:
    first = run("1", script=NODES, names=())
    assert int(first.split()[0]) > 100_000
    assert first == run("2", script=NODES, names=())


def test_a_whole_cluster_with_owners_of_every_kind_is_deterministic() -> None:
    first = run("1", script=WHOLE, names=())
    assert int(first.split()[0]) > 1_000_000
    assert first == run("2", script=WHOLE, names=())


def test_another_seed_gives_other_names_and_delays() -> None:
    assert run("1", seed=1) != run("1", seed=2)
