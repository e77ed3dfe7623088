"""Encode what is known of the Pods of an existing cluster, for another process. Pure.

Moments without a bound are infinite, which Python's JSON has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from lastcall.traffic import MOMENTS, Moment, Outage, Outcome, PodLife, Traced, reached

_PLAIN = ("uid", "name", "ip", "killed")
_OUTAGE = ("exited", "restarted", "stop")


def traced_to_wire(traced: Traced) -> dict[str, Any]:
    """Encode it, without the requests that were answered, which the other process has."""
    wired = asdict(replace(traced, pods=(), printed={}, reached=()))
    del wired["corners"]  # made of the Pods again
    # `asdict` makes another Counter of a Counter, of its pairs.
    printed = {uid: dict(ids) for uid, ids in traced.printed.items()}
    return {**wired, "pods": lives_to_wire(traced.pods), "printed": printed, "reached": bool(traced.reached)}


def traced_from_wire(wired: Mapping[str, Any], outcomes: Sequence[Outcome]) -> Traced:
    """Convert it back from JSON, with these requests."""
    printed = {uid: {int(number): count for number, count in ids.items()} for uid, ids in wired["printed"].items()}
    reached_at = reached(outcomes) if wired["reached"] else ()
    return Traced(**{**wired, "pods": lives_from_wire(wired["pods"]), "printed": printed, "reached": reached_at})


def lives_to_wire(lives: Sequence[PodLife]) -> list[dict[str, Any]]:
    """Return what is drawn of them, and what causes are concluded from."""
    return [_life_to_wire(each) for each in lives]


def lives_from_wire(wired: Sequence[Mapping[str, Any]]) -> list[PodLife]:
    return [_life_from_wire(each) for each in wired]


def _life_to_wire(life: PodLife) -> dict[str, Any]:
    plain = {name: getattr(life, name) for name in _PLAIN}
    moments = {name: _moment_to_wire(getattr(life, name)) for name in MOMENTS}
    outages = [{name: _moment_to_wire(getattr(each, name)) for name in _OUTAGE} for each in life.outages]
    return {**plain, **{name: moment for name, moment in moments.items() if moment}, "outages": outages}


def _life_from_wire(wired: Mapping[str, Any]) -> PodLife:
    values: dict[str, Any] = {name: wired[name] for name in _PLAIN}
    values |= {name: Moment(*wired[name]) for name in MOMENTS if name in wired}
    outages = [_outage(each) for each in wired["outages"]]
    return PodLife(**values, outages=outages)


def _outage(wired: Mapping[str, Any]) -> Outage:
    values: dict[str, Any] = {name: Moment(*wired[name]) if wired[name] else None for name in _OUTAGE}
    return Outage(**values)


def _moment_to_wire(moment: Moment | None) -> list[float] | None:
    return None if moment is None else [moment.earliest, moment.latest]
