"""Texts in table cells: ages, label lists, shortened lists.

Source: apimachinery pkg/util/duration/duration.go, pkg/printers/internalversion/printers.go.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from lastcall.kube.api.meta import Object
from lastcall.kube.api.text.times import parse_rfc3339

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"
INVALID = "<invalid>"
_SHOWN = 3
LONGEST_SECONDS = (2**63 - 1) // 10**9
"""Go's longest duration, 292 years."""


def human_duration(duration: timedelta) -> str:
    """Format a duration: `90s`, `3m20s`, `2d4h`, … (`duration.HumanDuration`)"""
    seconds = min(int(duration.total_seconds()), LONGEST_SECONDS)
    if seconds < -1:
        return INVALID
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours = seconds // 60, seconds // 3600
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 24 * 8:
        return _pair(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(first: int, unit: str, second: int, small: str) -> str:
    return f"{first}{unit}{second}{small}" if second else f"{first}{unit}"


def since(text: str | None, now: datetime) -> str:
    """Return how long ago it was; `<unknown>` for no time."""
    return human_duration(now - parse_rfc3339(text)) if text else UNKNOWN


def created(obj: Object) -> str:
    """Return when the object was made; of a watch's bookmark, which is an object with nothing in it, Go's zero time."""
    return (obj.get("metadata") or {}).get("creationTimestamp") or "0001-01-01T00:00:00Z"


def age(obj: Object, now: datetime) -> str:
    return since((obj.get("metadata") or {}).get("creationTimestamp"), now)


def format_labels(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={(labels or {})[key]}" for key in sorted(labels or {})) or NONE


def listed(items: Sequence[str]) -> str:
    """Return the first three and how many more there are."""
    shown = ",".join(items[:_SHOWN])
    return f"{shown} + {len(items) - _SHOWN} more..." if len(items) > _SHOWN else shown or UNSET
