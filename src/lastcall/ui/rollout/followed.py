"""What is known of the Pods of somebody's cluster, for another process. Pure.

Moments without a bound are infinite, which Python's JSON has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from lastcall.traffic import Bounds, Outcome, PodLife, Traced, TracedPod, reached

_LIFE = ("uid", "name", "ip", "ready", "deleted", "hook", "stop", "term", "exited", "routed", "unrouted", "killed")


def traced_to_wire(traced: Traced) -> dict[str, Any]:
    """Without the requests that were answered, which the other process has."""
    # `asdict` makes another Counter of a Counter, of its pairs.
    pods = [{**asdict(replace(each, seen={})), "seen": dict(each.seen)} for each in traced.pods]
    return {**asdict(replace(traced, pods=(), reached=())), "pods": pods, "reached": bool(traced.reached)}


def traced_from_wire(told: Mapping[str, Any], outcomes: Sequence[Outcome]) -> Traced:
    """As it was, with these requests."""
    pods = [_pod(each) for each in told["pods"]]
    return Traced(**{**told, "pods": pods, "reached": reached(outcomes) if told["reached"] else ()})


def _pod(told: Mapping[str, Any]) -> TracedPod:
    bounds = {name: Bounds(**told[name]) if told[name] else None for name in ("deleted", "signalled", "exited")}
    restarts = [Bounds(**each) for each in told["restarts"]]
    seen = {int(number): count for number, count in told["seen"].items()}
    return TracedPod(**{**told, **bounds, "restarts": restarts, "seen": seen})


def lives_to_wire(lives: Sequence[PodLife]) -> list[dict[str, Any]]:
    """What is drawn of them."""
    return [{name: getattr(each, name) for name in _LIFE} for each in lives]


def lives_from_wire(told: Sequence[Mapping[str, Any]]) -> list[PodLife]:
    return [PodLife(**each) for each in told]
