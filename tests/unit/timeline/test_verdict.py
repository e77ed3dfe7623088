"""The verdict: how a Pod ended in a sentence."""

import pytest

from lastcall.timeline import kinds as k
from lastcall.timeline.verdict import is_ongoing, outcome_words, verdict


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [
        (
            "graceful",
            "ended gracefully",
            "app ran its preStop hook for 3.0 s, then ended 5.6 s after SIGTERM with exit code 0. "
            "Of the grace period of 30 s, 21.4 s were left.",
        ),
        (
            "sigkill-1.36",
            "was killed",
            "app ran its preStop hook for 2.0 s, then still ran 8.0 s after SIGTERM and was ended by SIGKILL.",
        ),
    ],
)
def test_a_story_in_a_sentence(tapes, name, words, sentence):
    ending = tapes[name]().ending()
    assert outcome_words(ending) == words
    assert verdict(ending) == sentence
    assert not is_ongoing(ending)


def test_a_pod_that_is_ending_says_so_and_nothing_worse(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30)
    ending = tape.ending()
    assert is_ongoing(ending)
    assert outcome_words(ending) == "is ending"
    assert verdict(ending) == "app still runs."
    assert ending.not_known == ("It had not ended yet when this was told.", "The object was not seen to go.")


def test_a_dead_kubelet_is_no_ongoing_end(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.add(1.0, "init", k.PROCESS_DIED, role="node-1", pid=4, signal=9)
    assert not is_ongoing(tape.ending())
    assert outcome_words(tape.ending()) == "how it ended is not known"


def test_a_kubelet_that_is_started_again_goes_on_with_the_end(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.add(1.0, "init", k.PROCESS_DIED, role="node-1", pid=4, signal=9, restartsIn=0.1)
    assert is_ongoing(tape.ending())


def test_more_than_the_grace_period_is_said(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted(2)
    tape.observed(2)
    tape.hook(0.01, 2.0, "outlived", budget=2)
    tape.stop(2.01, 2, floor=True)
    tape.exit(3.0, 0)
    tape.over(3.0)
    assert verdict(tape.ending()).endswith("That was 1.0 s more than the grace period of 2 s.")


def test_a_pod_that_had_ended_before_needs_no_stop(new_tape):
    tape = new_tape()
    tape.started(at=-9)
    tape.exit(-3.0, 0)
    tape.accepted()
    tape.over(0.01)
    assert outcome_words(tape.ending()) == "had already ended"
    assert verdict(tape.ending()).startswith("app had ended 3.0 s before the DELETE with exit code 0.")


def test_a_pod_that_never_ran(new_tape):
    tape = new_tape()
    tape.accepted()
    tape.over(0.01)
    assert verdict(tape.ending()) == (
        "No container of it ever ran (the DELETE came before it could), so nothing had to be stopped."
    )
