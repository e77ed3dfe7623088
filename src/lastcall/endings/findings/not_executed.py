"""What to do about a program that the kernel did not execute, or a script that a shell did not understand. Pure."""

# check: pure

import re
from collections.abc import Iterable

from lastcall.endings.catalogue.lookup import fix
from lastcall.endings.story import Entry
from lastcall.records import kinds
from lastcall.world.dataclass import dataclass

_REFUSED = re.compile(r"exec (?P<path>.+): (?P<error>no such file or directory|exec format error)")
"""What runc prints in a container whose program the kernel refuses (standard_init_linux.go)."""

_RETURN = re.compile(
    r"\S\r: (?:command )?not found|\\r\W: (?:command not found|No such file)|-\r: invalid option"
    r"|can't execute '\S+\r'|set: (?:.*: )?(?i:illegal option) -\Z"
)
"""What shells and env print of a word that ends with a carriage return: dash, busybox and bash, coreutils."""

_SCRIPT = re.compile(r"(?:^|[:\s])(?P<path>\S*/\S*): (?P<why>not found|cannot execute: required file not found)$")
_IN_SHELL = re.compile(
    r"^\S*(?:: line \d+|: \d+)?: (?P<program>[^\s:]+): (?P<why>(?:command )?not found|(?i:permission denied))$"
)
"""What bash, dash and busybox print of a word that is no program, or none that they may execute: `sh: 1: serve: not
found`."""
_HINT = re.compile(r"\S*env: use -\[v]S to pass options in shebang lines")
"""What coreutils' env prints after it has said which program is missing."""
_ENV = re.compile(r"\S*env: [\u2018'\"]?(?P<program>[^\u2019'\":]+)[\u2019'\"]?: No such file or directory")
_ENV_BUSYBOX = re.compile(r"\S*env: can't execute '(?P<program>[^']+)': No such file or directory")
"""What env prints of the interpreter that a script's first line (#!/usr/bin/env …) names."""
_CODES = {127: "not found", 126: "denied"}
"""The exit code of a shell whose last command it could not execute."""

_OTHER_ERROR = re.compile(
    r": (?:Interrupted system call|Resource temporarily unavailable|Cannot allocate memory|Out of memory"
    r"|Argument list too long|Text file busy|Input/output error|I/O error|Too many open files(?: in system)?"
    r"|No file descriptors available|No space left on device|Exec format error|(?:Is a|Not a) directory)\Z",
    re.I,
)
"""What glibc and musl say (strerror(3)) where exec or fork fails although the file may be executed."""


@dataclass(frozen=True, slots=True)
class NotExecuted:
    """`path` is the file that was not executed; "" where nobody names it."""

    advice: str
    path: str = ""


def not_executed(lines: list[str], exits: Iterable[Entry]) -> NotExecuted | None:
    """Return what to do about a run, by its last line and what the runtime found the file to be; None for any other."""
    last = next((line for line in reversed(lines) if not _HINT.fullmatch(line)), "")
    known = [entry.facts_as(kinds.PROCESS_EXITED) for entry in exits]
    if known and (found := known[-1].get("notExecuted")):
        facts = {"path": found["path"], "interpreter": found["interpreter"], "machine": found["machine"]}
        return NotExecuted(fix("commandNotStarted", _variant(dict(found)), **facts), found["path"])
    if refused := _REFUSED.fullmatch(last):
        variant = "formatUnknown" if refused["error"] == "exec format error" else "interpreterUnknown"
        return NotExecuted(fix("commandNotStarted", variant, path=refused["path"]), refused["path"])
    if _RETURN.search(last.rstrip("\r")):
        return NotExecuted(fix("commandNotStarted", "carriageReturn"))
    if by_env := _ENV.fullmatch(last) or _ENV_BUSYBOX.fullmatch(last):
        return NotExecuted(fix("commandNotStarted", "byEnv", program=by_env["program"]))
    if script := _SCRIPT.search(last):
        variant = "scriptNotFound" if script["why"] == "not found" else "interpreterUnknown"
        return NotExecuted(fix("commandNotStarted", variant, path=script["path"]), script["path"])
    word, code = _IN_SHELL.match(last), known[-1].get("exitCode") if known else None
    if word and _CODES.get(code or 0) == ("not found" if word["why"].endswith("found") else "denied"):
        variant = "inShell" if code == 127 else "deniedInShell"
        return NotExecuted(fix("commandNotStarted", variant, program=word["program"]), word["program"])
    return None


def is_not_executable(code: int | None, output: str) -> bool:
    """Return whether an exit code says that a shell may not execute a file, and the output ends with no other error."""
    return code == 126 and not _OTHER_ERROR.search(output.rstrip())


def _variant(found: dict[str, object]) -> str:
    """By what the file is: `found` is a NotExecuted."""
    if found["error"] == "exec format error":
        return "architecture" if found["machine"] else "noInterpreter" if found["format"] == "text" else "formatUnknown"
    if found["carriageReturn"]:
        return "interpreterReturn"
    if not found["interpreter"]:
        return "interpreterUnknown"
    return "loaderMissing" if found["format"] == "elf" else "interpreterMissing"
