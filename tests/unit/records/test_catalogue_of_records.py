"""The catalogue of records: what is made of it is up to date, and what is written fits it."""

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from published_schema import misfits

from lastcall.records import kinds, rules
from lastcall.records.record import Record

TOOL = Path(__file__).parents[3] / "tools" / "make_catalogue.py"
_spec = importlib.util.spec_from_file_location("make_catalogue", TOOL)
assert _spec is not None and _spec.loader is not None
make_catalogue = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_catalogue)


def record(kind: str, **facts: object) -> Record:
    return Record("a-0-1", 0, 0, "kubelet", kind, facts=facts)


@pytest.mark.parametrize("path", make_catalogue.files(), ids=lambda path: path.name)
def test_what_is_made_of_the_catalogue_is_up_to_date(path):
    assert path.read_text() == make_catalogue.files()[path], "run: python tools/make_catalogue.py"


def test_every_kind_says_what_it_means():
    assert [name for name, shape in make_catalogue.all_kinds().items() if not shape.__doc__] == []


@pytest.mark.loopback
def test_writers_do_not_load_the_types():
    """They would cost every process of a cluster milliseconds (a TypedDict 0.05 ms, a dataclass 1 ms)."""
    code = (
        "import sys, lastcall.records.kinds, lastcall.kube.cri.sandbox.shim.__main__\n"
        "print([each for each in sys.modules if each in ('typing', 'dataclasses') or 'definitions' in each])"
    )
    made = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(TOOL.parents[1] / "src")},
    )  # fmt: skip
    assert made.stdout.strip() == "[]"


def test_a_record_that_fits_has_no_misfits():
    assert misfits(record(kinds.KILLING, message="Stopping container app", gracePeriodSeconds=30)) == []
    assert misfits(record(kinds.GRACE_SHORTENED, **{"from": 30, "to": 5, "user": "a", "resourceVersion": "7"})) == []
    assert misfits(record(kinds.WORKER_FINISHED)) == []


def test_what_does_not_fit_is_said():
    assert misfits(record(kinds.KILLING, message="x")) == ["Killing: gracePeriodSeconds is missing"]
    assert misfits(record(kinds.KILLING, message="x", gracePeriodSeconds="30")) == [
        "Killing: gracePeriodSeconds: '30' is not integer"
    ]
    assert misfits(record(kinds.WORKER_FINISHED, surprise=1)) == ["WorkerFinished: surprise is not in the catalogue"]
    assert misfits(record("Unheard")) == ["Unheard is not in the catalogue"]
    other = replace(record(kinds.WORKER_FINISHED), rule=rules.DO_PROBE)
    assert misfits(other) == [f"WorkerFinished: {rules.DO_PROBE} is none of its rules"]


def test_a_record_of_an_older_version_is_read_as_it_is():
    old = record(kinds.PROCESS_EXITED, exitCode=0)
    assert old.facts_as(kinds.PROCESS_EXITED)["exitCode"] == 0
    assert old.facts_as(kinds.PROCESS_EXITED).get("oomKills") is None


def test_every_kind_is_a_plain_string_when_the_program_runs():
    values = {value for name, value in vars(kinds).items() if name.isupper() and name != "TYPE_CHECKING"}
    assert values == set(make_catalogue.all_kinds())
    assert {type(value) for value in values} == {str}
