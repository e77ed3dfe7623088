"""The run prints what each rule looked at and every violation, and fails if there is one."""

from pathlib import Path

import pytest
from checks import __main__ as run
from checks.doors import doors
from checks.report import Rule


@pytest.mark.parametrize(("code", "status"), [("import time\n", 0), ("import time\ntime.sleep(1)\n", 1)])
def test_a_run_prints_a_line_for_each_rule_and_each_violation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: str, status: int
) -> None:
    file = tmp_path / "src" / "lastcall" / "a.py"
    file.parent.mkdir(parents=True)
    file.write_text(code)
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "RULES", (Rule("doors", doors, "files"),))
    assert run.main() == status
    *lines, _total = capsys.readouterr().out.splitlines()
    violation = "src/lastcall/a.py:2: doors: time.sleep is used directly; use lastcall.world.clock.sleep"
    assert lines == ([violation, "doors: 1 files, 1 violations"] if status else ["doors: 1 files, ok"])


def test_every_rule_has_a_name_of_its_own_and_looks_at_something() -> None:
    assert len({each.name for each in run.RULES}) == len(run.RULES)
    assert all(each.least > 0 for each in run.RULES)
