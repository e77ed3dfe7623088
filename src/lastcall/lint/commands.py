"""What command lines of containers, hooks and probes say about signals and time. Pure; () and None for "not known"."""

# check: pure

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

SHELLS = frozenset(("sh", "bash", "dash", "ash", "ksh", "zsh"))
_FLAG = re.compile(r"-[a-z]*c[a-z]*\Z")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?\Z")
_UNITS = {None: 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_ENDLESS = re.compile(
    r"\bwhile\s+(true|:|\[\s*1\s*\]|1)\s*[;\n]|\bsleep\s+(infinity|inf)\b"
    r"|\btail\s+(?:-[nc]\s*\+?\d+\s+|-[^\sfF-]\S*\s+)*(?:-\d*[fF]\b|--follow\b)"
)


_BACKGROUND = re.compile(r"[^;&|\n]*(?:[<>]&[^;&|\n]*)*(?<![&<>|])&(?![&>])")
"""A simple command with `&` after it."""
_TRAP = re.compile(r"""\btrap\s+('[^']*'|"[^"]*"|\S+)""")
_TRIVIAL = ("exit", "true", ":", "echo", "printf")
"""Commands of the shell itself, after which it has nothing left to do."""


def program(argv: Sequence[str]) -> str:
    """Return the base name of what is run: `sh` for `/bin/sh`."""
    return posixpath.basename(argv[0]) if argv else ""


def shell_script(argv: Sequence[str]) -> str | None:
    """Return the text that a shell is given with `-c`; None for anything else."""
    if program(argv) not in SHELLS:
        return None
    for index, word in enumerate(argv[1:], 1):
        if _FLAG.match(word):
            return argv[index + 1] if index + 1 < len(argv) else None
        if not word.startswith("-"):
            return None
    return None


def commands_of(script: str) -> list[list[str]]:
    """Return the simple commands of a script, in order, as words; [] where a shell's grammar is needed to read it."""
    try:
        lexer = shlex.shlex(script.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=";&|()")
        lexer.whitespace_split = True
        lexer.commenters = ""
        words = list(lexer)
    except ValueError:
        return []
    found: list[list[str]] = [[]]
    for word in words:
        if word and set(word) <= set(";&|()"):
            found.append([])
        else:
            found[-1].append(word)
    return [each for each in found if each]


_OPENS, _CLOSES = ("if", "case", "for", "while", "until", "select", "{", "("), ("fi", "esac", "done", "}", ")")
_NOT_READ = re.compile(r"""<<|\\;|['"];['"]|\w+\s*\(\)|\bfunction\b|\besac\b""")
"""Documents in a script, functions, choices, and a `;` that is a word: what only a shell can read."""
_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#[^'\"\n]*$")
_COPIES = re.compile(r"([<>])&|(>)\|")
"""Redirections with the characters that join commands. `&>` is none in dash, where the `&` ends a command."""
_GOES_ON = re.compile(r"(&&|\|[|&]?)\s*\n\s*")
"""What joins a command to the one on the next line."""
_REDIRECTION = re.compile(r"(?:\{\w+\}|\d*)[<>]")
_ONLY_IF_EXEC_FAILED = ("echo", "printf", "exit", "false", "true", ":", "return", "logger")


def never_run(script: str) -> tuple[list[str], list[str]] | None:
    """Return the command that a shell becomes by `exec`, and the first one after it, which no shell runs any more; None
    if there is none, or if only a shell can read the script.

    A command that says that `exec` failed is meant for that (POSIX.1, exec: a shell that is not interactive exits).
    """
    if _NOT_READ.search(script):
        return None
    try:
        text = _COPIES.sub(r"\1\2", _COMMENT.sub("", script.replace("\\\n", " ")))
        text = _GOES_ON.sub(r"\1 ", text).replace("\n", " ; ")
        lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()")
        lexer.whitespace_split, lexer.commenters = True, ""
        words = list(lexer)
    except ValueError:
        return None
    if any(word.startswith("#") for word in words):
        return None  # a comment with quotes in it
    became: list[str] = []
    after: list[list[str]] = []
    for joint, command in _with_joints(words):
        if became:
            after.append(command)
        elif joint == ";" and command[0] == "exec" and len(command) > 1 and not _only_redirects(command[1:]):
            became = command
    meant = [each for each in after if each[0] not in _ONLY_IF_EXEC_FAILED]
    return (became, meant[0]) if meant else None


def _with_joints(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each simple command with what joins it to the one before: ";" for the next one of the script itself, ""
    for one that is only run at times, or elsewhere."""
    depth, joint, command = 0, ";", list[str]()
    for word in [*words, ";"]:
        if not word or not set(word) <= set(";&|()"):
            if not command and word in _CLOSES:
                depth -= 1
            if word in _OPENS and not command:
                depth += 1
            command.append(word)
            continue
        if command:
            ends = word.replace("(", "").replace(")", "")
            yield (joint if not depth and ends in ("", ";") else ""), command
        depth += word.count("(") - word.count(")")
        joint, command = ";" if set(word) <= {";"} else "", []


def _only_redirects(words: Sequence[str]) -> bool:
    """Whether `exec` has no program: it only opens files of the shell itself."""
    before = ["", *words[:-1]]
    return all(_REDIRECTION.match(word) or last.endswith(("<", ">")) for last, word in zip(before, words, strict=True))


def shell_of(text: str) -> str:
    """Return the shell that a file's first line names; "" for anything else."""
    first = text.partition("\n")[0]
    words = first[2:].split() if first.startswith("#!") else []
    words = words[1:] if words and program(words) == "env" else words
    return words[0] if words and program(words) in SHELLS else ""


def script_file(argv: Sequence[str]) -> str:
    """Return the file that is run, or that a shell is given; "" for none."""
    if program(argv) not in SHELLS:
        return str(argv[0]) if argv else ""
    return next((word for word in argv[1:] if not word.startswith("-")), "") if "-c" not in argv else ""


def words_of(text: str) -> list[str]:
    """Split a plain command line into words; [] for one that needs a shell."""
    if re.search(r"[|&;<>()$`*?\n]", text):
        return []
    try:
        return shlex.split(text)
    except ValueError:
        return []


def seconds_of(word: str) -> float | None:
    """Return what `sleep` makes of its operand: `15`, `0.5`, `1m`. None for anything else."""
    match = _DURATION.match(word)
    return float(match[1]) * _UNITS[match[2]] if match else None


def sleeps_for(argv: Sequence[str]) -> float | None:
    """Return how long a command line sleeps at least: its own `sleep`, or those of its script one after the other.

    None where it has none, or where the shell's grammar decides.
    """
    if program(argv) == "sleep" and len(argv) == 2:
        return seconds_of(argv[1])
    script = shell_script(argv)
    if script is None or re.search(r"\b(if|for|while|until|case)\b|(?<!&)&(?!&)|\|\|", script):
        return None  # how often, and whether at all, is the shell's business
    total = None
    for words in commands_of(script):
        if program(words) == "sleep" and len(words) == 2 and (seconds := seconds_of(words[1])) is not None:
            total = (total or 0.0) + seconds
    return total


def never_ends(argv: Sequence[str]) -> bool:
    """Return whether the command line itself says that it goes on forever.

    What runs in the background holds a shell only if it waits for that.
    """
    script = shell_script(argv)
    text = _TRAP.sub("", script) if script is not None else " ".join(argv)
    if script is not None and (not re.search(r"\bwait\b", text) or re.search(r"\bkill\b", text)):
        text = _BACKGROUND.sub("", text)
    return bool(_ENDLESS.search(text + "\n")) and "break" not in text and "exit" not in text


_IGNORES_TERM = re.compile(r"""\btrap\s+(?:--\s+)?(?:''|"")\s+(?:[\w]+\s+)*?(?:SIGTERM|TERM|15)\b""")
_RESETS = re.compile(r"\btrap\s+(?:--\s+)?(?:-\s|['\"][^'\"])")


def ignores_term(script: str) -> bool:
    """Return whether a script ignores SIGTERM, and with it all that it starts, for good (POSIX.1, trap)."""
    found = _IGNORES_TERM.search(script)
    return found is not None and not _RESETS.search(script, found.end())


_QUIT_PAGE = re.compile(r"/(?:quitquitquit|quit|exit|shutdown|terminate)/?(?:[?\"']|\Z)")
_CLIENTS = ("curl", "wget")


def is_quit_page(path: str) -> bool:
    """Return whether the path of a request tells a server to end: `/quitquitquit`, `/actuator/shutdown`."""
    return _QUIT_PAGE.search(path) is not None


def stops_a_server(argv: Sequence[str]) -> bool:
    """Return whether it asks a server to end, before any pause: `nginx -s quit`, `kill 1`, `curl …/quitquitquit`."""
    script = shell_script(argv)
    lines = [list(argv)] if script is None else commands_of(script)
    for words in lines:
        name = program(words)
        if name in ("sleep", "while", "until", "for", "if"):
            return False
        if name == "nginx" and "-s" in words and words[-1] in ("quit", "stop"):
            return True
        if name in ("apachectl", "httpd", "apache2ctl") and words[-1] in ("graceful-stop", "stop"):
            return True
        if name in ("kill", "killall", "pkill"):
            return "-0" not in words
        if name in _CLIENTS and any(map(is_quit_page, words)):
            return True
    return False


_BEFORE_A_COMMAND = ("then", "else", "do", "if", "while", "until", "!", "{", "exec", "command", "sudo", "time")
_SIGNALS = {"1": "HUP", "2": "INT", "3": "QUIT", "9": "KILL", "10": "USR1", "12": "USR2", "15": "TERM"}


def signals_first_process(argv: Sequence[str]) -> tuple[str, str] | None:
    """Return (command, signal) of the first command that signals PID 1, without SIG; None for none.

    The signal is "" for one that goes to the children of PID 1 alone (`pkill -P 1`).
    """
    script = shell_script(argv)
    for words in [list(argv)] if script is None else commands_of(script):
        while words and (words[0] in _BEFORE_A_COMMAND or re.match(r"\w+=", words[0])):
            words = words[1:]
        name, options = program(words), words[1:]
        if name == "pkill" and option(words, "-P", "--parent") == "1":
            return " ".join(words), ""
        if name != "kill" or not options or "-l" in options or "-L" in options:
            continue
        signal, targets = _signal_and_targets(options)
        if "1" in targets and signal not in ("0", "EXIT"):
            return " ".join(words), signal
    return None


def _signal_and_targets(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return what kill(1) is asked to send, and to whom (POSIX.1, kill)."""
    signal, targets, rest = "TERM", list[str](), list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            targets += rest
            break
        if word in ("-s", "-n", "--signal") and rest:
            signal = rest.pop(0)
        elif word.startswith("-") and not targets and signal == "TERM":
            signal = word.lstrip("-").removeprefix("signal=")
        else:
            targets.append(word)
    signal = signal.upper().removeprefix("SIG")
    return _SIGNALS.get(signal, signal), targets


def option(argv: Sequence[str], *names: str) -> str | None:
    """Return the value of `--name value` or `--name=value`."""
    for index, word in enumerate(argv):
        for name in names:
            if word == name and index + 1 < len(argv):
                return argv[index + 1]
            if word.startswith(f"{name}="):
                return word[len(name) + 1 :]
    return None


_GRAMMAR = re.compile(r"\b(if|for|while|until|case|function)\b|[{}]|(?<![&>])&(?!&)")


Place = Literal["last", "before", "pipeline", "jobs", "loop"]
"""Where a shell's script has a child, which decides what helps. last: the last command, which `exec` can put in the
shell's place. before: commands of the shell itself follow it."""


class Child(NamedTuple):
    """What a shell starts and waits for. `perhaps`: it depends on the shell whether this takes its place."""

    name: str
    perhaps: bool = False
    place: Place = "last"


def child_of_shell(argv: Sequence[str], *, busybox: bool, from_file: bool = False) -> Child | None:
    """Return what a shell that is given a script starts as a child.

    None where that takes the shell's place, where the script handles signals itself (`trap`), or where the shell's own
    grammar decides.

    bash (5.1 on) and busybox replace themselves by the last command of a list, bash not by one with a redirection;
    dash, which is Debian's sh, by none. `busybox`: the image's sh is that one. `from_file`: the script is a file, of
    which every shell runs all commands as children.
    """
    script = shell_script(argv)
    if script is None or re.search(r"\btrap\b", script):
        return None
    lines = commands_of(script)
    if not lines or any(words[0] == "exec" and len(words) > 1 for words in lines):
        return None
    last = [word for word in lines[-1] if not re.match(r"\w+=", word)]
    if not last or last[0] in ("done", "fi", "esac", "}", "wait"):
        return _looping(script)
    if last[0] in _TRIVIAL:
        others = [words for words in lines if words[0] not in (*_TRIVIAL, "cd", "export", "set", "sleep")]
        if others and not _GRAMMAR.search(script):
            return Child(program(others[-1]), place="before")
        return _looping(script)
    text = script.rstrip()
    end = text[max(text.rfind("\n"), text.rfind(";")) + 1 :]
    piped = re.search(r"[^|]\|[^|]", end)
    if from_file and not piped:
        return Child(program(last))
    replaces = program(argv) == "bash" and not re.search(r"[<>]", end)
    if not piped and (replaces or (busybox and program(argv) in ("sh", "ash"))):
        return None
    if piped:
        return Child("the commands of its pipeline", place="pipeline")
    return Child(program(last), perhaps=program(argv) not in ("bash", "dash"))


def _looping(script: str) -> Child | None:
    """A shell that loops or waits for its children is PID 1 itself."""
    if re.search(r"\bwait\b", script) and "&" in script:
        return Child("its children", place="jobs")
    return Child("what its loop runs", place="loop") if _ENDLESS.search(script + "\n") else None
