"""When a role that died is started again. Pure.

The first death costs no time. A role that dies again and again soon after its start waits 10 ms, 20 ms … at most 10 s;
one that had lived for 10 s starts over.
"""

from dataclasses import dataclass

FIRST_DELAY = 0.01
MAX_DELAY = 10.0
STEADY_SECONDS = 10.0


def restart_delay(early_deaths: int) -> float:
    """Seconds to wait after the death that follows `early_deaths` deaths in a row."""
    if early_deaths <= 0:
        return 0.0
    return float(min(FIRST_DELAY * 2 ** min(early_deaths - 1, 30), MAX_DELAY))


@dataclass(slots=True)
class RestartBackoff:
    """One role's deaths."""

    early_deaths: int = 0

    def died(self, lived_seconds: float) -> float:
        """Seconds until it may be started again."""
        if lived_seconds >= STEADY_SECONDS:
            self.early_deaths = 0
        delay = restart_delay(self.early_deaths)
        self.early_deaths += 1
        return delay
