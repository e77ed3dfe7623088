"""How many modules of lastcall a command, or a role of its cluster, loads: each costs time before the first line."""

import subprocess
import sys
from pathlib import Path

import pytest

import lastcall

SOURCE = Path(lastcall.__file__).parents[1]
AT_THE_FORK = 210
"""Modules of lastcall when `lastcall run` forks the cluster's processes: those that reports need come after it."""
LOADED = {
    "lastcall": 2,
    "lastcall.testing.plugin": 4,
    "lastcall.cli.run.command": 42,
    "lastcall.cli.run.story, lastcall.experiment.run.session, lastcall.kube.cluster.embedded": 278,
    "lastcall.cli.trace.command, lastcall.cli.trace.session": 187,
    "lastcall.cli.lint, lastcall.lint.engine, lastcall.lint.sources": 142,
    "lastcall.cli.rollout.command": 45,
    "lastcall.kube.cluster.control_plane": 425,
    "lastcall.kube.cluster.node": 309,
}
"""What is imported → how many modules of lastcall that loads. Lower a figure when it falls; raise it with a reason."""
AT_THE_FIRST_LINE = {"run FILE": 117, "rollout FILE": 120, "up -f FILE": 115}
"""Command → modules of lastcall when it prints what it has read."""
COMPILED = {
    "lastcall.cli.run.story, lastcall.experiment.run.session, lastcall.kube.cluster.embedded": 33,
    "lastcall.kube.cluster.control_plane": 22,
    "lastcall.kube.cluster.node": 27,
}
"""What is imported → how many pieces of source are compiled meanwhile, such as methods of dataclasses: 0.2 ms each."""
LATER = frozenset(
    {
        *("aiohttp", "asyncio", "cryptography", "h11", "h2", "jwt", "rich", "sqlite3", "ssl", "subprocess", "uvloop"),
        *("lastcall.kube.cluster.embedded", "lastcall.kube.cluster.tree", "lastcall.lint"),
    }
)
"""What neither a manifest nor an error in it needs."""

OF_THE_SHIM = 74
"""Modules of lastcall in the shim: each container begins as a copy of it."""
NOT_IN_THE_SHIM = frozenset(
    {"asyncio", "dataclasses", "inspect", "logging", "subprocess", "threading", "traceback", "typing"}
)

POD = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: busybox}]}}"
WORKLOAD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: busybox}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}
"""


def in_a_process(code: str, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.loopback
@pytest.mark.parametrize("imported", LOADED)
def test_a_command_or_role_loads_no_more_modules_than_it_did(imported: str) -> None:
    code = f"import sys, {imported}; print(sum(each.partition('.')[0] == 'lastcall' for each in sys.modules))"
    assert int(in_a_process(code).stdout) == LOADED[imported]


@pytest.mark.loopback
@pytest.mark.parametrize("imported", COMPILED)
def test_methods_of_dataclasses_are_not_compiled_by_imports(imported: str) -> None:
    code = (
        "import builtins, sys\n"
        "execute, compiled = builtins.exec, []\n"
        "def count(code, *given):\n"
        "    compiled.extend([code] if isinstance(code, str) else [])\n"
        "    execute(code, *given)\n"
        "builtins.exec = count\n"
        f"import {imported}\n"
        "print(len(compiled))"
    )
    assert int(in_a_process(code).stdout) == COMPILED[imported]


@pytest.mark.loopback
def test_run_starts_its_cluster_before_it_loads_what_reports_need(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(POD)
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
    assert int(in_a_process(code, tmp_path).stdout) == AT_THE_FORK


@pytest.mark.loopback
@pytest.mark.parametrize("command", AT_THE_FIRST_LINE)
def test_the_first_line_needs_what_reads_manifests_and_nothing_else(command: str, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WORKLOAD)
    code = (
        "import sys\n"
        "from lastcall.cli import terminal\n"
        "def note(line):\n"
        "    print(line, *sys.modules, sep='\\n', flush=True)\n"
        "    sys.exit(0)\n"
        "terminal.note = note\n"
        f"sys.argv = ['lastcall', *{command.replace('FILE', 'web.yaml').split()}]\n"
        "from lastcall.cli.main import main\n"
        "main()"
    )
    line, *modules = in_a_process(code, tmp_path).stdout.splitlines()
    assert line == "web.yaml: 1 Service, web; 1 Deployment, web"
    assert LATER.isdisjoint(modules)
    assert sum(each.partition(".")[0] == "lastcall" for each in modules) == AT_THE_FIRST_LINE[command]


@pytest.mark.loopback
@pytest.mark.parametrize("command", AT_THE_FIRST_LINE)
def test_an_error_in_a_manifest_comes_as_early_as_the_first_line(command: str, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WORKLOAD.replace("image:", "imag:"))
    code = (
        "import sys\n"
        f"sys.argv = ['lastcall', *{command.replace('FILE', 'web.yaml').split()}]\n"
        "from lastcall.cli.main import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    print(end.code, *sys.modules, sep='\\n')\n"
    )
    run = in_a_process(code, tmp_path)
    status, *modules = run.stdout.splitlines()
    assert (status, run.stderr.splitlines()[0]) == (
        "2",
        "lastcall: web.yaml:6: document 1 (Deployment web): spec.template.spec.containers[0].imag: "
        'not a field of Deployment: did you mean "image"?',
    )
    assert LATER.isdisjoint(modules)


@pytest.mark.loopback
def test_the_shim_loads_no_more_modules_than_it_did() -> None:
    package = "lastcall.kube.cri.sandbox"
    names = (f"{package}.cgroups.place", f"{package}.shim.server", "lastcall.records.kinds", "lastcall.records.ring")
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import {', '.join(names)}; print(*sys.modules)"
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & NOT_IN_THE_SHIM
    assert sum(each.partition(".")[0] == "lastcall" for each in loaded) == OF_THE_SHIM
