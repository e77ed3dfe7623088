"""What a shell that is PID 1 was given to do, by its command line: what helps its program goes by that.

A shell can be replaced (`exec`) by the last command of a list. It waits for all commands of a pipeline, and it is
itself what loops, or what waits for its background jobs (POSIX.1, Shell Command Language 2.9). Pure.
"""

# check: pure

import posixpath
import re
import shlex
from collections.abc import Sequence
from typing import Literal

from lastcall.endings.catalogue.lookup import fix

Shape = Literal["", "plain", "list", "pipeline", "jobs", "loop"]
"""plain: one command. list: several, one after the other. jobs: something runs in the background. "": a script in a
file, or one that only a shell can read."""

Place = Literal["", "before", "last"]
"""Where a script runs a program: before another command, or as its last one."""

_SHELLS = ("sh", "bash", "dash", "ash", "ksh", "zsh", "mksh", "busybox")
_FLAG = re.compile(r"-[a-z]*c\Z")
_PLAIN = re.compile(r"[\w@%+=:,./ -]+\Z", re.ASCII)
"""A command line that a shell only splits into words."""
_NOT_JOINTS = re.compile(r"\$\([^()]*\)|`[^`]*`|\d*[<>]&\d*-?|&>>?|>\|")
"""Substitutions and redirections: what has the characters that join commands, and joins none."""
_JOB = re.compile(r"(?<!&)&(?!&)")
_PIPELINE = re.compile(r"(?P<program>[^|]+?)(?P<errors>\s+2>&1)?\s*\|\s*(?P<rest>[^|]+)\Z")
_ERRORS = "2>&1"


def script_of(argv: Sequence[str]) -> str:
    """Return the text that a shell was given with `-c`; "" for anything else."""
    if not argv or posixpath.basename(argv[0]) not in _SHELLS:
        return ""
    for index, word in enumerate(argv[1:], 1):
        if _FLAG.match(word):
            return argv[index + 1].strip() if index + 1 < len(argv) else ""
    return ""


def shape_of(script: str) -> Shape:
    """Return what the script has its shell do in the end."""
    if not script:
        return ""
    if _PLAIN.match(script):
        return "plain"
    words = _words(script)
    joints = [_is_joint(word) for word in words]
    if not words:
        return ""
    if words[-1:] == ["done"] and any(joints[-2:-1]):
        return "loop"
    if any(joint and _JOB.search(word) for joint, word in zip(joints, words, strict=True)):
        return "jobs"
    starts = [i for i, word in enumerate(words[:-1]) if joints[i] and word != "|"]
    last = words[starts[-1] + 1 :] if starts else words
    return "pipeline" if "|" in last else "list"


def place_of(script: str, program: str) -> Place:
    """Return whether a list of commands runs the program last, or before another one; "" where that is not known."""
    commands: list[list[str]] = [[]]
    for word in _words(script):
        if _is_joint(word):
            commands.append([])
        else:
            commands[-1].append(word)
    programs = [posixpath.basename(each[0]) for each in commands if each]
    if program not in programs:
        return ""
    return "last" if programs[-1] == program else "before"


def _words(script: str) -> list[str]:
    """Return the words of a script, and what joins its commands; none if only a shell can read it."""
    try:
        text = _NOT_JOINTS.sub(" x ", script).replace("\n", ";")
        lexer = shlex.shlex(text, posix=False, punctuation_chars=";&|()")
        lexer.whitespace_split = True
        lexer.commenters = ""
        return list(lexer)
    except ValueError:
        return []


def _is_joint(word: str) -> bool:
    return set(word) <= set(";&|()")


def without_pipeline(argv: Sequence[str]) -> tuple[str, str] | None:
    """Split a script that is one simple pipeline. None for any other.

    Return its program's command line, which can take the shell's place, and the whole as bash can run it without
    waiting for a pipeline.
    """
    script = script_of(argv)
    found = _PIPELINE.match(script)
    if not found or not _PLAIN.match(found["program"]) or not _PLAIN.match(found["rest"]):
        return None
    errors = f" {_ERRORS}" if found["errors"] else ""
    program = found["program"].removeprefix("exec ")
    return f"exec {program}", f"exec {program} > >({found['rest'].strip()}){errors}"


def pipeline_fix(argv: Sequence[str]) -> str:
    """Return what helps a program whose shell waits for its pipeline: the command itself, where the pipeline is
    simple."""
    alone = without_pipeline(argv)
    if alone is None:
        return fix("shellKeepsSignal", "pipeline")
    words = {"alone": f'["{argv[0]}", "-c", "{alone[0]}"]', "bash": f'["bash", "-c", "{alone[1]}"]'}
    return fix("shellKeepsSignal", "simplePipeline", **words)
