"""Choose which mutants are tried and which tests try each of them."""

import random
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mutants.sites import Mutant


@dataclass(frozen=True)
class Touched:
    """What is known of a test that passes: its time and the lines that it executes."""

    test: str
    seconds: float
    """CPU seconds."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """The path of a source file → a number whose bit N means line N."""

    def touches(self, mutant: Mutant) -> bool:
        """Return True if the test executes a line of the mutant."""
        return bool(self.lines.get(mutant.path, 0) & mask(*mutant.lines))


@dataclass(frozen=True)
class Equivalent:
    """A change that no test can see, with the reason."""

    path: str
    function: str
    change: str
    reason: str


def mask(first: int, last: int) -> int:
    """Return the number with the bits of these lines."""
    return (1 << (last + 1)) - (1 << first)


def shuffled(mutants: Iterable[Mutant], seed: str) -> list[Mutant]:
    """Return the mutants in the seed's order. Leaving some out keeps the order of the others."""
    ordered = sorted(mutants, key=lambda each: (each.path, each.number))
    random.Random(seed).shuffle(ordered)
    return ordered


def read_equivalents(path: Path) -> list[Equivalent]:
    """Read tests/mutants-equivalent.toml; an absent file lists none."""
    if not path.exists():
        return []
    return [Equivalent(**each) for each in tomllib.loads(path.read_text()).get("mutant", [])]


def without_equivalents(mutants: Iterable[Mutant], listed: Iterable[Equivalent]) -> list[Mutant]:
    """Return the mutants that are not listed as equivalent."""
    known = {(each.path, each.function, each.change) for each in listed}
    return [each for each in mutants if (each.path, each.function, each.change) not in known]


def stale(mutants: Iterable[Mutant], listed: Iterable[Equivalent], paths: Collection[str]) -> list[Equivalent]:
    """Return the listed changes in these files that the code no longer has."""
    there = {(each.path, each.function, each.change) for each in mutants}
    return [each for each in listed if each.path in paths and (each.path, each.function, each.change) not in there]


def chosen_tests(mutant: Mutant, tests: Iterable[Touched]) -> list[Touched]:
    """Return the tests that touch the mutant, the quickest first."""
    return sorted((each for each in tests if each.touches(mutant)), key=lambda each: (each.seconds, each.test))


def only_at_import(mutant: Mutant, imported: Mapping[str, int], tests: Sequence[Touched]) -> bool:
    """Return True if the code ran when it was imported and in no test: a swapped function would never be called."""
    ran = bool(imported.get(mutant.path, 0) & mask(*mutant.lines))
    return ran and not any(each.touches(mutant) for each in tests)


def bits(lines: int) -> Iterator[int]:
    """Yield the lines of a number of `Touched.lines`."""
    while lines:
        yield (lines & -lines).bit_length() - 1
        lines &= lines - 1
