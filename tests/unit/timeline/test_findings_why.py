"""Why it took so long, why 137, why requests were dropped: one row for each condition, and what must not be said."""

from collections.abc import Callable
from typing import Any

import pytest

from lastcall.records import kinds as k

SLEEP = {"pid": 31, "containerPid": 8, "name": "sleep", "state": "S", "disposition": "default"}
NODE = {"pid": 32, "containerPid": 9, "name": "node", "state": "S", "disposition": "handled"}
PORT = {"address": "0.0.0.0", "port": 8080, "backlog": 0}
EXIT = {
    "listeners": [], "connections": 0, "unread": 0, "unreadBytes": 0, "backlog": 0, "resets": 0, "closedUnread": 0,
    "secondsBefore": 0.05, "scope": "container",
}  # fmt: skip

Story = Callable[[Any], None]


def begin(tape: Any, argv: tuple[str, ...] = ("web",), disposition: str = "handled", exe: str = "/bin/web") -> None:
    tape.add(-2.0, "runtime", k.PROCESS_STARTED, "app", pid=7, exe=exe, argv=list(argv))
    tape.accepted(10)
    tape.observed(10)
    tape.killing(10)
    tape.stop(0.005, 10, disposition=disposition)
    for record in tape.records:
        if record.kind == k.PROCESS_SIGNAL_STATE:
            record.facts["exe"] = exe


def killed(tape: Any, oom: int | None = 0) -> None:
    tape.add(10.01, "runtime", k.SIGNAL_SENT, "app", signal="SIGKILL", pid=7, why="grace over", oomKills=oom)
    tape.exit(10.011, 137, 9)
    tape.over(10.012, "Failed", endpoint=False)


def left(tape: Any, *processes: dict[str, Any], when: str = "SIGKILL", at: float = 10.009, **more: Any) -> None:
    facts = {"more": 0, "zombies": 0, "secondsBefore": 0.0, **more}
    facts |= {"when": when, "signal": "SIGTERM", "processes": list(processes)}
    tape.add(at, "runtime", k.PROCESSES_LEFT, "app", **facts)


def at_stop(tape: Any, connections: int = 0, *listeners: dict[str, Any]) -> None:
    tape.add(
        0.0071, "runtime", k.SOCKETS_AT_STOP, "app",
        signal="SIGTERM", listeners=list(listeners), connections=connections, scope="container",
    )  # fmt: skip


def at_exit(tape: Any, at: float, **facts: Any) -> None:
    tape.add(at, "runtime", k.SOCKETS_AT_EXIT, "app", **{**EXIT, **facts})


def exited(tape: Any, at: float = 0.5, code: int = 0, signal: int | None = None, **facts: Any) -> None:
    tape.add(
        at, "runtime", k.PROCESS_EXITED, "app",
        pid=7, exitCode=code, signal=signal, **{"oomKilled": False, "oomKills": 0, "memoryLimit": None, **facts},
    )  # fmt: skip
    tape.over(at + 0.01, endpoint=False)


# -- a story for each condition --------------------------------------------------------------------------------------


def shell_with_child(tape: Any) -> None:
    begin(tape, ("sh", "-c", "node server.js"), "default", "/bin/busybox")
    left(tape, SLEEP)
    killed(tape)


def shell_that_begins_something_on_the_signal(tape: Any) -> None:
    begin(tape, ("sh", "-c", "trap 'sleep 120' TERM; sleep 1"), "handled", "/bin/busybox")
    left(tape, {**SLEEP, "afterSignal": True})
    killed(tape)


def shell_with_script(tape: Any) -> None:
    begin(tape, ("/bin/bash", "/entrypoint.sh"), "handled", "/bin/bash")
    left(tape, NODE, when="exit", at=0.501)
    exited(tape)


def shell_that_waits_for_its_sleep(tape: Any) -> None:
    begin(tape, ("sh", "-c", "trap 'exit 0' TERM; sleep 28800 & wait"), "handled", "/bin/busybox")
    left(tape, SLEEP, when="exit", at=0.501)
    exited(tape)


def shell_with_pipeline(tape: Any) -> None:
    begin(tape, ("sh", "-c", "node server.js 2>&1 | tee /logs/it"), "default", "/bin/dash")
    left(tape, {**NODE, "child": True}, {**SLEEP, "name": "tee", "child": True})
    killed(tape)


def shell_with_longer_pipeline(tape: Any) -> None:
    begin(tape, ("sh", "-c", "cd $HOME; node server.js | grep -v DEBUG | tee /logs/it"), "default", "/bin/dash")
    left(tape, NODE, SLEEP)
    killed(tape)


def shell_with_jobs(tape: Any) -> None:
    begin(tape, ("sh", "-c", "metrics & node server.js & wait"), "default", "/bin/dash")
    left(tape, NODE, SLEEP)
    killed(tape)


def shell_that_loops(tape: Any) -> None:
    begin(tape, ("sh", "-c", "while true; do poll; sleep 60; done"), "default", "/bin/dash")
    left(tape, SLEEP)
    killed(tape)


def shell_that_loops_until_its_trap(tape: Any) -> None:
    script = "trap 'exit 0' TERM; while true; do sleep 1 & wait; done"
    begin(tape, ("sh", "-c", script), "handled", "/bin/dash")
    left(tape, SLEEP, when="exit", at=0.501)
    exited(tape)


def shell_whose_file_runs_two_at_once(tape: Any) -> None:
    begin(tape, ("sh", "/entrypoint.sh"), "default", "/bin/dash")
    left(tape, {**NODE, "child": True}, {**SLEEP, "child": True})
    killed(tape)


def shell_whose_file_runs_one_that_has_children(tape: Any) -> None:
    begin(tape, ("sh", "/entrypoint.sh"), "default", "/bin/dash")
    left(tape, {**NODE, "child": True}, {**SLEEP, "child": False})
    killed(tape)


def supervisor_with_children(tape: Any) -> None:
    begin(tape)
    left(tape, SLEEP, NODE, more=3)
    killed(tape)


def children_die_with_it(tape: Any) -> None:
    begin(tape)
    exited(tape)
    left(tape, SLEEP, when="exit", at=0.501)


def with_zombies(tape: Any) -> None:
    begin(tape)
    left(tape, zombies=3)
    killed(tape)


def no_handler(tape: Any) -> None:
    begin(tape, disposition="default")
    killed(tape)


def handler_for_another(tape: Any) -> None:
    begin(tape, disposition="default")
    next(r for r in tape.records if r.kind == k.PROCESS_SIGNAL_STATE).facts["caught"] = ["SIGINT", "SIGCHLD"]
    killed(tape)


def waits_for_connections(tape: Any) -> None:
    begin(tape)
    at_stop(tape, 2, PORT)
    tape.add(0.02, "runtime", k.LISTENER_CLOSED, "app", address="", port=8080, seconds=0.005, notBefore=0.0)
    at_exit(tape, 10.012, connections=2, resets=0)
    killed(tape)


def hangs_in_its_handler(tape: Any) -> None:
    begin(tape)
    at_stop(tape, 0, PORT)
    at_exit(tape, 10.012, connections=6, resets=0, listeners=[PORT], backlog=6)
    killed(tape)


def takes_too_long(tape: Any) -> None:
    begin(tape)
    killed(tape)


def memory_limit(tape: Any) -> None:
    begin(tape)
    exited(tape, 0.2, 137, 9, oomKilled=True, oomKills=1, memoryLimit=64 << 20)


def others_out_of_memory(tape: Any) -> None:
    begin(tape)
    exited(tape, 0.2, 137, 9, oomKilled=True, oomKills=3, memoryLimit=64 << 20, peakRss=(11 << 20) + 1,
           endedTogether=True)  # fmt: skip


def child_out_of_memory(tape: Any) -> None:
    begin(tape)
    exited(tape, 0.2, 1, None, oomKilled=True, oomKills=2, memoryLimit=64 << 20)


def child_out_of_memory_then_sigkill(tape: Any) -> None:
    begin(tape)
    tape.add(10.01, "runtime", k.SIGNAL_SENT, "app", signal="SIGKILL", pid=7, why="grace over", oomKills=1)
    exited(tape, 10.011, 137, 9, oomKilled=True, oomKills=1, memoryLimit=64 << 20)


def own_137(tape: Any) -> None:
    begin(tape, ("sh", "-c", "app"), exe="/bin/busybox")
    exited(tape, 0.2, 137)


def port_closed_before_endpoint(tape: Any) -> None:
    begin(tape)
    tape.add(0.09, "endpointslice-controller", k.ENDPOINT_CHANGED, service="web", slice="web-1", address="10.244.0.2",
             ready=False, serving=True, terminating=True)  # fmt: skip
    at_stop(tape, 0, PORT)
    tape.add(0.02, "runtime", k.LISTENER_CLOSED, "app", address="", port=8080, seconds=0.005, notBefore=0.0)
    exited(tape)


def port_closed_by_exit(tape: Any) -> None:
    begin(tape)
    tape.add(0.09, "endpointslice-controller", k.ENDPOINT_CHANGED, service="web", slice="web-1", address="10.244.0.2",
             ready=False, serving=True, terminating=True)  # fmt: skip
    at_stop(tape, 0, PORT)
    exited(tape, 0.011)


def port_closed_soon(tape: Any) -> None:
    begin(tape)
    tape.endpoint()
    at_stop(tape, 0, PORT)
    tape.add(0.02, "runtime", k.LISTENER_CLOSED, "app", address="", port=8080, seconds=0.005, notBefore=0.0)
    exited(tape)


def requests_cut(tape: Any) -> None:
    begin(tape)
    at_stop(tape, 3, PORT)
    exited(tape)
    at_exit(tape, 0.502, connections=3, resets=2, unread=1, unreadBytes=120, listeners=[PORT], backlog=1)


def connections_ended_well(tape: Any) -> None:
    begin(tape)
    at_stop(tape, 1, PORT)
    exited(tape)
    at_exit(tape, 0.502, connections=1)


def network_stays(tape: Any) -> None:
    begin(tape)
    tape.add(0.4, "runtime", k.NETWORK_DETACHED, ip="10.244.0.2", seconds=0.1, error="netlink: no buffer space")
    exited(tape)


def volume_held(tape: Any) -> None:
    begin(tape)
    holder = {"pid": 44, "name": "tail", "how": "open file", "path": "/x/cache/log"}
    tape.add(0.6, "kubelet", k.VOLUME_BUSY, volume="cache", error="Device or resource busy", holders=[holder], more=0)
    exited(tape)


def claim_held(tape: Any) -> None:
    begin(tape)
    name = "persistentvolumeclaim-protection-controller"
    tape.add(0.2, name, k.CLAIM_HELD, claim="data", finalizer="kubernetes.io/pvc-protection", pod="web")
    exited(tape)


def claim_held_before(tape: Any) -> None:
    name = "persistentvolumeclaim-protection-controller"
    begin(tape)
    tape.add(-12.0, name, k.CLAIM_HELD, claim="data", finalizer="kubernetes.io/pvc-protection", pod="web")
    exited(tape)


DEAF = {"pid": 33, "containerPid": 7, "name": "app", "state": "S", "disposition": "ignored", "child": True}
TINI = ("tini", "--", "app")


def tini_whose_child_ignores_it(tape: Any) -> None:
    begin(tape, TINI, "handled", "/usr/bin/tini")
    left(tape, DEAF, {**SLEEP, "child": False})
    killed(tape)


def tini_that_signals_the_group(tape: Any) -> None:
    begin(tape, ("tini", "-g", "--", "app"), "handled", "/usr/bin/tini")
    left(tape, {**SLEEP, "child": False})
    killed(tape)


def tini_whose_child_drains_too_long(tape: Any) -> None:
    begin(tape, TINI, "handled", "/usr/bin/tini")
    left(tape, {**NODE, "child": True}, {**NODE, "containerPid": 10, "child": False}, zombies=1)
    killed(tape)


def tini_that_was_not_seen_to_wait(tape: Any) -> None:
    """Between two of its waits, or on a kernel that does not say where a process sleeps."""
    begin(tape, TINI, "default", "/usr/bin/tini")
    exited(tape, at=0.022, code=143)


def ends_long_after_a_signal_that_it_did_not_get(tape: Any) -> None:
    begin(tape, disposition="default")
    exited(tape, at=4.005)


def blocked_and_taken_later(tape: Any) -> None:
    begin(tape, disposition="blocked")
    tape.add(10.01, "runtime", k.SIGNAL_SENT, "app", signal="SIGKILL", pid=7, why="grace over", stopSignalPending=False)
    tape.exit(10.011, 137, 9)
    tape.over(10.012, "Failed", endpoint=False)


def blocked_and_pending(tape: Any) -> None:
    begin(tape, disposition="blocked")
    tape.add(10.01, "runtime", k.SIGNAL_SENT, "app", signal="SIGKILL", pid=7, why="grace over", stopSignalPending=True)
    tape.exit(10.011, 137, 9)
    tape.over(10.012, "Failed", endpoint=False)


def blocked_and_ended(tape: Any) -> None:
    begin(tape, disposition="blocked")
    exited(tape, at=4.0)


TABLE = [
    (tini_whose_child_ignores_it, "childIgnoresSignal", "problem",
     "(tini) passes SIGTERM on, but app (pid 7) ignores SIGTERM", "Let app stop ignoring SIGTERM"),
    (tini_whose_child_ignores_it, "childrenNotSignalled", "problem",
     "(tini) passes SIGTERM on to its child alone: sleep (pid 8) still ran at SIGKILL, and never got it", "`tini -g`"),
    (tini_that_signals_the_group, "childrenNotSignalled", "problem", "to the process group of its child alone",
     "process group"),
    (tini_whose_child_drains_too_long, "killed", "problem", "still ran 10 s after SIGTERM", "above 10"),
    (ends_long_after_a_signal_that_it_did_not_get, "stopSignalNotHandled", "problem", "ended by itself 4.0 s later",
     "handler for SIGTERM"),
    (blocked_and_taken_later, "killed", "problem", "still ran 10 s after SIGTERM", "above 10"),
    (blocked_and_pending, "stopSignalNotHandled", "problem", "blocks SIGTERM", "Unblock SIGTERM"),
    (claim_held, "claimHeldByPod", "info", "by finalizer kubernetes.io/pvc-protection, because Pod web uses it", ""),
    (claim_held_before, "claimHeldByPod", "info", "deleted 12.0 s before this end began", ""),
    (shell_with_child, "shellKeepsSignal", "problem", "sleep (pid 8) still ran at SIGKILL, so it never got SIGTERM",
     'command: ["sh", "-c", "exec node server.js"]'),
    (shell_with_child, "stopSignalNotHandled", "problem", "no handler for SIGTERM", ""),
    (shell_with_script, "shellKeepsSignal", "warning", "a trap for SIGTERM, and it ended while node (pid 9) still ran",
     '''trap 'kill "$pid"; wait "$pid"' TERM'''),
    (shell_with_pipeline, "shellKeepsSignal", "problem", "node (pid 9) and tee (pid 8) still ran",
     """["sh", "-c", "exec node server.js"] (the kubelet keeps what it prints: `kubectl logs`); or, in bash, """
     """command: ["bash", "-c", "exec node server.js > >(tee /logs/it) 2>&1"]"""),
    (shell_with_longer_pipeline, "shellKeepsSignal", "problem", "still ran", "`exec PROGRAM > >(tee FILE)`"),
    (shell_with_jobs, "shellKeepsSignal", "problem", "still ran", "trap 'kill $pid' TERM"),
    (shell_that_loops, "shellKeepsSignal", "problem", "sleep (pid 8) still ran", "`trap 'exit 0' TERM`"),
    (shell_that_loops_until_its_trap, "shellKeepsSignal", "info", "sleep (pid 8) was killed with it", ""),
    (shell_whose_file_runs_two_at_once, "shellKeepsSignal", "problem", "still ran", "runs several programs at once"),
    (shell_whose_file_runs_one_that_has_children, "shellKeepsSignal", "problem", "still ran",
     "last command with `exec`"),
    (supervisor_with_children, "childrenNotSignalled", "problem",
     "sleep (pid 8), node (pid 9) and 3 more still ran at SIGKILL", "tini -g"),
    (children_die_with_it, "childrenNotSignalled", "warning", "sleep (pid 8) was killed with it by the kernel", "tini"),
    (with_zombies, "zombies", "info", "3 children that had ended (zombies)", "shareProcessNamespace"),
    (no_handler, "stopSignalNotHandled", "problem", "it did nothing", "shareProcessNamespace: true"),
    (handler_for_another, "stopSignalNotHandled", "problem", "it did nothing", "stopSignal: SIGINT"),
    (waits_for_connections, "connectionsOpenAtKill", "warning", "probably waited for them (inferred)", "above 10"),
    (takes_too_long, "killed", "problem", "because it still ran 10 s after SIGTERM", "above 10"),
    (hangs_in_its_handler, "killed", "problem", "because it still ran 10 s after SIGTERM",
     "did not accept 6 connections. Nothing shows that more time would help"),
    (memory_limit, "outOfMemory", "problem", "more than its memory limit of 64Mi (by the counter", "more than 64Mi"),
    (others_out_of_memory, "outOfMemory", "problem", "at once, as Kubernetes 1.28 and newer want it on cgroup v2. PID "
     "1 itself had 12Mi at most", "more than 64Mi"),
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


NOT = [
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
    (shell_that_waits_for_its_sleep, "shellKeepsSignal"),
    (no_handler, "connectionsOpenAtKill"),
    (hangs_in_its_handler, "connectionsOpenAtKill"),
    (takes_too_long, "stopSignalNotHandled"),
    (port_closed_before_endpoint, "listenerClosedSoon"),
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
