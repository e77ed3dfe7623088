"""What a node's NoExecute taints mean for a Pod on it. Pure.

Source: pkg/controller/tainteviction/taint_eviction.go (processPodOnNode, getMinTolerationTime).
"""

# check: pure

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import AnyObject
from lastcall.kube.api.scheduling import NO_EXECUTE, taints_of, tolerates

if TYPE_CHECKING:
    from lastcall.kube.api.types.scheduling import Taint
    from lastcall.records.definitions.parts import GroundsOfDecision


def no_execute_taints(node: AnyObject | None) -> list[Taint]:
    return [taint for taint in taints_of(node or {}) if taint.get("effect") == NO_EXECUTE]


def seconds_tolerated(tolerations: Sequence[AnyObject], taints: Sequence[AnyObject]) -> float | None:
    """Return how long the Pod may stay, in seconds: 0.0 if a taint is not tolerated at all, None for ever.

    Otherwise the least tolerationSeconds of the tolerations that match a taint.
    """
    used: list[AnyObject] = []
    for taint in taints:
        matching = [each for each in tolerations if tolerates(each, taint)]
        if not matching:
            return 0.0
        used += matching
    limits = [each["tolerationSeconds"] for each in used if each.get("tolerationSeconds") is not None]
    return max(0.0, float(min(limits))) if limits else None


def first_untolerated(tolerations: Sequence[AnyObject], taints: Sequence[AnyObject]) -> AnyObject:
    """Return the taint that is to blame: the first that is not tolerated, else the first whose tolerance ends first."""
    for taint in taints:
        if not any(tolerates(each, taint) for each in tolerations):
            return taint

    def limit(taint: AnyObject) -> float:
        seconds = seconds_tolerated(tolerations, [taint])
        return float("inf") if seconds is None else seconds

    return min(taints, key=limit)


def taint_text(taint: AnyObject) -> str:
    """Return `key=value:effect`, as kubectl writes it."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"


def why_evicted(
    node: str, tolerations: Sequence[AnyObject], taints: Sequence[AnyObject]
) -> tuple[str, GroundsOfDecision]:
    """Return why a Pod is evicted from a node with these NoExecute taints, in words and as facts of a decision."""
    facts: GroundsOfDecision = {"node": node}
    why = f"evicted from {node}: it has a NoExecute taint"
    if taints:
        taint = first_untolerated(tolerations, taints)
        seconds = seconds_tolerated(tolerations, [taint])
        facts["taint"], facts["toleratedSeconds"] = taint_text(taint), seconds
        why = f"evicted from {node} by its taint {taint_text(taint)}, "
        why += f"tolerated for {seconds:g} s" if seconds else "which this Pod does not tolerate"
    return why, facts
