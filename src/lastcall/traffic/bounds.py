"""How much worse than what was counted the truth may be. Pure."""

# check: pure

import math


def upper_bound(lost: int, total: int, confidence: float = 0.95) -> float:
    """Return the largest share of lost requests that still explains that so few were seen (Clopper-Pearson, one-sided).

    For none lost it is about 3/total. Answers 1.0 for no requests at all.
    """
    if total == 0 or lost >= total:
        return 1.0
    low, high = lost / total, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(lost, total, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(lost: int, total: int, share: float) -> float:
    """Return the probability that at most `lost` of `total` are lost, if each is lost with probability `share`."""
    if share <= 0:
        return 1.0
    if share >= 1:
        return 0.0
    log_share, log_rest = math.log(share), math.log1p(-share)
    whole = math.lgamma(total + 1)
    return math.fsum(
        math.exp(whole - math.lgamma(k + 1) - math.lgamma(total - k + 1) + k * log_share + (total - k) * log_rest)
        for k in range(lost + 1)
    )


def percentage(share: float) -> str:
    """Return the percentage as people read it: two digits, three just below everything."""
    return f"{share * 100:.{2 if share < 0.995 else 3}g} %"
