"""The TypedDicts of API objects (kube/api/types) are what tools/make_types.py makes of the schema, and cost nothing."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[4]
PACKAGE = PROJECT / "src" / "lastcall" / "kube" / "api" / "types"

_spec = importlib.util.spec_from_file_location("make_types", PROJECT / "tools" / "make_types.py")
assert _spec and _spec.loader
make_types = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_types)


def test_the_files_are_what_the_tool_makes_of_the_schema() -> None:
    written = {path.name: path.read_text() for path in PACKAGE.glob("*.py")}
    assert written == make_types.files(), "run tools/make_types.py"


def test_a_file_imports_only_from_files_before_it() -> None:
    order = ["scalars", *make_types.FILES]
    for position, file in enumerate(order):
        tree = ast.parse((PACKAGE / f"{file}.py").read_text())
        needed = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        ours = {module.rsplit(".", 1)[1] for module in needed if module.startswith("lastcall.")}
        assert ours <= set(order[:position]), file


@pytest.mark.loopback
def test_mypy_strict_knows_the_fields_of_a_pod(tmp_path: Path) -> None:
    said = {
        'pod["spec"]["restartPolicy"] == "Allways"': "Non-overlapping equality check",
        'pod["spec"].get("restartPolcy") == "Always"': 'has no key "restartPolcy"',
        'not (pod.get("status") or {}).get("podIPP")': 'has no key "podIPP"',
        'pod["spec"]["terminationGracePeriod"]': 'has no key "terminationGracePeriod"',
        'pod["spec"]["terminationGracePeriodSeconds"] + "s"': "Unsupported operand types",
        '(pod["status"].get("podIP") or "") + pod["status"]["containerStatuses"][0]["containerID"]': "",
    }
    source = "from lastcall.kube.api.types.pod import Pod\n"
    source += "".join(f"def f{number}(pod: Pod) -> object: return {text}\n" for number, text in enumerate(said))
    (tmp_path / "about.py").write_text(source)
    command = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"))
    command = (*command, "--config-file", str(PROJECT / "pyproject.toml"), "about.py")
    answer = subprocess.run(
        command, cwd=tmp_path, env={"MYPYPATH": str(PROJECT / "src")}, capture_output=True, text=True, check=False
    )
    for line, error in enumerate(said.values(), 2):
        found = [each for each in answer.stdout.splitlines() if each.startswith(f"about.py:{line}: error:")]
        assert (error in found[0] and len(found) == 1) if error else not found, answer.stdout + answer.stderr
