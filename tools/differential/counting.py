"""How many requests differ: by what a client notices, and by texts and orders alone; without what stays, and with it."""

import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from differential.comparing import Difference

MOST_NOTICED, MOST_TOLD = 0.1, 1.0
"""Percent of the requests that may differ: in what a client notices, in texts and orders alone."""
ROOT = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Tally:
    """Requests that differ. One that differs in both is counted as noticed."""

    noticed: int = 0
    told: int = 0

    def count(self, unequal: Iterable[Difference]) -> None:
        """Count one request by its differences, none when the answers are equal."""
        kinds = {each.noticed for each in unequal}
        self.noticed += True in kinds
        self.told += kinds == {False}


@dataclass(slots=True)
class Counted:
    """`unwanted` leaves out what the table in docs/fidelity.md has a reason for, `all` has it."""

    unwanted: Tally = field(default_factory=Tally)
    all: Tally = field(default_factory=Tally)

    def held(self, requests: int) -> bool:
        """Return whether what nobody wants is below both limits."""
        noticed, told = self.unwanted.noticed, self.unwanted.told
        return 100 * noticed < MOST_NOTICED * requests and 100 * told < MOST_TOLD * requests

    def lines(self, requests: int) -> Iterator[str]:
        """Yield the table of a report, in Markdown."""
        yield "| | limit | differ | with the intended ones |"
        yield "|---|---|---|---|"
        for about, most, name in (
            ("what a client notices: status, headers, objects, watch events", MOST_NOTICED, "noticed"),
            ("texts and orders alone: messages, causes, warnings, descriptions", MOST_TOLD, "told"),
        ):
            pair = (getattr(each, name) for each in (self.unwanted, self.all))
            yield (
                f"| {about} | {most} % | "
                + " | ".join(f"{each}, {100 * each / requests:.2f} %" for each in pair)
                + " |"
            )


def commit() -> str:
    """Return the seed of a run that names none: the hash of the commit, so that nobody has chosen it.

    Raises LookupError.
    """
    for argv in (["status", "--porcelain", "src", "tools/differential", "docs/fidelity.md"], ["rev-parse", "HEAD"]):
        run = subprocess.run(["git", "-C", str(ROOT), *argv], capture_output=True, text=True, check=False)
        if run.returncode:
            raise LookupError(f"git {argv[0]}: {run.stderr.strip()}. Name a seed with --seed.")
        if argv[0] == "status" and run.stdout.strip():
            raise LookupError(
                f"The commit does not have these changes:\n{run.stdout}Commit them, or name a seed with --seed."
            )
    return run.stdout.strip()[:12]
