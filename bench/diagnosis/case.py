"""Draws cases from a seed: an application, its noise, and the faults in it. Everything follows from the seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from bench.diagnosis.application import Application
from bench.diagnosis.fault import Fault, Injected
from bench.diagnosis.faults_serving import SERVING
from bench.diagnosis.faults_start import START
from bench.diagnosis.faults_stop import STOP
from bench.diagnosis.shapes import SHAPES, Draw, add_noise

FAULTS: dict[str, Fault] = {each.id: each for each in (*STOP, *START, *SERVING)}
DOUBLE_SHARE = 0.12
"""The share of cases with a second fault, of those that have a neighbour for it."""


@dataclass(frozen=True)
class Case:
    """One case. `seed` is its own; `faults` are (id of the fault, whether it is in the neighbour)."""

    number: int
    seed: str
    shape: str
    faults: tuple[tuple[str, bool], ...]

    @property
    def id(self) -> str:
        names = "+".join(name for name, _ in self.faults)
        return f"{self.number:03d}-{names}-{self.shape}"


def draw_cases(count: int, seed: str) -> list[Case]:
    """Return cases that take every fault as often as any other one, give or take one."""
    random, cases = Random(f"cases {seed}"), []
    order: list[str] = []
    for number in range(count):
        if not order:
            order = sorted(FAULTS)
            random.shuffle(order)
        fault = FAULTS[order.pop()]
        shape = random.choice(fault.shapes)
        faults: tuple[tuple[str, bool], ...] = ((fault.id, False),)
        if shape in ("pair", "sidecar") and fault.group == "stop" and random.random() < DOUBLE_SHARE * 3:
            second = random.choice([each.id for each in FAULTS.values() if each.anywhere and each.id != fault.id])
            faults = (*faults, (second, True))
        cases.append(Case(number, f"{seed}/{number}", shape, faults))
    return cases


def build(case: Case, without: Sequence[str] = ()) -> tuple[Application, list[Injected]]:
    """Return the application with its faults, but for those of `without`, and what was injected.

    What is not broken is the same with and without a fault: a fault has a random sequence of its own.
    """
    draw = Draw(Random(f"application {case.seed}"))
    app = SHAPES[case.shape](draw)
    add_noise(app, draw)
    injected = []
    for name, beside in case.faults:
        fault = FAULTS[name]
        app.args += list(_more(app.args, fault.args))
        if name in without:
            continue
        container = app.neighbour if beside else app.main
        words = fault.apply(app, container, Random(f"{name} {case.seed}"))
        injected.append(Injected(fault, container, words or ()))
    return app, injected


def _more(there: Sequence[str], args: Sequence[str]) -> Sequence[str]:
    """Return the arguments that are not there yet."""
    return () if args and args[0] in there else args
