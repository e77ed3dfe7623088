"""What shells and Python programs do when SIGTERM arrives, as far as their source says it. Pure."""

# check: pure

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from lastcall.lint import commands

if TYPE_CHECKING:
    import ast

_COMMENT = re.compile(r"(?m)^[ \t]*#.*$|(?<=\s)#[^'\"\n]*$")
_TRAP = re.compile(
    r"""\btrap\s+(?:--\s+)?(?P<action>'[^']*'|"(?:[^"\\]|\\.)*"|[\w.:-]+)[ \t]+(?P<signals>\w+(?:[ \t]+\w+)*)"""
)
_FUNCTION = re.compile(r"(?m)(?:^|(?<=[;\s]))(?:function\s+)?([A-Za-z_]\w*)\s*\(\)\s*\{")
_LOOP = re.compile(r"\b(?:while|until|for)\b.*?\bdone\b", re.S)
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*\"""")
_JOB = re.compile(r"[^;&|\n]*(?:[<>]&[^;&|\n]*)*(?<![&<>|])&(?![&>])")
_WAIT = re.compile(r"\bwait\b")
_TAKES_TIME = re.compile(r"\b(?:wait|sleep|while|until|for|timeout|tail|flock)\b|-(?:9|KILL|SIGKILL)\b")
_NOTHING_LEFT = ("exit", "return", "true", ":", "echo", "printf", "fi", "}")
_SHORT = ("sleep", "tail", "cat", "echo", "printf", "touch", "date", "true", ":")
"""Jobs that lose nothing when they are killed."""


class LeftJob(NamedTuple):
    """`job` still runs when the trap of its shell has ended that. exits: by `exit`. once: it interrupts the only
    `wait`, after which the script is over."""

    job: str
    how: Literal["exits", "once"]


def _without_functions(script: str) -> tuple[str, dict[str, str]]:
    """Return a script without its functions, and their bodies."""
    bodies: dict[str, str] = {}
    while match := _FUNCTION.search(script):
        depth, end = 1, match.end()
        while end < len(script) and depth:
            depth += {"{": 1, "}": -1}.get(script[end], 0)
            end += 1
        bodies[match[1]] = script[match.end() : end - 1]
        script = script[: match.start()] + script[end:]
    return script, bodies


def on_term(script: str) -> str | None:
    """Return what a shell runs on SIGTERM, with the functions that it calls there; None without a trap, and for one
    that ignores or resets it (POSIX.1, trap)."""
    text, bodies = _without_functions(_COMMENT.sub("", script))
    of_term = [each for each in _TRAP.finditer(text) if {"TERM", "SIGTERM", "15"} & set(each["signals"].split())]
    actions = [each["action"].strip("'\"") for each in of_term if each["action"] != "-"]
    action = actions[-1] if actions else ""
    if not action.strip():
        return None
    called = [
        body for name, body in bodies.items() if re.search(rf"(?:\A|[\s;&|]){re.escape(name)}(?:\Z|[\s;&|])", action)
    ]
    if not called and re.fullmatch(r"\w+", action) and action not in ("exit", "return"):
        return None  # a function of a file that it reads
    return "\n".join([action, *called])


def takes_time(action: str) -> bool:
    """Return whether a trap waits for something, or means to kill."""
    return _TAKES_TIME.search(action) is not None


def left_job(script: str) -> LeftJob | None:
    """Return the job that a shell asks to end on SIGTERM and leaves behind; None for none, and where only a shell
    could tell.

    A trap interrupts `wait`, which then returns at once (POSIX.1, wait).
    """
    action = on_term(script)
    if action is None or not re.search(r"\bp?kill(?:all)?\b", action) or takes_time(action):
        return None  # no program is asked to end
    text = _TRAP.sub("", _without_functions(_COMMENT.sub("", script))[0])
    straight = _QUOTED.sub("Q", _LOOP.sub("", text))
    if any(words[0] == "exec" and len(words) > 1 for words in commands.commands_of(straight)):
        return None
    jobs = [each for each in map(_program, _JOB.findall(straight)) if each not in _SHORT]
    if not jobs or not _WAIT.search(text):
        return None
    if re.search(r"\bexit\b", action):
        return LeftJob(jobs[0], "exits")
    waits = list(_WAIT.finditer(straight))
    if len(waits) != 1 or len(_WAIT.findall(text)) != 1:
        return None
    after = commands.commands_of(straight[waits[0].start() :])[1:]
    over = all(words[0] in _NOTHING_LEFT or "=" in words[0] for words in after)
    return LeftJob(jobs[0], "once") if over else None


def _program(job: str) -> str:
    """Return the name of what `PROGRAM … &` starts; "its job" for a group of commands."""
    words = [each for each in job.strip(" \t&").split() if "=" not in each and each not in ("exec", "nohup", "setsid")]
    name = commands.program(words)
    return name if re.fullmatch(r"[\w.+-]+", name) else "its job"


def exits_with_zero(source: str) -> bool:
    """Return whether a Python program's own handler of SIGTERM does nothing but exit with code 0."""
    if "signal" not in source or "exit" not in source.lower():
        return False
    # late: only for a program that handles signals
    import ast

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    functions = {each.name: each.body for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
    for call in ast.walk(tree):
        if (
            isinstance(call, ast.Call)
            and _name(call.func) == "signal"
            and len(call.args) == 2
            and _is_term(call.args[0])
        ):
            handler = call.args[1]
            if isinstance(handler, ast.Lambda):
                return _exits(handler.body)
            body = functions.get(_name(handler)) or []
            last = body[-1] if body else None
            value = last.value if isinstance(last, ast.Expr) else last.exc if isinstance(last, ast.Raise) else None
            return _exits(value) and all(map(_is_quiet, body[:-1]))
    return False


def _name(node: "ast.AST | None") -> str:
    """Return the last name of `a.b.c`, or `c`."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _is_term(node: "ast.AST") -> bool:
    return _name(node) == "SIGTERM" or getattr(node, "value", None) == 15


def _exits(node: "ast.AST | None") -> bool:
    """Return whether this is `exit(0)`, `exit()`, `os._exit(0)` or SystemExit."""
    args = getattr(node, "args", [])
    name = _name(getattr(node, "func", node))
    if name not in ("exit", "_exit", "quit", "SystemExit"):
        return False
    return not args or getattr(args[0], "value", "") in (0, None)


def _is_quiet(statement: "ast.AST") -> bool:
    """Return whether a statement only says something or keeps a value."""
    call = getattr(statement, "value", None)
    said = ("print", "write", "flush", "debug", "info", "warning", "error", "log")
    return _name(getattr(call, "func", None)) in ("", *said)
