"""What an object says of itself: for an error or a report. Pure."""

# check: pure

from collections.abc import Iterator
from typing import Any

from lastcall.experiment.reasons import why_still_there, without_preemption_note
from lastcall.kube.api import Object

_LONGEST = 200


def state_lines(obj: Object, kind: str, node: Object | None = None) -> list[str]:
    """Return its status and its finalizers, a line each, after what it waits for if it is being deleted.

    `node` is that of a Pod that is being deleted.
    """
    if "deletionTimestamp" in obj["metadata"]:
        return [*why_still_there(obj, kind, node=node), *_status(obj)]
    finalizers = ", ".join(map(str, obj["metadata"].get("finalizers") or ()))
    return [*_status(obj), *([f"  finalizers: {finalizers}"] if finalizers else [])]


def _status(obj: Object) -> Iterator[str]:
    status = obj.get("status")
    if not status:
        yield "  no status"
    elif not isinstance(status, dict):
        yield f"  status: {_short(status)}"
    else:
        for name, value in status.items():
            if name == "conditions" and isinstance(value, list) and all(isinstance(each, dict) for each in value):
                yield from (f"  {_condition(each)}" for each in value)
            else:
                yield f"  status.{name}: {_short(value)}"


def _condition(condition: Object) -> str:
    why = ": ".join(str(condition[each]) for each in ("reason", "message") if condition.get(each))
    return f"condition {condition.get('type')}={condition.get('status')}" + (f" ({why})" if why else "")


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def event_line(event: Object) -> str:
    """Return `  Warning BackOff Pod web: … (3 times)`."""
    about = event.get("involvedObject") or {}
    count = event.get("count") or 1
    times = f" ({count} times)" if count > 1 else ""
    what = f"{about.get('kind', '')} {about.get('name', '')}".strip()
    return f"  {event.get('type')} {event.get('reason')} {what}: {without_preemption_note(event.get('message'))}{times}"
