"""Translates an application into the programs of the virtual world, where processes are data and time is free."""

from bench.diagnosis.application import DIRECTORY, Application
from bench.diagnosis.programs import Program, command
from lastcall.kube.cri.api import ContainerConfig, PodSandboxConfig
from lastcall.kube.cri.simulated_images import SimulatedImage
from lastcall.kube.cri.simulated_program import HTTPAnswer, Listener
from lastcall.kube.cri.simulated_program import Program as Simulated

EXPRESSIBLE = frozenset({
    "noHandler", "noHandlerInMaster", "hookTooLong", "hookFails", "hookProgramMissing", "graceTooShort",
    "exitCode", "finalizer", "sidecarHoldsJob", "programMissing", "configMapMissing",
    "secretMissing", "keyMissing", "postStartFails", "postStartHangs", "initFails", "initNeverEnds", "portMismatch",
    "readinessPath", "startupTooShort", "imageMissing", "imageNever", "unschedulable",
    "claimMissing", "crash", "crashLater",
})  # fmt: skip
"""Faults that are rules of Kubernetes, or that a simulated program can have."""
EXITS_SECONDS = 0.05


def programs_of(app: Application) -> "Programs":
    return Programs(app)


class Programs:
    """Decide the program of a container, as `SimulatedRuntime` asks for it."""

    def __init__(self, app: Application) -> None:
        self._app = app

    def __call__(self, config: ContainerConfig, _: PodSandboxConfig) -> Simulated:
        program = self._app.programs.get(config.metadata.name)
        words = list(config.command or ())
        if program is not None and words == command(program, DIRECTORY):
            return simulated(program)
        if words[:2] == ["sh", "-c"]:
            return _script(words[2])
        if words and not words[0].startswith(("python3", "sh")):
            return Simulated(start_error=f'exec: "{words[0]}": stat {words[0]}: no such file or directory')
        return Simulated(drain_seconds=EXITS_SECONDS)


def simulated(program: Program) -> Simulated:
    """Return what a program does as data."""
    on_term = {"nothing": "default", "ignore": "ignore"}.get(program.on_stop, "exit")
    exits, code, lines = None, 0, []
    if program.crash:
        exits, code = EXITS_SECONDS, program.crash[1]
        lines.append((0.01, program.crash[0]))
    if program.crash_after:
        exits, code = program.crash_after, 70
    answers = HTTPAnswer(status=500 if program.errors else 200)
    listener = Listener(
        default=answers, paths={program.ready_path: HTTPAnswer()}, opens_after=program.start_seconds + 0.1
    )  # fmt: skip
    return Simulated(
        on_term=on_term,  # type: ignore[arg-type]
        drain_seconds=program.drain_seconds + EXITS_SECONDS,
        exit_code=program.exit_code,
        exits_after=exits,
        natural_exit_code=code,
        output=tuple(lines),
        ports={program.port: listener} if program.port else {},
    )


def _script(text: str) -> Simulated:
    """Return what a one-line script of a manifest does."""
    if "until" in text:
        return Simulated(on_term="default", output=((0.1, "waiting for db"),))
    failed = "exit 1" in text or text.startswith("cat ")
    seconds = 1.0 if text.startswith("sleep 1") else EXITS_SECONDS
    said = text.split("echo ")[-1].split(";")[0] if "echo" in text else f"{text.split()[0]}: no such file"
    return Simulated(exits_after=seconds, natural_exit_code=int(failed), output=((seconds / 2, said),))


def images_of(app: Application) -> dict[str, SimulatedImage]:
    """Return the images that are not there."""
    wanted = {each["image"] for each in (*app.spec["containers"], *app.spec.get("initContainers", ()))}
    return {image: SimulatedImage(present=False, error=f"{image}: not found") for image in wanted if image != app.image}
