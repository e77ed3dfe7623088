"""Say what became of the mutants."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mutants.sites import Mutant

KILLED, SURVIVED, TIMEOUT = "killed", "survived", "timeout"


@dataclass(frozen=True)
class Result:
    """What became of one mutant."""

    mutant: Mutant
    outcome: str
    """`killed`, `survived`, or `timeout`: a test took much longer than it does, which counts as killed."""
    test: str = ""
    """The one that killed it."""
    why: str = ""
    """For a survivor: how many tests ran."""
    seconds: float = 0.0

    @property
    def is_killed(self) -> bool:
        """Return True if a test noticed the change."""
        return self.outcome != SURVIVED


def share(results: Sequence[Result]) -> float:
    """Return how many of the mutants are killed, in percent."""
    return round(100 * sum(each.is_killed for each in results) / len(results), 1) if results else 100.0


def summary(package: str, results: Sequence[Result]) -> str:
    """Return one line of figures."""
    killed = sum(each.is_killed for each in results)
    by_time = sum(each.outcome == TIMEOUT for each in results)
    return (
        f"{package}: {len(results)} mutants, {killed} killed ({share(results)} %, {by_time} of them by time), "
        f"{len(results) - killed} survived"
    )


def text(package: str, results: Sequence[Result]) -> str:
    """Return the figures and the survivors, each with its place and change."""
    survivors = sorted((each for each in results if not each.is_killed), key=lambda each: str(each.mutant))
    lines = [f"  {each.mutant} (in {each.mutant.function}; {each.why})" for each in survivors]
    return "\n".join([summary(package, results), *lines])


def as_document(package: str, seed: str, commit: str, results: Sequence[Result]) -> dict[str, object]:
    """Return the content of build/mutants/PACKAGE.json."""
    return {
        "package": package,
        "commit": commit,
        "seed": seed,
        "mutants": len(results),
        "killed": sum(each.is_killed for each in results),
        "timeouts": sum(each.outcome == TIMEOUT for each in results),
        "results": [asdict(each) for each in results],
    }
