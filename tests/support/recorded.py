"""Recordings of a real Kubernetes 1.36.2, replayed against an embedded cluster on the real kernel.

The recordings and the program that replays them lie beside the project (`../shared`).
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kept_cluster import kept_cluster
from oci_registry import Fault, Registry, tar_of

SHARED = Path(os.environ.get("LASTCALL_SHARED", Path(__file__).resolve().parents[3] / "shared"))
REPLAY = SHARED / "tools" / "golden_replay.py"

RECORDED_IMAGE_SIZE = 686825
"""Bytes; an Event tells it."""

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

TERM_RIGHT_AFTER_THE_START = {
    "delete-during-pull-ok": [
        # Its end may be seen before its start is.
        "pod p sequence of app state shows running: expected true, seen false",
        'pod p sequence of cond ContainersReady: expected ["True", "False"], seen ["False"]',
        'pod p sequence of cond Ready: expected ["True", "False"], seen ["False"]',
        'pod p sequence of phase: expected ["Pending", "Running", "Succeeded"], seen ["Pending", "Succeeded"]',
        # Its program may have no handler yet: the kernel drops the SIGTERM of a PID 1, and SIGKILL ends it.
        "pod p final phase: expected Succeeded, seen Failed",
        "pod p final condition Initialized: expected True PodCompleted, seen True",
        "pod p final condition Ready: expected False PodCompleted, seen False PodFailed",
        "pod p final condition ContainersReady: expected False PodCompleted, seen False PodFailed",
        "pod p final container app state: expected terminated(Completed,0), seen terminated(Error,137)",
        'pod p sequence of app state: expected ["terminated(Completed,0)"], seen ["terminated(Error,137)"]',
        'pod p sequence of phase: expected ["Pending", "Running", "Succeeded"], seen ["Pending", "Running", "Failed"]',
        'pod p sequence of phase: expected ["Pending", "Running", "Succeeded"], seen ["Pending", "Failed"]',
    ],
    "delete-during-pull-two": [
        "pod p final container second state: expected terminated(Completed,0), seen terminated(Error,137)",
        'pod p sequence of second state: expected ["terminated(Completed,0)"], seen ["terminated(Error,137)"]',
        "pod p sequence of second state shows running: expected true, seen false",
    ],
}
"""Scenario → what may differ: the kubelet ends the container right after its start, on a real node as here."""


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


def is_late(difference: str) -> bool:
    """An Event, or what is measured from one."""
    return (
        re.search(r"(^|: )(time .*: (too early: |too late: |.*, not seen)|events .*: missing ')", difference)
        is not None
    )


def replayed(root: Path, *arguments: str) -> dict[str, Any]:
    """The report of `golden_replay.py` with these arguments, on a cluster that has the images of `root`."""
    with kept_cluster(root) as kubeconfig:
        return replay(kubeconfig, root / "report.json", *arguments)


def replay(
    kubeconfig: str, report: Path, *arguments: str, inside: Sequence[str] = (), seconds: float = 570
) -> dict[str, Any]:
    """The same on any cluster. `inside` comes before the command."""
    report.unlink(missing_ok=True)
    done = subprocess.run(
        [*inside, sys.executable, str(REPLAY), "--kubeconfig", kubeconfig, "--golden", str(SHARED / "golden"),
         "--late", "10", "--json", str(report), *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
    )  # fmt: skip
    assert report.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def slow_registry(program: bytes, netns: str = "", *, with_manifest: bool = False) -> Registry:
    """What the recordings with a slow pull need (INDEX.md): tag okN is served after N seconds, failN is a 404 then.

    `with_manifest`: the runtime counts the manifest to the size of an image, as containerd does.
    """
    registry = Registry(5999, netns=netns)

    def image(padding: int) -> bytes:
        config = {"Entrypoint": ["/quick"], "Labels": {"padding": "x" * padding}}
        return registry.manifest([tar_of({"quick": program})], config)

    def size(manifest: bytes) -> int:
        value = json.loads(manifest)
        blobs = sum(int(blob["size"]) for blob in [value["config"], *value["layers"]])
        return blobs + (len(manifest) if with_manifest else 0)

    padding = RECORDED_IMAGE_SIZE - size(image(0))
    padding -= size(image(padding)) - RECORDED_IMAGE_SIZE  # of a larger size the digits are more
    for seconds in (3, 6):
        registry.put(f"slow:ok{seconds}", image(padding))
        registry.faults += [
            Fault(f"HEAD .*/ok{seconds}$", times=99, delay=seconds),
            Fault(f"HEAD .*/fail{seconds}$", times=99, delay=seconds, status=404),
        ]
    return registry
