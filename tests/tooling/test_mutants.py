"""A whole run of tools/mutants over a small project: a mutant that a test kills, one that survives, one that hangs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with Python 3.12"),
]

RULES = """
import functools


def noted(function):
    @functools.wraps(function)
    def inner(*arguments):
        return function(*arguments)

    return inner


@functools.cache
def limit(number):
    return number >= 10


@noted
def steps(number):
    count = 0
    while count < number:
        count += 1
    return count


class Rules:
    async def price(self, number):
        if limit(number):
            return 5
        return 9
"""

TESTS = """
import os
from small.part.rules import Rules, steps


async def run():
    return await Rules().price(10), await Rules().price(3)


def test_prices():
    try:
        run_it = run()
        run_it.send(None)
    except StopIteration as result:
        assert result.value == (5, 9)


def test_steps(tmp_path):
    assert steps(3) == 3 and not list(tmp_path.iterdir())
    try:
        os.mkdir(os.path.expanduser("~/a-mutant-was-here"))
    except OSError:
        return
    raise AssertionError("the machine's files can be written")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project with one module, its tests, and one equivalent mutant."""
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = src\naddopts = --import-mode=importlib\n")
    for folder in ("src/small/part", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/small/__init__.py").touch()
    (tmp_path / "src/small/part/__init__.py").touch()
    (tmp_path / "src/small/part/rules.py").write_text(RULES)
    (tmp_path / "tests/test_rules.py").write_text(TESTS)
    entry = {"path": "src/small/part/rules.py", "function": "steps", "change": "`count < number` → `count <= number`"}
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in (entry | {"reason": "a test"}).items()
    ]
    (tmp_path / "tests/mutants-equivalent.toml").write_text("\n".join(["[[mutant]]", *lines]) + "\n")
    return tmp_path


def test_changes_that_tests_notice_are_killed_and_others_survive(project: Path) -> None:
    arguments = ["--package", "part", "--source", "src/small", "--tests", "tests", "--seed", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "mutants", *arguments], cwd=project,
        env=os.environ | {"PYTHONPATH": str(TOOLS)}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    if "could not be made" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no sandbox: {done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((project / "build/mutants/part.json").read_text())
    outcomes = {(each["mutant"]["function"], each["mutant"]["change"]): each["outcome"] for each in document["results"]}
    assert outcomes["limit", "`number >= 10` → `number > 10`"] == "killed"
    assert outcomes["limit", "`number >= 10` → `number >= 9`"] == "survived"
    assert outcomes["Rules.price", "`return 5` → `return None`"] == "killed"
    assert outcomes["steps", "`count += 1` → `count -= 1`"] == "timeout"
    assert outcomes["noted.<locals>.inner", "`return function(*arguments)` → `return None`"] == "killed"
    assert ("steps", "`count < number` → `count <= number`") not in outcomes, "it is listed as equivalent"
