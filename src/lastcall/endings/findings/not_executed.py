"""What to do about a program that the kernel did not execute, or a script that a shell did not understand. Pure."""

# check: pure

import re
from collections.abc import Iterable

from lastcall.endings.catalogue.lookup import fix
from lastcall.endings.story import Entry
from lastcall.records import kinds

_REFUSED = re.compile(r"exec (?P<path>.+): (?P<error>no such file or directory|exec format error)")
"""What runc prints in a container whose program the kernel refuses (standard_init_linux.go)."""

_RETURN = re.compile(
    r"\S\r: (?:command )?not found|\\r\W: (?:command not found|No such file)|-\r: invalid option"
    r"|can't execute '\S+\r'|set: (?:.*: )?(?i:illegal option) -\Z"
)
"""What shells and env print of a word that ends with a carriage return: dash, busybox and bash, coreutils."""

_SCRIPT = re.compile(r"(?:^|[:\s])(?P<path>\S*/\S*): (?P<why>not found|cannot execute: required file not found)$")


def advice(lines: list[str], exits: Iterable[Entry]) -> str:
    """Return what to do about a run, by its last line and what the runtime found the file to be; "" for any other."""
    last = lines[-1] if lines else ""
    known = [entry.told(kinds.PROCESS_EXITED).get("notExecuted") for entry in exits]
    if known and (found := known[-1]):
        facts = {"path": found["path"], "interpreter": found["interpreter"], "machine": found["machine"]}
        return fix("crashed", _variant(dict(found)), **facts)
    if refused := _REFUSED.fullmatch(last):
        variant = "formatUnknown" if refused["error"] == "exec format error" else "interpreterUnknown"
        return fix("crashed", variant, path=refused["path"])
    if _RETURN.search(last.rstrip("\r")):
        return fix("crashed", "carriageReturn")
    if script := _SCRIPT.search(last):
        variant = "scriptNotFound" if script["why"] == "not found" else "interpreterUnknown"
        return fix("crashed", variant, path=script["path"])
    return ""


def _variant(found: dict[str, object]) -> str:
    """By what the file is: `found` is a NotExecuted."""
    if found["error"] == "exec format error":
        return "architecture" if found["machine"] else "noInterpreter" if found["format"] == "text" else "formatUnknown"
    if found["carriageReturn"]:
        return "interpreterReturn"
    if not found["interpreter"]:
        return "interpreterUnknown"
    return "loaderMissing" if found["format"] == "elf" else "interpreterMissing"
