"""A mutant whose test neither ends nor uses the processor is tried again alone before it counts as killed."""

import time
from pathlib import Path

import pytest
from mutants import trials
from mutants.choosing import Touched
from mutants.results import SILENT, SURVIVED
from mutants.trials import Trial, Write

ONE_TEST = [Touched("test_one", 0.0)]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let half a second count as long."""
    monkeypatch.setattr(trials, "SILENCE", 0.5)
    monkeypatch.setattr(trials, "GLANCE", 0.1)


def waits_at_first(marks: Path, times: int) -> Trial:
    """Make a trial whose test waits for a minute in its first runs."""

    def body(write: Write) -> None:
        write("started 0")
        number = len(list(marks.iterdir()))
        (marks / str(number)).touch()
        if number < times:
            time.sleep(60)  # sleeps: this is the test that does not end; its process is killed
        write("passed 0")

    return Trial("waits", ONE_TEST, body)


def run(*trial: Trial) -> list[Trial]:
    ended = list[Trial]()
    trials.run(trial, 2, ended.append)
    return ended


def test_a_trial_that_is_silent_once_has_the_outcome_of_its_second_run(tmp_path: Path) -> None:
    (trial,) = run(waits_at_first(tmp_path, times=1))
    assert (trial.outcome, trial.test, trial.ran) == (SURVIVED, "", 1)


def test_a_trial_that_is_silent_again_alone_is_silent(tmp_path: Path) -> None:
    (trial,) = run(waits_at_first(tmp_path, times=2))
    assert (trial.outcome, trial.test) == (SILENT, "test_one")
    assert len(list(tmp_path.iterdir())) == 2, "it ran twice"


def test_a_silent_trial_runs_again_when_no_other_runs(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    seen = tmp_path / "seen"
    marks = tmp_path / "marks"
    marks.mkdir()

    def other(write: Write) -> None:
        alive.touch()
        for _ in range(12):
            time.sleep(0.1)  # sleeps: it lasts longer than the silence of the other one
            write("passed 0")
        alive.unlink()

    def body(write: Write) -> None:
        write("started 0")
        if not (marks / "once").exists():
            (marks / "once").touch()
            time.sleep(60)  # sleeps: this is the test that does not end; its process is killed
        seen.write_text(str(alive.exists()))

    ended = run(Trial("waits", ONE_TEST, body), Trial("other", ONE_TEST, other))
    assert [each.name for each in ended] == ["other", "waits"]
    assert seen.read_text() == "False"
