"""What a finding proposes, as data: a change of the Pod's spec, or what the program itself has to do. Pure."""

# check: pure

from typing import Any

from lastcall.endings.story import Change, ProgramChange
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Remedy:
    """Advice in words ("" for none), and the same as data where it is definite."""

    advice: str = ""
    change: Change | None = None


NOTHING = Remedy()


def in_program(advice: str, what: ProgramChange) -> Remedy:
    """Return advice that only a change of the program, or of its image, can follow."""
    return Remedy(advice, Change(program=what))


def in_pod(advice: str, **fields: Any) -> Remedy:
    """Return advice that is a strategic merge patch of the Pod's spec."""
    return Remedy(advice, Change(patch=fields))


def container_change(name: str, kind: str, **fields: Any) -> Change:
    """Return a strategic merge patch of one container of the Pod's spec."""
    where = "containers" if kind == "container" else "initContainers"
    return Change(patch={where: [{"name": name, **fields}]})


def in_container(advice: str, name: str, kind: str, **fields: Any) -> Remedy:
    """Return advice that is a strategic merge patch of one container of the Pod's spec."""
    return Remedy(advice, container_change(name, kind, **fields))


def pause(advice: str, name: str, kind: str, seconds: int) -> Remedy:
    """Return the advice to wait in a preStop hook; another handler of the hook is removed."""
    handler = {"sleep": {"seconds": seconds}, "exec": None, "httpGet": None, "tcpSocket": None}
    return in_container(advice, name, kind, lifecycle={"preStop": handler})
