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

SHARED = Path(os.environ.get("LASTCALL_SHARED", Path(__file__).resolve().parents[3] / "shared"))
REPLAY = SHARED / "tools" / "golden_replay.py"

HALVES = {
    True: ["prestop*", "graceful*", "ignores*", "sidecar*", "force*", "finalizer*", "readi*", "spec*", "volume*"],
    False: ["delete-*", "deletecollection", "crash*", "image*", "init*", "poststart*", "liveness*", "natural*",
            "endpoint*", "termination*", "active*", "admission*", "config*", "missing*", "start*", "exit*", "pending*",
            "scheduling*", "quick*"],
}  # fmt: skip

FASTER = {
    # containerd's StopContainer takes 0.1 s each; the sidecars' order is as recorded.
    "sidecar-prestop-simultaneous": "too early",
    # Eight containers end at once: containerd's starts are so slow that one of them is still seen running.
    "termination-message": "sequence of phase",
    # `exit 0` and `exit 2` are over within a millisecond: whether a client still sees phase Running is chance.
    "delete-completed": "sequence of phase",
    # A second sync within the back-off is chance: its CrashLoopBackOff leaves a lastState behind.
    "init-fails-always-delete": "lastState",
}
"""Scenario → what may differ, because lastcall is faster than the recorded node."""


def unexpected(report: dict) -> list[str]:
    """The differences that `FASTER` does not explain."""
    found = []
    for run in report["scenarios"]:
        excuse = FASTER.get(run["scenario"])
        found += [f"{run['scenario']}: {text}" for text in run["must"] if excuse is None or excuse not in text]
    return found


@pytest.mark.real_kernel
@pytest.mark.timeout(600)
@pytest.mark.skipif(not REPLAY.exists(), reason="the recordings are not beside the project")
def test_pods_live_and_end_as_recorded_on_a_real_kubernetes(tmp_path):
    make_images(tmp_path)
    with kept_cluster(tmp_path) as kubeconfig:
        report = tmp_path / "report.json"
        replay = subprocess.run(
            [sys.executable, str(REPLAY), "--kubeconfig", kubeconfig, "--golden", str(SHARED / "golden"), "-j", "8",
             "--late", "1.5", "--json", str(report), *HALVES[sys.version_info >= (3, 12)]],
            capture_output=True,
            text=True,
            timeout=570,
        )  # fmt: skip
    assert report.exists(), replay.stdout + replay.stderr
    result = json.loads(report.read_text())
    assert unexpected(result) == []
    assert result["counts"]["agree"] >= 25
