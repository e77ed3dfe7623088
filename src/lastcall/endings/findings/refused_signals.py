"""The row about a signal of a preStop hook that the kernel refused (kill(2): EPERM). Pure."""

# check: pure

import re

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Row
from lastcall.endings.story import Change, ContainerEnding, Ending, Finding
from lastcall.records import kinds
from lastcall.records.hook_text import hook_failure
from lastcall.records.said import joined
from lastcall.records.signal_names import signal_name
from lastcall.world.dataclass import dataclass

_REFUSED = re.compile(r"(?:\bp?kill: |can't kill pid |\bkill\(\d+, ?\d+\) ).*Operation not permitted|\bkill EPERM\b")
"""What kill of shells, busybox, procps and util-linux, pkill, nginx and Node.js print."""
_OF_OTHERS = {
    "killall": re.compile(r"\S+\(\d+\): Operation not permitted"),
    "os.kill": re.compile(r"PermissionError: \[Errno 1\] Operation not permitted"),
}
"""A word of the command → what that prints, which does not say that it is about a signal (psmisc, Python)."""
_PID = re.compile(r"(?:\bpid |\bto |\()(?P<pid>\d+)\b")
_TO_FIRST = re.compile(r"(?<![\w.-])1(?![\w.])")
_SIGNAL = re.compile(r"kill(?:all)? +(?:-s +|-n +|--signal[ =]|-)(?:SIG)?(?P<signal>[A-Z]\w*|\d+)")
_ASKS = re.compile(r"kill +(?:-s +|-n +|-)0\b")
"""A look at whether a process lives: nothing has to be sent."""
_NOT_EXECUTED = (126, 127)
"""Exit codes of a shell: what failed last is a program that was not executed, not the signal."""
_NGINX = {"quit": "SIGQUIT", "stop": "SIGTERM", "reload": "SIGHUP"}
_NGINX_SENDS = re.compile(r"nginx +-s +(?P<word>\w+)")
_DEFAULT = "SIGTERM"


@dataclass(frozen=True, slots=True)
class RefusedSignal:
    """`line` is what the command printed. `pid` is that of the process, 0 where it is not named."""

    line: str
    pid: int
    signal: str


def command_of_hook(c: ContainerEnding, ending: Ending) -> str:
    """Return what the last preStop hook of a container was to do; "" if nobody saw it."""
    started = (e.record for e in ending.entries if e.record.kind == kinds.PRE_STOP_STARTED)
    found = [each.facts_as(kinds.PRE_STOP_STARTED).get("detail") for each in started if each.container == c.name]
    return str(found[-1] or "") if found else ""


def refused_signal(c: ContainerEnding, ending: Ending) -> RefusedSignal | None:
    """Return the signal of its preStop command that the kernel refused, as far as the command printed it."""
    if c.hook is None or c.hook.handler != "exec":
        return None
    command = command_of_hook(c, ending)
    printed = c.hook.output or hook_failure(c.hook.detail)
    line = next((line.strip() for line in printed.splitlines() if _is_refusal(line.strip(), command)), "")
    if not line or _ASKS.search(command):
        return None
    named = _PID.search(line)
    pid = int(named["pid"]) if named else int(bool(_TO_FIRST.search(command)))
    return RefusedSignal(line, pid, signal_of(command))


def _is_refusal(line: str, command: str) -> bool:
    return bool(_REFUSED.search(line)) or any(
        word in command and pattern.match(line) for word, pattern in _OF_OTHERS.items()
    )


def signal_of(command: str) -> str:
    """Return the signal that a command sends: SIGTERM if it names none."""
    if nginx := _NGINX_SENDS.search(command):
        return _NGINX.get(nginx["word"], _DEFAULT)
    if (match := _SIGNAL.search(command)) is None:
        return _DEFAULT
    word = match["signal"]
    return signal_name(int(word) if word.isdigit() else word) or _DEFAULT


def needs_refused_signal(c: ContainerEnding, ending: Ending) -> bool:
    """Return whether the refused signal is another one than the runtime sends: the program never got that."""
    refused = refused_signal(c, ending)
    return refused is not None and refused.signal != c.stop.signal


REFUSED: Fact[RunSubject] = Fact(
    "what its hook printed",
    lambda s: refused_signal(s.run, s.ending) is not None,
    (kinds.PRE_STOP_STARTED, kinds.PRE_STOP_FINISHED),
)
FAILED_BY_IT: Fact[RunSubject] = Fact(
    REFUSED.name,
    lambda s: bool(REFUSED.holds(s)) and (s.run.hook is None or s.run.hook.exit_code not in _NOT_EXECUTED),
    REFUSED.kinds,
)


def _refused(s: RunSubject) -> Finding:
    c, refused = s.run, refused_signal(s.run, s.ending)
    assert refused is not None
    assert c.hook is not None
    own, user = c.process.started_as, c.process.user
    # The program has another number where the PID namespace is shared; the users of other processes are not known.
    of_first = refused.pid == 1 == c.process.container_pid and user is not None and user != own
    if refused.pid == 1 != c.process.container_pid:
        variant = "pause"
    elif not of_first:
        variant = ""
    else:
        variant = "other" if own is None else "root" if own == 0 else "users"
    facts = {"container": c.name, "line": refused.line, "user": user, "own": own}
    text = said("hookSignalRefused", variant, **facts)
    if c.hook.outcome == "failed":
        text = joined([text, said("hookSignalRefused", "failed")])
    same = refused.signal == c.stop.signal
    advice = fix("hookSignalRefused", "same" if same else "otherSignal", signal=refused.signal)
    if of_first and (keep := "keepRoot" if own == 0 else "keep" if user else ""):
        advice = joined([advice, fix("hookSignalRefused", keep, container=c.name, user=user)])
    return Finding("hookSignalRefused", "problem", text, c.name, advice, change=Change(program="fixHook"))


ROWS = (Row("hookSignalRefused", (REFUSED,), _refused),)
