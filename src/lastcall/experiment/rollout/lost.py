"""Describe lost requests: each in a sentence, and those that are alike once."""

from collections.abc import Iterable

from lastcall.records import kinds
from lastcall.traffic import LONG_LIVED, LostRequest
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Alike:
    """Lost requests of one kind that ended in one way, at one Pod, in one phase of its end: the first one, how many
    there were, and when the last one was lost (seconds after the disruption began)."""

    first: LostRequest
    count: int
    last_at: float

    @property
    def more(self) -> str:
        """Return what is said of the others; "" where there is none."""
        if self.count == 1:
            return ""
        others = "1 more" if self.count == 2 else f"{self.count - 1} more"
        soon = self.last_at - self.first.at < 0.0005
        return f"and {others} like it{'' if soon else f', until {self.last_at:.3f} s'}"


def alike(lost: Iterable[LostRequest]) -> list[Alike]:
    """Collect lost requests that are alike, in order of the first of each."""
    found: dict[tuple[str, ...], list[LostRequest]] = {}
    for each in lost:
        outcome = each.outcome
        how = (outcome.kind, outcome.lost, outcome.behind, each.pod, each.container, each.phase)
        key = (*how, each.cause, each.seen, each.message, each.not_known)
        found.setdefault(key, []).append(each)
    return [Alike(those[0], len(those), max(each.at for each in those)) for those in found.values()]


def tell_lost(lost: LostRequest) -> str:
    """Describe a lost request in a sentence: how, where, between which steps of the Pod's end, what the app saw."""
    outcome = lost.outcome
    pod = f"{lost.pod}/{lost.container}" if lost.pod and lost.container else lost.pod
    where = (
        f"{pod} ({lost.phase})"
        if pod and lost.phase
        else pod or ("a Pod that is not known" if lost.cause in ("not seen", "late endpoint") else "no Pod")
    )
    what = outcome.kind if outcome.kind in LONG_LIVED else f"{outcome.kind} request"
    text = f"{what} {outcome.id}: {outcome.lost}{_on(lost)}, {where}{_between(*lost.between)}"
    if lost.seen != "unknown":
        text += f"; the application {(_HELD if outcome.kind in LONG_LIVED else _SEEN)[lost.seen]}"
    if outcome.unanswered:
        reached = {"never": "never reached the application", "begun": "reached the application"}
        text += f"; message {outcome.unanswered} was not echoed"
        text += f" and {reached[lost.message]}" if lost.message in reached else ""
    if lost.not_known:
        text += f"; why is not known: {lost.not_known}"
    return text


def _on(lost: LostRequest) -> str:
    """What its connection had behind it."""
    outcome = lost.outcome
    if outcome.kind in LONG_LIVED:
        echoed = f" and {outcome.messages} echoed messages" if outcome.kind == "websocket" else ""
        return f" after {outcome.finished - outcome.sent:.1f} s{echoed}" if outcome.connection else ""
    if outcome.behind:
        return f" by the published port, whose connection failed ({outcome.behind})"
    return f" on a connection {outcome.age:.1f} s old" if outcome.age >= 0.05 else ""


_HELD = {"never": "never saw it", "begun": "saw it begin", "answered": "saw it end"}
_SEEN = {"never": "never saw it", "begun": "saw it and did not answer", "answered": "saw it and answered"}


def _between(before: str, after: str) -> str:
    """Which two steps of the Pod's end it was lost between, in words."""
    before, after = _STEPS.get(before, ""), _STEPS.get(after, "")
    if before and after:
        return f", between {before} and {after}" if before != after else f", at {before}"
    return f", after {before}" if before else (f", before {after}" if after else "")


_STEPS = {
    kinds.DELETION_DECIDED: "the decision to delete it",
    kinds.DELETE_ACCEPTED: "the DELETE",
    kinds.ENDPOINT_CHANGED: "the change of its EndpointSlice",
    kinds.ENDPOINT_REMOVED: "its removal from the EndpointSlice",
    kinds.ENDPOINT_CHANGE_SEEN: "the proxy's look at the EndpointSlice",
    kinds.ENDPOINT_RULES_WRITTEN: "the write of the node's rules",
    kinds.TERMINATION_OBSERVED: "the kubelet's look at the DELETE",
    kinds.GRACE_DECIDED: "the kubelet's look at the DELETE",
    kinds.KILLING: "the begin of its end",
    kinds.PRE_STOP_STARTED: "the begin of its preStop hook",
    kinds.PRE_STOP_FINISHED: "the end of its preStop hook",
    kinds.STOP_REQUESTED: "the request to stop it",
    kinds.STOP_FINISHED: "the end of its stop",
    kinds.PROCESS_SIGNAL_STATE: "the request to stop it",
    kinds.SIGNAL_SENT: "its stop signal",
    kinds.SOCKETS_AT_STOP: "its stop signal",
    kinds.PROCESSES_AT_STOP: "its stop signal",
    kinds.WAITS_AT_KILL: "the end of its grace period",
    kinds.LISTENER_CLOSED: "the close of its listener",
    kinds.LISTENER_CLOSED_IN_HOOK: "the close of its listener",
    kinds.CONNECTIONS_CLOSED: "the close of its last connection",
    kinds.PRE_STOP_SKIPPED: "the decision to skip its preStop hook",
    kinds.EXEC_STARTED: "the start of an exec in it",
    kinds.EXEC_EXITED: "the end of an exec in it",
    kinds.PROBE_CHANGED: "a change of its probe's result",
    kinds.POD_GONE_SEEN: "the removal of its object",
    kinds.SOCKETS_AT_EXIT: "the exit of its container",
    kinds.PROCESSES_LEFT: "the exit of its container",
    kinds.PROCESS_EXITED: "the exit of its container",
    kinds.NETWORK_DETACHED: "the end of its network",
    kinds.SANDBOX_STOPPED: "the end of its network",
    kinds.VOLUMES_UNMOUNTED: "the unmount of its volumes",
    kinds.WORKER_FINISHED: "the unmount of its volumes",
    kinds.POD_STATUS_WRITTEN: "a write of its status",
    kinds.STATUS_SENT: "a write of its status",
    kinds.FINAL_DELETE_SENT: "the final DELETE",
    kinds.OBJECT_REMOVED: "the removal of its object",
}
"""Kind of record → what a reader calls it; a kind that is not here is left out."""
