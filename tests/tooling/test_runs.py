"""Whole runs of tools/testrun over a small project: what is unstable, what is red, what is written down."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"

HEAD = "import os, pathlib, pytest, subprocess, sys, time\nclass Left(AssertionError):\n    proof = True\n"
INI = "[pytest]\nmarkers =\n  core: c\n  proof: p\n  real_kernel: k\ntimeout = 20\naddopts = --import-mode=importlib\n"


class SmallProject:
    """A project of its own, with one file of tests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tests/node").mkdir(parents=True)
        (root / "pytest.ini").write_text(INI)
        (root / "tools").mkdir()
        (root / "tools/check").write_text("#!/bin/sh\n")
        (root / "tools/check").chmod(0o755)

    def run(self, tests: str, *arguments: str, **environment: str) -> tuple[int, str, dict[str, object]]:
        """Return status, output and the content of build/last-test.json of `testrun main`."""
        (self.root / "tests/node/test_it.py").write_text(HEAD + tests)
        variables = {name: value for name, value in os.environ.items() if name not in ("TESTS", "CI")}
        done = subprocess.run(
            [sys.executable, "-m", "testrun", "all", "--venv", sys.prefix, *arguments],
            cwd=self.root, env=variables | {"PYTHONPATH": str(TOOLS)} | environment, capture_output=True, text=True,
            timeout=120,
        )  # fmt: skip
        last = self.root / "build/last-test.json"
        return done.returncode, done.stdout + done.stderr, json.loads(last.read_text()) if last.exists() else {}


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    return SmallProject(tmp_path)


FAILS_ONCE = """
@pytest.mark.parametrize("user", ["an ordinary user"])
def test_once(user):
    seen = pathlib.Path("seen")
    first = not seen.exists()
    seen.touch()
    assert not first, "the first time"
"""


STANDS_STILL = """
def test_once():
    seen = pathlib.Path("seen")
    first = not seen.exists()
    seen.touch()
    if first:
        beside = "import os, signal, time; os.kill({0}, signal.SIGSTOP); time.sleep(1); os.kill({0}, signal.SIGCONT)"
        subprocess.run([sys.executable, "-c", beside.format(os.getpid())])
        time.sleep(0.2)
    assert not first
"""


FAILS_WITH_PROOF = FAILS_ONCE.replace('assert not first, "the first time"', "if first: raise Left('the first time')")


@pytest.mark.core
def test_a_test_that_fails_once_is_unstable_and_the_run_is_green(project: SmallProject) -> None:
    status, output, last = project.run(FAILS_ONCE)
    assert status == 0, output
    assert "unstable: 1" in output and "the first time" in output
    assert last["unstable"] == ["tests/node/test_it.py::test_once[an ordinary user]"] and last["result"] == "green"


@pytest.mark.core
def test_a_test_that_fails_while_the_machine_stands_still_is_repeated_and_not_unstable(project: SmallProject) -> None:
    status, output, last = project.run(STANDS_STILL)
    assert status == 0 and "unstable: 0" in output, output
    assert last["repeatedAfterStall"]


@pytest.mark.core
def test_the_tests_named_in_the_environment_run_again_too(project: SmallProject) -> None:
    status, output, _ = project.run(FAILS_ONCE, TESTS="'tests/node/test_it.py::test_once[an ordinary user]'")
    assert status == 0 and "unstable: 1" in output, output


@pytest.mark.core
@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("def test_it():\n    assert 1 == 2, 'always'\n", "always"),
        ("@pytest.mark.proof\n" + FAILS_ONCE.lstrip(), "the first time"),
        (
            FAILS_ONCE.replace('assert not first, "the first time"', "if first: raise Left('the first time')"),
            "the first time",
        ),
        ("@pytest.mark.timeout(1)\ndef test_it():\n    time.sleep(60)\n", "Timeout"),
        ("def test_it():\n    os._exit(3)\n\ndef test_after():\n    pass\n", "exited with status 3 during this test"),
        ("def test_it(:\n    pass\n", "SyntaxError"),
    ],
    ids=[
        "it fails again",
        "one failure is proof",
        "its error is proof",
        "it hangs",
        "its process dies",
        "it cannot be collected",
    ],
)
def test_a_run_is_red_when(project: SmallProject, tests: str, said: str) -> None:
    status, output, last = project.run(tests)
    assert status == 1 and said in output, output
    assert last["result"] == "red" and len(last["failed"]) == 1 and last["unstable"] == []  # type: ignore[arg-type]
    if "test_after" in tests:
        assert "1 passed, 1 failed" in output


def test_a_run_says_which_tests_were_skipped_and_why(project: SmallProject) -> None:
    skips = '@pytest.mark.parametrize("n", range(3))\ndef test_it(n):\n    pytest.skip("no etcd here")\n'
    status, output, last = project.run(skips)
    assert status == 0, output
    assert "    3  no etcd here: tests/node/test_it.py\n" in output
    assert last["skipped"] == {"no etcd here": [f"tests/node/test_it.py::test_it[{n}]" for n in range(3)]}


def test_a_kernel_test_that_is_skipped_fails_in_ci(project: SmallProject) -> None:
    tests = "@pytest.mark.real_kernel\ndef test_it():\n    pytest.skip('no kernel')\n"
    assert project.run(tests)[0] == 0
    status, output, _ = project.run(tests, CI="true")
    assert status == 1 and "no kernel" in output


def test_times_are_not_recorded_of_a_part(project: SmallProject) -> None:
    status, output, _ = project.run("def test_it():\n    pass\n", "--record-times", TESTS="tests/node/test_it.py")
    assert status == 2 and "--record-times needs all tests" in output
    assert not (project.root / "tests/times.json").exists()


def test_times_are_recorded(project: SmallProject) -> None:
    assert project.run("@pytest.mark.core\ndef test_it():\n    time.sleep(0.3)\n", "--record-times")[0] == 0
    times = json.loads((project.root / "tests/times.json").read_text())
    assert 0.3 <= times["tests/node/test_it.py"]["test_it"] < 60
