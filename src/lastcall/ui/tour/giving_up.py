"""Why a run of the tour is given up before its Pod is Ready, in words for its learner. Pure."""

# check: pure

from datetime import datetime

from lastcall.endings import (
    HOPELESS,
    NOT_STARTED,
    SURE_SECONDS,
    fix_alone,
    fixes_for,
    fixes_of_start,
    hopeless_reason,
    is_crash_looping,
    unschedulable_message,
    waiting_helps,
    waits_of,
)
from lastcall.kube.api import Object, name_of, parse_rfc3339
from lastcall.records.said import Said, joined, tell
from lastcall.world.dataclass import dataclass

NO_WORDS = tell("")


@dataclass(frozen=True, slots=True)
class Why:
    """`text` names what to change, where that is known. `words` are then those of the runtime or the scheduler."""

    text: Said = NO_WORDS
    words: str = ""


def why_give_up(pod: Object, now: datetime) -> Why:
    """Return why a Pod will not be Ready, whatever happens; an empty text while it may."""
    if message := unschedulable_message(pod):
        return _no_node(pod, message, now)
    status = pod.get("status") or {}
    waits = list(waits_of(pod))
    if hopeless := hopeless_reason(pod):
        known = next((each for each in waits if each[1] in HOPELESS), None)
        if known is None:
            return Why(tell("$name cannot start: $why", name=name_of(pod), why=status.get("message") or hopeless))
        return _no_start(pod, *known)
    first = next(iter(waits), None)
    why = tell(": $container: $what", container=first[0], what=first[2] or first[1]) if first else ""
    if is_crash_looping(pod):
        return Why(tell("a container crashes again and again$why", why=why))
    if status.get("phase") in ("Succeeded", "Failed"):
        return Why(tell("$name ended before it was Ready$why", name=name_of(pod), why=why))
    return Why()


def _no_start(pod: Object, container: str, reason: str, message: str) -> Why:
    fixes = fixes_of_start(message, pod, container) if reason in NOT_STARTED else fixes_for(reason, message)
    advice = next(map(fix_alone, fixes), "")
    text = tell("$name cannot start: $why", name=container, why=advice or message or reason)
    return Why(text, message if advice else "")


def _no_node(pod: Object, message: str, now: datetime) -> Why:
    """What other Pods that go may change is believed only after a while."""
    if waiting_helps(message, pods_may_go=True) and _said_for(pod, now) < SURE_SECONDS:
        return Why()
    advice = joined(map(fix_alone, fixes_for("Unschedulable", message)), "; ")
    return Why(tell("no node takes $name: $why", name=name_of(pod), why=advice or message), message if advice else "")


def _said_for(pod: Object, now: datetime) -> float:
    since = next(
        (each.get("lastTransitionTime") for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"), None
    )
    return (now - parse_rfc3339(since)).total_seconds() if since else SURE_SECONDS
