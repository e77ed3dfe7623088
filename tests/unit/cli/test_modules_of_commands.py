"""How many modules of lastcall a command, or a role of its cluster, loads: each costs time before the first line."""

import subprocess
import sys
from pathlib import Path

import pytest

AT_THE_FORK = 236
"""Modules of lastcall when `lastcall run` forks the cluster's processes: those that reports need come after it."""
LOADED = {
    "lastcall": 2,
    "lastcall.testing.plugin": 4,
    "lastcall.cli.run.command": 68,
    "lastcall.cli.run.story, lastcall.experiment.run.session, lastcall.kube.cluster.embedded": 312,
    "lastcall.cli.trace.command, lastcall.cli.trace.session": 184,
    "lastcall.cli.lint, lastcall.lint.engine, lastcall.lint.sources": 165,
    "lastcall.cli.rollout.command": 159,
    "lastcall.kube.cluster.control_plane": 436,
    "lastcall.kube.cluster.node": 307,
}
"""What is imported → how many modules of lastcall that loads. Lower a figure when it falls; raise it with a reason."""


@pytest.mark.loopback
@pytest.mark.parametrize("imported", LOADED)
def test_a_command_or_role_loads_no_more_modules_than_it_did(imported: str) -> None:
    code = f"import sys, {imported}; print(sum(each.partition('.')[0] == 'lastcall' for each in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert int(run.stdout) == LOADED[imported]


@pytest.mark.loopback
def test_run_starts_its_cluster_before_it_loads_what_reports_need(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: busybox}]}}"
    )
    code = (
        "import sys\n"
        "from lastcall.kube.cluster import embedded\n"
        "def grow(*given):\n"
        "    print(sum(each.partition('.')[0] == 'lastcall' for each in sys.modules), flush=True)\n"
        "    sys.exit(0)\n"
        "embedded.grow = grow\n"
        "sys.argv = ['lastcall', 'run', 'pod.yaml']\n"
        "from lastcall.cli.main import main\n"
        "main()"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert int(run.stdout) == AT_THE_FORK
