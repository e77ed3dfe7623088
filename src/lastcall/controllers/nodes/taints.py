"""What a node's NoExecute taints mean for a Pod on it. Pure.

Source: pkg/controller/tainteviction/taint_eviction.go (processPodOnNode, getMinTolerationTime).
"""

from collections.abc import Sequence

from lastcall.api.meta import Object
from lastcall.api.scheduling import NO_EXECUTE, taints_of, tolerates


def no_execute_taints(node: Object | None) -> list[Object]:
    return [taint for taint in taints_of(node or {}) if taint.get("effect") == NO_EXECUTE]


def seconds_tolerated(tolerations: Sequence[Object], taints: Sequence[Object]) -> float | None:
    """How long the Pod may stay: 0.0 when a taint is not tolerated at all, None when it may stay for ever.

    Otherwise the least tolerationSeconds of the tolerations that match a taint.
    """
    used: list[Object] = []
    for taint in taints:
        matching = [each for each in tolerations if tolerates(each, taint)]
        if not matching:
            return 0.0
        used += matching
    limits = [each["tolerationSeconds"] for each in used if each.get("tolerationSeconds") is not None]
    return max(0.0, float(min(limits))) if limits else None


def first_untolerated(tolerations: Sequence[Object], taints: Sequence[Object]) -> Object:
    """The taint that is to blame: the first that is not tolerated, else the first whose tolerance ends first."""
    for taint in taints:
        if not any(tolerates(each, taint) for each in tolerations):
            return taint

    def limit(taint: Object) -> float:
        seconds = seconds_tolerated(tolerations, [taint])
        return float("inf") if seconds is None else seconds

    return min(taints, key=limit)


def taint_text(taint: Object) -> str:
    """`key=value:effect`, as kubectl writes it."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"
