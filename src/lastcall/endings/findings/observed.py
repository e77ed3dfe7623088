"""Facts about one run of a container that rows need or are refuted by. Pure.

None means that nobody observed it: a Pod of another cluster has no records of its processes, signals and sockets.
"""

# check: pure

from collections.abc import Callable, Iterable

from lastcall.endings.facts.pid1 import forwards, is_shell
from lastcall.endings.facts.probe_connections import without_probes
from lastcall.endings.findings.restarts import is_over
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact
from lastcall.endings.node_facts import AtExit, ChildEnd, ProcessLeft, ProcessWaiting
from lastcall.endings.shell_script import script_of, shape_of
from lastcall.endings.story import ContainerEnding
from lastcall.records import kinds
from lastcall.records.said import tell

RunFact = Fact[RunSubject]
_Test = Callable[[ContainerEnding], bool | None]


def of_run(name: str, test: _Test, *shown_by: str) -> RunFact:
    """Return a fact that depends on the run alone."""
    return Fact(name, lambda subject: test(subject.run), shown_by)


def knows_signal_state(c: ContainerEnding) -> bool:
    """Return whether an observer saw what PID 1 does with its stop signal."""
    return bool(c.process.disposition or c.process.command)


def _disposition(*those: str) -> _Test:
    return lambda c: c.process.disposition in those if knows_signal_state(c) else None


def looked_at_sockets(c: ContainerEnding) -> bool:
    """Return whether an observer saw its sockets: its own node, which saw it start, and not an agent on another."""
    return c.seen.sockets is not None or (knows_signal_state(c) and c.process.pid is not None)


def _ended(c: ContainerEnding) -> bool | None:
    if c.exit.at is not None:
        return True
    return None if c.started else False


def once_ended(test: Callable[[ContainerEnding], bool]) -> _Test:
    """Return a test of how it ended: None until its end was seen."""
    return lambda c: test(c) if c.exit.code is not None or c.exit.signal is not None else None


def _signalled(c: ContainerEnding) -> bool | None:
    """None where nobody saw the stop signal, or the end of the hook after which it is sent."""
    if c.stop.signal_at is not None:
        return True
    unseen = (c.exit.from_status and not c.exit.before_delete) or (c.hook is not None and c.hook.outcome == "unknown")
    return None if unseen or c.exit.elsewhere else False


def _before_signal(c: ContainerEnding) -> bool | None:
    signalled = _signalled(c)
    if signalled is None:
        return None
    return c.exit.before_delete or not signalled or (c.exit.at or 0.0) < (c.stop.signal_at or 0.0)


_HOW = tell("how it ended")
_SENT = tell("when its stop signal was sent")
_PROGRAM = tell("which program PID 1 is")

# -- how it ended ----------------------------------------------------------------------------------------------------

STARTED = of_run("whether it was started", lambda c: c.started, kinds.PROCESS_STARTED, kinds.CONTAINER_STARTED)
NEVER_STARTED = of_run("whether it was started", lambda c: not c.started, kinds.CONTAINER_START_FAILED)
ENDED = of_run("when it ended", _ended, kinds.PROCESS_EXITED)
KILLED = of_run(_HOW, once_ended(lambda c: c.exit.sigkilled), kinds.PROCESS_EXITED, kinds.SIGNAL_SENT)
NOT_KILLED = of_run(_HOW, once_ended(lambda c: not c.exit.sigkilled), kinds.PROCESS_EXITED)
GRACE_OVER = of_run("who sent the signal", once_ended(lambda c: c.exit.killed_by_grace), kinds.SIGNAL_SENT)
SIGNALLED = of_run(_SENT, _signalled, kinds.SIGNAL_SENT)
FAILED_CODE = of_run("its exit code", once_ended(lambda c: bool(c.exit.code)), kinds.PROCESS_EXITED)
ENDED_WELL = of_run("its exit code", once_ended(lambda c: c.exit.code == 0), kinds.PROCESS_EXITED)
BEFORE_DELETE = of_run("when it ended", lambda c: c.exit.before_delete, kinds.PROCESS_EXITED)
BEFORE_SIGNAL = of_run(_SENT, _before_signal, kinds.PROCESS_EXITED)
OUT_OF_MEMORY = of_run(
    "whether memory ran out", once_ended(lambda c: c.exit.killed_by == "out of memory"), kinds.PROCESS_EXITED
)
OOM_COUNTED = of_run(
    "whether memory ran out",
    lambda c: c.seen.oom_kills > 0 if c.seen.oom_kills is not None else None,
    kinds.PROCESS_EXITED,
)
BY_PROBE: Fact[RunSubject] = Fact(
    "why the kubelet ended it",
    lambda s: (
        is_over(s.run, s.ending) and s.run.exit.ended_by in ("livenessProbe", "startupProbe")
        if s.run.exit.ended_by
        else None
    ),
    (kinds.KILLING,),
)

# -- what PID 1 does with the stop signal ----------------------------------------------------------------------------

_STATE = tell("what PID 1 does with its stop signal")
HANDLED = of_run(_STATE, _disposition("handled"), kinds.PROCESS_SIGNAL_STATE)
NOT_HANDLED = of_run(_STATE, _disposition("default", "ignored", "blocked"), kinds.PROCESS_SIGNAL_STATE)
DROPPED_OR_IGNORED = of_run(_STATE, _disposition("default", "ignored"), kinds.PROCESS_SIGNAL_STATE)
DROPPED = of_run(_STATE, _disposition("default"), kinds.PROCESS_SIGNAL_STATE)


def _program(test: Callable[[ContainerEnding], bool]) -> _Test:
    """Return a test of what PID 1 is: None where nobody saw it."""
    return lambda c: test(c) if c.process.command or c.process.exe or c.process.argv else None


SHELL = of_run(_PROGRAM, _program(is_shell), kinds.PROCESS_STARTED, kinds.PROCESS_SIGNAL_STATE)
NO_SHELL = of_run(_PROGRAM, _program(lambda c: not is_shell(c)), kinds.PROCESS_STARTED)
FORWARDS = of_run(_PROGRAM, _program(lambda c: bool(forwards(c))), kinds.PROCESS_STARTED)

# -- the processes beside PID 1 --------------------------------------------------------------------------------------

_LEFT = tell("the processes beside PID 1")


def _left(test: _Test) -> _Test:
    """Wrap a test of the processes left: an observer of PID 1's signals sees them too, so no record means none."""

    def holds(c: ContainerEnding) -> bool | None:
        if c.seen.processes_left is None:
            return False if knows_signal_state(c) else None
        return test(c)

    return holds


def _some_older(c: ContainerEnding) -> bool:
    left = c.seen.processes_left
    return (
        left is not None and bool(left.alive) and (bool(left.more) or not all(p.after_signal for p in left.processes))
    )


def _one_is_child(those: Iterable[ProcessLeft], *, child: bool) -> bool | None:
    """Return whether one that is older than the signal is a child of PID 1, or is none; None if that was not seen."""
    found = [p.child for p in those if not p.after_signal]
    if child in found:
        return True
    return None if None in found else False


def _deaf_child(c: ContainerEnding) -> bool | None:
    left = c.seen.processes_left
    return _one_is_child((p for p in left.processes if p.deaf), child=True) if left is not None else None


def _all_deaf(c: ContainerEnding) -> bool:
    """Return whether the signal would do nothing to any process that was there when it came, so that it does not matter
    who passes it on."""
    return _all_older(c, lambda p: p.deaf)


def _all_older(c: ContainerEnding, test: Callable[[ProcessLeft], bool]) -> bool:
    left, older = c.seen.processes_left, older_processes(c)
    return left is not None and not left.more and bool(older) and all(map(test, older))


def older_processes(c: ContainerEnding) -> list[ProcessLeft]:
    """Return the processes left that were there when the signal came."""
    left = c.seen.processes_left
    return [p for p in left.processes if not p.after_signal] if left is not None else []


def _stranger(c: ContainerEnding) -> bool | None:
    left = c.seen.processes_left
    those = (p for p in left.processes if p.disposition == "default") if left is not None else ()
    return _one_is_child(those, child=False)


def _only_sleeps(c: ContainerEnding) -> bool:
    left = c.seen.processes_left
    return left is not None and not left.more and all(p.name == "sleep" for p in left.processes)


def killed_children(c: ContainerEnding) -> list[ChildEnd]:
    """Return the processes that SIGKILL ended while PID 1 lived, before the kubelet's own SIGKILL."""
    until = c.stop.kill_at
    ends = (each for each in c.seen.children_ended if each.signal == "SIGKILL")
    return [each for each in ends if until is None or each.at < until]


def _reloaded(c: ContainerEnding) -> bool:
    left = c.seen.processes_left
    return (
        left is not None
        and left.when == "SIGKILL"
        and not left.more
        and bool(left.processes)
        and all(p.after_signal for p in left.processes)
    )


def _negated(holds: bool | None) -> bool | None:
    return None if holds is None else not holds


OLDER_PROCESSES = of_run(_LEFT, _left(_some_older), kinds.PROCESSES_LEFT)
DEAF_CHILD = of_run(_LEFT, _left(_deaf_child), kinds.PROCESSES_LEFT)
ALL_DEAF = of_run(_LEFT, _left(_all_deaf), kinds.PROCESSES_LEFT)
ALL_HANDLE = of_run(_LEFT, _left(lambda c: _all_older(c, lambda p: p.disposition == "handled")), kinds.PROCESSES_LEFT)
STRANGER = of_run(_LEFT, _left(_stranger), kinds.PROCESSES_LEFT)
NEW_PROCESSES = of_run(_LEFT, _left(_reloaded), kinds.PROCESSES_LEFT)
ZOMBIES = of_run(
    _LEFT, _left(lambda c: bool(c.seen.processes_left and c.seen.processes_left.zombies)), kinds.PROCESSES_LEFT
)
CHILD_KILLED = of_run(
    "how its processes ended",
    lambda c: bool(killed_children(c)) or (False if knows_signal_state(c) else None),
    kinds.CHILD_ENDED,
)
ONLY_SLEEPS = of_run(_LEFT, _left(_only_sleeps), kinds.PROCESSES_LEFT)


_RELEASES_NOTHING = frozenset(
    ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCONT", "SIGWINCH", "SIGPIPE",
     "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS", "SIGXCPU", "SIGXFSZ", "SIGPROF",
     "SIGVTALRM", "32", "33")
)  # fmt: skip
"""Signals that do not come by themselves to threads that all wait: those of a terminal and of an operator, those of a
thread's own instructions, of CPU time, and two that glibc keeps for its threads."""


def _locked(c: ContainerEnding) -> bool | None:
    """Return whether a process that got its stop signal and handles it waits for itself: PID 1, or a child that PID 1,
    an init, passed it on to. One that handles a signal that may still come waits for that."""
    if c.seen.waits is None:
        return False if knows_signal_state(c) else None
    return locked_process(c) is not None


def locked_process(c: ContainerEnding) -> ProcessWaiting | None:
    """Return the process of which `_locked` is true."""
    if c.seen.waits is None:
        return None
    handles = {each.container_pid for each in c.seen.processes_at_stop if each.disposition == "handled"}
    for index, each in enumerate(c.seen.waits.processes):
        signalled = not index if not forwards(c) else index and each.container_pid in handles
        if each.locked and signalled and not each.after_signal and not _may_be_released(c, index):
            return each
    return None


def _may_be_released(c: ContainerEnding, index: int) -> bool:
    """Return whether a handler of a process may still run: one of SIGCHLD when a process lives that may be its child,
    one of an alarm, a timer, input or another process. True where its handlers are not known."""
    processes = c.seen.waits.processes if c.seen.waits is not None else ()
    caught = processes[index].caught
    if caught is None:
        if index:
            return True
        caught = c.process.caught
    others = len(processes) - (2 if index else 1)
    harmless = _RELEASES_NOTHING | {c.stop.signal} | (set() if others else {"SIGCHLD"})
    return not harmless.issuperset(caught)


LOCKED = of_run(tell("what it waited for"), _locked, kinds.WAITS_AT_KILL)
LEFT_AT_KILL = of_run(
    _LEFT,
    _left(lambda c: c.exit.sigkilled and c.seen.processes_left is not None and c.seen.processes_left.when == "SIGKILL"),
    kinds.PROCESSES_LEFT,
    kinds.PROCESS_EXITED,
)
NOT_LEFT_AT_KILL: RunFact = Fact(_LEFT, lambda s: _negated(LEFT_AT_KILL.holds(s)), LEFT_AT_KILL.kinds)
TRAP_ENDS_SHELL = of_run(
    "what the script of the shell does",
    lambda c: (
        c.process.disposition == "handled" and shape_of(script_of(c.process.argv)) != "loop"
        if knows_signal_state(c)
        else None
    ),
    kinds.PROCESS_STARTED,
)

# -- its hook --------------------------------------------------------------------------------------------------------


def hook_is(*outcomes: str) -> _Test:
    """Return a test for how the preStop hook ended: None if it began and its end was not seen."""

    def holds(c: ContainerEnding) -> bool | None:
        if c.hook is None:
            return False
        return None if c.hook.outcome == "unknown" else c.hook.outcome in outcomes

    return holds


_HOOK_RAN = (kinds.PRE_STOP_STARTED, kinds.PRE_STOP_FINISHED)
HOOK_SKIPPED = of_run("what became of its hook", hook_is("skipped"), kinds.PRE_STOP_SKIPPED)
HOOK_FAILED = of_run("how its hook ended", hook_is("failed"), *_HOOK_RAN)
HOOK_INTERRUPTED = of_run("when its container ended", hook_is("interrupted"), *_HOOK_RAN, kinds.PROCESS_EXITED)
HOOK_OUTLIVED = of_run("how its hook ended", hook_is("outlived"), *_HOOK_RAN)

# -- its sockets -----------------------------------------------------------------------------------------------------

_SOCKETS = tell("its sockets")


def _sockets(test: Callable[[ContainerEnding], bool]) -> _Test:
    """Who looks, and writes nothing, has seen none."""

    def holds(c: ContainerEnding) -> bool | None:
        if c.seen.sockets is None:
            return False if looked_at_sockets(c) else None
        return test(c)

    return holds


def clients_at_exit(s: RunSubject) -> AtExit | None:
    """Return its sockets right before its exit, without the connections of its own tcpSocket probes."""
    end = s.run.seen.sockets.at_exit if s.run.seen.sockets else None
    probed = next((each.tcp_probes for each in s.ending.pod.containers if each.name == s.run.name), ())
    return without_probes(end, probed, s.ending.addresses) if end is not None else None


def open_connections(s: RunSubject) -> int:
    """Return how many connections the program had accepted and not closed at its end."""
    end = clients_at_exit(s)
    return end.connections - end.backlog if end else 0


def _of_clients(test: Callable[[RunSubject], bool]) -> RunFact:
    """Return a fact about the sockets at the exit. Sockets that were looked at without a record are none."""
    seen = _sockets(lambda c: True)
    return Fact(_SOCKETS, lambda s: test(s) if seen(s.run) else seen(s.run), (kinds.SOCKETS_AT_EXIT,))


CONNECTIONS_OPEN = _of_clients(lambda s: open_connections(s) > 0)
STILL_LISTENED = of_run(
    _SOCKETS,
    _sockets(
        lambda c: bool(
            c.seen.sockets and c.seen.sockets.at_exit and c.seen.sockets.at_exit.listeners and not c.seen.sockets.closed
        )
    ),
    kinds.SOCKETS_AT_EXIT,
)
BACKLOG = _of_clients(lambda s: bool((end := clients_at_exit(s)) and end.backlog))


def _cut(s: RunSubject) -> bool:
    end = clients_at_exit(s)
    return bool(end and (end.connections or end.resets or end.closed_unread))


CUT = _of_clients(_cut)
