"""Shell commands of manifests as `Program`s: the few constructions that recordings and examples use.

`sh -c` with: `trap '…' TERM`, `echo`, `sleep`, `exit`, `touch`, a server made of `nc`, and an endless loop at the end.
Anything else raises ValueError, so that no script is half understood.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lastcall.kube.cri.api import ContainerConfig, PodSandboxConfig
from lastcall.kube.cri.simulated_images import SimulatedImage
from lastcall.kube.cri.simulated_program import ExecResult, HTTPAnswer, Listener, Program
from lastcall.world.clock import monotonic
from lastcall.world.world import World

NO_SUCH_FILE = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    'unable to start container process: exec: "{0}": stat {0}: no such file or directory: unknown'
)
EXIT_SECONDS = 0.001
"""From a script's last statement to the end of its process: the last line is written before."""

_TRAP = re.compile(r"trap '([^']*)' (\w+)")
_FOREVER = re.compile(r"while (?::|true); do sleep \d+(?: & wait \$!)?; done")
_ANSWERS = re.compile(r"\( while :; do printf 'HTTP/1\.1 (\d+) [^']*' \| nc -l -p (\d+); done \) &")
_HANGS = re.compile(r"nc -l -p (\d+) -e sleep \d+ &")


class ShellPrograms:
    """A `Programs` function: reads every container's command. `messages` is where termination messages go, by
    (pod uid, container, attempt)."""

    def __init__(self, world: World, messages: dict[tuple[str, str, int], str]) -> None:
        self._world = world
        self._messages = messages

    def __call__(self, config: ContainerConfig, sandbox: PodSandboxConfig) -> Program:
        argv = [*config.command, *config.args]
        if argv[:2] == ["sh", "-c"]:
            program, message = parse_script(argv[2], _Files(self._world))
            if message:
                self._messages[sandbox.metadata.uid, config.metadata.name, config.metadata.attempt] = message
            return program
        if argv:
            return Program(start_error=NO_SUCH_FILE.format(argv[0]))
        return Program()  # the image's own command: exits 0 on SIGTERM


def parse_script(script: str, files: Mapping[str, ExecResult] | None = None) -> tuple[Program, str]:
    """The program of `sh -c SCRIPT` as PID 1 and the termination message it writes."""
    traps = {match[2]: match[1] for match in _TRAP.finditer(script)}
    rest = _TRAP.sub("", script)
    ports = {int(m[2]): Listener(HTTPAnswer(status=int(m[1]))) for m in _ANSWERS.finditer(rest)}
    rest = _ANSWERS.sub("", rest)
    ports |= {int(m[1]): Listener(HTTPAnswer(hangs=True)) for m in _HANGS.finditer(rest)}
    rest = _HANGS.sub("", rest)
    forever = _FOREVER.search(rest)
    main = _Run(_FOREVER.sub("", rest))
    term = _Run(traps["TERM"]) if "TERM" in traps else None
    options: dict[str, Any] = {"on_term": "default"}
    if term is not None:
        options = {"on_term": "ignore", "term_output": tuple(term.lines)}
        if term.exit_code is not None:
            options |= {"on_term": "exit", "exit_code": term.exit_code, "drain_seconds": term.seconds + EXIT_SECONDS}
        options["term_execs"] = {f"sh -c test ! -e {path}": ExecResult(exit_code=1) for path in term.touched}
    if not forever:
        options |= {"exits_after": main.seconds + EXIT_SECONDS, "natural_exit_code": main.exit_code or 0}
    program = Program(output=tuple(main.lines), execs={} if files is None else files, ports=ports, **options)
    return program, main.message or (term.message if term else "")


class _Run:
    """What a straight line of commands does."""

    def __init__(self, script: str) -> None:
        self.seconds = 0.0
        self.lines: list[tuple[float, str]] = []
        self.exit_code: int | None = None
        self.touched: list[str] = []
        self.message = ""
        for statement in filter(None, (part.strip() for part in re.split(r"[;\n]", script))):
            match statement.split(None, 1):
                case ["sleep", seconds]:
                    self.seconds += float(seconds)
                case ["exit", code]:
                    self.exit_code = int(code)
                case ["touch", path]:
                    self.touched.append(path)
                case ["echo", text] if text.endswith("> /dev/termination-log"):
                    self.message = text.split(" > ")[0].removeprefix("-n ")
                case ["echo", text] if ">" not in text:
                    self.lines.append((self.seconds, text.strip('"')))
                case ["echo", _]:
                    pass  # into a file that nothing here reads
                case _:
                    raise ValueError(f"cannot read the statement {statement!r} of {script!r}")


class _Files(Mapping[str, ExecResult]):
    """Execs that see what earlier execs of the container did. Everything else is left to `Program.exec_result`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._present: dict[str, float] = {}

    def __getitem__(self, command: str) -> ExecResult:
        if match := re.fullmatch(r"sh -c touch (\S+); sleep (\d+)", command):
            self._present[match[1]] = monotonic(self._world.clock)
            return ExecResult(seconds=float(match[2]))
        if match := re.fullmatch(r"sh -c test ! -e (\S+)", command):
            return ExecResult(exit_code=int(match[1] in self._present))
        if command.startswith("sh -c test $(cut -d. -f1 /proc/uptime) -lt"):
            # The recorded liveness probe: succeeds for three seconds after its first call.
            now = monotonic(self._world.clock)
            return ExecResult(exit_code=int(now >= self._present.setdefault("/tmp/limit", now) + 3.0))
        if command == "sh -c /etc/passwd":
            return ExecResult(exit_code=126)
        if command == "/etc/passwd":
            return ExecResult(error='exec: "/etc/passwd": permission denied')
        raise KeyError(command)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def images_of(manifests: list[dict[str, Any]]) -> dict[str, SimulatedImage]:
    """How the recordings' images behave: `slow:okN` comes after N seconds, `slow:failN` is not found then, …"""
    images = {}
    for manifest in manifests:
        if manifest["kind"] != "Pod":
            continue
        for container in manifest["spec"]["containers"]:
            name = container["image"]
            resolve = f'failed to pull and unpack image "{name}": failed to resolve reference "{name}": '
            if match := re.fullmatch(r".*/slow:(ok|fail)(\d+)", name):
                error = "" if match[1] == "ok" else f"rpc error: code = NotFound desc = {resolve}{name}: not found"
                images[name] = SimulatedImage(False, float(match[2]), error)
            elif name.endswith("/missing:1"):
                host = name.split("/")[0]
                error = (
                    f'{resolve}failed to do request: Head "http://{host}/v2/missing/manifests/1": '
                    f"dial tcp {host}: connect: connection refused"
                )
                images[name] = SimulatedImage(False, 0.01, error, "Unknown")
            elif name.startswith("absent"):
                images[name] = SimulatedImage(False)
    return images
