"""What a load shows less of than it seems to: late requests, client errors, an uneven balance. Pure."""

# check: pure

from collections.abc import Iterator, Sequence

from lastcall.endings import fix, said
from lastcall.experiment.not_simulated import Note
from lastcall.traffic import (
    QUICK_SECONDS,
    Account,
    Load,
    Outcome,
    client_errors,
    format_seconds,
    percentage,
    percentile,
)

LATE_SECONDS = 0.05
"""A request that was sent so much after its time did not come when the rate wanted it."""
LATE_SHARE = 0.01
"""The share of late requests from which on it is reported."""

ENOUGH, UNEVEN = 20, 1.5
"""Requests, and times its even share that one Pod got, from which on an uneven balance is reported."""


def of_load(outcomes: Sequence[Outcome]) -> Iterator[Note]:
    """Note whether the load came when it should."""
    late = [lateness for each in outcomes if (lateness := each.sent - each.planned) >= LATE_SECONDS]
    if outcomes and len(late) >= LATE_SHARE * len(outcomes):
        facts = {"share": percentage(len(late) / len(outcomes)), "limit": format_seconds(LATE_SECONDS)}
        yield Note("generatorLate", "", said("generatorLate", most=format_seconds(max(late)), **facts))


def of_answers(outcomes: Sequence[Outcome], load: Load) -> Iterator[Note]:
    """Note answers that show less than they seem to: client errors, and slow requests that were answered at once."""
    for kind, (errors, total) in client_errors(outcomes).items():
        if (count := errors.total()) < total:  # of all of them the verdict speaks
            facts = {"path": load.asked(kind)[0], "statuses": ", ".join(map(str, sorted(errors))), "kind": kind}
            yield Note("clientErrors", kind, said("clientErrors", count=count, total=total, **facts))
    good = [each for each in outcomes if each.kind == "slow" and not each.lost and each.status < 400]
    usual = percentile(sorted(each.finished - each.sent for each in good), 0.5) if good else QUICK_SECONDS
    if usual < QUICK_SECONDS:
        yield Note("slowIsQuick", "slow", said("slowIsQuick", path=load.slow_path, took=format_seconds(usual)))


def of_balance(account: Account) -> Iterator[Note]:
    """Note requests of HTTP/2 that were spread unevenly, before the disruption or after it."""
    for moment, spread in (("before", account.balance), ("after", account.balance_after)):
        for each in spread:
            enough = len(each.requests) > 1 and sum(each.requests.values()) >= ENOUGH
            if each.kind != "http2" or not enough or each.skew < UNEVEN:
                continue
            got = ", ".join(f"{pod} {count}" for pod, count in each.requests.items())
            of = "1 connection" if each.connections == 1 else f"{each.connections} connections"
            text = said("connectionsPinned", moment, kind=each.kind, connections=of, got=got)
            yield Note("connectionsPinned", each.kind, f"{text} fix: {fix('connectionsPinned')}")
