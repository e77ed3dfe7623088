"""Has lastcall look at cases: each command is a process of its own with a time limit, in directories of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from bench.diagnosis.application import Application, Object
from bench.diagnosis.case import Case, build
from bench.diagnosis.fault import Injected
from bench.diagnosis.judge import (
    Answer,
    Proposal,
    false_alarms,
    grade,
    is_open,
    is_well,
    named_of,
    offered,
    read_answer,
    wrongly_named,
)
from bench.diagnosis.repair import patch_of, patch_template, patch_workload

LASTCALL = (sys.executable, "-m", "lastcall.cli.main")
LIMIT_SECONDS = 120.0
"""For one command. A case takes up to four of them: broken, sound, and with a change."""
OVERTIME = -1
"""The exit status of a command that was ended because its time was over."""
TRIES = 3
"""How many of the proposed patches are tried for a fault."""
SOURCE = Path(__file__).resolve().parents[2] / "src"


@dataclass
class Verdict:
    """The result of one fault of a case."""

    fault: str
    group: str
    grade: str
    named: list[str]
    beside: list[str]
    """Ids that are named as certain and are neither the cause nor what it leads to."""
    change: str = ""
    """What the harness took for the proposed change."""
    changed_by: str = "none"


@dataclass
class Result:
    """The result of a case, as it is stored. Without verdicts the fault did not show, or `error` says what failed."""

    case: str
    seed: str
    shape: str
    verdicts: list[Verdict] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    sound: bool = True
    """False: the application is not well without the fault either, so that the case proves nothing."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What was measured of the broken application."""
    seconds: float = 0.0
    error: str = ""


class Asked(Protocol):
    """Where lastcall is asked: on the kernel (`Place`) or in virtual time."""

    def provide(self, image: str) -> None: ...
    def ask(self, app: Application, objects: list[Object]) -> Answer: ...


class Place:
    """A store of images and directories that all cases of a run share."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCE),
            "XDG_DATA_HOME": str(directory / "data"),
            "XDG_STATE_HOME": str(directory / "state"),
            "XDG_CACHE_HOME": str(directory / "cache"),
            "COLUMNS": "400",
        }
        self._images: set[str] = set()
        self._running: set[subprocess.Popen[str]] = set()
        self._closed = False

    def close(self) -> None:
        """End every command that still runs; no other one starts."""
        self._closed = True
        for each in tuple(self._running):
            each.terminate()

    def provide(self, image: str) -> None:
        """Make the image of this name from the machine's programs."""
        if image in self._images:
            return
        status, out, err = self.call("image", "from-host", "--directories", image)
        if status:
            raise RuntimeError(f"image from-host {image}: {out}{err}")
        self._images.add(image)

    def call(self, *arguments: str, limit: float = LIMIT_SECONDS) -> tuple[int, str, str]:
        """Run a command of lastcall to its end; end it, and all that it started, when its time is over."""
        if self._closed:
            raise RuntimeError("interrupted")
        process = subprocess.Popen(
            [*LASTCALL, *arguments], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip
        self._running.add(process)
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                out, err = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
            return OVERTIME, out, f"{err}\nbench: the command took longer than {limit:g} s"
        finally:
            self._running.discard(process)
        return process.returncode, out, err

    def ask(self, app: Application, objects: list[Object]) -> Answer:
        """Run the application's command on these objects."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=self.directory) as file:
            file.write(manifest(objects))
            file.flush()
            return read_answer(*self.call(app.command, file.name, "-o", "json", *app.args))


@contextmanager
def place() -> Iterator[Place]:
    """Yield a Place in a temporary directory, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="lastcall-diagnosis-") as directory:
        yield Place(Path(directory))


def manifest(objects: Sequence[Object]) -> str:
    text: str = yaml.safe_dump_all(objects, sort_keys=False, width=10_000)
    return text


def run_case(where: Asked, case: Case) -> tuple[Result, Answer | None]:
    """Run a case: broken, without the fault, and with the changes that were proposed."""
    began, answer = time.monotonic(), None
    result = Result(case.id, case.seed, case.shape)
    try:
        app, injected = build(case)
        where.provide(app.image)
        answer = where.ask(app, app.objects())
        result.facts = answer.facts
        sound_app, _ = build(case, [name for name, _ in case.faults])
        sound = _ask(where, sound_app, sound_app.objects())
        result.alarms, result.sound = false_alarms(sound), is_well(sound)
        if not is_well(answer) or not all(each.fault.shows for each in injected):
            result.verdicts = [_verdict(where, case, answer, each, injected, sound) for each in injected]
        if answer.status == OVERTIME:
            result.sound, result.error = False, f"the command took longer than {LIMIT_SECONDS:g} s"
        elif not result.sound:
            result.error = json.dumps(sound.facts) + sound.stderr[-1500:]
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as error:
        result.error = f"{type(error).__name__}: {error}"[-2000:]
    result.seconds = round(time.monotonic() - began, 1)
    return result, answer


def _ask(where: Asked, app: Application, objects: list[Object]) -> Answer:
    """Ask; ask again where a busy machine left open what an experiment shows."""
    answer = where.ask(app, objects)
    return where.ask(app, objects) if is_open(answer) else answer


def _verdict(
    where: Asked, case: Case, answer: Answer, truth: Injected, injected: Sequence[Injected], sound: Answer
) -> Verdict:
    """Judge one fault of a case; try its change on the application that has this fault alone."""
    others = [each for each in injected if each is not truth]
    elsewhere = frozenset(each.container for each in others)
    ids = frozenset(id_ for each in others for id_ in each.fault.causes | each.fault.symptoms)
    found = named_of(answer, truth, elsewhere)
    offers = offered(answer, truth, elsewhere)
    removed, taken = False, Proposal("none", said=" ".join(each.advice for each in found))
    if offers:
        taken = offers[0]
    usual = frozenset(each.id for each in sound.named)
    for proposal in [each for each in offers if each.accepted or each.kind != "program"][:TRIES]:
        taken = proposal
        removed = is_well(sound) if proposal.accepted else _goes_with(where, case, truth, proposal, usual)
        if removed:
            break
    graded = grade(answer, truth, removed=removed, others=ids, elsewhere=elsewhere)
    named = list(dict.fromkeys(f"{each.id}{' (lint)' if each.by == 'lint' else ''}" for each in answer.named))
    beside = wrongly_named(answer, truth, ids)
    return Verdict(truth.fault.id, truth.fault.group, graded, named, beside, taken.said, taken.kind)


def _goes_with(where: Asked, case: Case, truth: Injected, proposal: Proposal, usual: frozenset[str]) -> bool:
    """Return True if the fault goes when the proposed patch is applied: what names it, too, unless that is `usual`."""
    app, _ = build(case, [name for name, _ in case.faults if name != truth.fault.id])
    match proposal.kind:
        case "workload":
            objects = patch_workload(app.objects(), proposal.patch)
        case "patch":
            objects = patch_template(app.objects(), proposal.patch, proposal.container)
        case "mapping":
            patch = patch_of(proposal.patch, proposal.container)
            objects = patch_template(app.objects(), patch, proposal.container)
        case _:
            return False
    return is_well(_ask(where, app, objects), truth.fault.causes - usual, truth.container)


# -- stored results ----------------------------------------------------------------------------------------------------


def load_results(file: Path) -> dict[str, dict[str, Any]]:
    """Return the stored results by case."""
    if not file.exists():
        return {}
    lines = (json.loads(line) for line in file.read_text().splitlines() if line)
    return {each["case"]: each for each in lines}


def store(file: Path, result: Result) -> dict[str, Any]:
    """Append a result to the file."""
    data = asdict(result)
    with file.open("a") as out:
        out.write(json.dumps(data) + "\n")
    return data
