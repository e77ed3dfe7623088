"""Writes the programs of the applications: Python and shell text that contains the behaviour, and no name of a fault.

A `Program` says how the program behaves. `render` returns the files. Every part of a text is there only if the
behaviour needs it, as in programs that people write.
"""

from dataclasses import dataclass, field
from string import Template
from typing import Literal

from bench.diagnosis import server_http2, servers

OnStop = Literal[
    "drain", "nothing", "ignore", "block", "interruptOnly", "raise", "leave", "waitForClients", "deaf", "reload",
    "leaveWorkers", "waitForWorkers", "killWorkers", "tellSidecar",
]  # fmt: skip
"""What a program does on SIGTERM. `drain` is the sound way, `nothing` means that there is no handler."""


@dataclass
class Program:
    """Describe one program: its kind (a shape's), and what it does when."""

    kind: Literal["server", "http2", "master", "database", "worker", "batch", "shell"]
    port: int
    ready_path: str
    file: str
    words: tuple[str, ...]
    on_stop: OnStop = "drain"
    exit_code: int = 0
    start_seconds: float = 0.0
    """How long it takes until it listens."""
    warm_seconds: float = 0.0
    """How long it answers 503 after that."""
    drain_seconds: float = 0.0
    """What it still does after the last request was answered."""
    crash: tuple[str, int] | None = None
    """What it prints, and the exit code with which it ends, right at its start."""
    crash_after: float = 0.0
    """Seconds after which it crashes while it serves, 0 for never."""
    crash_at_request: int = 0
    """The request, counted from its start and without those of probes, at which it crashes; 0 for none."""
    errors: bool = False
    """Answers 500 to every request but that of the probe."""
    ends_streams: bool = True
    closes_idle: bool = True
    """Says `Connection: close` (HTTP/2: GOAWAY) on the stop signal; else it drops kept connections."""
    slow_seconds: float = 1.0
    """How long an answer at /slow takes; in HTTP/2, how long pieces of every answer come; of a script, its command."""
    most_requests: int = 0
    """How many requests a connection of HTTP/2 may have before the server ends it, 0 for any number."""
    recycles_properly: bool = True
    """Says GOAWAY and answers what it took before it ends a connection that had so many requests."""
    finishes: bool = True
    """Answers the requests under way before it leaves."""
    quit_path: str = ""
    """Where a request asks it to stop listening, "" for nowhere. It leaves on the stop signal all the same."""
    leaves_zombies: bool = False
    eats: Literal["", "self", "child"] = ""
    """Who needs much memory a moment after the start."""
    eats_mebibytes: int = 0
    reads: str = ""
    """A file that it reads at its start."""
    stalls_after: float = 0.0
    """Seconds after which its probe is answered slowly, for as long as `stalls_for`."""
    stalls_for: float = 0.0
    wrapped: Literal["", "exec", "child", "init"] = ""
    """What starts it: nothing, a shell that it replaces, a shell that stays, an init."""
    prints_ids: bool = False
    interpreter: str = "/usr/bin/env python3"
    line_end: str = "\n"
    extra: dict[str, str] = field(default_factory=dict)


def render(program: Program) -> dict[str, str]:
    """Return the program's files by name."""
    body = _BODIES[program.kind](program)
    files = {program.file: _with_line_ends(body, program), **program.extra}
    if program.wrapped in ("exec", "child"):
        files["start.sh"] = _wrapper(program)
    if program.wrapped == "init":
        files["init.py"] = INIT
    return files


def command(program: Program, directory: str) -> list[str]:
    """Return the container's command."""
    path = f"{directory}/{program.file}"
    if program.wrapped in ("exec", "child"):
        return ["sh", f"{directory}/start.sh"]
    if program.wrapped == "init":
        return ["python3", f"{directory}/init.py", "python3", path]
    return ["sh" if program.kind in ("batch", "shell") else "python3", path]


def _with_line_ends(text: str, program: Program) -> str:
    return text.replace("\n", program.line_end) if program.line_end != "\n" else text


def _wrapper(program: Program) -> str:
    """Return a start script as images have it."""
    word = program.words[0]
    begin = f"#!/bin/sh\nset -e\nmkdir -p /tmp/{word}\necho starting {word}\n"
    start = f"python3 $(dirname $0)/{program.file}"
    if program.wrapped == "exec":
        return f"{begin}exec {start}\n"
    return f"{begin}{start}\necho {word} has ended\n"


def _preamble(program: Program) -> str:
    """Return what every Python program does before its work, if it does anything."""
    word, lines = program.words[0], []
    if program.reads:
        lines.append(f"settings = open({program.reads!r}).read()")
    if program.crash:
        message, code = program.crash
        lines += [f"print({message!r}, flush=True)", f"sys.exit({code})"]
    if program.leaves_zombies:
        lines += ["for number in range(4):", "    if os.fork() == 0:", "        os._exit(0)"]
    if program.eats == "child":
        lines += [
            "if os.fork() == 0:",
            "    time.sleep(1)",
            f"    rows = [os.urandom(1 << 20) for _ in range({program.eats_mebibytes})]",
            "    time.sleep(60)",
            "    os._exit(0)",
        ]
    if program.eats == "self":
        lines += [
            "def fill():",
            "    time.sleep(1)",
            f"    return [os.urandom(1 << 20) for _ in range({program.eats_mebibytes})]",
            "threading.Thread(target=fill, daemon=True).start()",
        ]
    if program.crash_after:
        lines += [
            "def watch():",
            f"    time.sleep({program.crash_after:g})",
            f"    print('fatal: lost the {word} lock', flush=True)",
            "    os._exit(70)",
            "threading.Thread(target=watch, daemon=True).start()",
        ]
    if program.start_seconds:
        lines += [f"print('loading {word}', flush=True)", f"time.sleep({program.start_seconds:g})"]
    return "\n".join(lines)


def signal_lines(program: Program, flag: str) -> str:
    """Return how a program without an event loop treats SIGTERM; `flag` is called by the handler."""
    word = program.words[1]
    match program.on_stop:
        case "nothing":
            return ""
        case "ignore":
            return "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
        case "block":
            return "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})"
        case "interruptOnly":
            return f"signal.signal(signal.SIGINT, lambda *_: {flag}())"
        case "raise":
            return (
                f"def on_term(*_):\n    raise RuntimeError('cannot flush {word}')\n"
                "signal.signal(signal.SIGTERM, on_term)"
            )
        case "leave":
            return "signal.signal(signal.SIGTERM, lambda *_: os._exit(0))"
    return f"signal.signal(signal.SIGTERM, lambda *_: {flag}())"


def _end(program: Program) -> str:
    """Return the last lines: what is done before the exit, and the exit code."""
    lines = []
    if program.drain_seconds:
        lines += [f"print('flushing {program.words[1]}', flush=True)", f"time.sleep({program.drain_seconds:g})"]
    if program.on_stop == "tellSidecar":
        lines += [
            "time.sleep(0.5)",
            "proxy = socket.create_connection(('127.0.0.1', 15001), 1)",
            "proxy.sendall(b'bye')",
        ]
    lines.append(f"sys.exit({program.exit_code})" if program.exit_code else "")
    return "\n".join(lines)


IMPORTS = "import asyncio\nimport os\nimport signal\nimport socket\nimport sys\nimport threading\nimport time\n"


def _server(program: Program) -> str:
    head = f"#!{program.interpreter}\n{IMPORTS}\n{_preamble(program)}\n"
    return f"{head}{servers.http(program, signal_lines(program, 'stop'))}\n{_end(program)}\n"


def _http2(program: Program) -> str:
    head = f"#!{program.interpreter}\n{IMPORTS}\n{_preamble(program)}\n"
    return f"{head}{server_http2.http2(program, signal_lines(program, 'stop'))}\n{_end(program)}\n"


def _database(program: Program) -> str:
    """Return a server of lines over TCP; the sound one closes its clients' connections when it stops."""
    head = f"#!{program.interpreter}\n{IMPORTS}\n{_preamble(program)}\n"
    return f"{head}{servers.lines(program, signal_lines(program, 'stop'))}\n{_end(program)}\n"


WORKER = Template(
    """
stopping = threading.Event()
def stop():
    stopping.set()
$signals
done = 0
print('waiting for $first', flush=True)
while not stopping.is_set():
    time.sleep(0.2)
    done += 1
    if done % 20 == 0:
        print(f'{done} $first handled', flush=True)
print(f'leaving after {done} $first', flush=True)
"""
)


def _worker(program: Program) -> str:
    head = f"#!{program.interpreter}\n{IMPORTS}\n{_preamble(program)}\n"
    body = WORKER.substitute(signals=signal_lines(program, "stop"), first=program.words[0])
    return f"{head}{body}{_end(program)}\n"


MASTER = Template(
    """
workers = set()
stopping = False

def stop():
    global stopping
    stopping = True

listener = socket.create_server(('0.0.0.0', $port), backlog=128)

def work():
$worker_signals
    while not stopping:
        listener.settimeout(0.2)
        try:
            client, _ = listener.accept()
        except OSError:
            continue
        with client:
            client.settimeout(2)
            try:
                client.recv(4096)
                client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok')
            except OSError:
                pass
    os._exit(0)

def spawn():
    pid = os.fork()
    if pid == 0:
        work()
    workers.add(pid)

for _ in range($count):
    spawn()
$signals
print('master of $count $first workers', flush=True)
while not stopping:
    time.sleep(0.1)
$stop
"""
)
_PASS = """
for pid in workers:
    os.kill(pid, signal.SIGTERM)
for pid in workers:
    os.waitpid(pid, 0)
"""
_RELOAD = """
while True:
    for pid in list(workers):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        workers.discard(pid)
    print('reloading: new workers', flush=True)
    stopping = False
    for _ in range(2):
        spawn()
    while not stopping:
        time.sleep(0.1)
"""
_WAIT = """
print('waiting for workers', flush=True)
for pid in workers:
    os.waitpid(pid, 0)
"""
_KILL = """
time.sleep(1)
for pid in workers:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print('workers did not end in time', flush=True)
sys.exit(137)
"""


def _master(program: Program) -> str:
    """Return a master with workers that share its listener."""
    ends: dict[str, str] = {"reload": _RELOAD, "leaveWorkers": "", "waitForWorkers": _WAIT, "killWorkers": _KILL}
    deaf = program.on_stop == "killWorkers"
    worker_signals = (
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)"
        if deaf
        else "    signal.signal(signal.SIGTERM, lambda *_: stop())"
    )
    text = MASTER.substitute(
        port=program.port,
        count=2,
        first=program.words[0],
        worker_signals=worker_signals,
        signals=signal_lines(program, "stop"),
        stop=ends.get(program.on_stop, _PASS),
    )
    return f"#!{program.interpreter}\n{IMPORTS}\n{_preamble(program)}\n{text}\n{_end(program)}\n"


def _batch(program: Program) -> str:
    """Return a shell loop; the sound one is woken by the signal."""
    word, code = program.words[0], program.exit_code
    start = f"#!/bin/sh\necho {word} begins\n"
    if program.crash:
        start += f"echo '{program.crash[0]}'\nexit {program.crash[1]}\n"
    match program.on_stop:
        case "nothing":
            return f"{start}while true; do\n  sleep 1\n  : $((n=n+1))\ndone\n"
        case "ignore":
            return f"{start}trap '' TERM\nwhile true; do\n  sleep 0.2\ndone\n"
        case "waitForWorkers":
            trap = f"trap 'echo {word} ends; exit {code}' TERM\n"
            return f"{start}{trap}while true; do\n  sleep {program.slow_seconds:g}\ndone\n"
    drain = f"sleep {program.drain_seconds:g}; " if program.drain_seconds else ""
    trap = f"trap 'echo {word} ends; {drain}exit {code}' TERM\n"
    return f"{start}{trap}while true; do\n  sleep 3600 &\n  wait $!\ndone\n"


def _shell(program: Program) -> str:
    """Return a container's script that does little: a log shipper, a helper."""
    word, code = program.words[0], program.exit_code
    trap = "" if program.on_stop == "nothing" else f"trap 'echo {word} ends; exit {code}' TERM\n"
    return f"#!/bin/sh\n{trap}while true; do\n  sleep 0.1\ndone\n"


INIT = """#!/usr/bin/env python3
import os
import signal
import sys

child = os.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])


def pass_on(number, _):
    os.kill(child, number)


for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, pass_on)
while True:
    pid, status = os.waitpid(-1, 0)
    if pid == child:
        sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
"""
_BODIES = {
    "server": _server,
    "http2": _http2,
    "database": _database,
    "worker": _worker,
    "master": _master,
    "batch": _batch,
    "shell": _shell,
}
