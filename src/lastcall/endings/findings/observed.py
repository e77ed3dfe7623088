"""Facts about one run of a container that rows need or are refuted by. Pure.

None means that nobody observed it: a Pod of another cluster has no records of its processes, signals and sockets.
"""

# check: pure

from collections.abc import Callable

from lastcall.endings.facts.pid1 import forwards, is_shell
from lastcall.endings.findings.restarts import is_over
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact
from lastcall.endings.node_facts import ChildEnd
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
    """Return whether somebody looked at what PID 1 does with its stop signal."""
    return bool(c.process.disposition or c.process.command)


def _disposition(*those: str) -> _Test:
    return lambda c: c.process.disposition in those if knows_signal_state(c) else None


def _ended(c: ContainerEnding) -> bool | None:
    return c.exit.at is not None


_HOW = tell("how it ended")
_SENT = tell("when its stop signal was sent")
_PROGRAM = tell("which program PID 1 is")

# -- how it ended ----------------------------------------------------------------------------------------------------

STARTED = of_run("whether it was started", lambda c: c.started, kinds.PROCESS_STARTED, kinds.CONTAINER_STARTED)
NEVER_STARTED = of_run("whether it was started", lambda c: not c.started, kinds.CONTAINER_START_FAILED)
ENDED = of_run("when it ended", _ended, kinds.PROCESS_EXITED)
KILLED = of_run(_HOW, lambda c: c.exit.sigkilled, kinds.PROCESS_EXITED, kinds.SIGNAL_SENT)
NOT_KILLED = of_run(_HOW, lambda c: not c.exit.sigkilled, kinds.PROCESS_EXITED)
SIGNALLED = of_run(_SENT, lambda c: c.stop.signal_at is not None, kinds.SIGNAL_SENT)
FAILED_CODE = of_run("its exit code", lambda c: bool(c.exit.code), kinds.PROCESS_EXITED)
BEFORE_DELETE = of_run("when it ended", lambda c: c.exit.before_delete, kinds.PROCESS_EXITED)
BEFORE_SIGNAL = of_run(
    _SENT,
    lambda c: c.exit.before_delete or c.stop.signal_at is None or (c.exit.at or 0.0) < c.stop.signal_at,
    kinds.PROCESS_EXITED,
)
OUT_OF_MEMORY = of_run("whether memory ran out", lambda c: c.exit.killed_by == "out of memory", kinds.PROCESS_EXITED)
OOM_COUNTED = of_run("whether memory ran out", lambda c: bool(c.seen.oom_kills), kinds.PROCESS_EXITED)
BY_PROBE: Fact[RunSubject] = Fact(
    "why the kubelet ended it",
    lambda s: is_over(s.run, s.ending) and s.run.exit.ended_by in ("livenessProbe", "startupProbe"),
    (kinds.KILLING,),
)

# -- what PID 1 does with the stop signal ----------------------------------------------------------------------------

_STATE = tell("what PID 1 does with its stop signal")
HANDLED = of_run(_STATE, _disposition("handled"), kinds.PROCESS_SIGNAL_STATE)
NOT_HANDLED = of_run(_STATE, _disposition("default", "ignored", "blocked"), kinds.PROCESS_SIGNAL_STATE)
DROPPED = of_run(_STATE, _disposition("default"), kinds.PROCESS_SIGNAL_STATE)
SHELL = of_run(_PROGRAM, is_shell, kinds.PROCESS_STARTED, kinds.PROCESS_SIGNAL_STATE)
NO_SHELL = of_run(_PROGRAM, lambda c: not is_shell(c), kinds.PROCESS_STARTED)
FORWARDS = of_run(_PROGRAM, lambda c: bool(forwards(c)), kinds.PROCESS_STARTED)

# -- the processes beside PID 1 --------------------------------------------------------------------------------------

_LEFT = tell("the processes beside PID 1")


def _left(test: Callable[[ContainerEnding], bool]) -> _Test:
    """Whoever looks at PID 1's signals looks at the other processes as well: no record means that there were none."""

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


def _deaf_child(c: ContainerEnding) -> bool:
    left = c.seen.processes_left
    return left is not None and any(p.deaf and p.child and not p.after_signal for p in left.processes)


def _stranger(c: ContainerEnding) -> bool:
    left = c.seen.processes_left
    return left is not None and any(
        p.disposition == "default" and p.child is False and not p.after_signal for p in left.processes
    )


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


OLDER_PROCESSES = of_run(_LEFT, _left(_some_older), kinds.PROCESSES_LEFT)
DEAF_CHILD = of_run(_LEFT, _left(_deaf_child), kinds.PROCESSES_LEFT)
STRANGER = of_run(_LEFT, _left(_stranger), kinds.PROCESSES_LEFT)
NEW_PROCESSES = of_run(_LEFT, _left(_reloaded), kinds.PROCESSES_LEFT)
ZOMBIES = of_run(
    _LEFT, _left(lambda c: bool(c.seen.processes_left and c.seen.processes_left.zombies)), kinds.PROCESSES_LEFT
)
CHILD_KILLED = of_run(
    "how its processes ended",
    lambda c: any(each.signal == "SIGKILL" for each in killed_children(c)),
    kinds.CHILD_ENDED,
)
ONLY_SLEEPS = of_run(_LEFT, _left(_only_sleeps), kinds.PROCESSES_LEFT)
LEFT_AT_KILL = of_run(
    _LEFT,
    _left(lambda c: c.exit.sigkilled and c.seen.processes_left is not None and c.seen.processes_left.when == "SIGKILL"),
    kinds.PROCESSES_LEFT,
)
TRAP_ENDS_SHELL = of_run(
    "what the script of the shell does",
    lambda c: c.process.disposition == "handled" and shape_of(script_of(c.process.argv)) != "loop",
    kinds.PROCESS_STARTED,
)

# -- its hook --------------------------------------------------------------------------------------------------------


def hook_is(*outcomes: str) -> _Test:
    """Return a test for how the preStop hook ended."""
    return lambda c: c.hook is not None and c.hook.outcome in outcomes


HOOK_SKIPPED = of_run("what became of its hook", hook_is("skipped"), kinds.PRE_STOP_SKIPPED)
HOOK_FAILED = of_run("how its hook ended", hook_is("failed"), kinds.PRE_STOP_FINISHED)
HOOK_INTERRUPTED = of_run(
    "when its container ended", hook_is("interrupted"), kinds.PRE_STOP_FINISHED, kinds.PROCESS_EXITED
)
HOOK_OUTLIVED = of_run("how its hook ended", hook_is("outlived"), kinds.PRE_STOP_FINISHED)

# -- its sockets -----------------------------------------------------------------------------------------------------

_SOCKETS = tell("its sockets")


def _sockets(test: Callable[[ContainerEnding], bool]) -> _Test:
    """As of the other processes: who looks, and writes nothing, has seen none."""

    def holds(c: ContainerEnding) -> bool | None:
        if c.seen.sockets is None:
            return False if knows_signal_state(c) else None
        return test(c)

    return holds


def open_connections(c: ContainerEnding) -> int:
    """Return how many connections the program had accepted and not closed at its end."""
    end = c.seen.sockets.at_exit if c.seen.sockets else None
    return end.connections - end.backlog if end else 0


CONNECTIONS_OPEN = of_run(_SOCKETS, _sockets(lambda c: open_connections(c) > 0), kinds.SOCKETS_AT_EXIT)
STILL_LISTENED = of_run(
    _SOCKETS,
    _sockets(
        lambda c: bool(
            c.seen.sockets and c.seen.sockets.at_exit and c.seen.sockets.at_exit.listeners and not c.seen.sockets.closed
        )
    ),
    kinds.SOCKETS_AT_EXIT,
)
BACKLOG = of_run(
    _SOCKETS,
    _sockets(lambda c: bool(c.seen.sockets and c.seen.sockets.at_exit and c.seen.sockets.at_exit.backlog)),
    kinds.SOCKETS_AT_EXIT,
)


def _cut(c: ContainerEnding) -> bool:
    end = c.seen.sockets.at_exit if c.seen.sockets else None
    return bool(end and (end.connections or end.resets or end.closed_unread))


CUT = of_run(_SOCKETS, _sockets(_cut), kinds.SOCKETS_AT_EXIT)
