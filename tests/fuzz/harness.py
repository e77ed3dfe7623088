"""What a fuzzer of one decoder is, and how it is run: inputs made from seeds, one property, a share of the time.

The property: bytes become a value, or exactly the error that the decoder declares, within bounded time and memory.
"""

import json
import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

CORPUS = Path(__file__).parent / "corpus"
SLOWEST_SECONDS = 5.0
"""For one input on a busy machine. What takes this long with inputs of some kilobytes is not linear."""
MOST_GROWTH = 400 << 20
"""Bytes that the process may grow by while one target runs."""
LONGEST_INPUT = 64 << 10

Seeds = Callable[[], list[bytes]]
Make = Callable[[Random, list[bytes]], bytes]


@dataclass(frozen=True)
class Target:
    """`check` raises one of `declared` for what cannot be read; what it answers says whether it was read."""

    name: str
    seeds: Seeds
    check: Callable[[bytes], bool]
    declared: tuple[type[BaseException], ...] = ()
    make: Make | None = None
    """Inputs that mostly can be read; without one, JSON is changed as JSON."""


@dataclass
class Report:
    """`made` by structure and by bytes, and how many of each were read; `failures`: the input's file, what happened."""

    name: str
    made: list[int] = field(default_factory=lambda: [0, 0])
    passed: list[int] = field(default_factory=lambda: [0, 0])
    slowest: float = 0.0
    grown: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        made, passed = sum(self.made), sum(self.passed)
        rates = [f"{100 * p / m:.0f} %" if m else "none" for p, m in zip(self.passed, self.made, strict=True)]
        whole = f"{100 * passed / max(made, 1):3.0f} %"
        return (
            f"{self.name:18} {made:8} inputs, {whole} read (by structure {rates[0]}, by bytes "
            f"{rates[1]}), slowest {self.slowest * 1000:.0f} ms, +{self.grown >> 20} MiB, {len(self.failures)} failures"
        )


@dataclass(frozen=True)
class Fuzzer:
    """One line of the registry. `share` of the time, relative to the others; `run(seconds, seed)`."""

    name: str
    share: float
    run: Callable[[float, int], Report]


def decoder(target: Target, share: float = 1.0) -> Fuzzer:
    return Fuzzer(target.name, share, lambda seconds, seed: run(target, seconds, seed))


def corpus_of(target: Target) -> list[bytes]:
    """The files that are kept for a target: seeds of note, and everything that failed once."""
    return [path.read_bytes() for path in sorted((CORPUS / target.name).glob("*")) if path.is_file()]


def run(target: Target, seconds: float, seed: int) -> Report:
    """Until the time is over or ten inputs have failed; failing inputs are added to the corpus."""
    random, report = Random(f"{seed}-{target.name}"), Report(target.name)
    seeds = [*target.seeds(), *corpus_of(target)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    until = time.monotonic() + seconds
    while time.monotonic() < until and len(report.failures) < 10:
        structured = random.random() < 0.7
        data = made(target, random, seeds) if structured else changed_bytes(random, random.choice(seeds))
        problem, passed, took = once(target, data := data[:LONGEST_INPUT])
        report.made[not structured] += 1
        report.passed[not structured] += passed
        report.slowest = max(report.slowest, took)
        if problem:
            report.failures.append(f"{keep(target, data)}: {problem}")
    report.grown = max(0, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before)
    if report.grown > MOST_GROWTH:
        report.failures.append(f"the process grew by {report.grown >> 20} MiB")
    return report


def made(target: Target, random: Random, seeds: list[bytes]) -> bytes:
    """An input by structure."""
    while True:
        try:
            return (target.make or json_change)(random, seeds)
        except RecursionError:
            continue  # what fails may be deeper than a generator can write


def once(target: Target, data: bytes) -> tuple[str, bool, float]:
    """(what is wrong, whether it was read, seconds of CPU: the machine may be busy with others).

    Slow once may be the process's own affair (a first import, a collection of all that a long run has left). An input
    is slow when it is slow again.
    """
    problem, passed, took = _looked_at(target, data)
    if took > SLOWEST_SECONDS:
        took = min(took, _looked_at(target, data)[2])
        if took > SLOWEST_SECONDS and not problem:
            problem = f"took {took:.1f} s"
    return problem, passed, took


def _looked_at(target: Target, data: bytes) -> tuple[str, bool, float]:
    begin = time.process_time()
    problem, passed = "", False
    try:
        passed = target.check(data)
    except target.declared:
        pass
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"[:300]
    return problem, passed, time.process_time() - begin


def keep(target: Target, data: bytes) -> str:
    path = CORPUS / target.name / sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path.relative_to(CORPUS.parent))


# -- changes ----------------------------------------------------------------------------------------------------

_NUMBERS = (0, 1, 2, 4, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1)
_TOKENS = (
    b"\0",
    b"\xff",
    b"\r\n",
    b"{",
    b"[",
    b'"',
    b"\\",
    b"*a",
    b"&a ",
    b"<<: ",
    b"- ",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"%",
)


def changed_bytes(random: Random, data: bytes) -> bytes:
    """One to four small changes."""
    out = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at = random.randint(0, len(out))
        to = min(len(out), at + random.choice((1, 1, 2, 4, 8, 64, 1024)))
        kind = random.randrange(7)
        if kind == 0 and out:
            out[min(at, len(out) - 1)] ^= 1 << random.randrange(8)
        elif kind == 1:
            out[at:at] = random.choice(_TOKENS)
        elif kind == 2:
            del out[at:to]
        elif kind == 3:
            out[at:at] = bytes(out[at:to]) * random.choice((1, 2, 50, 1000))
        elif kind == 4:
            size = random.choice((1, 2, 4, 8))
            number = random.choice(_NUMBERS) & ((1 << 8 * size) - 1)
            out[at : at + size] = number.to_bytes(size, random.choice(("big", "little")))
        elif kind == 5:
            out[at:to] = random.randbytes(to - at)
        else:
            del out[at:]
    return bytes(out[:LONGEST_INPUT])


_LEAVES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63 - 1, -(2**63), 1.5, 1e308, "", "a", "x" * 300, "\0", "\r\n", "é😀", "0",
    "-1", "9" * 400, "1e999999", "../../etc/passwd", "/", "10.0.0.1", "::1", "2020-01-01T00:00:00Z", [], {}, [[]],
    [None], {"": ""},
)  # fmt: skip


def json_change(random: Random, seeds: list[bytes]) -> bytes:
    """A seed whose JSON has one to three other values in it."""
    return json.dumps(json_value(random, seeds)).encode()


def json_value(random: Random, seeds: list[bytes]) -> Any:
    for _ in range(20):
        try:
            value = json.loads(random.choice(seeds))
            break
        except (ValueError, RecursionError):
            continue
    else:
        value = {}
    for _ in range(random.randint(1, 3)):
        value = _changed(random, value)
    return value


def _changed(random: Random, value: Any) -> Any:
    if isinstance(value, dict | list) and value and random.random() < 0.85:
        new: Any = dict(value) if isinstance(value, dict) else list(value)
        key = random.choice(list(new) if isinstance(new, dict) else range(len(new)))
        kind = random.randrange(8)
        if kind == 0:
            del new[key]
        elif kind == 1:
            if isinstance(new, dict):
                new[random.choice(("a", "", "é", "x" * 100, "name", key * 2))] = new[key]
            else:
                new += new[:20]
        else:
            new[key] = _changed(random, new[key])
        return new
    kind = random.randrange(6)
    if kind == 0:
        for _ in range(random.choice((1, 2, 5, 20, 300))):
            value = random.choice(({"a": value}, [value]))
        return value
    if kind == 1:
        return [value] * random.choice((0, 2, 20))
    return random.choice(_LEAVES)


def texts(*values: Any) -> list[bytes]:
    """Seeds of JSON."""
    return [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]


def report_text(reports: Iterable[Report]) -> str:
    return "\n".join(str(report) for report in reports)
