"""What a node and its shim say to one another: `Frames` of `world/wire.py`, typed as `world/messages.py` has it.

| verb | asks | answers |
|---|---|---|
| hello | Hello | Everything, when no exec of a connection that has closed lives any more |
| list | ListAll | Everything |
| create_sandbox | CreateSandbox | fds: the network namespace (none for NODE) |
| remove_sandbox | RemoveSandbox | |
| start | Start | Running |
| update_sandbox | UpdateSandbox | when the Pod's group has these limits |
| update_container | UpdateContainer, of a running container | the same |
| signal | Signal | Sent |
| remove | Remove, of an ended container | |
| reopen_log | ReopenLog | when a new file is at its logPath |
| stats | Stats | Usage |
| listeners | Listeners | Listening |
| exec | Exec | Ended; blobs: stdout, stderr |
| cancel_exec | CancelExec | |
| exec_stream | ExecStream | Streams; fds: terminal, or [stdin] stdout stderr |
| exec_wait | ExecWait | Ended; once |
| exec_release | ExecRelease | nobody waits any more; a command that runs goes on |
| attach | Attach | Streams; fds: [terminal or stdin] [stdout] [stderr] |
| close_stdin | CloseStdin | the container's input ends with its last writer |
| socket | Socket | fds: a TCP socket of the sandbox's network namespace |

A call that fails is answered with an `error`, a text and CRI's reason. Events go to every connection: `Started`,
`Changed` (its `info`), `Exited`, `StartFailed`, `LogFull`, `SandboxEnded` (again after each `hello`). An exec belongs
to the connection that asked for it and is killed when that closes. Times are nanoseconds since the epoch. Standard
library only.
"""

from __future__ import annotations

from lastcall.world.messages import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CallError(Exception):
    """The verb cannot be done; `reason` is CRI's."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class Hello(Message, verb="hello"):
    pass


class ListAll(Message, verb="list"):
    pass


class CreateSandbox(Message, verb="create_sandbox"):
    """`network`, `ipc`, `pid`: POD, CONTAINER or NODE. `users`: `first` and `count` of a range of ids.

    `run_as_user`, `run_as_group`: of its first process, None for those of its image.
    """

    id: str
    pod_uid: str
    network: str
    ipc: str
    pid: str
    hostname: str
    sysctls: dict[str, str]
    users: dict[str, int] | None = None
    run_as_user: int | None = None
    run_as_group: int | None = None
    cgroup_parent: str = ""
    resources: dict[str, Any] | None = None


class RemoveSandbox(Message, verb="remove_sandbox"):
    id: str


class Start(Message, verb="start"):
    """`container`: its spec (`container_spec.py`)."""

    container: dict[str, Any]


class UpdateSandbox(Message, verb="update_sandbox"):
    id: str
    resources: dict[str, Any]


class UpdateContainer(Message, verb="update_container"):
    id: str
    resources: dict[str, Any]


class Signal(Message, verb="signal"):
    id: str
    signal: int
    why: str


class Remove(Message, verb="remove"):
    id: str


class ReopenLog(Message, verb="reopen_log"):
    id: str


class Stats(Message, verb="stats"):
    id: str


class Listeners(Message, verb="listeners"):
    id: str


class Exec(Message, verb="exec"):
    """`timeout`: seconds, 0 is unlimited."""

    id: str
    exec_id: str
    argv: list[str]
    timeout: float


class CancelExec(Message, verb="cancel_exec"):
    exec_id: str


class ExecStream(Message, verb="exec_stream"):
    id: str
    exec_id: str
    argv: list[str]
    tty: bool
    stdin: bool


class ExecWait(Message, verb="exec_wait"):
    exec_id: str


class ExecRelease(Message, verb="exec_release"):
    exec_id: str


class Attach(Message, verb="attach"):
    id: str
    stdin: bool
    stdout: bool
    stderr: bool


class CloseStdin(Message, verb="close_stdin"):
    id: str


class Socket(Message, verb="socket"):
    """`id`: of a sandbox. `family`: ipv4 or ipv6."""

    id: str
    family: str


# -- answers and events ----------------------------------------------------------------------------------------------


class Machine(Message):
    """`uids`, `gids`: how many there are. `cgroups`: the mode, and `cgroups_why` there is none."""

    uids: int
    gids: int
    cgroups: str
    cgroups_why: str
    owners_unmapped: str


class Facts(Message):
    """One container. `state`: starting, running, exited, failed (it could not be started: `message`), or unknown.

    Containers of a shim that died before this one are reported as exited, or unknown when nobody saw their end, until
    `Remove`. `stop_signal_sent`: it was sent another signal than SIGKILL. `oom_killed`: None when nobody counts.
    """

    id: str
    sandbox_id: str
    pid: int
    start_time: int
    state: str
    started_at: int
    finished_at: int
    exit_code: int
    signal: str
    message: str
    stop_signal_sent: bool
    oom_killed: bool | None = None
    info: dict[str, str] | None = None


class Everything(Message):
    """`sandboxes`: ids. `pid`: the shim's."""

    pid: int
    sandboxes: list[str]
    containers: list[Facts]
    machine: Machine


class Running(Message):
    pid: int
    started_at: int


class Sent(Message):
    sent: bool


class Usage(Message):
    """`stats`: CPU ns, memory bytes, working set bytes, pids; None when nobody counts."""

    stats: list[int] | None


class Listening(Message):
    """`listeners`: address, port and backlog of each; None when nobody can look, or the container does not run."""

    listeners: list[Any] | None


class Ended(Message):
    exit_code: int
    signal: str
    killed_because: str


class Streams(Message):
    """Names of the descriptors that came with it, in their order."""

    streams: list[str]


class Started(Message, verb="started"):
    container: Facts


class Changed(Message, verb="changed"):
    container: Facts


class Exited(Message, verb="exited"):
    container: Facts


class StartFailed(Message, verb="start_failed"):
    id: str
    message: str


class LogFull(Message, verb="log_full"):
    """Its log has grown to the spec's logMax."""

    id: str


class SandboxEnded(Message, verb="sandbox_ended"):
    """The first process of its PID namespace has ended, and the containers with it."""

    id: str
