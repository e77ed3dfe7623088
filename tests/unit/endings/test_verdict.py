"""The verdict: how a Pod ended in a sentence."""

import pytest
from ending_stories import shell_in_a_shared_namespace, shell_that_waits_for_its_sleep, shell_with_child

from lastcall.endings.ending import build_endings
from lastcall.endings.story import PodFacts
from lastcall.endings.verdict import is_ongoing, outcome_words, verdict
from lastcall.records import kinds as k


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


@pytest.mark.parametrize(
    ("story", "words"),
    [
        (shell_in_a_shared_namespace, "ended, but some of its processes were killed"),
        (shell_that_waits_for_its_sleep, "ended gracefully"),
        (shell_with_child, "was killed"),
    ],
)
def test_a_headline_agrees_with_the_warning_that_processes_were_killed(new_tape, story, words):
    tape = new_tape()
    story(tape)
    ending = tape.ending()
    assert outcome_words(ending) == words
    warned = any(each.id == "shellKeepsSignal" and each.severity == "warning" for each in ending.findings)
    assert warned is (story is shell_in_a_shared_namespace)


def test_a_pod_that_is_ending_says_so_and_nothing_worse(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30)
    ending = tape.ending()
    assert is_ongoing(ending)
    assert outcome_words(ending) == "is ending"
    assert verdict(ending) == "app still runs."
    assert ending.not_known == (
        "It had not ended yet when this report was made.",
        "The removal of the object was not seen.",
    )


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


def test_a_pod_that_completed_and_stays_was_not_deleted(new_tape):
    tape = new_tape()
    tape.add(-0.058, "runtime", k.PROCESS_STARTED, "app", pid=40)
    tape.add(-0.050, "runtime", k.PROCESS_EXITED, "app", exitCode=0, pid=40)
    tape.add(0.0, "kubelet", k.TERMINATION_OBSERVED, cause="completed")
    tape.add(0.6, "apiserver", k.POD_STATUS_WRITTEN, phase="Succeeded", ready=False)
    told = tape.ending()
    texts = [verdict(told), *(each.text for each in told.findings), *told.not_known]
    assert not [text for text in texts if "DELETE" in text], texts


CONTAINERS = [{"name": "setup", "kind": "init"}, {"name": "proxy", "kind": "sidecar"}, {"name": "app"}]


def exits(tape, at, container, code):
    tape.add(at, "runtime", k.PROCESS_EXITED, container, pid=7, exitCode=code, signal=None)


def init_runs(tape):
    tape.started("setup", at=1)


def init_waits(tape):
    tape.started("setup", at=1)
    exits(tape, 2, "setup", 1)


def init_runs_again(tape):
    init_waits(tape)
    tape.started("setup", at=12)


def image_is_pulled(tape):
    init_waits(tape)
    tape.started("setup", at=12)
    exits(tape, 13, "setup", 0)
    tape.started("proxy", at=14)


def runs(tape):
    image_is_pulled(tape)
    tape.started("app", at=15)


def crashes(tape):
    runs(tape)
    exits(tape, 16, "app", 1)


def runs_again(tape):
    crashes(tape)
    tape.started("app", at=26)


@pytest.mark.parametrize(
    ("lived", "words"),
    [
        (lambda tape: None, "has not started yet"),
        (init_runs, "is initializing"),
        (init_waits, "is initializing"),
        (init_runs_again, "is initializing"),
        (image_is_pulled, "has not started yet"),
        (runs, "is running"),
        (crashes, "is running"),
        (runs_again, "is running, after 1 restart"),
    ],
)
def test_a_pod_that_lives_is_told_as_its_phase_and_its_restarts_are(new_tape, lived, words):
    """Pending until its own containers have run; what init containers were tried again is no restart of it."""
    tape = new_tape()
    tape.add(0, "apiserver", k.POD_CREATED, namespace="default", name="web", user="u", containers=CONTAINERS)
    lived(tape)
    (ending,) = build_endings(tape.records, [PodFacts(tape.uid, "default", "web")], kubernetes_version="1.36")
    assert is_ongoing(ending)
    assert outcome_words(ending) == words


def test_a_pod_whose_status_says_that_it_runs_has_started(new_tape):
    """Its first records may be lost."""
    tape = new_tape()
    tape.add(0, "kubelet", k.POD_ADMITTED)
    tape.add(1, "apiserver", k.POD_STATUS_WRITTEN, phase="Running", ready=True, reason="")
    (ending,) = build_endings(tape.records, [PodFacts(tape.uid, "default", "web")], kubernetes_version="1.36")
    assert outcome_words(ending) == "is not running"


@pytest.mark.parametrize(
    ("code", "deleted", "words"),
    [
        (1, False, "crashed"),
        (1, True, "had crashed before its end began"),
        (0, False, "ended gracefully"),
        (0, True, "had already ended"),
    ],
)
def test_a_pod_of_a_job_ends_by_itself_and_nobody_began_its_end(new_tape, code, deleted, words):
    tape = new_tape()
    tape.started(at=-2)
    exits(tape, -1, "app", code)
    tape.add(-0.5, "kubelet", k.TERMINATION_OBSERVED, cause="completed")
    tape.add(-0.4, "apiserver", k.POD_STATUS_WRITTEN, phase="Failed" if code else "Succeeded", ready=False)
    if deleted:
        tape.accepted(0)
        tape.over(0.1)
    assert outcome_words(tape.ending()) == words


def test_a_pod_that_its_probe_restarted_and_that_completed_was_restarted_before_nothing(new_tape):
    tape = new_tape()
    tape.started(at=-30)
    message = "Container app failed liveness probe, will be restarted"
    tape.add(-20, "kubelet", k.KILLING, "app", message=message, gracePeriodSeconds=2, reason="LivenessProbe")
    tape.add(-20, "runtime", k.STOP_REQUESTED, "app", timeoutSeconds=2)
    exits(tape, -19, "app", 143)
    tape.started(at=-10)
    exits(tape, -1, "app", 0)
    tape.add(0, "kubelet", k.TERMINATION_OBSERVED, cause="completed")
    assert outcome_words(tape.ending()) == "was restarted by a probe"
