"""Recordings of a real Kubernetes 1.36.2, replayed against an embedded cluster on the real kernel.

The recordings and the program that replays them lie beside the project (`../shared`).
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from kept_cluster import kept_cluster

SHARED = Path(os.environ.get("LASTCALL_SHARED", Path(__file__).resolve().parents[3] / "shared"))
REPLAY = SHARED / "tools" / "golden_replay.py"

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
    # The garbage collector may let the Deployment go before its controller has counted that no Pod is its own any more.
    "deploy-delete-orphan": "controller Deployment/d ",
    # Its container leaves 5 s after its start, and the replay deletes it 3 s after it has seen that start in the log:
    # what a busy machine takes to show it is missing from the 2 s in between.
    "exit-during-prestop-exec": "too early",
}
"""Scenario → what may differ, nearly always because lastcall is faster than the recorded node."""

STEPS_AT_ONCE = {
    # Two Pods that turn Ready at the same moment are one step of the rollout where the recording has two; after the
    # step from 2 to 0 the replay never sees the one from 1 to 0.
    "deploy-rolling-surge25-unavail25": "not expected 'Normal ScalingReplicaSet: Scaled ",
}
"""Scenario → the difference after which nothing is as recorded. (The arithmetic of the steps has tests of its own.)"""


def unexpected(report: dict[str, Any]) -> list[str]:
    """The differences that `FASTER` and `STEPS_AT_ONCE` do not explain."""
    found = []
    for run in report["scenarios"]:
        excuse = FASTER.get(run["scenario"])
        if run["result"] == "error":
            found.append(f"{run['scenario']}: {run['reason']}")
        if any(STEPS_AT_ONCE.get(run["scenario"], "\0") in text for text in run["must"]):
            continue
        found += [f"{run['scenario']}: {text}" for text in run["must"] if excuse is None or excuse not in text]
    return found


def replayed(root: Path, *arguments: str) -> dict[str, Any]:
    """The report of `golden_replay.py` with these arguments, on a cluster that has the images of `root`."""
    report = root / "report.json"
    with kept_cluster(root) as kubeconfig:
        replay = subprocess.run(
            [sys.executable, str(REPLAY), "--kubeconfig", kubeconfig, "--golden", str(SHARED / "golden"),
             "--late", "10", "--json", str(report), *arguments],
            capture_output=True,
            text=True,
            timeout=570,
        )  # fmt: skip
    assert report.exists(), replay.stdout + replay.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    return found
