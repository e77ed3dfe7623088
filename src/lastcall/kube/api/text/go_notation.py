"""Go's own notations, which Kubernetes shows to users in Events and messages."""

import re

from lastcall.kube.api.field import go_quote

__all__ = ["go_duration", "go_list", "go_quote"]


def go_list(items: list[str]) -> str:
    """Format a string slice as Go's `%v` (and `%s`) does: `[a b]`."""
    return "[" + " ".join(items) + "]"


def go_duration(seconds: float) -> str:
    """Format a `time.Duration` as Go's `%v` does, to the millisecond: `1s`, `1m30s`, `6.017s`, `250ms`, `0s`."""
    milliseconds = round(seconds * 1000)
    if milliseconds == 0:
        return "0s"
    sign = "-" if milliseconds < 0 else ""
    milliseconds = abs(milliseconds)
    if milliseconds < 1000:
        return f"{sign}{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    text = re.sub(r"\.?0+$", "", f"{rest / 1000:.3f}") if rest % 1000 else str(rest // 1000)
    text = f"{text or '0'}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"
