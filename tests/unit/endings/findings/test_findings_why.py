"""Why it took so long, why 137, why requests were dropped: one row for each condition, and what must not be said."""

from typing import Any

import pytest
from ending_stories import (
    Story,
    blocked_and_ended,
    blocked_and_pending,
    blocked_and_taken_later,
    child_of_tini_deadlocked,
    child_of_tini_with_handlers_not_known,
    child_out_of_memory,
    child_out_of_memory_then_sigkill,
    children_below_a_shell_die_with_it,
    children_below_a_shell_outlive_the_grace_period,
    children_die_with_it,
    children_that_handle_it_die_with_it,
    children_that_handle_it_outlive_the_grace_period,
    claim_held,
    claim_held_before,
    connections_ended_well,
    deadlocked,
    dumb_init_ends_a_pool,
    ends_long_after_a_signal_that_it_did_not_get,
    files_out_of_memory,
    handler_for_another,
    hangs_in_its_handler,
    hook_takes_time,
    hook_takes_time_and_it_sleeps,
    lock_shared_with_another,
    locked_until_a_timer,
    locked_until_another_signal,
    locked_until_its_child_ends,
    locked_with_a_handler_of_children,
    locked_with_an_alarm,
    looks_again_and_again_beside_a_pool,
    loopback_closed_before_endpoint,
    memory_limit,
    network_stays,
    new_child_of_tini_locked,
    no_handler,
    no_handler_and_killed_by_another,
    no_handler_and_out_of_memory,
    node_out_of_memory,
    others_out_of_memory,
    own_137,
    port_closed_before_endpoint,
    port_closed_by_exit,
    port_closed_soon,
    reads_from_somewhere,
    requests_cut,
    shell_in_a_shared_namespace,
    shell_that_begins_something_on_the_signal,
    shell_that_loops,
    shell_that_loops_until_its_trap,
    shell_that_waits_for_its_sleep,
    shell_whose_file_runs_one,
    shell_whose_file_runs_one_that_has_children,
    shell_whose_file_runs_two_at_once,
    shell_whose_last_command_runs_on,
    shell_whose_only_command_blocks_it,
    shell_whose_program_ignores_it,
    shell_whose_trap_printed_and_waits,
    shell_whose_trap_sends_another_signal,
    shell_whose_trap_waits,
    shell_with_child,
    shell_with_jobs,
    shell_with_longer_pipeline,
    shell_with_pipeline,
    shell_with_script,
    sleeps,
    sleeps_in_a_loop,
    sleeps_shortly,
    supervisor_with_children,
    takes_too_long,
    tini_that_signals_the_group,
    tini_that_was_not_seen_to_wait,
    tini_whose_child_drains_too_long,
    tini_whose_child_ignores_it,
    volume_held,
    waits_for_a_thread_that_loops,
    waits_for_a_thread_that_reads,
    waits_for_a_thread_that_sleeps_long,
    waits_for_a_thread_that_works,
    waits_for_connections,
    waits_for_known_connections,
    waits_with_a_limit,
    waits_without_a_limit,
    whose_limit_is_not_known,
    with_zombies,
    works,
)

from lastcall.endings import pod_facts
from lastcall.records import kinds

TABLE = [
    (tini_whose_child_ignores_it, "childIgnoresSignal", "problem",
     "(tini) passes SIGTERM on, but app (pid 7) ignores SIGTERM", "Let app stop ignoring SIGTERM"),
    (tini_whose_child_ignores_it, "childrenNotSignalled", "problem",
     "(tini) passes SIGTERM on to its child alone: sleep (pid 8) still ran at SIGKILL, and never got it", "`tini -g`"),
    (tini_that_signals_the_group, "childrenNotSignalled", "problem", "to the process group of its child alone",
     "process group"),
    (dumb_init_ends_a_pool, "signalEndsPool", "info",
     "(dumb-init) passes SIGTERM on to the process group of its child: it ended worker (pid 3), without a handler, "
     "5 ms after it was sent. app (pid 2) is their parent, and handles SIGTERM.", "dumb-init --single-child"),
    (tini_whose_child_drains_too_long, "killed", "problem", "still ran 10 s after SIGTERM", "above 10"),
    (ends_long_after_a_signal_that_it_did_not_get, "stopSignalNotHandled", "problem", "ended by itself 4.0 s later",
     "handler for SIGTERM"),
    (blocked_and_taken_later, "killed", "problem", "still ran 10 s after SIGTERM", "above 10"),
    (blocked_and_pending, "stopSignalNotHandled", "problem", "blocks SIGTERM", "Unblock SIGTERM"),
    (claim_held, "claimHeldByPod", "info", "by finalizer kubernetes.io/pvc-protection, because Pod web uses it", ""),
    (claim_held_before, "claimHeldByPod", "info", "deleted 12.0 s before this end began", ""),
    (shell_with_child, "shellKeepsSignal", "problem", "sleep (pid 8) still ran at SIGKILL, so it never got SIGTERM",
     'command: ["sh", "-c", "exec node server.js"]'),
    (shell_with_child, "stopSignalNotHandled", "info", "no handler for SIGTERM", ""),
    (shell_whose_trap_waits, "shellRunsTrapLate", "problem",
     "sleep (pid 8) still ran, which it had begun before SIGTERM",
     "`PROGRAM & pid=$!; trap 'kill $pid' TERM; wait $pid; wait $pid`"),
    (shell_whose_trap_printed_and_waits, "shellRunsTrapLate", "info", "took 293 ms to react", ""),
    (shell_whose_trap_sends_another_signal, "shellKeepsSignal", "problem",
     "that has a trap for SIGTERM: node (pid 9) still ran at SIGKILL",
     'See whether the trap passes SIGTERM on (`kill "$pid"`)'),
    (shell_with_script, "shellKeepsSignal", "warning", "a trap for SIGTERM, and it ended while node (pid 9) still ran",
     '''trap 'kill "$pid"; wait "$pid"' TERM'''),
    (shell_with_pipeline, "shellKeepsSignal", "problem", "node (pid 9) and tee (pid 8) still ran",
     """["sh", "-c", "exec node server.js"] (the kubelet keeps what it prints: `kubectl logs`); or, in bash, """
     """command: ["bash", "-c", "exec node server.js > >(tee /logs/it) 2>&1"]"""),
    (shell_with_longer_pipeline, "shellKeepsSignal", "problem", "still ran", "`exec PROGRAM > >(tee FILE)`"),
    (shell_with_jobs, "shellKeepsSignal", "problem", "still ran", "trap 'kill $pid' TERM"),
    (shell_that_loops, "shellKeepsSignal", "problem", "sleep (pid 8) still ran", "`trap 'exit 0' TERM`"),
    (shell_in_a_shared_namespace, "shellKeepsSignal", "warning",
     "PID 6 of app is a shell (sh), and a shell does not pass SIGTERM on: node (pid 9) was killed with it by the "
     "runtime.", "The shell has commands after node"),
    (shell_in_a_shared_namespace, "exitCodeNotZero", "info", "it needed no SIGKILL, and this is not a crash.", ""),
    (shell_whose_file_runs_two_at_once, "shellKeepsSignal", "problem", "still ran", "runs several programs at once"),
    (shell_whose_file_runs_one_that_has_children, "shellKeepsSignal", "problem", "still ran",
     "begin that with `exec`"),
    (shell_whose_file_runs_one, "shellKeepsSignal", "problem", "node (pid 9) still ran",
     "If it runs in the background, or commands come after it, let the shell pass the signal on and wait"),
    (shell_whose_last_command_runs_on, "shellKeepsSignal", "problem", "node (pid 9) still ran",
     "Begin the script's last command with `exec`"),
    (shell_whose_program_ignores_it, "shellKeepsSignal", "problem", "node (pid 9) still ran",
     "wait $pid`). node ignores SIGTERM, so this alone does not help: let it install a handler"),
    (shell_whose_only_command_blocks_it, "shellKeepsSignal", "problem", "node (pid 9) still ran",
     'command: ["sh", "-c", "exec node server.js"] node blocks SIGTERM, so this alone does not help: let it unblock'),
    (supervisor_with_children, "childrenNotSignalled", "problem",
     "sleep (pid 8), node (pid 9) and 3 more still ran at SIGKILL", "tini -g"),
    (children_die_with_it, "childrenNotSignalled", "warning", "sleep (pid 8) was killed with it by the kernel", "tini"),
    (children_below_a_shell_die_with_it, "childrenNotSignalled", "warning",
     "PID 1 of app (npm) has a shell below it, sh (pid 2), which does not pass SIGTERM on to what it runs: node (pid "
     "9) was killed with it by the kernel", "Run the program itself as command of the container"),
    (children_below_a_shell_outlive_the_grace_period, "childrenNotSignalled", "problem",
     "node (pid 9) still ran at SIGKILL", "`tini -g` does not help"),
    (children_that_handle_it_die_with_it, "childrenNotSignalled", "warning",
     "node (pid 9) has a handler for it, and was ended by SIGKILL when PID 1 ended, or right before. Whether PID 1 "
     "passed SIGTERM on was not observed.", "If it does, raise the timeout after which it kills them"),
    (children_that_handle_it_outlive_the_grace_period, "childrenNotSignalled", "problem",
     "node (pid 9) and node (pid 10) have handlers for it, and still ran at SIGKILL. Whether PID 1 passed SIGTERM on "
     "was not observed.", "If it does, they need longer than the grace period"),
    (with_zombies, "zombies", "info", "3 children that had ended (zombies)", "shareProcessNamespace"),
    (no_handler, "stopSignalNotHandled", "problem", "it did nothing", "shareProcessNamespace: true"),
    (no_handler_and_out_of_memory, "stopSignalNotHandled", "warning",
     "so it did nothing; memory ran out 193 ms later, and that ended it.", "shareProcessNamespace: true"),
    (no_handler_and_killed_by_another, "stopSignalNotHandled", "warning",
     "so it did nothing; SIGKILL ended it 193 ms later.", "shareProcessNamespace: true"),
    (handler_for_another, "stopSignalNotHandled", "problem", "it did nothing", "stopSignal: SIGINT"),
    (waits_for_connections, "connectionsOpenAtKill", "warning", "probably waited for them (inferred)", "above 10"),
    (waits_for_known_connections, "connectionsOpenAtKill", "warning",
     "They led to: Pod shop/client (10.244.0.7): 2 connections, 192.0.2.9 (no Pod that is known: a node, or outside of "
     "the cluster): 1 connection, its own Pod (127.0.0.1): 1 connection.", "above 10"),
    (takes_too_long, "killed", "problem", "because it still ran 10 s after SIGTERM", "above 10"),
    (takes_too_long, "killed", "problem", "10 s after SIGTERM",
     "That it needs more than 10.0 s after SIGTERM is all that was seen: `lastcall run --grace 30` shows how much."),
    (hook_takes_time, "killed", "problem", "(the preStop hook had taken 2.0 s of the grace period before)",
     "above 10, or shorten the preStop hook. That the program needs more than 8.0 s after SIGTERM is all"),
    (hook_takes_time_and_it_sleeps, "killed", "problem", "(the preStop hook had taken 2.0 s of the grace period",
     "above 10, or shorten the preStop hook: when SIGKILL came, the program would have slept 14.2 s more."),
    (shell_that_begins_something_on_the_signal, "killed", "problem", "still ran 10 s after SIGTERM",
     "After SIGTERM it began sleep (pid 8), and did not end. If that is its drain, set terminationGracePeriodSeconds "
     "above 10. If not, let what handles SIGTERM exit"),
    (hangs_in_its_handler, "killed", "problem", "because it still ran 10 s after SIGTERM",
     "did not accept 6 connections. Nothing shows that more time would help"),
    (deadlocked, "deadlocked", "problem",
     "app handles SIGTERM, and when SIGKILL came the only thread of its process (web) waited for a lock of its own "
     "memory, without a time limit (futex). It used no CPU time in 10.0 s. No thread was left that could release it.",
     "A longer grace period does not help."),
    (locked_with_a_handler_of_children, "deadlocked", "problem", "the only thread of its process (web)",
     "A longer grace period does not help."),
    (deadlocked, "killed", "info", "because it still ran 10 s after SIGTERM", ""),
    (child_of_tini_deadlocked, "deadlocked", "problem", "all 5 threads of its process (node, pid 9) waited for each",
     "sets a flag"),
    (waits_without_a_limit, "killed", "problem", "still ran 10 s",
     "it used no CPU time in 10.0 s, and waited without a time limit (futex and epoll_wait). Nothing shows that more "
     "time would help."),
    (lock_shared_with_another, "killed", "problem", "still ran 10 s", "Nothing shows that more time would help"),
    (locked_with_an_alarm, "killed", "problem", "still ran 10 s", "Nothing shows that more time would help"),
    (waits_with_a_limit, "killed", "problem", "still ran 10 s",
     "it used 20 ms of CPU time in 10.0 s, so it did not work (futex). A longer grace period helps only if what it"),
    (sleeps, "killed", "problem", "still ran 10 s",
     "when SIGKILL came it would have slept 14.2 s more. A longer grace period helps only if no other sleep follows."),
    (sleeps_shortly, "killed", "problem", "still ran 10 s", "Set terminationGracePeriodSeconds above 10"),
    (sleeps_in_a_loop, "killed", "problem", "still ran 10 s",
     "it went to sleep 49 times and used no CPU time in 10.0 s, so it only looks whether something has come."),
    (waits_for_a_thread_that_loops, "killed", "problem", "still ran 10 s",
     "the program used 10 ms of CPU time in 10.0 s: it had threads that waited for others without a time limit, and 1 "
     "that slept, for 930 ms more at most (futex and clock_nanosleep). If it waits for the end of a thread that loops, "
     "no grace period is enough"),
    (looks_again_and_again_beside_a_pool, "killed", "problem", "still ran", "Set terminationGracePeriodSeconds above"),
    (waits_for_a_thread_that_sleeps_long, "killed", "problem", "still ran", "Set terminationGracePeriodSeconds above"),
    (waits_for_a_thread_that_works, "killed", "problem", "still ran", "Set terminationGracePeriodSeconds above 10"),
    (waits_for_a_thread_that_reads, "killed", "problem", "still ran", "Set terminationGracePeriodSeconds above 10"),
    (works, "killed", "problem", "still ran 10 s", "Set terminationGracePeriodSeconds above 10"),
    (reads_from_somewhere, "killed", "problem", "still ran 10 s", "Set terminationGracePeriodSeconds above 10"),
    (memory_limit, "outOfMemory", "problem", "more than its memory limit of 64Mi (by the counter", "more than 64Mi"),
    (whose_limit_is_not_known, "outOfMemory", "problem",
     "more than its own limit of 64Mi, or the memory that its Pod or its node had left (by the counter", ""),
    (node_out_of_memory, "outOfMemory", "problem",
     "more than the memory that its Pod or its node had left, below its own limit of 1Gi (by the counter of its "
     "control group).", ""),
    (others_out_of_memory, "outOfMemory", "problem", "at once, as Kubernetes 1.28 and later request it on cgroup v2. "
    "PID "
     "1 itself had 12Mi at most", "Other files count only on a machine that has no disk for them"),
    (files_out_of_memory, "outOfMemory", "problem", "Files in memory, which count as its memory, had 61Mi of it",
     "medium: Memory and of /dev/shm count against the limit"),
    (child_out_of_memory, "childOutOfMemory", "problem", "2 processes of app because memory ran out (limit 64Mi)",
     "more than 64Mi"),
    (child_out_of_memory_then_sigkill, "killed", "problem", "still ran 10 s after SIGTERM", "above 10"),
    (child_out_of_memory_then_sigkill, "childOutOfMemory", "problem", "its end by SIGKILL came after that", "64Mi"),
    (own_137, "exitCode137OfItsOwn", "warning", "its PID 1 was not killed; a shell reports", ""),
    (port_closed_before_endpoint, "listenerClosedBeforeEndpoint", "warning",
     "app closed its port 8080 12 ms after the DELETE, and its Service endpoint turned not ready 78 ms later",
     "preStop: {sleep: {seconds: 5}}"),
    (port_closed_by_exit, "listenerClosedBeforeEndpoint", "warning", "app ended, and with it its port 8080, 11 ms",
     "preStop"),
    (port_closed_soon, "listenerClosedSoon", "info", "after its Service endpoint turned not ready", "preStop"),
    (requests_cut, "connectionsCut", "warning",
     "app ended with 3 connections open, 2 ended by a reset, 1 had sent 120 bytes that were never read", "finish"),
    (requests_cut, "backlogNeverAccepted", "warning", "1 connection to app had been accepted by the kernel", "preStop"),
    (connections_ended_well, "connectionsCut", "info", "app ended with 1 connection open", ""),
    (network_stays, "networkTeardownFailed", "warning", "10.244.0.2 could not be torn down: netlink", "CNI plugin"),
    (volume_held, "volumeBusy", "warning", "held by tail (pid 44) by open file /x/cache/log", "End the process"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("story", "id_", "severity", "text", "advice"), TABLE, ids=[f"{row[0].__name__}-{row[1]}" for row in TABLE]
)
def test_what_was_seen_becomes_a_sentence_and_a_change_of_the_manifest(
    new_tape: Any, story: Story, id_: str, severity: str, text: str, advice: str
) -> None:
    tape = new_tape()
    story(tape)
    found = [f for f in tape.ending().findings if f.id == id_]
    assert len(found) == 1, [f.id for f in tape.ending().findings]
    assert found[0].severity == severity
    assert text in found[0].text
    assert (advice in found[0].advice) if advice else not found[0].advice


@pytest.mark.parametrize(
    ("story", "id_", "patch", "program"),
    [
        (takes_too_long, "killed", {"terminationGracePeriodSeconds": 30}, None),
        (memory_limit, "outOfMemory",
         {"containers": [{"name": "app", "resources": {"limits": {"memory": "134217728"}}}]}, "useLessMemory"),
    ],
)  # fmt: skip
def test_a_change_whose_need_was_not_seen_gives_the_default_or_leaves_the_choice(
    new_tape: Any, story: Story, id_: str, patch: dict[str, Any], program: str | None
) -> None:
    tape = new_tape()
    story(tape)
    (finding,) = [each for each in tape.ending().findings if each.id == id_]
    assert (finding.change.patch, finding.change.program) == (patch, program)


@pytest.mark.parametrize(
    ("note", "by_range"),
    [
        ("LimitRanger plugin set: memory request for container app; cpu, memory limit for container app", True),
        ("LimitRanger plugin set: memory request for container app; cpu limit for container app", False),
        ("LimitRanger plugin set: memory limit for container other", False),
    ],
)
def test_a_memory_limit_of_a_limit_range_is_said_to_be_one(new_tape: Any, note: str, by_range: bool) -> None:
    tape = new_tape()
    memory_limit(tape)
    annotations = {"kubernetes.io/limit-ranger": note}
    tape.pod = pod_facts(
        {
            "metadata": {"name": tape.pod.name, "uid": tape.pod.uid, "annotations": annotations},
            "spec": {"containers": [{"name": "app"}]},
        }
    )
    (finding,) = [each for each in tape.ending().findings if each.id == "outOfMemory"]
    assert ("limit of 64Mi, set by a LimitRange" in finding.text) is by_range
    assert ("in app itself" in finding.advice) is by_range and "more than 64Mi" in finding.advice


def test_a_program_that_ignores_the_signal_needs_more_than_a_change_of_its_command(new_tape: Any) -> None:
    tape = new_tape()
    shell_whose_only_command_blocks_it(tape)
    (finding,) = [each for each in tape.ending().findings if each.id == "shellKeepsSignal"]
    assert (finding.change.patch, finding.change.program) == (None, "unblockSignal")


def test_what_ended_a_container_comes_before_what_could_not_end_it(new_tape: Any) -> None:
    tape = new_tape()
    no_handler_and_out_of_memory(tape)
    assert [each.id for each in tape.ending().findings] == ["outOfMemory", "stopSignalNotHandled"]


NOT = [
    (waits_without_a_limit, "deadlocked"),
    (waits_with_a_limit, "deadlocked"),
    (sleeps, "deadlocked"),
    (works, "deadlocked"),
    (lock_shared_with_another, "deadlocked"),
    (locked_with_an_alarm, "deadlocked"),
    (locked_until_its_child_ends, "deadlocked"),
    (locked_until_another_signal, "deadlocked"),
    (locked_until_a_timer, "deadlocked"),
    (child_of_tini_with_handlers_not_known, "deadlocked"),
    (new_child_of_tini_locked, "deadlocked"),
    (tini_whose_child_drains_too_long, "childrenNotSignalled"),
    (tini_whose_child_drains_too_long, "childIgnoresSignal"),
    (tini_whose_child_drains_too_long, "zombies"),
    (tini_that_was_not_seen_to_wait, "stopSignalNotHandled"),
    (blocked_and_taken_later, "stopSignalNotHandled"),
    (blocked_and_ended, "stopSignalNotHandled"),
    (child_out_of_memory_then_sigkill, "outOfMemory"),
    (memory_limit, "killed"),
    (memory_limit, "childOutOfMemory"),
    (own_137, "killedByOther"),
    (with_zombies, "childrenNotSignalled"),
    (shell_with_child, "childrenNotSignalled"),
    (shell_that_begins_something_on_the_signal, "shellKeepsSignal"),
    (shell_that_begins_something_on_the_signal, "shellRunsTrapLate"),
    (shell_whose_trap_waits, "shellKeepsSignal"),
    (shell_that_waits_for_its_sleep, "shellKeepsSignal"),
    (shell_that_loops_until_its_trap, "shellKeepsSignal"),
    (no_handler, "connectionsOpenAtKill"),
    (hangs_in_its_handler, "connectionsOpenAtKill"),
    (takes_too_long, "stopSignalNotHandled"),
    (port_closed_before_endpoint, "listenerClosedSoon"),
    (loopback_closed_before_endpoint, "listenerClosedBeforeEndpoint"),
    (loopback_closed_before_endpoint, "listenerClosedSoon"),
    (port_closed_soon, "listenerClosedBeforeEndpoint"),
    (requests_cut, "listenerClosedBeforeEndpoint"),
]


@pytest.mark.parametrize(("story", "id_"), NOT, ids=[f"{row[0].__name__}-{row[1]}" for row in NOT])
def test_what_was_not_seen_is_not_said(new_tape: Any, story: Story, id_: str) -> None:
    tape = new_tape()
    story(tape)
    assert id_ not in [f.id for f in tape.ending().findings]


def test_the_first_reaction_is_whatever_was_seen_first_after_the_signal(new_tape: Any) -> None:
    tape = new_tape()
    waits_for_connections(tape)
    reaction = tape.ending().containers[0].seen.first_reaction
    assert (reaction.what, reaction.seconds) == ("listenerClosed", 0.005)
    tape.output(0.008, "stopping")
    reaction = tape.ending().containers[0].seen.first_reaction
    assert reaction.what == "output"
    assert reaction.seconds == pytest.approx(0.001)


def test_a_pod_without_sockets_of_its_own_has_none_in_its_story(new_tape: Any) -> None:
    tape = new_tape()
    takes_too_long(tape)
    (container,) = tape.ending().containers
    assert (container.seen.sockets, container.seen.processes_left) == (None, None)
    assert container.seen.first_reaction.what == "exit"


@pytest.mark.parametrize(
    ("disposition", "advice"),
    [
        ("default", "Let the trap send SIGTERM to node, which has no handler and ends on it"),
        ("ignored", "Let node stop ignoring SIGTERM"),
        ("handled", "how long the program takes to end after that"),
    ],
)
def test_a_shell_with_a_trap_is_never_told_that_it_passes_no_signal_on(
    new_tape: Any, disposition: str, advice: str
) -> None:
    tape = new_tape()
    shell_whose_trap_sends_another_signal(tape)
    for record in tape.records:
        if record.kind == kinds.PROCESSES_LEFT:
            record.facts["processes"] = [{**each, "disposition": disposition} for each in record.facts["processes"]]
    (finding,) = [each for each in tape.ending().findings if each.id == "shellKeepsSignal"]
    assert "does not pass" not in finding.text and "exec" not in finding.advice
    assert advice in finding.advice
    assert ("so it never got SIGTERM" in finding.text) == (disposition == "default")


def test_a_sleep_that_may_be_a_turn_of_a_loop_gets_no_exact_grace_period(new_tape: Any) -> None:
    tape = new_tape()
    sleeps(tape)
    (finding,) = [each for each in tape.ending().findings if each.id == "killed"]
    assert "terminationGracePeriodSeconds" not in finding.advice
    assert (finding.change.patch, finding.change.program) == (None, "endOnStopSignal")
