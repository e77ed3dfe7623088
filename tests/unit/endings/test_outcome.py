"""The outcome of an end: every row of the table has a story that takes it, and that no earlier row takes."""

from typing import Any, get_args

import pytest

from lastcall.endings.ending import build_endings
from lastcall.endings.outcome import RULES, Runs, decide_outcome, sentence_of
from lastcall.endings.story import Ending, Outcome
from lastcall.endings.verdict import outcome_words
from lastcall.records import kinds as k


def killed(tape: Any) -> None:
    crash(tape)
    begin(tape)
    tape.signal(5.0, "SIGKILL", "grace over")
    tape.exit(5.1, 137, "SIGKILL")
    tape.over(5.2)


def unseen_end(tape: Any) -> None:
    crash(tape)
    begin(tape)
    tape.over(5.2)


def crashed(tape: Any) -> None:
    crash(tape)
    restarted(tape)


def restarted(tape: Any) -> None:
    tape.started(at=-7.0)
    tape.add(-6.0, "kubelet", k.KILLING, "app", message="app will be restarted", reason="LivenessProbe")
    tape.exit(-5.0, 143, "SIGTERM")
    hook_failed(tape)


def failed_unheard(tape: Any) -> None:
    tape.started()
    tape.accepted(5)
    tape.hook(0.01, 1.0, "failed", exitCode=1)
    tape.stop(1.1, 4, disposition="default")
    tape.exit(3.0, 1)
    tape.over(3.1, "Failed")


def unseen_exit(tape: Any) -> None:
    tape.started()


def hook_failed(tape: Any) -> None:
    tape.started()
    tape.accepted(5)
    tape.hook(0.01, 1.0, "failed", exitCode=1)
    tape.stop(1.1, 4)
    tape.exit(1.2, 0)
    tape.over(1.3)


def graceful(tape: Any) -> None:
    begin(tape)
    tape.exit(0.1, 0)
    tape.over(0.2)


def crash(tape: Any) -> None:
    tape.started(at=-9.0)
    tape.exit(-8.0, 3)


def begin(tape: Any) -> None:
    tape.started()
    tape.accepted(5)
    tape.stop(0.01, 5)


STORIES = (killed, unseen_end, crashed, restarted, unseen_exit, failed_unheard, hook_failed, graceful)
"""In the order of the rules. Many would be taken by later rules, too."""


@pytest.mark.parametrize("row", range(len(RULES)), ids=[rule.holds.__name__ for rule in RULES])
def test_each_rule_decides_a_story_that_no_rule_before_it_takes(new_tape: Any, row: int) -> None:
    ending = story(new_tape(), STORIES[row])
    runs = Runs(ending.containers, ending.earlier, ends=bool(ending.zero_kind))
    assert [rule.holds.__name__ for rule in RULES[: row + 1] if rule.holds(runs)] == [RULES[row].holds.__name__]
    assert ending.outcome == decide_outcome(runs) == RULES[row].outcome


def test_every_rule_has_a_story_and_every_outcome_a_rule() -> None:
    assert len(STORIES) == len(RULES)
    assert {rule.outcome for rule in RULES} == set(get_args(Outcome))


@pytest.mark.parametrize("row", [0, 1, 2, 3, 5, 6, 7], ids=lambda row: RULES[row].holds.__name__)
def test_the_words_of_an_ended_pod_are_the_sentence_of_its_rule(new_tape: Any, row: int) -> None:
    assert outcome_words(story(new_tape(), STORIES[row])) == RULES[row].sentence


@pytest.mark.parametrize("row", range(len(RULES)), ids=[rule.holds.__name__ for rule in RULES])
def test_the_sentence_of_an_outcome_is_that_of_the_rule_that_holds(new_tape: Any, row: int) -> None:
    ending, rule = story(new_tape(), STORIES[row]), RULES[row]
    runs = Runs(ending.containers, ending.earlier, ends=bool(ending.zero_kind))
    assert sentence_of(rule.outcome, runs, deleted=True) == rule.sentence
    assert sentence_of(rule.outcome, runs, deleted=False) == (rule.undeleted or rule.sentence)


@pytest.mark.parametrize(
    ("disposition", "ended_at", "code", "outcome"),
    [
        ("default", 2.0, 1, "crashed"),
        ("ignored", 2.0, 1, "crashed"),
        ("default", 0.5, 1, "graceful"),
        ("default", 2.0, 0, "graceful"),
        ("handled", 2.0, 1, "graceful"),
        ("blocked", 2.0, 1, "graceful"),
    ],
)
def test_a_failure_after_a_signal_that_had_no_effect_is_a_crash(
    new_tape: Any, disposition: str, ended_at: float, code: int, outcome: str
) -> None:
    tape = new_tape()
    tape.started()
    tape.accepted(5)
    tape.stop(0.01, 5, disposition=disposition)
    tape.exit(ended_at, code)
    tape.over(ended_at + 0.1)
    assert tape.ending().outcome == outcome


def story(tape: Any, write: Any) -> Ending:
    write(tape)
    return build_endings(tape.records, [tape.pod], kubernetes_version="1.36")[0]
