"""Records of ends by hand, one function for each condition: each writes to a `Tape` of the tests of stories."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lastcall.endings.story import ContainerFacts
from lastcall.records import kinds as k

SHUTDOWN = "pkg/kubelet/nodeshutdown/nodeshutdown_manager.go:killPods"
PRESSURE = "pkg/kubelet/eviction/eviction_manager.go:synchronize"
TAINT = "pkg/controller/tainteviction/taint_eviction.go:processPodOnNode"
REFUSED = "dial tcp 10.244.0.2:8080: connect: connection refused"
LATE = 'Get "http://10.244.0.2:8080/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'

SLEEP = {"pid": 31, "containerPid": 8, "name": "sleep", "state": "S", "disposition": "default"}
NODE = {"pid": 32, "containerPid": 9, "name": "node", "state": "S", "disposition": "handled"}
PORT = {"address": "0.0.0.0", "port": 8080, "backlog": 0}
EXIT = {
    "listeners": [], "connections": 0, "unread": 0, "unreadBytes": 0, "backlog": 0, "resets": 0, "closedUnread": 0,
    "secondsBefore": 0.05, "scope": "container",
}  # fmt: skip

Story = Callable[[Any], None]


def begin(tape: Any, argv: tuple[str, ...] = ("web",), disposition: str = "handled", exe: str = "/bin/web") -> None:
    tape.add(-2.0, "runtime", k.PROCESS_STARTED, "app", pid=7, containerPid=1, exe=exe, argv=list(argv))
    tape.accepted(10)
    tape.observed(10)
    tape.killing(10)
    tape.stop(0.005, 10, disposition=disposition)
    for record in tape.records:
        if record.kind == k.PROCESS_SIGNAL_STATE:
            record.facts["exe"] = exe


def killed(tape: Any, oom: int | None = 0) -> None:
    tape.add(
        10.01, "runtime", k.SIGNAL_SENT, "app", signal="SIGKILL", pid=7, containerPid=1, why="grace over", oomKills=oom
    )
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


def shell_whose_trap_waits(tape: Any) -> None:
    begin(tape, ("sh", "/job.sh"), "handled", "/bin/busybox")
    left(tape, SLEEP)
    killed(tape)


def shell_whose_trap_printed_and_waits(tape: Any) -> None:
    shell_whose_trap_waits(tape)
    tape.output(0.3, "told to end")


def shell_whose_trap_sends_another_signal(tape: Any) -> None:
    begin(tape, ("sh", "/run.sh"), "handled", "/bin/dash")
    tape.output(0.008, "got SIGTERM, sending SIGINT")
    left(tape, NODE)
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


def shell_in_a_shared_namespace(tape: Any) -> None:
    begin(tape, ("sh", "-c", "node server.js; echo bye"), "default", "/bin/dash")
    for record in tape.records:
        if record.kind == k.PROCESS_SIGNAL_STATE:
            record.facts["containerPid"] = 6
    left(tape, {**NODE, "child": True}, when="exit", at=0.501)
    exited(tape, 0.5, 143, 15)


def shell_whose_file_runs_two_at_once(tape: Any) -> None:
    begin(tape, ("sh", "/entrypoint.sh"), "default", "/bin/dash")
    left(tape, {**NODE, "child": True}, {**SLEEP, "child": True})
    killed(tape)


def shell_whose_file_runs_one_that_has_children(tape: Any) -> None:
    begin(tape, ("sh", "/entrypoint.sh"), "default", "/bin/dash")
    left(tape, {**NODE, "child": True}, {**SLEEP, "child": False})
    killed(tape)


def shell_whose_file_runs_one(tape: Any) -> None:
    begin(tape, ("sh", "/entrypoint.sh"), "default", "/bin/dash")
    left(tape, {**NODE, "child": True})
    killed(tape)


def shell_whose_last_command_runs_on(tape: Any) -> None:
    begin(tape, ("sh", "-c", "migrate; node server.js"), "default", "/bin/dash")
    left(tape, {**NODE, "child": True})
    killed(tape)


def shell_whose_program_ignores_it(tape: Any) -> None:
    begin(tape, ("sh", "-c", "node server.js; echo bye"), "default", "/bin/dash")
    left(tape, {**NODE, "child": True, "disposition": "ignored"})
    killed(tape)


def shell_whose_only_command_blocks_it(tape: Any) -> None:
    begin(tape, ("sh", "-c", "node server.js"), "default", "/bin/dash")
    left(tape, {**NODE, "child": True, "disposition": "blocked"})
    killed(tape)


def supervisor_with_children(tape: Any) -> None:
    begin(tape)
    left(tape, SLEEP, NODE, more=3)
    killed(tape)


def children_die_with_it(tape: Any) -> None:
    begin(tape)
    exited(tape)
    left(tape, SLEEP, when="exit", at=0.501)


def children_below_a_shell_die_with_it(tape: Any, *, sigkill: bool = False) -> None:
    begin(tape, ("npm", "start"), exe="/usr/bin/node")
    shell = {"containerPid": 2, "name": "sh", "disposition": "default"}
    worker = {"containerPid": 9, "name": "node", "parent": 2, "disposition": "handled"}
    beside(tape, shell, worker)
    (killed if sigkill else exited)(tape)
    still = ({**SLEEP, **shell, "child": True},) if sigkill else ()
    left(tape, *still, {**NODE, "child": False}, when="SIGKILL" if sigkill else "exit", at=10.0 if sigkill else 0.501)


def children_below_a_shell_outlive_the_grace_period(tape: Any) -> None:
    children_below_a_shell_die_with_it(tape, sigkill=True)


def children_that_handle_it_die_with_it(tape: Any) -> None:
    """PID 1 may have passed the signal on, and killed them right before its own end."""
    begin(tape)
    exited(tape, 3.118)
    left(tape, NODE, when="exit", at=3.119)


def children_that_handle_it_outlive_the_grace_period(tape: Any) -> None:
    begin(tape)
    left(tape, NODE, NODE | {"pid": 33, "containerPid": 10})
    killed(tape)


def another_ended_before(tape: Any) -> None:
    """A third child of PID 1, in `children_that_handle_it_outlive_the_grace_period`."""
    third = NODE | {"pid": 34, "containerPid": 11}
    beside(tape, NODE, NODE | {"pid": 33, "containerPid": 10}, third)
    end = {key: third[key] for key in ("pid", "containerPid", "name", "disposition")}
    tape.add(4.05, "runtime", k.CHILD_ENDED, "app", **end, exitCode=0, signal=None, secondsBefore=0.0)


def stops_in_turn(tape: Any) -> None:
    """A master of three programs that need 4 s each, and a grace period of 10 s."""
    begin(tape, ("supervisord", "-n"), exe="/usr/bin/supervisord")
    master_of_three(tape, 4.05)
    killed(tape)


def master_of_three(tape: Any, *ends: float, parent: int = 1) -> None:
    """Three programs of one parent: all handle the signal, and the last of them ends `ends` seconds after it."""
    three = [NODE | {"pid": 40 + i, "containerPid": 10 + i, "name": f"worker-{i}", "parent": parent} for i in range(3)]
    beside(tape, *three)
    for at, each in zip(ends, reversed(three), strict=False):
        end = {key: each[key] for key in ("pid", "containerPid", "name", "disposition")}
        tape.add(at, "runtime", k.CHILD_ENDED, "app", **end, exitCode=0, signal=None, secondsBefore=0.0)
    left(tape, *({**each, "child": parent == 1} for each in three[: 3 - len(ends)]))


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


def held_by_a_sidecar(tape: Any) -> None:
    """Add a native sidecar that is stopped when the time of the container is over, and has its connections."""
    tape.pod = replace(tape.pod, containers=(*tape.pod.containers, ContainerFacts("agent", "sidecar")))
    tape.started("agent", pid=17, at=-3.0)
    tape.stop(10.001, 2, container="agent", pid=17, floor=True)
    tape.exit(10.02, 0, container="agent", pid=17)
    for record in tape.records:
        if record.kind == k.SOCKETS_AT_EXIT:
            record.facts["peers"] = [peer("127.0.0.1", 52000)]


def waits_for_its_sidecar(tape: Any) -> None:
    waits_for_connections(tape)
    held_by_a_sidecar(tape)


def waits_for_its_sidecar_that_leaves_first(tape: Any) -> None:
    """Both are stopped at the same moment: the connection is closed when SIGKILL comes."""
    begin(tape)
    at_stop(tape, 2, PORT)
    tape.records[-1].facts["scope"] = "pod"
    tape.add(0.02, "runtime", k.LISTENER_CLOSED, "app", address="", port=8080, seconds=0.005, notBefore=0.0)
    tape.add(10.005, "runtime", k.CONNECTIONS_CLOSED, "app", seconds=9.998, notBefore=9.9, scope="pod")
    killed(tape)
    held_by_a_sidecar(tape)


def ends_with_its_sidecar(tape: Any) -> None:
    waits_for_its_sidecar(tape)
    for record in tape.records:
        if record.kind == k.PROCESS_EXITED and record.container == "app":
            record.facts.update(exitCode=0, signal=None)
        elif record.kind == k.SIGNAL_SENT and record.facts["signal"] == "SIGKILL":
            record.facts["exiting"] = True


def peer(address: str, port: int, accepted: bool = True) -> dict[str, Any]:
    return {"address": address, "port": port, "ownPort": 8080, "accepted": accepted, "unreadBytes": 0}


def waits_for_known_connections(tape: Any) -> None:
    begin(tape)
    tape.add(-3.0, "apiserver", k.POD_CREATED, namespace="shop", name="client", containers=[])
    tape.add(-2.9, "runtime", k.NETWORK_ATTACHED, ip="10.244.0.7", seconds=0.1)
    tape.records[-2:] = [replace(each, pod_uid="another") for each in tape.records[-2:]]
    those = [peer("10.244.0.7", 41000), peer("10.244.0.7", 41002), peer("192.0.2.9", 51000), peer("127.0.0.1", 52000)]
    at_exit(tape, 10.012, connections=5, resets=0, backlog=1, peers=[*those, peer("192.0.2.10", 50000, False)])
    killed(tape)


def hangs_in_its_handler(tape: Any) -> None:
    begin(tape)
    at_stop(tape, 0, PORT)
    at_exit(tape, 10.012, connections=6, resets=0, listeners=[PORT], backlog=6)
    killed(tape)


def waits(*calls: dict[str, Any], **process: Any) -> dict[str, Any]:
    return {"containerPid": 1, "name": "web", "waits": list(calls), **process}


LOCK = {"call": "futex", "threads": 1, "limited": False, "own": True}
SLEEPING = {"call": "clock_nanosleep", "threads": 1, "limited": True, "own": False}


def at_kill(tape: Any, *processes: dict[str, Any], cpu: float = 0.0) -> None:
    facts = {"signal": "SIGTERM", "seconds": 10.0, "cpuSeconds": cpu, "idleSeconds": 10.0 - cpu}
    tape.add(10.008, "runtime", k.WAITS_AT_KILL, "app", **facts, processes=list(processes))


def beside(tape: Any, *processes: dict[str, Any]) -> None:
    listed = [{"pid": 30 + i, "parent": 1, "state": "S", **each} for i, each in enumerate(processes)]
    tape.add(0.008, "runtime", k.PROCESSES_AT_STOP, "app", signal="SIGTERM", processes=listed, more=0)


def deadlocked(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits(LOCK))
    killed(tape)


def child_of_tini_deadlocked(tape: Any) -> None:
    begin(tape, ("tini", "--", "node"), "handled", "/usr/bin/tini")
    beside(tape, {"containerPid": 9, "name": "node", "disposition": "handled"})
    tini = waits({**LOCK, "call": "rt_sigtimedwait", "own": False}, name="tini")
    at_kill(tape, tini, waits({**LOCK, "threads": 5}, containerPid=9, name="node", caught=["SIGTERM"]))
    left(tape, {**NODE, "child": True})
    killed(tape)


def waits_without_a_limit(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits(LOCK, {**LOCK, "call": "epoll_wait", "own": False}))
    killed(tape)


def waits_with_a_limit(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits({**LOCK, "limited": True}), cpu=0.02)
    killed(tape)


def sleeps(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits({**LOCK, "call": "clock_nanosleep", "limited": True, "own": False, "wakesIn": 14.2}))
    killed(tape)


def sleeps_shortly(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits({**LOCK, "call": "clock_nanosleep", "limited": True, "own": False, "wakesIn": 0.1}))
    killed(tape)


def hook_takes_time(tape: Any) -> None:
    tape.add(-2.0, "runtime", k.PROCESS_STARTED, "app", pid=7, containerPid=1, exe="/bin/web", argv=["web"])
    tape.accepted(10)
    tape.observed(10)
    tape.killing(10)
    tape.hook(0.006, 2.0, budget=10)
    tape.stop(2.01, 8, deducted=2)
    killed(tape)


def hook_takes_time_and_it_sleeps(tape: Any) -> None:
    hook_takes_time(tape)
    at_kill(tape, waits({**LOCK, "call": "clock_nanosleep", "limited": True, "own": False, "wakesIn": 14.2}))


def sleeps_in_a_loop(tape: Any) -> None:
    sleeps_shortly(tape)
    next(r for r in tape.records if r.kind == k.WAITS_AT_KILL).facts["switches"] = 49


def waits_for_a_thread_that_loops(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits(LOCK, {**SLEEPING, "wakesIn": 0.93}), cpu=0.01)
    next(r for r in tape.records if r.kind == k.WAITS_AT_KILL).facts["switches"] = 3
    killed(tape)


def looks_again_and_again_beside_a_pool(tape: Any) -> None:
    waits_for_a_thread_that_loops(tape)
    next(r for r in tape.records if r.kind == k.WAITS_AT_KILL).facts["switches"] = 98


def waits_for_a_thread_that_sleeps_long(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits(LOCK, {**SLEEPING, "wakesIn": 4.2}))
    next(r for r in tape.records if r.kind == k.WAITS_AT_KILL).facts["switches"] = 3
    killed(tape)


def waits_for_a_thread_that_works(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits(LOCK, {**SLEEPING, "wakesIn": 0.1}), cpu=2.0)
    next(r for r in tape.records if r.kind == k.WAITS_AT_KILL).facts["switches"] = 3
    killed(tape)


def waits_for_a_thread_that_reads(tape: Any) -> None:
    begin(tape)
    at_kill(
        tape, waits(LOCK, {**LOCK, "call": "recvfrom", "limited": None, "own": False}, {**SLEEPING, "wakesIn": 0.1})
    )
    next(r for r in tape.records if r.kind == k.WAITS_AT_KILL).facts["switches"] = 3
    killed(tape)


def works(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits({**LOCK, "limited": True}, {**LOCK, "call": ""}), cpu=4.0)
    killed(tape)


def reads_from_somewhere(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits({**LOCK, "call": "read", "limited": None, "own": False}))
    killed(tape)


def locked_with_an_alarm(tape: Any) -> None:
    deadlocked(tape)
    for record in tape.records:
        if record.kind == k.PROCESS_SIGNAL_STATE:
            record.facts["caught"] = ["SIGTERM", "SIGALRM"]


def locked_until_its_child_ends(tape: Any) -> None:
    begin(tape, ("python3", "init.py"), "handled", "/usr/bin/python3")
    main = waits(LOCK, caught=["SIGINT", "SIGTERM", "SIGCHLD"])
    at_kill(tape, main, waits({**LOCK, "call": "read", "own": False}, containerPid=9, name="node"))
    left(tape, {**NODE, "child": True})
    killed(tape)


def locked_with_a_handler_of_children(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits(LOCK, caught=["SIGINT", "SIGTERM", "SIGCHLD", "33"]))
    killed(tape)


def locked_until_another_signal(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits(LOCK, caught=["SIGTERM", "SIGUSR1"]))
    killed(tape)


def locked_until_a_timer(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits(LOCK, caught=["SIGTERM", "SIGRTMIN+1"]))
    killed(tape)


def child_of_tini_with_handlers_not_known(tape: Any) -> None:
    child_of_tini_deadlocked(tape)
    for record in tape.records:
        if record.kind == k.WAITS_AT_KILL:
            del record.facts["processes"][1]["caught"]


def new_child_of_tini_locked(tape: Any) -> None:
    child_of_tini_deadlocked(tape)
    for record in tape.records:
        if record.kind == k.WAITS_AT_KILL:
            record.facts["processes"][1]["afterSignal"] = True


def lock_shared_with_another(tape: Any) -> None:
    begin(tape)
    at_kill(tape, waits({**LOCK, "own": False}))
    killed(tape)


def takes_too_long(tape: Any) -> None:
    begin(tape)
    killed(tape)


def memory_limit(tape: Any) -> None:
    begin(tape)
    exited(tape, 0.2, 137, 9, oomKilled=True, oomKills=1, memoryLimit=64 << 20, limitReached=True)


def no_handler_and_out_of_memory(tape: Any) -> None:
    begin(tape, disposition="default")
    exited(tape, 0.2, 137, 9, oomKilled=True, oomKills=1, memoryLimit=64 << 20, limitReached=True)


def no_handler_and_killed_by_another(tape: Any) -> None:
    begin(tape, disposition="default")
    exited(tape, 0.2, 137, 9)


def whose_limit_is_not_known(tape: Any) -> None:
    begin(tape)
    exited(tape, 0.2, 137, 9, oomKilled=True, oomKills=1, memoryLimit=64 << 20, limitReached=None)


def node_out_of_memory(tape: Any) -> None:
    begin(tape)
    exited(tape, 0.2, 137, 9, oomKilled=True, oomKills=1, memoryLimit=1 << 30, peakRss=200 << 20, limitReached=False)


def others_out_of_memory(tape: Any) -> None:
    begin(tape)
    exited(tape, 0.2, 137, 9, oomKilled=True, oomKills=3, memoryLimit=64 << 20, peakRss=(11 << 20) + 1,
           limitReached=True, endedTogether=True)  # fmt: skip


def files_out_of_memory(tape: Any) -> None:
    begin(tape)
    exited(tape, 0.2, 137, 9, oomKilled=True, oomKills=1, memoryLimit=64 << 20, limitReached=True, peakRss=3 << 20,
           filesInMemory=(60 << 20) + 1)  # fmt: skip


def child_out_of_memory(tape: Any) -> None:
    begin(tape)
    exited(tape, 0.2, 1, None, oomKilled=True, oomKills=2, memoryLimit=64 << 20, limitReached=True)


def child_out_of_memory_then_sigkill(tape: Any) -> None:
    begin(tape)
    tape.add(
        10.01, "runtime", k.SIGNAL_SENT, "app", signal="SIGKILL", pid=7, containerPid=1, why="grace over", oomKills=1
    )
    exited(tape, 10.011, 137, 9, oomKilled=True, oomKills=1, memoryLimit=64 << 20, limitReached=True)


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


def loopback_closed_before_endpoint(tape: Any) -> None:
    port_closed_before_endpoint(tape)
    for record in tape.records:
        if record.kind == k.SOCKETS_AT_STOP:
            record.facts["listeners"] = [PORT | {"address": "127.0.0.1"}]
        elif record.kind == k.LISTENER_CLOSED:
            record.facts["address"] = "127.0.0.1"


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


def hook_closes_port(tape: Any) -> None:
    tape.add(-2.0, "runtime", k.PROCESS_STARTED, "app", pid=7, containerPid=1, exe="/bin/web", argv=["web"])
    tape.accepted(10)
    tape.observed(10)
    tape.killing(10)
    tape.endpoint()
    tape.hook(0.005, 3.0)
    tape.add(0.3, "kubelet", k.LISTENER_CLOSED_IN_HOOK, "app", address="", port=8080, seconds=0.295, notBefore=0.2)
    tape.stop(3.01, 7)
    exited(tape, 3.1)


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


def waits_for_a_child_that_ignores_it(tape: Any) -> None:
    begin(tape, ("supervisor",), "handled", "/usr/bin/supervisor")
    left(tape, DEAF)
    killed(tape)


def tini_that_signals_the_group(tape: Any) -> None:
    begin(tape, ("tini", "-g", "--", "app"), "handled", "/usr/bin/tini")
    left(tape, {**SLEEP, "child": False})
    killed(tape)


def dumb_init_ends_a_pool(tape: Any) -> None:
    begin(tape, ("dumb-init", "--", "app"), "handled", "/usr/bin/dumb-init")
    pool = {"name": "worker", "disposition": "default"}
    beside(tape, {"containerPid": 2, "name": "app", "disposition": "handled"}, {"containerPid": 3, **pool, "parent": 2})
    ended = {"pid": 31, "containerPid": 3, "exitCode": 143, "signal": "SIGTERM", "secondsBefore": 0.0}
    tape.add(0.012, "runtime", k.CHILD_ENDED, "app", **pool, **ended)
    exited(tape, 1.0)


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
    tape.add(
        10.01,
        "runtime",
        k.SIGNAL_SENT,
        "app",
        signal="SIGKILL",
        pid=7,
        containerPid=1,
        why="grace over",
        stopSignalPending=False,
    )
    tape.exit(10.011, 137, 9)
    tape.over(10.012, "Failed", endpoint=False)


def blocked_and_pending(tape: Any) -> None:
    begin(tape, disposition="blocked")
    tape.add(
        10.01,
        "runtime",
        k.SIGNAL_SENT,
        "app",
        signal="SIGKILL",
        pid=7,
        containerPid=1,
        why="grace over",
        stopSignalPending=True,
    )
    tape.exit(10.011, 137, 9)
    tape.over(10.012, "Failed", endpoint=False)


def blocked_and_ended(tape: Any) -> None:
    begin(tape, disposition="blocked")
    exited(tape, at=4.0)


# -- what surrounds the containers ------------------------------------------------------------------------------------


def by_kubelet(tape: Any, rule: str, **facts: Any) -> None:
    tape.started()
    tape.add(-0.1, "kubelet", k.DELETION_DECIDED, rule=rule, **facts)
    tape.add(-0.05, "kubelet", k.TERMINATION_OBSERVED, cause="kill", gracePeriodSeconds=2)
    tape.stop(-0.04, 2)


def shut_down(tape: Any, given: int, wanted: int, *, killed: bool) -> None:
    by_kubelet(
        tape, SHUTDOWN, why="the node is shutting down", priority=0, gracePeriodSeconds=given,
        ownGracePeriodSeconds=wanted, ownerKind="Node", owner="node-1",
    )  # fmt: skip
    if killed:
        tape.signal(2.0, "SIGKILL", "grace over")
    tape.exit(2.01, 137 if killed else 0, 9 if killed else None)


def deleted_by_controller(tape: Any) -> None:
    user = "system:kube-controller-manager"
    tape.add(0.0, "apiserver", k.DELETE_ACCEPTED, user=user, userAgent="", gracePeriodSeconds=30)


def lost(tape: Any, *, seen: bool) -> None:
    tape.add(-9.0, "scheduler", k.POD_BOUND, node="node-1")
    tape.started()
    tape.add(
        -0.01, "taint-eviction-controller", k.DELETION_DECIDED, rule=TAINT,
        why="evicted from node-1 by its taint node.kubernetes.io/unreachable:NoExecute, tolerated for 300 s",
    )  # fmt: skip
    deleted_by_controller(tape)
    if seen:
        tape.observed(30)


def drained(tape: Any) -> None:
    """Deleted while its node says that it is drained."""
    tape.started()
    tape.accepted(30)
    tape.add(
        0.001, "client", k.NODE_STATE_SEEN, node="node-1", ready=True, gone=False, taints=[],
        lifecycle=["DrainInProgress (KernelUpgrade)"],
    )  # fmt: skip
    tape.observed(30)
    tape.stop(0.005, 30)
    tape.exit(0.2, 0)


def job(tape: Any, kind: str, code: int) -> None:
    both = (ContainerFacts("work"), ContainerFacts("logs", kind="container"))
    tape.pod = replace(tape.pod, containers=both)
    tape.started("work", 7, -5.0)
    tape.started("logs", 8, -5.0)
    tape.exit(-3.0, code, container="work", pid=7)
    tape.add(
        -0.01, "garbage-collector", k.DELETION_DECIDED, rule="garbagecollector.go:attemptToDeleteItem",
        why="its owner is gone", ownerKind=kind, owner="report", ownerUid="j",
    )  # fmt: skip
    deleted_by_controller(tape)
    tape.observed(10)
    tape.stop(0.005, 10, container="logs", pid=8)
    tape.exit(0.2, 0, container="logs", pid=8)


def reloads(tape: Any, *, after_signal: bool, listeners: bool) -> None:
    tape.add(
        -2.0, "runtime", k.PROCESS_STARTED, "app", pid=7, containerPid=1, exe="/usr/bin/uwsgi-core", argv=["uwsgi"]
    )
    tape.accepted(3)
    tape.observed(3)
    tape.stop(0.005, 3)
    child = {"pid": 31, "containerPid": 8, "name": "uwsgi", "state": "S", "disposition": "handled"}
    sockets = {"listeners": [{"address": "0.0.0.0", "port": 8080, "backlog": 0}] if listeners else [], "connections": 0}
    tape.add(0.0071, "runtime", k.SOCKETS_AT_STOP, "app", signal="SIGTERM", scope="container", **sockets)
    process = child | {"afterSignal": after_signal}
    tape.add(
        2.99, "runtime", k.PROCESSES_LEFT, "app", more=0, zombies=0, secondsBefore=0.0, when="SIGKILL",
        signal="SIGTERM", processes=[process],
    )  # fmt: skip
    tape.add(
        2.995, "runtime", k.SOCKETS_AT_EXIT, "app", unread=0, unreadBytes=0, backlog=0, resets=0, closedUnread=0,
        secondsBefore=0.01, scope="container", **sockets,
    )  # fmt: skip
    tape.signal(3.0, "SIGKILL", "grace over")
    tape.exit(3.01, 137, 9)


# -- ends before the Pod's end ----------------------------------------------------------------------------------------


def run(
    tape: Any, start: float, end: float | None, code: int = 3, signal: int | None = None,
    lines: tuple[str, ...] = (), container: str = "app", **facts: Any,
) -> None:  # fmt: skip
    """One run that nothing told to stop."""
    tape.started(container, at=start)
    for line in lines:
        tape.add(start + 0.01, "runtime", k.OUTPUT, container, stream="stdout", text=line, attempt=0, dropped=0)
    if end is not None:
        more = {"oomKilled": False, "oomKills": 0, "memoryLimit": None, **facts}
        tape.add(end, "runtime", k.PROCESS_EXITED, container, pid=7, exitCode=code, signal=signal, **more)


def probed(
    tape: Any, start: float, end: float, probe: str, output: str, before: bool | None, *, code: int = 137,
    listeners: tuple[int, ...] = (), ready: bool = False,
) -> None:  # fmt: skip
    """One run that a probe ended."""
    tape.started(at=start)
    if ready:
        tape.add(start + 1, "kubelet", k.PROBE_CHANGED, "app", probe="readiness", result="success", output="")
    name = "Liveness" if probe == "liveness" else "Startup"
    tape.add(end - 2.01, "kubelet", k.PROBE_CHANGED, "app", probe=probe, result="failure", output=output,
             succeededBefore=before)  # fmt: skip
    message = f"Container app failed {probe} probe, will be restarted"
    tape.add(end - 2, "kubelet", k.KILLING, "app", message=message, gracePeriodSeconds=2, reason=f"{name}Probe")
    tape.add(end - 2, "runtime", k.STOP_REQUESTED, "app", timeoutSeconds=2)
    tape.add(end - 1.99, "runtime", k.SIGNAL_SENT, "app", signal="SIGTERM", pid=7, containerPid=1, why="StopContainer")
    if listeners:
        found = [{"address": "0.0.0.0", "port": port, "backlog": 0} for port in listeners]
        tape.add(end - 1.98, "runtime", k.SOCKETS_AT_STOP, "app", listeners=found, connections=0, scope="container")
    if code == 137:
        tape.add(end - 0.01, "runtime", k.SIGNAL_SENT, "app", signal="SIGKILL", pid=7, containerPid=1, why="grace over")
    tape.add(end, "runtime", k.PROCESS_EXITED, "app", pid=7, exitCode=code, signal=9 if code == 137 else None,
             oomKilled=False, oomKills=0, memoryLimit=None)  # fmt: skip


def deleted(tape: Any) -> None:
    tape.accepted(5)
    tape.observed(5)
    tape.killing(5)
    tape.stop(0.01, 5, disposition="handled")
    tape.exit(0.1, 0)
    tape.over(0.2, endpoint=False)


def hook_failed(tape: Any, start: float, end: float) -> None:
    """One run that the kubelet ended because its postStart hook failed."""
    tape.started(at=start)
    tape.add(end - 0.5, "kubelet", k.KILLING, "app", message="FailedPostStartHook", gracePeriodSeconds=2,
             reason="FailedPostStartHook")  # fmt: skip
    tape.add(end - 0.4, "runtime", k.STOP_REQUESTED, "app", timeoutSeconds=2)
    tape.add(end, "runtime", k.PROCESS_EXITED, "app", pid=7, exitCode=143, signal=15, oomKilled=False, oomKills=0,
             memoryLimit=None)  # fmt: skip


def probe_failed(tape: Any, start: float, end: float) -> None:
    probed(tape, start, end, "liveness", REFUSED, False)


def rule_restarts(tape: Any, start: float, end: float) -> None:
    created = {"name": "app", "kind": "container", "restartRules": [["In", [42]]]}
    if not tape.records:
        tape.add(0, "apiserver", k.POD_CREATED, namespace="default", name="web", user="u", containers=[created])
    run(tape, start, end, code=42)
