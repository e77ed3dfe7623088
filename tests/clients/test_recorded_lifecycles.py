"""Recordings of a real Kubernetes 1.36.2, replayed against an embedded cluster on the real kernel.

The recordings and the program that replays them lie beside the project (`../shared`); without them there is nothing to
compare with. Python 3.11 and 3.13 take turns, so that one CI run replays each scenario once.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kept_cluster import kept_cluster, make_images
from oci_registry import Fault, Registry, tar_of

SHARED = Path(os.environ.get("LASTCALL_SHARED", Path(__file__).resolve().parents[3] / "shared"))
REPLAY = SHARED / "tools" / "golden_replay.py"

HALVES = {
    True: ["prestop*", "graceful*", "ignores*", "sidecar*", "force*", "finalizer*", "readi*", "spec*", "volume*",
           "deploy-p*", "deploy-r*", "rs-*", "sts-pod*", "sts-scale*", "ds-*", "job-*"],
    False: ["delete-*", "deletecollection", "crash*", "image*", "init*", "poststart*", "liveness*", "natural*",
            "endpoint*", "termination*", "active*", "admission*", "config*", "missing*", "start*", "exit*", "pending*",
            "scheduling*", "quick*", "eviction*", "namespace*", "deploy-delete-*"],
}  # fmt: skip

FASTER = {
    # containerd's StopContainer takes 0.1 s each; the sidecars' order is as recorded.
    "sidecar-prestop-simultaneous": "too early",
    # Eight containers end at once: containerd's starts are so slow that one of them is still seen running.
    "termination-message": "sequence of phase",
    # `exit 0` and `exit 2` are over within a millisecond: whether a client still sees phase Running is chance.
    "delete-completed": "sequence of phase",
    # The recorded controller took the node for one of that name that it had lost before, and tainted it once more.
    "taint-noexecute-nokubelet": "Cancelling deletion of Pod gold-taint-noexecute-nokubelet/forever",
    # A second sync within the back-off is chance: its CrashLoopBackOff leaves a lastState behind.
    "init-fails-always-delete": "lastState",
}
"""Scenario → what may differ, nearly always because lastcall is faster than the recorded node."""

STEPS_AT_ONCE = {
    # Two Pods that turn Ready at the same moment are one step of the rollout where the recording has two; after the
    # step from 2 to 0 the replay waits in vain for the one from 1 to 0.
    "deploy-rolling-surge25-unavail25": "not expected 'Normal ScalingReplicaSet: Scaled ",
}
"""Scenario → the difference after which nothing is as recorded. (The arithmetic of the steps has tests of its own.)"""

MOST_TO_REPEAT = 12
"""Scenarios; more that differ at once are no matter of pace, not even of that of a machine with other work."""

RECORDED_IMAGE_SIZE = 686825
"""Bytes; an Event tells it."""


def slow_registry(program: bytes) -> Registry:
    """What the recordings with a slow pull need (INDEX.md): tag okN is served after N seconds, failN is a 404 then."""
    registry = Registry(5999)

    def image(padding: int) -> bytes:
        config = {"Entrypoint": ["/quick"], "Labels": {"padding": "x" * padding}}
        return registry.manifest([tar_of({"quick": program})], config)

    def size(manifest: bytes) -> int:
        value = json.loads(manifest)
        return sum(blob["size"] for blob in [value["config"], *value["layers"]])

    for seconds in (3, 6):
        registry.put(f"slow:ok{seconds}", image(RECORDED_IMAGE_SIZE - size(image(0))))
        registry.faults += [
            Fault(f"HEAD .*/ok{seconds}$", times=99, delay=seconds),
            Fault(f"HEAD .*/fail{seconds}$", times=99, delay=seconds, status=404),
        ]
    return registry


def unexpected(report: dict) -> list[str]:
    """The differences that `FASTER` and `STEPS_AT_ONCE` do not explain."""
    found = []
    for run in report["scenarios"]:
        excuse = FASTER.get(run["scenario"])
        if any(STEPS_AT_ONCE.get(run["scenario"], "\0") in text for text in run["must"]):
            continue
        found += [f"{run['scenario']}: {text}" for text in run["must"] if excuse is None or excuse not in text]
    return found


@pytest.mark.real_kernel
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not REPLAY.exists(), reason="the recordings are not beside the project")
def test_pods_live_and_end_as_recorded_on_a_real_kubernetes(tmp_path):
    """Eight scenarios at a time; what differs is replayed alone, for the recordings were made alone, too."""
    make_images(tmp_path)
    result = replayed(tmp_path, "-j", "8", *HALVES[sys.version_info >= (3, 12)])
    assert result["counts"]["agree"] >= 25
    differing = [run["scenario"] for run in result["scenarios"] if unexpected({"scenarios": [run]})]
    assert len(differing) <= MOST_TO_REPEAT, unexpected(result)
    if differing:
        print(*unexpected(result), sep="\n")
        assert unexpected(replayed(tmp_path, "-j", "1", *differing)) == []


@pytest.mark.real_kernel
@pytest.mark.skipif(not REPLAY.exists(), reason="the recordings are not beside the project")
def test_a_deletion_waits_for_a_pull_as_recorded(tmp_path):
    """One scenario after the other, for a node pulls one image at a time."""
    make_images(tmp_path)
    with slow_registry((tmp_path / "quick").read_bytes()):
        result = replayed(tmp_path, "-j", "1", "--have", "slow-registry", "delete-during-pull*")
    assert unexpected(result) == []
    assert result["counts"] == {"agree": 3, "differ": 0, "error": 0, "skipped": 0}


@pytest.mark.real_kernel
@pytest.mark.skipif(not REPLAY.exists(), reason="the recordings are not beside the project")
def test_nodes_are_tainted_and_pods_preempted_as_recorded(tmp_path):
    """One scenario after the other, for they take the node for themselves."""
    make_images(tmp_path)
    result = replayed(tmp_path, "-j", "1", "--exclusive", "taint-*", "preemption")
    assert unexpected(result) == []
    assert result["counts"]["error"] == result["counts"]["skipped"] == 0


def replayed(root: Path, *arguments: str) -> dict:
    """The report of `golden_replay.py` with these arguments, on a cluster that has the images of `root`."""
    report = root / "report.json"
    with kept_cluster(root) as kubeconfig:
        replay = subprocess.run(
            [sys.executable, str(REPLAY), "--kubeconfig", kubeconfig, "--golden", str(SHARED / "golden"),
             "--late", "1.5", "--json", str(report), *arguments],
            capture_output=True,
            text=True,
            timeout=570,
        )  # fmt: skip
    assert report.exists(), replay.stdout + replay.stderr
    return json.loads(report.read_text())
