"""Whether programs of one parent may have been stopped one after another until their time was over. Pure.

Nobody sees when a process signals another one: ends that are seconds apart are all that shows it.
"""

# check: pure

from itertools import pairwise

from lastcall.endings.facts.containers import TOGETHER_SECONDS
from lastcall.endings.facts.pid1 import SHELLS, by_name, forwards, is_shell, number_of
from lastcall.endings.findings.observed import knows_signal_state, older_processes
from lastcall.endings.findings.words import process
from lastcall.endings.node_facts import ChildEnd, ProcessAtStop, ProcessLeft
from lastcall.endings.story import ContainerEnding
from lastcall.world.dataclass import dataclass

_LEAST_SECONDS = 1.0
"""Programs that all end faster do not use up a grace period."""


@dataclass(frozen=True, slots=True)
class InTurn:
    """Programs of one `parent`, in words: those that had `ended` since the stop signal, and those `left` at SIGKILL.
    `longest` is the longest time from one end to the next, in seconds, and `needed` what all need if each of those left
    takes as long."""

    parent: str
    ended: tuple[ChildEnd, ...]
    left: tuple[ProcessLeft, ...]
    longest: float
    needed: float


def stopped_in_turn(c: ContainerEnding) -> InTurn | None:
    """Return what a parent may have stopped one after another, so that their sum was too long; None for nothing.

    All have handlers. No two ended together, as programs of one kind do that get their signal at once. Those left had
    less time than the slowest of the others: one that has more than that is slow by itself.
    """
    signalled, ended_at, left = c.stop.signal_at, c.exit.at, c.seen.processes_left
    parent = _parent_of_programs(c)
    if signalled is None or ended_at is None or left is None or left.when != "SIGKILL" or left.more or parent is None:
        return None
    number, name = parent
    own = {each.container_pid: each for each in c.seen.processes_at_stop if each.parent == number}
    still = tuple(each for each in older_processes(c) if each.container_pid != number)
    if not still or not all(each.container_pid in own and each.disposition == "handled" for each in still):
        return None
    ends = sorted(
        (each for each in c.seen.children_ended if _ended_by_itself(each, own) and each.at > signalled),
        key=lambda each: each.at,
    )
    turns = [later - before for before, later in pairwise([signalled, *(each.at for each in ends)])]
    if not turns or min(turns) <= TOGETHER_SECONDS or max(turns) < _LEAST_SECONDS:
        return None
    needed = ends[-1].at - signalled + len(still) * max(turns)
    return InTurn(name, tuple(ends), still, max(turns), needed) if needed > ended_at - signalled else None


def _ended_by_itself(end: ChildEnd, own: dict[int, ProcessAtStop]) -> bool:
    return end.container_pid in own and end.disposition == "handled" and end.signal is None


def _parent_of_programs(c: ContainerEnding) -> tuple[int, str] | None:
    """Return number and name of the process that may signal the others: PID 1, or the only child of an init, which
    passes the signal on to that alone; None for a shell, and for an init that signals all at once."""
    if not knows_signal_state(c) or is_shell(c) or forwards(c) == "group":
        return None
    main = c.process.container_pid
    if not forwards(c):
        return main, f"{number_of(c)}{by_name(c)}"
    children = [each for each in c.seen.processes_at_stop if each.parent == main]
    if len(children) != 1 or children[0].disposition != "handled" or children[0].name in SHELLS:
        return None
    return children[0].container_pid, process(children[0])
