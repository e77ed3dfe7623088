"""What kind of program PID 1 of a container is: a shell, or an init that passes signals on. Pure."""

# check: pure

import posixpath
from typing import Literal

from lastcall.endings.story import ContainerEnding

SHELLS = ("sh", "bash", "dash", "ash", "ksh", "zsh", "mksh")

Forwards = Literal["", "child", "group"]

_FORWARDERS: dict[str, Forwards] = {
    "tini": "child", "tini-static": "child", "docker-init": "child", "catatonit": "child", "dumb-init": "group",
}  # fmt: skip
"""Programs that are an init and nothing else: they take every signal and send it on, to the child that they started or
to its process group (tini's README, "Process group killing"; dumb-init's, "Session behavior")."""


def is_shell_program(exe: str) -> bool:
    """Return whether a file is a shell; busybox may be anything."""
    return posixpath.basename(exe) in SHELLS


def is_shell(c: ContainerEnding) -> bool:
    """Return whether PID 1 is a shell. busybox is one when it was called as one.

    A shell that was given one command may have become it (exec).
    """
    if c.process.command:
        return (
            c.process.command in SHELLS
            or c.process.command.endswith(".sh")
            or posixpath.basename(c.process.exe) in SHELLS
        )
    names = {posixpath.basename(c.process.exe), posixpath.basename(c.process.argv[0]) if c.process.argv else ""}
    return any(name in SHELLS for name in sorted(names))


def forwards(c: ContainerEnding) -> Forwards:
    """Return to whom PID 1 passes signals on: its child alone, or its child's process group; "" where unknown."""
    names = (c.process.command, posixpath.basename(c.process.exe))
    found: Forwards = next((_FORWARDERS[name] for name in names if name in _FORWARDERS), "")
    return "group" if found == "child" and "-g" in c.process.argv[1:2] else found


def number_of(c: ContainerEnding) -> str:
    """Return `PID 1`: the number of the first process in its PID namespace, another one where that is shared."""
    return f"PID {c.process.container_pid}"


def by_name(c: ContainerEnding) -> str:
    """Return ` (nginx)`, to follow `PID 1 of web`; "" when it is not known."""
    name = c.process.command or posixpath.basename(c.process.argv[0] if c.process.argv else c.process.exe)
    return f" ({name})" if name else ""
