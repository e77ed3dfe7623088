"""One thing that a cluster needs of the machine, as it was found."""

from typing import Literal

from lastcall.world.dataclass import dataclass

Status = Literal["ok", "degraded", "missing"]


@dataclass(frozen=True, slots=True)
class Need:
    """One thing a cluster needs.

    `found` is what the machine showed. A degraded need says in `lose` what will not work, a missing one cannot be done
    without. `fix` is the command, or the setting and where to change it; "" when there is nothing to fix or no way to.
    """

    name: str
    status: Status
    found: str
    lose: str = ""
    fix: str = ""

    def __str__(self) -> str:
        """One line for a person whose cluster did not start."""
        return f"{self.name}: {self.found}" + (f"; to fix it: {self.fix}" if self.fix else "")
