"""How many modules of lastcall a command loads: each costs time between Enter and the first line."""

import subprocess
import sys

import pytest

LOADED = {
    "lastcall": 2,
    "lastcall.testing.plugin": 4,
    "lastcall.cli.run.command": 67,
    "lastcall.cli.run.experiment, lastcall.experiment.run.session, lastcall.kube.cluster.embedded": 294,
    "lastcall.cli.trace.command, lastcall.cli.trace.session": 178,
    "lastcall.cli.lint, lastcall.lint.engine, lastcall.lint.sources": 161,
}
"""What is imported → how many modules of lastcall that loads. Lower a figure when it falls; raise it with a reason."""


@pytest.mark.loopback
@pytest.mark.parametrize("imported", LOADED)
def test_a_command_loads_no_more_modules_than_it_did(imported: str) -> None:
    code = f"import sys, {imported}; print(sum(each.partition('.')[0] == 'lastcall' for each in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert int(run.stdout) == LOADED[imported]
