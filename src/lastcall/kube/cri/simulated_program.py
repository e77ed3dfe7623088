"""What a simulated container does, as data: how it ends, what its execs and its ports answer."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal

from lastcall.kube.cri.api import ContainerConfig, PodSandboxConfig
from lastcall.world.dataclass import dataclass

PROGRAM_ANNOTATION = "lastcall.dev/program"
"""Pod annotation that names a program for all containers; `lastcall.dev/program.<container>` for one."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """An exec that runs `seconds` and ends with `exit_code`; `error` makes it fail to start instead.

    It ends earlier, with 137, when its container ends.
    """

    seconds: float = 0.0
    exit_code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    error: str = ""


@dataclass(frozen=True, slots=True)
class HTTPAnswer:
    """What a port answers to GET. `hangs` never answers; the connection breaks when the container ends."""

    status: int = 200
    body: bytes = b"ok"
    seconds: float = 0.0
    hangs: bool = False


@dataclass(frozen=True, slots=True)
class Listener:
    """A port. It opens `opens_after` seconds after the start and closes at SIGTERM if `closes_on_term`.

    `paths` maps a URL path to its answer, `default` is for all others; `on_term` replaces both once SIGTERM has come.
    """

    default: HTTPAnswer = HTTPAnswer()
    paths: Mapping[str, HTTPAnswer] = field(default_factory=dict)
    on_term: HTTPAnswer | None = None
    opens_after: float = 0.0
    closes_on_term: bool = False
    grpc: Mapping[str, int] | None = None
    """What the gRPC health service answers for each service name (1 is SERVING); None: the port speaks no HTTP/2."""


@dataclass(frozen=True, slots=True)
class Program:
    """The whole behaviour of a container. Times are virtual seconds.

    - `on_term`: `exit` ends with `exit_code` after `drain_seconds`; `ignore` has a handler that does nothing;
      `default` has none, and so PID 1 never notices the signal.
    - `exits_after` seconds after its start it ends by itself with `natural_exit_code` (None: it runs forever).
    - `start_error`: the process cannot be executed (StartError, exit code 128).
    - `output`, `term_output`: lines on stdout so many seconds after the start, after SIGTERM (if it has a handler).
    - `execs`: what a command answers, keyed by the command joined with spaces. A tuple answers one call after the
      other, the last one forever. Commands not listed: see `exec_result`. `term_execs` goes first once SIGTERM has
      come.
    """

    on_term: Literal["exit", "ignore", "default"] = "exit"
    drain_seconds: float = 0.0
    exit_code: int = 0
    exits_after: float | None = None
    natural_exit_code: int = 0
    start_error: str = ""
    output: tuple[tuple[float, str], ...] = ()
    term_output: tuple[tuple[float, str], ...] = ()
    execs: Mapping[str, ExecResult | tuple[ExecResult, ...]] = field(default_factory=dict)
    term_execs: Mapping[str, ExecResult] = field(default_factory=dict)
    ports: Mapping[int, Listener] = field(default_factory=dict)

    def exec_result(self, cmd: tuple[str, ...], calls: int, *, after_term: bool = False) -> ExecResult:
        """Return the answer to the `calls`-th call (from 0) of `cmd`; `after_term`: SIGTERM has come.

        Of unlisted commands `true`, `false`, `exit N`, `echo TEXT` and `sleep N`, also joined with `;` or `&&` in one
        `sh -c`, do what they say; any other is an executable that does not exist.
        """
        joined = " ".join(cmd)
        if after_term and joined in self.term_execs:
            return self.term_execs[joined]
        listed = self.execs.get(joined)
        if listed is None:
            return _well_known(cmd)
        return listed if isinstance(listed, ExecResult) else listed[min(calls, len(listed) - 1)]


Programs = Mapping[str, Program] | Callable[[ContainerConfig, PodSandboxConfig], Program]
"""By name (see `find_program`), or a function that decides."""


def find_program(programs: Programs, config: ContainerConfig, sandbox: PodSandboxConfig) -> Program:
    """Find a container's program: by annotation, image as written, image without tag, container name, or "".

    Raises KeyError, naming what is known, if an annotation names no program; without any match it is `Program()`.
    """
    if callable(programs):
        return programs(config, sandbox)
    annotation = sandbox.annotations.get(
        f"{PROGRAM_ANNOTATION}.{config.metadata.name}", sandbox.annotations.get(PROGRAM_ANNOTATION)
    )
    if annotation is not None:
        if annotation not in programs:
            known = ", ".join(sorted(programs))
            raise KeyError(f"annotation {PROGRAM_ANNOTATION}: no program {annotation!r}; there are: {known}")
        return programs[annotation]
    untagged = config.image.split("@", 1)[0]
    if ":" in untagged.rsplit("/", 1)[-1]:
        untagged = untagged.rsplit(":", 1)[0]
    for name in (config.image, untagged, config.metadata.name, ""):
        if name in programs:
            return programs[name]
    return Program()


def _well_known(cmd: tuple[str, ...]) -> ExecResult:
    if not cmd:
        return ExecResult(error="exec: no command")
    words = list(cmd)
    if len(cmd) == 3 and cmd[0].rsplit("/", 1)[-1] in ("sh", "bash", "ash") and cmd[1] == "-c":
        script = cmd[2].replace("&&", ";")
        try:
            parts = [shlex.split(part) for part in script.split(";")]
        except ValueError:
            return ExecResult(exit_code=2, stderr=b"sh: syntax error\n")
        seconds, stdout = 0.0, b""
        for part in parts:
            if not part:
                continue
            result = _simple(part)
            if result is None:
                return ExecResult(seconds, 127, stdout, f"sh: {part[0]}: not found\n".encode())
            seconds, stdout = seconds + result.seconds, stdout + result.stdout
            if result.exit_code:
                return ExecResult(seconds, result.exit_code, stdout)
        return ExecResult(seconds, 0, stdout)
    result = _simple(words)
    return result or ExecResult(error=f'exec: "{cmd[0]}": executable file not found in $PATH')


def _simple(words: list[str]) -> ExecResult | None:
    match words:
        case [("true" | "/bin/true")]:
            return ExecResult()
        case [("false" | "/bin/false")]:
            return ExecResult(exit_code=1)
        case ["exit", code] if code.isdigit():
            return ExecResult(exit_code=int(code))
        case ["echo", *text]:
            return ExecResult(stdout=" ".join(text).encode() + b"\n")
        case [("sleep" | "/bin/sleep"), seconds]:
            try:
                return ExecResult(seconds=float(seconds))
            except ValueError:
                return ExecResult(exit_code=1, stderr=f"sleep: invalid number '{seconds}'\n".encode())
        case _:
            return None
