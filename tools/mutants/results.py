"""Say what became of the mutants."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mutants.sites import Mutant

KILLED, SURVIVED, TIMEOUT, SILENT = "killed", "survived", "timeout", "silent"


@dataclass(frozen=True)
class Result:
    """What became of one mutant."""

    mutant: Mutant
    outcome: str
    """`killed`, `survived`, or one that counts as killed: `timeout` (a test took much more CPU time than it does) or
    `silent` (a test waited for much longer than it runs, twice, the second time alone)."""
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
    by_time, silent = (sum(each.outcome == outcome for each in results) for outcome in (TIMEOUT, SILENT))
    return (
        f"{package}: {len(results)} mutants, {killed} killed ({share(results)} %, {by_time} of them by time, "
        f"{silent} silent twice), {len(results) - killed} survived"
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
        "silent": sum(each.outcome == SILENT for each in results),
        "results": [asdict(each) for each in results],
    }
