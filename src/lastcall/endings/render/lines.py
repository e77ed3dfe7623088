"""A record as a line: who, when, and its words. Pure."""

# check: pure

from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.records.said import tell
from lastcall.records.text import printable
from lastcall.records.words import words_for

_OF_THE_CONTAINER = (
    kinds.OUTPUT, kinds.PROCESS_EXITED, kinds.SOCKETS_AT_STOP, kinds.LISTENER_CLOSED, kinds.LISTENER_CLOSED_IN_HOOK,
    kinds.CONNECTIONS_CLOSED, kinds.SOCKETS_AT_EXIT, kinds.PROCESSES_LEFT, kinds.CHILD_ENDED,
    kinds.PROCESSES_AT_STOP, kinds.WAITS_AT_KILL,
)  # fmt: skip
_ACTORS = {
    "kube-scheduler": tell("scheduler"),
    "scheduler": tell("scheduler"),
    "apiserver": tell("apiserver"),
    "client": tell("client"),
    "runtime": tell("runtime"),
}


def actor_label(record: Record) -> str:
    """Return the actor in one short word."""
    if record.kind in _OF_THE_CONTAINER:
        return tell("container")
    return _ACTORS.get(record.actor, record.actor.removesuffix("-controller"))


def live_head(record: Record, at: float) -> str:
    """Return when and who: `   +3.021s  runtime      `."""
    return f"{at:+9.3f}s  {actor_label(record):13}"


def live_body(record: Record, pod: str = "") -> str:
    """Return the container, with `pod` before it when given, and the words: `app: SIGTERM → PID 1 (StopContainer)`.

    What nobody observed says so, as in the story.
    """
    where = printable(" ".join(part for part in (pod, record.container) if part))
    words = words_for(record).text + ("" if record.evidence == "observed" else f" ({record.evidence})")
    return f"{where}: {words}" if where else words
