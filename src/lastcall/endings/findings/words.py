"""Parts of sentences that several findings have. Pure."""

from collections.abc import Sequence

from lastcall.endings.node_facts import ChildEnd, ProcessAtStop, ProcessLeft
from lastcall.endings.story import ContainerEnding
from lastcall.records.said import joined, tell


def seconds(value: float | None) -> str:
    """Format seconds: `3.0 s`, or `12 ms`."""
    value = value or 0.0
    if value >= 0.95:
        return tell("$seconds s", seconds=f"{value:.1f}")
    return tell("$milliseconds ms", milliseconds=f"{value * 1000:.0f}")


def listed(words: Sequence[str]) -> str:
    """Join words: `a, b and c`; "" for none."""
    if len(words) < 2:
        return words[0] if words else ""
    return tell("$words and $last", words=joined(words[:-1], ", "), last=words[-1])


_MOST_NAMES = 4


def process(each: ProcessLeft | ChildEnd | ProcessAtStop) -> str:
    """Name a process: `nginx (pid 7)`."""
    return f"{each.name} (pid {each.container_pid})"


def processes(those: Sequence[ProcessLeft | ChildEnd], more: int = 0) -> str:
    """Name the first processes, and count the others and `more`."""
    names: list[str] = [process(each) for each in those[:_MOST_NAMES]]
    others = len(those) + more - len(names)
    if others:
        names.append(tell("$count more", count=others))
    return listed(names)


def exit_code(c: ContainerEnding) -> str:
    """Tell the exit code of a program that nobody killed."""
    return tell("exit code $code", code=c.exit.code)


def at(value: float) -> str:
    """Return when it was, to follow a verb."""
    if value < 0:
        return tell(" $before before the DELETE", before=seconds(-value))
    return tell(" at $at", at=seconds(value))


def after_start(value: float) -> str:
    """Return how long after its start it was, to follow a verb."""
    return tell(" $after after its start", after=seconds(value))


def connections(count: int) -> str:
    return tell("1 connection") if count == 1 else tell("$count connections", count=count)
