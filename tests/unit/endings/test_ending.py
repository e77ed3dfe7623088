"""Stories from hand-made record sequences."""

import random
from dataclasses import replace

import pytest

from lastcall.endings.ending import build_endings
from lastcall.endings.facts.finalizers import removers
from lastcall.endings.facts.pod import pod_facts
from lastcall.endings.findings.rules import find_causes
from lastcall.endings.render.plain import plain_text
from lastcall.endings.story import Change, ContainerFacts, DecidedBy, PodFacts
from lastcall.endings.verdict import verdict
from lastcall.records import kinds as k


def _finding(ending, id_):
    found = [f for f in ending.findings if f.id == id_]
    assert len(found) == 1, [f.id for f in ending.findings]
    return found[0].text


def test_a_graceful_end_tells_hook_drain_and_what_is_left_of_the_grace_period(tapes):
    ending = tapes["graceful"]().ending()
    assert ending.outcome == "graceful"
    assert ending.grace_seconds == 30
    (app,) = ending.containers
    assert (app.exit.code, app.exit.reason, app.exit.signal, app.exit.killed_by) == (0, "Completed", None, None)
    assert app.hook is not None
    assert (app.hook.handler, app.hook.outcome, app.hook.seconds) == ("exec", "succeeded", 3.004)
    assert app.stop.signal_at == pytest.approx(3.013)
    assert ending.budget is not None
    assert ending.budget.pre_stop == pytest.approx(3.004)
    assert ending.budget.drain == pytest.approx(8.61 - 3.013)
    assert ending.budget.unused == pytest.approx(30 - 3.004 - (8.61 - 3.013))
    assert ending.budget.overrun == 0
    assert ending.gone == pytest.approx(8.62)
    assert ending.overhead == pytest.approx(8.62 - 3.004 - (8.61 - 3.013))
    assert not ending.not_known


def test_endpoint_signals_and_output_are_in_the_story_with_their_times(tapes):
    ending = tapes["graceful"]().ending()
    first, last = ending.endpoints
    assert (first.at, first.ready, first.serving, first.terminating) == (0.004, False, True, True)
    assert last.removed
    assert [(s.signal, s.pid, s.why) for s in ending.signals] == [("SIGTERM", 7, "StopContainer")]
    assert [(line.at, line.text) for line in ending.output] == [(3.6, "SIGTERM received, draining...")]


def test_a_shell_as_pid_1_that_reacts_late_is_explained(tapes):
    assert "a shell runs its trap only when the command it waits for has ended" in _finding(
        tapes["graceful"]().ending(), "shellRunsTrapLate"
    )


def test_sigkill_at_the_end_of_the_grace_period_names_the_hook_that_took_its_part(tapes):
    ending = tapes["sigkill-1.36"]().ending()
    assert ending.outcome == "killed"
    (app,) = ending.containers
    assert (app.exit.code, app.exit.reason, app.exit.signal, app.exit.killed_by) == (
        137,
        "Error",
        "SIGKILL",
        "grace over",
    )
    assert app.stop.kill_at == pytest.approx(10.012)
    text = _finding(ending, "killed")
    assert "SIGKILL at 10.0 s, because it still ran 8 s after SIGTERM" in text
    assert "preStop hook had taken 2.0 s" in text
    assert "hookTimeNotCounted" not in [f.id for f in ending.findings]


def test_up_to_1_27_the_kill_comes_later_and_the_story_says_why_in_one_sentence(tapes):
    ending = tapes["sigkill-1.23"]().ending()
    (app,) = ending.containers
    assert app.stop.kill_at == pytest.approx(12.012)
    assert ending.budget is not None
    assert ending.budget.overrun == pytest.approx(2.0, abs=0.02)
    text = _finding(ending, "hookTimeNotCounted")
    assert "Kubernetes 1.23 does not take the preStop hook's time off the grace period" in text
    assert "app had 12.0 s in place of 10 s" in text
    assert text.count(". ") == 0


def test_the_order_of_arrival_does_not_change_the_story(tapes):
    tape = tapes["sigkill-1.36"]()
    expected = tape.ending()
    for seed in range(5):
        shuffled = list(tape.records)
        random.Random(seed).shuffle(shuffled)
        ending = build_endings(shuffled, [tape.pod], kubernetes_version="1.36")[0]
        assert ending.containers == expected.containers
        assert ending.budget == expected.budget
        assert ending.findings == expected.findings
        assert [e.record.id for e in ending.entries] == [e.record.id for e in expected.entries]


def test_causes_are_joined_across_processes_by_uid_and_resource_version(tapes):
    ending = tapes["sigkill-1.36"]().ending()
    by_kind = {entry.record.kind: entry for entry in ending.entries}
    by_id = {entry.record.id: entry for entry in ending.entries}

    def cause(kind):
        cause_id = by_kind[kind].cause_id
        return by_id[cause_id].record.kind if cause_id else None

    assert cause(k.DELETE_ACCEPTED) == k.DELETE_SENT
    assert cause(k.ENDPOINT_CHANGED) == k.DELETE_ACCEPTED
    assert cause(k.TERMINATION_OBSERVED) == k.DELETE_ACCEPTED
    assert cause(k.ENDPOINT_REMOVED) == k.POD_STATUS_WRITTEN
    assert cause(k.OBJECT_REMOVED) == k.FINAL_DELETE_SENT
    assert cause(k.POD_GONE_SEEN) == k.OBJECT_REMOVED
    assert cause(k.SIGNAL_SENT) == k.STOP_REQUESTED
    assert cause(k.PROCESS_SIGNAL_STATE) == k.STOP_REQUESTED
    killed = by_id[by_kind[k.PROCESS_EXITED].cause_id].record
    assert (killed.kind, killed.facts["signal"]) == (k.SIGNAL_SENT, "SIGKILL")


def test_a_failed_hook_is_not_graceful_and_its_last_words_are_told(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.observed()
    tape.killing(30)
    tape.hook(0.006, 1.01, "failed", exitCode=127, stdout="", stderr="sh: nope: not found\n", message="…")
    tape.stop(1.02, 29, deducted=1)
    tape.exit(1.5, 0)
    tape.over(1.501)
    ending = tape.ending()
    assert ending.outcome == "hookFailed"
    assert ending.containers[0].hook.exit_code == 127
    text = _finding(ending, "hookFailed")
    assert "exit code 127" in text
    assert "sh: nope: not found" in text


def test_a_hook_that_outlives_the_grace_period_and_fails_late_stays_outlived(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted(4)
    tape.observed(4)
    tape.killing(4)
    tape.hook(0.006, 4.0, "outlived", budget=4, message="the hook still runs")
    tape.stop(4.01, 2, deducted=4, floor=True)
    tape.signal(6.012, "SIGKILL", "grace over")
    tape.exit(6.013, 137, 9)
    facts = {"handler": "exec", "outcome": "failed", "seconds": 6.01, "exitCode": 137, "late": True}
    tape.add(6.02, "kubelet", k.PRE_STOP_FINISHED, "app", **facts)
    tape.over(6.03, "Failed")
    ending = tape.ending()
    hook = ending.containers[0].hook
    assert (hook.outcome, hook.seconds, hook.exit_code) == ("outlived", 4.0, 137)
    assert ending.outcome == "killed"
    assert ending.budget.overrun == pytest.approx(2.0, abs=0.02)
    assert "was left 2 s (the least that is given)" in _finding(ending, "hookOutlived")


def test_an_outlived_hook_alone_is_not_graceful(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted(2)
    tape.hook(0.006, 2.0, "outlived", budget=2, handler="sleep")
    tape.stop(2.01, 2, deducted=2, floor=True)
    tape.exit(2.2, 0)
    tape.over(2.201)
    assert tape.ending().outcome == "hookFailed"


@pytest.mark.parametrize(
    ("disposition", "words"),
    [("default", "has no handler for SIGTERM"), ("ignored", "ignores SIGTERM"), ("blocked", "blocks SIGTERM")],
)
def test_a_pid_1_that_does_not_get_the_signal_is_named(new_tape, disposition, words):
    tape = new_tape()
    tape.started()
    tape.accepted(5)
    tape.stop(0.01, 5, disposition=disposition)
    tape.signal(5.012, "SIGKILL", "grace over")
    tape.exit(5.013, 137, 9)
    tape.over(5.014, "Failed")
    text = _finding(tape.ending(), "stopSignalNotHandled")
    assert words in text
    assert "/bin/busybox" in text
    assert "it took the full time until SIGKILL, 5.0 s" in text


def test_a_container_that_ends_by_itself_before_the_delete_is_not_blamed_on_it(new_tape):
    tape = new_tape()
    tape.started(at=-4.0)
    tape.exit(-2.3, 0)
    tape.accepted(0)
    tape.add(0.001, "apiserver", k.OBJECT_REMOVED, resourceVersion="152", user="kubernetes-admin")
    tape.add(0.002, "client", k.POD_GONE_SEEN, resourceVersion="152")
    ending = tape.ending()
    assert ending.outcome == "graceful"
    assert ending.budget is None
    assert ending.overhead == pytest.approx(0.002)
    assert "ended by itself 2.3 s before the DELETE, exit code 0" in _finding(ending, "endedByItself")


def test_an_exit_during_a_sleep_hook_is_told_with_the_time_the_hook_still_took(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.hook(0.006, 5.0, handler="sleep")
    tape.exit(1.2, 0)
    tape.over(5.02)
    ending = tape.ending()
    text = _finding(ending, "endedByItself")
    assert "before any signal was sent to it" in text
    assert "still waited for until 5.0 s" in text
    assert ending.budget.pre_stop == 5.0
    assert ending.budget.drain == 0


def test_an_exec_hook_that_dies_with_its_container_is_told_as_such(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.hook(0.006, 1.2, "failed", exitCode=137)
    tape.exit(1.19, 3)
    tape.over(1.22, "Failed")
    ending = tape.ending()
    assert "nothing is wrong with the hook" in _finding(ending, "hookDiedWithContainer")
    assert "hookFailed" not in _severities(ending)
    assert ending.containers[0].hook.outcome == "interrupted"


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ('sh -c "kill -TERM 1; sleep 3"', "kill -TERM 1"),
        ('sh -c "kill 1 && sleep 3"', "kill 1"),
        ("/bin/kill -15 1", "kill -15 1"),
        ('sh -c "nginx -s stop; while killall -0 nginx; do sleep 1; done"', "nginx -s stop"),
        ('sh -c "kill -0 1; sleep 3"', ""),
        ('sh -c "kill -TERM 17; sleep 3"', ""),
        ('sh -c "sleep 3"', ""),
    ],
)
def test_a_hook_that_ends_its_own_container_is_told_to_leave_that_to_the_kubelet(new_tape, command, named):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.hook(0.006, 1.2, "failed", exitCode=137, command=command)
    tape.exit(1.19, 0)
    tape.over(1.22)
    found = next(each for each in tape.ending().findings if each.id == "hookDiedWithContainer")
    assert (f"(`{named}`)" in found.text) is bool(named)
    assert ("which sends SIGTERM when the hook has ended" in found.advice) is bool(named)
    assert (found.change.program if found.change else None) == ("fixHook" if named else None)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ('sh -c "kill -USR1 1; while kill -0 1; do sleep 0.2; done"', "kill -USR1 1"),
        ('sh -c "kill -s QUIT 1; sleep 3"', "kill -s QUIT 1"),
        ('sh -c "nginx -s quit; while killall -0 nginx; do sleep 1; done"', "nginx -s quit"),
    ],
)
def test_a_hook_that_ends_its_container_as_sigterm_would_not_is_left_as_it_is(new_tape, command, named):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.hook(0.006, 1.2, "failed", exitCode=137, command=command)
    tape.exit(1.19, 0)
    tape.over(1.22)
    found = next(each for each in tape.ending().findings if each.id == "hookDiedWithContainer")
    assert (found.severity, found.advice, found.change) == ("info", "", None)
    assert f"(`{named}`), in another way than SIGTERM" in found.text and "nothing is wrong with the hook" in found.text


def test_a_hook_that_was_not_run_because_its_container_had_ended_belongs_into_the_program(new_tape):
    tape = new_tape()
    tape.started()
    tape.exit(-1.0, 0)
    tape.accepted()
    tape.add(0.004, "kubelet", k.PRE_STOP_SKIPPED, "app", why="the container had already ended")
    tape.over(0.1)
    found = next(each for each in tape.ending().findings if each.id == "hookNotRun")
    assert "only before it stops a container that still runs" in found.advice
    assert found.change.program == "fixHook"


def test_a_hook_that_its_container_s_good_end_cut_off_is_a_graceful_end(new_tape):
    """The kubelet hears of the hook first, and has its stop signal sent to a PID 1 that is ending already."""
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.observed()
    tape.hook(0.006, 2.0, "failed", exitCode=137)
    tape.add(2.007, "kubelet", k.STOP_REQUESTED, "app", timeoutSeconds=28, floor=False, deductedSeconds=2)
    tape.add(2.008, "runtime", k.SIGNAL_SENT, "app", signal="SIGTERM", pid=7, why="StopContainer", exiting=True)
    tape.exit(2.02, 0)
    tape.over(2.03)
    ending = tape.ending()
    assert ending.outcome == "graceful"
    assert ending.containers[0].stop.signal_at is None
    assert "before any signal was sent" in _finding(ending, "endedByItself")
    assert {finding.severity for finding in ending.findings} == {"info"}
    sentence = "app ran its preStop hook for 2.0 s, which its own end cut off, then ended with exit code 0."
    assert sentence in verdict(ending)


@pytest.mark.parametrize(("code", "at"), [(1, 1.2), (137, 5.0)])
def test_a_hook_that_fails_by_itself_is_not_cut_off(new_tape, code, at):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.hook(0.006, 1.2, "failed", exitCode=code)
    tape.exit(at, 0)
    tape.over(at + 0.1)
    assert tape.ending().outcome == "hookFailed"


CHILD = {"pid": 9, "containerPid": 2, "name": "worker", "disposition": "handled"}


def test_a_worker_that_its_master_killed_did_not_die_with_it(new_tape):
    tape = new_tape()
    tape.started(argv=("python3", "master.py"))
    tape.accepted()
    tape.observed()
    tape.stop(0.01, 30)
    end = {
        "pid": 9,
        "containerPid": 2,
        "name": "worker",
        "disposition": "handled",
        "exitCode": 137,
        "signal": "SIGKILL",
    }
    tape.add(3.1, "runtime", k.CHILD_ENDED, "app", **end, secondsBefore=0.088)
    tape.exit(3.11, 0)
    tape.over(3.12)
    text = _finding(tape.ending(), "childKilledInside")
    assert "SIGKILL ended worker (pid 2) 3.0 s after SIGTERM, while PID 1 of app" in text
    assert "childrenNotSignalled" not in _severities(tape.ending())


@pytest.mark.parametrize(
    "changed", [{"exitCode": 0, "signal": None}, {"exitCode": None, "signal": None}, {"oomKills": 1}]
)
def test_a_worker_that_ended_otherwise_was_not_killed_by_its_master(new_tape, changed):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30)
    end = {
        "pid": 9,
        "containerPid": 2,
        "name": "worker",
        "disposition": "handled",
        "exitCode": 137,
        "signal": "SIGKILL",
    }
    tape.add(3.1, "runtime", k.CHILD_ENDED, "app", **{**end, **changed}, secondsBefore=0.0)
    tape.exit(3.11, 0)
    tape.records[-1].facts["oomKills"] = changed.get("oomKills", 0)
    assert "childKilledInside" not in _severities(tape.ending())


def test_a_forced_deletion_is_over_before_its_containers_are(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted(0)
    tape.observed(1)
    tape.add(0.002, "apiserver", k.OBJECT_REMOVED, resourceVersion="144", user="kubernetes-admin")
    tape.add(0.003, "client", k.POD_GONE_SEEN, resourceVersion="144")
    tape.hook(0.01, 1.0, "outlived", budget=1)
    tape.stop(1.02, 2, deducted=1, floor=True)
    tape.signal(3.03, "SIGKILL", "grace over")
    tape.exit(3.031, 137, 9)
    ending = tape.ending()
    assert ending.grace_seconds == 0
    assert ending.budget.grace == 1
    assert ending.overhead is None
    assert ending.gone == pytest.approx(0.003)
    assert "a forced deletion does not wait for the node" in _finding(ending, "goneBeforeContainers")


@pytest.mark.parametrize(("gone", "severity"), [(None, "problem"), (5.0, "warning"), (0.3, "")])
def test_finalizers_that_hold_the_object_are_named_with_who_removes_them(new_tape, gone, severity):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.exit(0.1, 0)
    tape.add(0.11, "kubelet", k.FINAL_DELETE_SENT, uid=tape.uid)
    names = ["example.com/held", "batch.kubernetes.io/job-tracking"]
    tape.add(0.12, "apiserver", k.HELD_BY_FINALIZERS, resourceVersion="150", finalizers=names, user="system:node:n")
    if gone is not None:
        tape.add(gone, "apiserver", k.OBJECT_REMOVED, resourceVersion="152", user="someone")
    ending = tape.ending()
    found = [each for each in ending.findings if each.id == "heldByFinalizers"]
    assert [each.severity for each in found] == ([severity] if severity else [])
    for each in found:
        assert "held by finalizers example.com/held, batch.kubernetes.io/job-tracking" in each.text
        assert "example.com/held: the controller of example.com that added it" in each.text
        assert "the Job controller, when it has counted the Pod" in each.text
        assert ("kubectl patch pod" in each.advice) == (gone is None)
    (held,) = (entry for entry in ending.entries if entry.record.kind == k.HELD_BY_FINALIZERS)
    (final,) = (entry for entry in ending.entries if entry.record.kind == k.FINAL_DELETE_SENT)
    assert held.cause_id == final.record.id


def test_a_finalizer_of_kopf_is_removed_by_the_users_operator():
    name = "kopf.zalando.org/KopfFinalizerMarker"
    assert removers([name]) == f"{name}: your kopf operator, if it runs"


def test_a_node_that_is_killed_midway_leaves_a_story_that_says_what_is_not_known(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.observed()
    tape.endpoint()
    tape.killing(30)
    detail = 'sh -c "sleep 3"'
    tape.add(0.006, "kubelet", k.PRE_STOP_STARTED, "app", handler="exec", detail=detail, budgetSeconds=30)
    tape.add(1.4, "init", k.PROCESS_DIED, role="node-1", pid=4, exitCode=None, signal=9)
    ending = tape.ending()
    assert ending.outcome == "unknown"
    assert ending.gone is None
    assert ending.overhead is None
    assert ending.budget is None
    assert ending.containers[0].hook.outcome == "unknown"
    assert "node-1 was killed by SIGKILL at 1.40 s" in _finding(ending, "processDied")
    said = " ".join(ending.not_known)
    assert "How app ended is not known" in said
    assert "How the preStop hook of app ended is not known" in said
    assert "The removal of the object was not seen" in said


@pytest.mark.parametrize(
    ("role", "severity", "after"),
    [
        ("node-1", "warning", "took its containers over, and a grace period under way began anew"),
        ("control-plane", "warning", "continued from its store"),
        ("shim-1", "problem", "every container that ran ended with it"),
    ],
)
def test_a_process_that_was_started_again_is_in_the_story_with_what_that_means(new_tape, role, severity, after):
    tape = new_tape()
    tape.started(pid=7)
    tape.accepted()
    tape.add(1.0, "init", k.PROCESS_DIED, role=role, pid=3, exitCode=None, signal=9, restartsIn=0.0)
    tape.add(1.1, "init", k.PROCESS_RESTARTED, role=role, pid=30)
    tape.add(1.5, "runtime", k.PROCESS_EXITED, "app", containerId="c", pid=7, exitCode=0, signal=None)
    ending = tape.ending()
    (finding,) = [finding for finding in ending.findings if finding.id == "processDied"]
    assert finding.severity == severity and after in finding.text
    assert [e.at for e in ending.entries if e.record.kind == k.PROCESS_RESTARTED] == [1.1]


def test_a_container_that_init_killed_after_its_shim_is_nobody_else_s_doing(new_tape):
    tape = new_tape()
    tape.started(pid=7)
    tape.accepted()
    tape.add(1.0, "init", k.PROCESS_DIED, role="shim-1", pid=3, exitCode=None, signal=9, restartsIn=0.0)
    tape.add(1.1, "init", k.SIGNAL_SENT, "app", signal="SIGKILL", pid=7, why="the shim died")
    tape.add(1.2, "init", k.PROCESS_EXITED, "app", containerId="c", pid=7, exitCode=137, signal="SIGKILL")
    ending = tape.ending()
    assert ending.containers[0].exit.killed_by == "the shim died"
    assert "(the shim died)" in _finding(ending, "killed")


def test_when_the_shim_is_dead_init_tells_how_the_container_ended(new_tape):
    tape = new_tape()
    tape.started(pid=7)
    tape.accepted()
    tape.stop(0.01, 30)
    tape.add(1.0, "init", k.PROCESS_DIED, role="shim-1", pid=3, exitCode=None, signal=9)
    tape.add(1.5, "init", k.PROCESS_DIED, role="orphan", pid=9, exitCode=1, signal=None)
    tape.add(2.0, "init", k.PROCESS_DIED, role="orphan", pid=7, exitCode=0, signal=None)
    (app,) = tape.ending().containers
    assert (app.exit.code, app.exit.at) == (0, 2.0)


def test_without_an_exit_record_the_exit_code_of_the_status_is_used_and_the_time_is_not_known(new_tape):
    tape = new_tape()
    tape.pod = PodFacts(
        tape.uid, "default", "web", "node-1", "Failed", (ContainerFacts("app", exit_code=137, reason="Error"),)
    )
    tape.started()
    tape.accepted()
    ending = tape.ending()
    assert ending.containers[0].exit.code == 137
    assert ending.outcome == "killed"
    assert "its exit code is from the Pod's status" in " ".join(ending.not_known)


def test_a_kill_that_lastcall_did_not_send_is_inferred_to_be_somebody_elses(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30)
    tape.exit(1.0, 137, 9)
    tape.over(1.01, "Failed")
    ending = tape.ending()
    assert ending.containers[0].exit.killed_by == "unknown sender"
    assert "lastcall did not send it" in _finding(ending, "killedByOther")


def test_containers_whose_pause_process_ended_were_killed_by_the_kernel(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.hook(0.01, 0.02, "failed")
    tape.exit(0.02, 137, 9)
    tape.add(0.021, "runtime", k.PAUSE_ENDED, exitCode=0, signal="")
    tape.over(1.01, "Failed")
    ending = tape.ending()
    assert ending.containers[0].exit.killed_by == "pause ended"
    assert "the Pod's pause process ended" in _finding(ending, "pauseEnded")


def test_a_container_that_was_killed_long_before_its_pause_ended_was_killed_by_somebody_else(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.exit(0.1, 137, 9)
    tape.add(5.0, "runtime", k.PAUSE_ENDED, exitCode=0, signal="")
    tape.over(5.1, "Failed")
    assert tape.ending().containers[0].exit.killed_by == "unknown sender"


@pytest.mark.parametrize(
    ("exited", "sender"), [(0.9, "pause ended"), (1.4, "pause ended"), (2.3, "pause ended"), (0.1, "unknown sender")]
)
def test_a_pause_whose_end_is_concluded_from_listings_ended_the_containers_that_were_killed_between_them(
    new_tape, exited, sender
):
    """A runtime's listing is as old as the one before it, and shows ends a moment late."""
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.exit(exited, 137, 9)
    tape.add(2.0, "runtime", k.PAUSE_ENDED, evidence="inferred", secondsBefore=0.7)
    tape.over(2.5, "Failed")
    ending = tape.ending()
    assert ending.containers[0].exit.killed_by == sender
    if sender == "pause ended":
        assert "the Pod's pause process ended (inferred: " in _finding(ending, "pauseEnded")


def test_out_of_memory_is_the_reason_when_the_runtime_saw_it(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30)
    tape.exit(1.0, 137, 9, oom=True)
    tape.over(1.01, "Failed")
    ending = tape.ending()
    assert (ending.containers[0].exit.reason, ending.containers[0].exit.killed_by) == ("OOMKilled", "out of memory")
    _finding(ending, "outOfMemory")


def test_a_signal_to_an_exec_is_not_a_signal_to_the_container(new_tape):
    tape = new_tape()
    tape.started(pid=7)
    tape.accepted()
    tape.stop(0.01, 30)
    tape.signal(0.5, "SIGKILL", "exec timeout", pid=99)
    tape.exit(1.0, 0)
    tape.over(1.01)
    (app,) = tape.ending().containers
    assert app.stop.kill_at is None


def test_another_exit_code_than_0_after_term_is_graceful_but_worth_a_word(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30)
    tape.exit(1.0, 3)
    tape.over(1.01, "Failed")
    ending = tape.ending()
    assert ending.outcome == "graceful"
    assert "exit code 3 on SIGTERM" in _finding(ending, "exitCodeNotZero")


def test_an_exit_code_that_reports_a_failure_is_not_to_become_0(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30, disposition="handled")
    tape.output(0.5, "cannot send event 3: Connection refused")
    tape.output(0.6, "4 events lost")
    tape.exit(1.0, 1)
    tape.over(1.01, "Failed")
    text, (severity, advice) = _finding(tape.ending(), "exitCodeNotZero"), _severities(tape.ending())["exitCodeNotZero"]
    assert text.endswith("it printed: 4 events lost")
    assert severity == "warning" and "0 would hide it" in advice


@pytest.mark.parametrize("line", ["stopped", "0 events lost", "closed without errors"])
def test_an_exit_code_after_which_nothing_is_said_to_have_failed_is_advised_as_before(new_tape, line):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30, disposition="handled")
    tape.output(0.5, line)
    tape.exit(1.0, 1)
    tape.over(1.01, "Failed")
    assert "exit with 0" in _severities(tape.ending())["exitCodeNotZero"][1]


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("sh -c while [ $(grep -c 1F90 /proc/net/tcp) -ne 0 ]; do sleep 1; done", "No grace period is enough"),
        ("sh -c until ! curl -s localhost; do sleep 1; done", "No grace period is enough"),
        ("sh -c for i in 1 2 3; do sleep 9; done", "above 4"),
        ("sleep 20", "above 4"),
    ],
)
def test_a_hook_that_loops_is_not_told_to_take_more_time(new_tape, command, advice):
    tape = new_tape()
    tape.started()
    tape.accepted(4)
    tape.hook(0.006, 4.0, "outlived", budget=4, command=command)
    tape.stop(4.01, 2, deducted=4, floor=True, disposition="handled")
    tape.signal(6.012, "SIGKILL", "grace over")
    tape.exit(6.013, 137, 9)
    tape.over(6.03, "Failed")
    found = _severities(tape.ending())
    assert advice in found["hookOutlived"][1]
    assert found["killed"][1] == "", "the hook took the time: nothing is known of what the program needs"


def test_a_request_of_a_hook_that_outlives_the_grace_period_may_be_slow_or_never_answered(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted(4)
    tape.hook(0.006, 4.0, "outlived", budget=4, handler="httpGet", command="GET http://POD:9090/drain")
    tape.stop(4.01, 2, deducted=4, floor=True, disposition="handled")
    tape.exit(4.5, 0)
    tape.over(5)
    (finding,) = [each for each in tape.ending().findings if each.id == "hookOutlived"]
    assert "answers slowly, set terminationGracePeriodSeconds above 4" in finding.advice
    assert "never answers" in finding.advice and "no grace period is enough" in finding.advice
    assert (finding.change.patch, finding.change.program) == ({"terminationGracePeriodSeconds": 8}, "fixHook")


@pytest.mark.parametrize(("grace", "limit"), [(1, ""), (2, "`timeout 1 …`"), (10, "`timeout 5 …`")])
def test_a_limit_of_a_hook_leaves_time_for_the_program(new_tape, grace, limit):
    tape = new_tape()
    tape.started()
    tape.accepted(grace)
    tape.hook(0.006, grace, "outlived", budget=grace, command="sh -c until ! curl -s localhost; do sleep 1; done")
    tape.stop(grace + 0.01, 2, deducted=grace, floor=True, disposition="handled")
    tape.exit(grace + 0.5, 0)
    tape.over(grace + 0.6)
    advice = _severities(tape.ending())["hookOutlived"][1]
    assert limit in advice and ("timeout " in advice) is bool(limit)


@pytest.mark.parametrize(
    ("takes", "killed", "advice"),
    [
        (1.0, False, "(`timeout 5 …`, half of the grace period: the program took 1.0 s)"),
        (7.0, False, "above that limit and what the program then takes to end, together"),
        (2.0, True, "above that limit and what the program then takes to end, together"),
    ],
)
def test_a_limit_of_a_hook_is_advised_alone_only_where_the_drain_that_was_seen_fits(new_tape, takes, killed, advice):
    tape = new_tape()
    tape.started()
    tape.accepted(10)
    tape.hook(0.006, 10, "outlived", budget=10, command="sh -c while [ -s /tmp/inflight ]; do sleep 1; done")
    tape.stop(10.01, 2, deducted=10, floor=True, disposition="handled")
    if killed:
        tape.signal(10.01 + takes, "SIGKILL", "grace over")
    tape.exit(10.012 + takes, 137 if killed else 0, "SIGKILL" if killed else None)
    tape.over(18)
    found = _severities(tape.ending())["hookOutlived"][1]
    assert advice in found and "No grace period is enough for that" in found
    assert ("`timeout 5 …`" in found) and ("terminationGracePeriodSeconds" in found) is (takes > 1)


def test_a_kill_after_a_hook_that_failed_is_not_advised_to_wait_longer(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted(8)
    tape.hook(0.006, 0.01, "failed", budget=8, message="refused")
    tape.stop(0.02, 8, disposition="handled")
    tape.signal(8.02, "SIGKILL", "grace over")
    tape.exit(8.03, 137, 9)
    tape.over(8.04, "Failed")
    assert "Correct the preStop hook first" in _severities(tape.ending())["killed"][1]


def _severities(ending):
    return {finding.id: (finding.severity, finding.advice) for finding in ending.findings}


@pytest.mark.parametrize(
    ("code", "lines", "quoted"),
    [
        (1, ["Traceback (most recent call last):", '  File "/app/run.py", line 9', "RuntimeError: cannot flush"],
         "RuntimeError: cannot flush"),
        (2, ["panic: send on closed channel", "", "goroutine 1 [running]:"], "panic: send on closed channel"),
        (3, ["Traceback (most recent call last):", "RuntimeError: cannot flush"], ""),
        (1, ["Traceback (most recent call last):", "RuntimeError: cannot flush", "leaving all the same"], ""),
        (1, ["leaving"], ""),
    ],
)  # fmt: skip
def test_an_exception_that_nobody_caught_is_what_to_correct(new_tape, code, lines, quoted):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.observed()
    tape.stop(0.01, 30, disposition="handled")
    for number, line in enumerate(lines):
        tape.output(0.05 + number / 1000, line)
    tape.exit(0.1, code)
    tape.over(0.2)
    (found,) = (each for each in tape.ending().findings if each.id == "exitCodeNotZero")
    assert ("did not catch" in found.text) is bool(quoted) and found.text.endswith(quoted)
    assert (found.change == Change(program="fixCrash")) is bool(quoted)


def test_143_is_the_signals_own_end_and_no_complaint(new_tape):
    """As with shareProcessNamespace, or a program that puts the default action back and signals itself."""
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30)
    tape.exit(0.1, 143, 15)
    tape.over(0.11, "Failed")
    ending = tape.ending()
    assert _severities(ending)["exitCodeNotZero"] == ("info", "")
    assert "143" in _finding(ending, "exitCodeNotZero")


@pytest.mark.parametrize(("exe", "severity"), [("/usr/lib/jvm/bin/java", "info"), ("/bin/web", "warning")])
def test_143_of_a_jvm_that_handled_the_signal_is_no_complaint(new_tape, exe, severity):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30, disposition="handled")
    next(r for r in tape.records if r.kind == k.PROCESS_SIGNAL_STATE).facts["exe"] = exe
    tape.exit(1.0, 143)
    tape.over(1.01, "Failed")
    assert _severities(tape.ending())["exitCodeNotZero"][0] == severity


def test_a_job_that_is_interrupted_is_not_told_to_exit_with_0(new_tape):
    """With 0 its work would count as done."""
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30)
    tape.exit(1.0, 75)
    tape.over(1.01, "Failed")
    owner = DecidedBy("garbage-collector-controller", "ownerDeleted", "Job train was deleted", owner_kind="Job")
    ending = replace(tape.ending(), decided_by=owner)
    ending = replace(ending, findings=find_causes(ending, "1.36").findings)
    assert _severities(ending)["exitCodeNotZero"] == ("info", "")
    assert "not done" in _finding(ending, "exitCodeNotZero")


@pytest.mark.parametrize(
    ("lines", "quoted", "advice"),
    [
        (["Traceback (most recent call last):", "OSError: [Errno 30] Read-only file system: '/tmp/rows.json'"],
         "OSError: [Errno 30] Read-only file system: '/tmp/rows.json'", "emptyDir"),
        (["PermissionError: [Errno 13] Permission denied: '/data/rows.json'", "leaving"],
         "PermissionError: [Errno 13] Permission denied: '/data/rows.json'", "permission"),
        (["java.io.IOException: No space left on device"], "IOException: No space left on device", "what it reports"),
        (["cannot save row 7"], "cannot save row 7", "what it reports"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("of_job", [True, False])
def test_an_exit_code_is_told_with_the_line_that_says_why(new_tape, lines, quoted, advice, of_job):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.observed()
    tape.stop(0.01, 30, disposition="handled")
    for number, line in enumerate(lines):
        tape.output(0.05 + number / 1000, line)
    tape.exit(0.1, 1)
    tape.over(0.2)
    ending = tape.ending()
    if of_job:
        owner = DecidedBy("garbage-collector-controller", "ownerDeleted", "Job train was deleted", owner_kind="Job")
        ending = replace(ending, decided_by=owner)
    (found,) = (each for each in find_causes(ending, "1.36").findings if each.id == "exitCodeNotZero")
    assert quoted in found.text and advice in found.advice
    assert ("counts as not done" in found.text) is of_job


def test_an_exit_of_its_own_after_a_signal_that_was_dropped_is_not_laid_to_the_signal(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.stop(0.01, 30, disposition="default")
    tape.exit(6.0, 1)
    tape.over(6.01, "Failed")
    found = _severities(tape.ending())
    assert "stopSignalNotHandled" in found and "exitCodeNotZero" not in found


@pytest.mark.parametrize(("started", "severity"), [(-0.08, "info"), (-2.0, "problem")])
def test_a_program_that_has_just_begun_may_not_have_come_to_its_handlers(new_tape, started, severity):
    tape = new_tape()
    tape.started(at=started)
    tape.accepted()
    tape.stop(0.01, 30, disposition="default")
    tape.exit(1.5, 0)
    tape.over(1.51)
    ending = tape.ending()
    found = _severities(ending)["stopSignalNotHandled"]
    assert found[0] == severity and bool(found[1]) == (severity == "problem")
    assert ("92 ms after its start" in _finding(ending, "stopSignalNotHandled")) == (severity == "info")


def test_a_restarted_container_is_told_by_its_last_instance(new_tape):
    tape = new_tape()
    tape.started(pid=7, at=-20)
    tape.stop(-11.0, 5)
    tape.signal(-10.5, "SIGKILL", "grace over")
    tape.exit(-10.4, 137, 9)
    tape.started(pid=12, at=-10)
    tape.accepted()
    tape.stop(0.01, 30, pid=12)
    tape.exit(1.0, 0, pid=12)
    tape.over(1.01)
    ending = tape.ending()
    (app,) = ending.containers
    assert (app.exit.code, app.restarts, app.process.pid, app.stop.kill_at) == (0, 1, 12, None)
    assert app.stop.signal_at == pytest.approx(0.012)
    assert ending.outcome == "graceful"


def test_with_several_containers_the_budget_is_that_of_the_one_that_ended_last(new_tape):
    tape = new_tape()
    tape.pod = PodFacts(tape.uid, "default", "web", "node-1", "Succeeded", (ContainerFacts("a"), ContainerFacts("b")))
    tape.started("a", 7)
    tape.started("b", 8)
    tape.accepted(20)
    tape.observed(20)
    tape.hook(0.006, 2.0, container="a", budget=20)
    tape.stop(0.01, 20, container="b", pid=8)
    tape.stop(2.01, 18, deducted=2, container="a", pid=7)
    tape.exit(2.5, 0, container="a", pid=7)
    tape.exit(6.0, 0, container="b", pid=8)
    tape.over(6.01)
    budget = tape.ending().budget
    assert (budget.container, budget.pre_stop) == ("b", 0)
    assert budget.drain == pytest.approx(6.0 - 0.012)


def test_a_sidecars_wait_for_its_turn_is_neither_hook_nor_drain(new_tape):
    tape = new_tape()
    containers = (ContainerFacts("proxy", "sidecar"), ContainerFacts("app"))
    tape.pod = PodFacts(tape.uid, "default", "web", "node-1", "Succeeded", containers)
    tape.started("proxy", 8)
    tape.started("app", 7)
    tape.accepted(20)
    tape.hook(0.006, 1.0, container="proxy", budget=20)
    tape.stop(0.01, 20)
    tape.exit(4.0, 0)
    tape.stop(4.006, 15, deducted=5, container="proxy", pid=8)
    tape.exit(4.508, 0, container="proxy", pid=8)
    tape.over(4.51)
    budget = tape.ending().budget
    assert budget.container == "proxy"
    assert budget.waiting == pytest.approx(3.0)
    assert budget.drain == pytest.approx(0.5)


def test_init_containers_that_had_ended_are_not_in_the_story(new_tape):
    tape = new_tape()
    containers = (ContainerFacts("setup", "init"), ContainerFacts("app"))
    tape.pod = PodFacts(tape.uid, "default", "web", "node-1", "Succeeded", containers)
    tape.started("setup", 6, at=-5)
    tape.exit(-4, 0, container="setup", pid=6)
    tape.started("app", 7)
    tape.accepted()
    tape.stop(0.01, 30)
    tape.exit(1, 0)
    tape.over(1.01)
    assert [c.name for c in tape.ending().containers] == ["app"]


def test_a_skipped_hook_says_why_and_a_container_without_a_hook_has_none(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.add(0.005, "kubelet", k.PRE_STOP_SKIPPED, "app", why="a grace period of 0 s leaves no time for the hook")
    tape.stop(0.01, 2)
    tape.exit(1, 0)
    tape.over(1.01)
    ending = tape.ending()
    assert ending.containers[0].hook.outcome == "skipped"
    assert "leaves no time for the hook" in _finding(ending, "hookNotRun")
    other = new_tape()
    other.started()
    other.accepted()
    other.exit(1, 0)
    assert other.ending().containers[0].hook is None


def test_a_substituted_image_is_named(new_tape):
    tape = new_tape()
    tape.add(-3.0, "kubelet", k.IMAGE_SUBSTITUTED, "app", image="busybox:1.36", substitute="the host's busybox")
    tape.started()
    tape.accepted()
    tape.exit(1, 0)
    text = _finding(tape.ending(), "imageSubstituted")
    assert "busybox:1.36 is not available" in text
    assert "the host's busybox" in text


def test_a_substituted_image_is_named_once_however_often_its_container_was_started(new_tape):
    tape = new_tape()
    for at in (-3.0, -2.0, -1.0):
        tape.add(at, "kubelet", k.IMAGE_SUBSTITUTED, "app", image="busybox:1.36", substitute="the host's busybox")
    tape.add(-1.0, "kubelet", k.IMAGE_SUBSTITUTED, "other", image="busybox:1.36", substitute="the host's busybox")
    tape.accepted()
    ending = tape.ending()
    assert [each.container for each in ending.findings if each.id == "imageSubstituted"] == ["app", "other"]
    assert plain_text([ending], 100).count("behave differently") == 1


def test_a_pod_without_any_record_is_a_story_of_what_is_not_known(new_tape):
    ending = new_tape().ending()
    assert ending.entries == ()
    assert ending.not_known


def test_records_alone_are_enough_when_nobody_saw_the_object(tapes):
    tape = tapes["graceful"]()
    tape.add(-3, "apiserver", k.POD_CREATED, namespace="shop", name="cart", resourceVersion="1", user="u")
    tape.add(-3, "apiserver", k.POD_BOUND, node="node-1", resourceVersion="2")
    ending = build_endings(tape.records, [PodFacts(tape.uid, "", "")], kubernetes_version="1.36")[0]
    assert (ending.pod.namespace, ending.pod.name, ending.pod.node) == ("shop", "cart", "node-1")
    assert ending.containers[0].exit.code == 0


def test_an_ephemeral_container_is_told_when_the_delete_caught_it_running(tapes):
    tape = tapes["graceful"]()
    added = [{"name": "probe", "target": "app"}, {"name": "done", "target": ""}]
    tape.add(-3, "apiserver", k.POD_CREATED, namespace="shop", name="cart", resourceVersion="1", user="u")
    tape.add(-2, "apiserver", k.EPHEMERAL_CONTAINERS_ADDED, containers=added, user="ann", resourceVersion="2")
    tape.add(-1.5, "runtime", k.PROCESS_STARTED, "done", pid=51)
    tape.add(-1.4, "runtime", k.PROCESS_EXITED, "done", pid=51, exitCode=0, signal=None, reason="Completed")
    tape.add(-1, "runtime", k.PROCESS_STARTED, "probe", pid=50)
    state = {"pid": 50, "containerPid": 17, "exe": "/bin/sleep", "signal": "SIGTERM", "disposition": "default"}
    tape.add(0.1, "runtime", k.PROCESS_SIGNAL_STATE, "probe", **state, caught=[], ignored=[], blocked=[])
    tape.add(0.1, "runtime", k.SIGNAL_SENT, "probe", pid=50, signal="SIGTERM", why="StopContainer")
    tape.add(0.2, "runtime", k.PROCESS_EXITED, "probe", pid=50, exitCode=143, signal=15, reason="Error")
    ending = build_endings(tape.records, [PodFacts(tape.uid, "", "")], kubernetes_version="1.36")[0]
    assert [(c.name, c.kind, c.exit.code) for c in ending.containers] == [
        ("app", "container", 0),
        ("probe", "ephemeral", 143),
    ]
    text = plain_text([ending], 120)
    assert "PID 17 (/bin/sleep): SIGTERM has no handler: it ends the process" in text
    assert "stopSignalNotHandled" not in [finding.id for finding in ending.findings]


def test_pod_facts_come_from_spec_and_status():
    pod = {
        "metadata": {"uid": "u", "name": "web", "namespace": "shop"},
        "spec": {
            "nodeName": "node-1",
            "initContainers": [{"name": "i", "image": "a"}, {"name": "s", "image": "b", "restartPolicy": "Always"}],
            "containers": [{"name": "c", "image": "d", "lifecycle": {"preStop": {"httpGet": {"port": 80}}}}],
        },
        "status": {
            "phase": "Failed",
            "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 143, "reason": "Error"}}}],
        },
    }
    facts = pod_facts(pod)
    assert (facts.node, facts.phase) == ("node-1", "Failed")
    assert [(c.name, c.kind, c.pre_stop, c.exit_code) for c in facts.containers] == [
        ("i", "init", "", None),
        ("s", "sidecar", "", None),
        ("c", "container", "httpGet", 143),
    ]


def test_a_foreign_sigkill_before_the_delete_is_told(new_tape):
    tape = new_tape()
    tape.started()
    tape.add(-0.5, "runtime", k.PROCESS_EXITED, container="app", pid=7, exitCode=137, signal="SIGKILL", oomKilled=False)
    tape.accepted()
    text = _finding(tape.ending(), "killedByOther")
    assert "500 ms before the DELETE" in text and "lastcall did not send it" in text
