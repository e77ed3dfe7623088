"""Limits for what a rollout may lose and how slow answers may be, over one run or several. Pure.

A limit holds or is broken by what was counted; how sure that is, is said beside it (the 95 % upper bound).
"""

# check: pure

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from lastcall.traffic.bounds import percentage, upper_bound
from lastcall.traffic.latency import Latencies, format_seconds
from lastcall.traffic.outcome import Kind
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MaxLost:
    """At most so many requests may be lost, or such a share of them (`share`)."""

    value: float = 0.0
    share: bool = False

    def holds(self, lost: int, total: int) -> bool:
        return lost <= (self.value * total if self.share else self.value)

    @property
    def text(self) -> str:
        return percentage(self.value) if self.share else f"{self.value:g}"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """`max_p99` are seconds by kind of request, during the disruption; "" is for all kinds without one of their own."""

    max_lost: MaxLost | None = None
    max_p99: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pooled:
    """Several runs of one manifest as one experiment. `inconclusive` runs are counted and not pooled. In `crashed` of
    the runs a container crashed, or was restarted by a probe."""

    runs: int
    inconclusive: int
    total: int
    lost: int
    latency: Latencies
    crashed: int = 0

    @property
    def upper_bound(self) -> float:
        """Return the upper bound of the share of lost requests, with 95 % confidence, all runs together."""
        return upper_bound(self.lost, self.total)


@dataclass(frozen=True, slots=True)
class Checked:
    """A threshold and what was found: `limit` and `value` in words. `unsure`: it would be broken, and may not be,
    without the time by which the load generator itself was held up."""

    name: str
    limit: str
    value: str
    broken: bool
    unsure: bool = False

    @property
    def sentence(self) -> str:
        verdict = " — broken" if self.broken else ""
        if self.unsure:
            verdict = " — not known: the load generator itself was held up (the machine was busy)"
        return f"{self.name}: {self.value}, limit {self.limit}{verdict}"


def check(thresholds: Thresholds, found: Pooled) -> list[Checked]:
    """Return what was asked for; without a limit of its own nothing may be lost, which is reported only where one was
    given."""
    return [*_lost(thresholds.max_lost, found), *_slow(thresholds.max_p99, found)]


def holds(thresholds: Thresholds, found: Pooled) -> bool:
    """Return whether nothing is broken. Nothing may be lost where no other limit says otherwise."""
    limit = thresholds.max_lost or MaxLost()
    return limit.holds(found.lost, found.total) and not any(each.broken for each in check(thresholds, found))


def _lost(limit: MaxLost | None, found: Pooled) -> Iterator[Checked]:
    if limit is not None:
        share = percentage(found.lost / found.total) if found.total else "0 %"
        measured = (
            f"{found.lost} of {found.total} requests ({share}; at most {percentage(found.upper_bound)} with 95 %)"
        )
        yield Checked("max-lost", limit.text, measured, not limit.holds(found.lost, found.total))


def _slow(limits: Mapping[str, float], found: Pooled) -> Iterator[Checked]:
    during = found.latency.get("during", {})
    kinds: Sequence[Kind] = [kind for kind in during if kind in limits or "" in limits]
    for kind in kinds:
        limit = limits.get(kind, limits.get("", 0.0))
        p99, least = during[kind].p99, during[kind].p99_least
        measured = f"{format_seconds(p99)} (of {during[kind].count} good answers)"
        yield Checked(f"max-p99 {kind}", format_seconds(limit), measured, least > limit, p99 > limit >= least)
