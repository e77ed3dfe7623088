"""Why a request was lost: a table of causes, each with what must hold for it and what refutes it. Pure.

`decide_cause` reads the table for every life that the bounds of a Pod's moments allow, and for every time of the
request that the error of its clock allows. It answers a cause only where all of them give it.
"""

# check: pure

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from lastcall.endings import said
from lastcall.traffic.connection_use import CUT, ConnectionUse, Limit
from lastcall.traffic.lives import PodLife
from lastcall.traffic.moments import SKEW_SECONDS, is_over
from lastcall.traffic.outcome import NEW_SECONDS, REUSED, Outcome, never_connected
from lastcall.traffic.printed import Seen
from lastcall.world.dataclass import dataclass

Cause = Literal[
    "late endpoint",
    "closed by its hook",
    "cut off",
    "never read",
    "killed",
    "held open",
    "stale connection",
    "not listening yet",
    "not serving yet",
    "not ready yet",
    "crashed",
    "restarted",
    "cut at a limit",
    "no endpoint",
    "server error",
    "unexplained",
    "not seen",
]

CAUSE_IDS: Mapping[Cause, str] = {
    "late endpoint": "lateEndpoint",
    "closed by its hook": "hookClosesListener",
    "cut off": "cutOff",
    "never read": "neverRead",
    "killed": "requestKilled",
    "held open": "connectionsOpenAtKill",
    "stale connection": "staleConnection",
    "not listening yet": "notListeningYet",
    "not serving yet": "notServingYet",
    "not ready yet": "unreadyPodsPublished",
    "crashed": "crashedUnderLoad",
    "restarted": "restartedUnderLoad",
    "cut at a limit": "connectionLimitCuts",
    "no endpoint": "noEndpoint",
    "server error": "serverError",
    "unexplained": "unexplained",
    "not seen": "notSeen",
}
"""Cause of a lost request → its id in the catalogue."""

_VARIANTS: Mapping[str, str] = {"connectionsOpenAtKill": "request", "hookClosesListener": "request"}
"""Where the catalogue says it of a container, too."""
WHY: Mapping[Cause, str] = {cause: said(id_, _VARIANTS.get(id_, "")) for cause, id_ in CAUSE_IDS.items()}

NotKnown = Literal["", "pods", "clock", "pod", "rules", "start", "signal", "restart", "silence", "entrance", "over"]
"""Variants of `notSeen` in the catalogue: why a cause is not known."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A lost request and what is known around it. `life` is the Pod that it led to, None where it led to none.

    `lives` are the Pods that it could have led to, empty where only this one is asked about; `seen` is what the
    application saw of the request; `served` is when the Pod's address first gave a good answer, in seconds. `use` is
    how its connection was used, where requests share it; `limit` is at what its server closes connections, if that
    shows.
    """

    outcome: Outcome
    life: PodLife | None
    lives: Sequence[PodLife] = ()
    seen: Seen = "unknown"
    served: float = 0.0
    use: ConnectionUse | None = None
    limit: Limit | None = None

    def within(self, error: float) -> "Iterator[Loss]":
        """Return it with every exact life of its Pod, at the times that an error of the request's clock allows."""
        lives = [None] if self.life is None else list(self.life.corners())
        for outcome in shifted(self.outcome, error):
            for life in lives:
                yield replace(self, outcome=outcome, life=life)


Predicate = Callable[[Loss], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """A cause: of a request for which all of `holds` is true and none of `unless`."""

    cause: Cause
    holds: tuple[Predicate, ...]
    unless: tuple[Predicate, ...] = ()

    def fits(self, loss: Loss) -> bool:
        return all(each(loss) for each in self.holds) and not any(each(loss) for each in self.unless)


@dataclass(frozen=True, slots=True)
class Decision:
    """`not_known` is why the cause was "not seen"."""

    cause: Cause
    not_known: NotKnown = ""


def decide_cause(loss: Loss, error: float = 0.0) -> Decision:
    """Decide why a request was lost; `error` is that of its clock, in seconds."""
    return one_of(causes_of(loss.within(error)))


def causes_of(losses: Iterator[Loss]) -> set[Cause]:
    """Return the causes that the table gives to exact losses."""
    return {exact_cause(each) for each in losses}


def one_of(causes: Collection[Cause]) -> Decision:
    """Return the cause that is the only one."""
    return Decision(next(iter(causes))) if len(causes) == 1 else Decision("not seen", "signal")


def exact_cause(loss: Loss) -> Cause:
    """Return the cause of the first row that fits, for a Pod whose moments are exact."""
    return next(row.cause for row in CAUSES if row.fits(loss))


def shifted(outcome: Outcome, error: float) -> list[Outcome]:
    """Return the request at the times that its clock's error allows."""
    if not error:
        return [outcome]
    times = ((outcome.sent + by, outcome.finished + by) for by in (-error, 0.0, error))
    return [replace(outcome, sent=sent, finished=finished) for sent, finished in times]


# -- of the request ---------------------------------------------------------------------------------------------------


def was_answered(loss: Loss) -> bool:
    """Return True if it was answered with an error."""
    return loss.outcome.lost == "5xx"


def reached_no_pod(loss: Loss) -> bool:
    return never_connected(loss.outcome)


def was_silent(loss: Loss) -> bool:
    """Return True if nobody answered its connect, not even with a refusal."""
    return "connect timeout" in (loss.outcome.lost, loss.outcome.behind)


def timed_out_connecting(loss: Loss) -> bool:
    """Return True if the client itself timed out: a published port takes every connect."""
    return loss.outcome.lost == "connect timeout"


def came_on_an_old_connection(loss: Loss) -> bool:
    return loss.outcome.age > NEW_SECONDS


def shares_its_connection(loss: Loss) -> bool:
    """Return True if it is of a kind whose connections others were on before."""
    return loss.outcome.kind in REUSED


def got_no_byte(loss: Loss) -> bool:
    return loss.outcome.lost.endswith("before bytes")


def was_reset_unread(loss: Loss) -> bool:
    """Return True if it was reset unread.

    A close with something unread, or of a connection that was never accepted, is a reset; others end with a FIN.
    """
    return loss.seen == "never" and loss.outcome.lost == "reset before bytes"


def was_cut_at_a_limit(loss: Loss) -> bool:
    """Return True if the server cut it at a limit.

    The server closes each connection at about the same number of requests, or age, and did so with this one.
    """
    if loss.limit is None or loss.use is None or loss.use.cut is None or loss.outcome.lost not in CUT:
        return False
    return loss.limit.fits(loss.use)


# -- of its Pod -------------------------------------------------------------------------------------------------------


def has_no_pod(loss: Loss) -> bool:
    """Return True if it is not known to have led to a Pod."""
    return loss.life is None


def fell_into_an_outage(loss: Loss) -> bool:
    return loss.life is not None and loss.life.outage(loss.outcome.sent, loss.outcome.finished) is not None


def was_stopped_by_the_node(loss: Loss) -> bool:
    """Return True if the node ended the container of that outage, for a probe that failed."""
    outage = loss.life.outage(loss.outcome.sent, loss.outcome.finished) if loss.life is not None else None
    return outage is not None and outage.stop is not None


def its_pod_listened(loss: Loss) -> bool:
    """Return True if its Pod listened when it was sent.

    The kernel of a Pod that listens answers a connect at once. Waiting longer would bring no answer.
    """
    return loss.life is not None and loss.life.listens(loss.outcome.sent)


def its_pod_was_deleted(loss: Loss) -> bool:
    return loss.life is not None and is_over(loss.life.deleted, loss.outcome.finished)


def its_pod_was_published_unready(loss: Loss) -> bool:
    return loss.life is not None and loss.life.is_published_unready(loss.outcome.sent)


def its_pod_lived_on(loss: Loss) -> bool:
    """Return True if its Pod is not known to have ended, or its end began after the request was lost."""
    life = loss.life
    if life is None or life.exited is None:
        return True
    return not is_over(life.signalled, loss.outcome.finished + SKEW_SECONDS)


def its_hook_had_closed_its_port(loss: Loss) -> bool:
    """Return True if its hook had closed its port before any stop signal; it may live on, and answers nobody new."""
    return loss.life is not None and is_over(loss.life.quit, loss.outcome.finished + SKEW_SECONDS)


def was_sent_after_the_exit(loss: Loss) -> bool:
    return loss.life is not None and is_over(loss.life.exited, loss.outcome.sent)


def was_sent_after_the_signal(loss: Loss) -> bool:
    return loss.life is not None and is_over(loss.life.signalled, loss.outcome.sent)


def was_reset_with_its_port(loss: Loss) -> bool:
    """Return True if it was sent after the signal and reset when its Pod closed its port, before any exit: a close of a
    listener resets the connections that were never accepted, and no others."""
    life, finished = loss.life, loss.outcome.finished
    if life is None or loss.outcome.lost != "reset before bytes" or loss.seen in ("begun", "answered"):
        return False
    if came_on_an_old_connection(loss) or life.listener_closed is None or not was_sent_after_the_signal(loss):
        return False
    if not is_over(life.open_until, finished + SKEW_SECONDS) or is_over(life.exited, finished + SKEW_SECONDS):
        return False
    return finished <= life.listener_closed.latest + SKEW_SECONDS


def its_pod_was_killed(loss: Loss) -> bool:
    return loss.life is not None and loss.life.killed


def its_connection_was_held_open(loss: Loss) -> bool:
    """Return True if requests went out on it from the stop signal to the kill: the Pod never said goodbye."""
    life = loss.life
    if life is None or loss.use is None or life.signalled is None or life.exited is None:
        return False
    return loss.use.went_on(life.signalled.latest, life.exited.latest)


def its_pod_served_later(loss: Loss) -> bool:
    """Return True if its Pod was Ready, nothing had ended it, and its first good answer came later.

    One that never had a good answer is not a slow start.
    """
    life = loss.life
    if life is None or life.ready is None or is_over(life.signalled, loss.outcome.finished + SKEW_SECONDS):
        return False
    return loss.outcome.finished < loss.served


# -- of other Pods ----------------------------------------------------------------------------------------------------


def nobody_else_listened(loss: Loss) -> bool:
    """Return True if another Pod is known, and none listened.

    With no Pod ready the rules go on naming one that ends (topology.go:CategorizeEndpoints), and no lag is to blame for
    what it refuses. Where another Pod is known: it came too late.
    """
    return len(loss.lives) > 1 and not any(life.listens(loss.outcome.sent) for life in loss.lives)


def somebody_was_named(loss: Loss) -> bool:
    """Return True if a Pod was named all along: a node that names a Pod does not refuse because it has none.

    Rules of several nodes may differ, and which of them refused is not known.
    """
    if len({node for life in loss.lives for node in life.nodes}) > 1:
        return False
    return any(life.is_named_all_along(loss.outcome.sent, loss.outcome.finished) for life in loss.lives)


CAUSES: tuple[Row, ...] = (
    Row("not serving yet", (was_answered, its_pod_served_later)),
    Row("server error", (was_answered,)),
    # led to no Pod
    Row("no endpoint", (has_no_pod, reached_no_pod), unless=(was_silent, somebody_was_named)),
    Row("unexplained", (has_no_pod,)),
    # its Pod was down for a while
    Row("crashed", (fell_into_an_outage,), unless=(was_stopped_by_the_node,)),
    Row("restarted", (fell_into_an_outage,)),
    # its Pod did not take the connection
    Row("unexplained", (timed_out_connecting, its_pod_listened)),
    Row("no endpoint", (reached_no_pod, its_pod_was_deleted, nobody_else_listened)),
    Row("closed by its hook", (reached_no_pod, its_pod_was_deleted, its_hook_had_closed_its_port)),
    Row("late endpoint", (reached_no_pod, its_pod_was_deleted)),
    Row("not ready yet", (reached_no_pod, its_pod_was_published_unready)),
    Row("not listening yet", (reached_no_pod,)),
    # its Pod took the connection, and ended
    Row("cut at a limit", (its_pod_lived_on, was_cut_at_a_limit)),
    Row("stale connection", (its_pod_lived_on, its_hook_had_closed_its_port, shares_its_connection, got_no_byte)),
    Row("closed by its hook", (its_pod_lived_on, its_hook_had_closed_its_port, got_no_byte)),
    Row("unexplained", (its_pod_lived_on,)),
    Row("stale connection", (was_sent_after_the_exit, came_on_an_old_connection)),
    Row("no endpoint", (was_sent_after_the_exit, nobody_else_listened)),
    Row("late endpoint", (was_sent_after_the_exit,)),
    Row("never read", (was_reset_with_its_port,), unless=(nobody_else_listened,)),
    Row("held open", (its_pod_was_killed, its_connection_was_held_open)),
    Row("killed", (its_pod_was_killed,)),
    Row("stale connection", (shares_its_connection, was_sent_after_the_signal, got_no_byte)),
    Row("no endpoint", (was_sent_after_the_signal, nobody_else_listened), unless=(shares_its_connection,)),
    Row("never read", (was_reset_unread,)),
    Row("cut off", ()),
)
"""The first row that fits gives the cause."""
