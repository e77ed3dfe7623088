"""Encode what a command found out about the requests, for its page: both then say the same. Pure."""

# check: pure

from collections.abc import Mapping
from typing import Any

from lastcall.traffic import Account, LostRequest, Outcome


def account_to_wire(found: Account) -> dict[str, Any]:
    """Encode what is drawn of it."""
    return {
        "totals": dict(found.totals),
        "losses": dict(found.losses),
        "lost": [[each.outcome.to_wire(), each.at, each.pod, each.phase, each.cause, each.seen] for each in found.lost],
        "controlTotal": found.control_total,
        "controlLost": found.control_lost,
        "unmeasured": [each.to_wire() for each in found.unmeasured],
    }


def account_from_wire(wired: Mapping[str, Any]) -> Account:
    """Return an account with what `account_to_wire` encodes, and nothing else."""
    return Account(
        totals=wired["totals"],
        losses=wired["losses"],
        lost=tuple(_lost(*each) for each in wired["lost"]),
        unaccounted=(),
        control_total=wired["controlTotal"],
        control_lost=wired["controlLost"],
        unmeasured=tuple(Outcome.from_wire(each) for each in wired["unmeasured"]),
    )


def _lost(outcome: list[Any], at: float, pod: str, phase: Any, cause: Any, seen: Any) -> LostRequest:
    return LostRequest(Outcome.from_wire(outcome), at, pod, phase, cause, between=("", ""), seen=seen)
