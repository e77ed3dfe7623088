"""When what happened to a Pod that gets requests, and what it was doing at a moment. Pure.

The moments of a Pod are exact where records give them, and have bounds where a cluster's API gives them. The questions
(`phase`, `refuses` …) are for exact moments: `PodLife.corners` makes the exact lives that lie within bounds.
"""

# check: pure

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import product
from typing import Literal

from lastcall.records.record import Record
from lastcall.traffic.moments import SKEW_SECONDS, Moment, first_of, in_order, is_over
from lastcall.traffic.outcome import Outcome
from lastcall.world.dataclass import dataclass

Phase = Literal["before it was ready", "ready", "preStop hook", "draining", "restarting", "after its exit"]


@dataclass(frozen=True, slots=True)
class Outage:
    """A container that serves ended, and its Pod lived on. `restarted` None: it was not seen to start again.

    `stop` is when the node sent the stop signal (a liveness or startup probe had failed), None: the container ended by
    itself. An outage with bounds may have been at any time within them, and for either reason.
    """

    exited: Moment
    restarted: Moment | None
    stop: Moment | None = None

    @property
    def is_exact(self) -> bool:
        return all(each is None or each.is_exact for each in (self.exited, self.restarted, self.stop))

    def covers(self, sent: float, finished: float) -> bool:
        """Return whether a request fell into it, from the stop signal on, as early and as late as it may have been."""
        begin = (self.exited if self.stop is None else self.stop).earliest
        return finished + SKEW_SECONDS >= begin and (
            self.restarted is None or sent <= self.restarted.latest + SKEW_SECONDS
        )

    def reasons(self) -> "tuple[Outage, Outage]":
        """Return it as one that ended by itself, and as one that the node stopped, where that is not known."""
        return (self, self) if self.stop is not None else (self, replace(self, stop=self.exited))


@dataclass(slots=True)
class PodLife:
    """Of one Pod; None for what did not happen, or was not seen.

    Ends are those of the containers that serve: neither init containers, which end before anything is served, nor
    ephemeral ones. Of a container that was started again the last run counts; `outages` are the ends before it.

    `routed` and `unrouted` are when a node's kernel began, and the last one stopped, to send it new connections.
    `stop` is when the runtime was asked to stop a container, a moment before `term`: the record of the signal is
    written when it has been sent, and an application may have acted on it by then. `open_until`: until when its port
    was seen open after the signal. `killed`: one was ended by SIGKILL.
    `never_accepted` and `unread` are connections that the kernel had taken for it when it exited, as last seen: those
    that it never accepted, and those with data that it had not read; None where nobody looked.
    `pauses`: from when to when between `routed` and `unrouted` no rule named it, because it was not ready. `probed`:
    when a readiness probe that connects to the port of the requests first succeeded, so it listened. `unreadied`: when
    it stopped being Ready before anybody deleted it.
    """

    uid: str
    name: str = ""
    ip: str = ""
    created: Moment | None = None
    ready: Moment | None = None
    unreadied: Moment | None = None
    deleted: Moment | None = None
    hook: Moment | None = None
    stop: Moment | None = None
    term: Moment | None = None
    open_until: Moment | None = None
    listener_closed: Moment | None = None
    exited: Moment | None = None
    routed: Moment | None = None
    unrouted: Moment | None = None
    killed: bool = False
    never_accepted: int | None = None
    unread: int | None = None
    unread_ports: frozenset[int] = frozenset()
    """Ports of the clients of those connections, as far as they were listed."""
    probed: Moment | None = None
    pauses: list[tuple[Moment, Moment]] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    named_by: dict[str, None] = field(default_factory=dict)
    """Nodes whose rules name it, by the records read so far."""
    nodes: set[str] = field(default_factory=set)
    """Nodes whose rules have named it."""
    behind: dict[str, Moment] = field(default_factory=dict)
    """Containers that requests do not go to, and that listened: when each closed its port, or exited."""
    container: str = ""
    """Of several containers the one that requests go to; "" where it is not known, or the only one."""
    records: list[Record] = field(default_factory=list)

    def corners(self) -> "Iterator[PodLife]":
        """Yield every exact life at the ends of its bounds; itself where all its moments are exact.

        What is asked of a life changes once with each of its moments, so an answer that all corners give is that of
        every life within the bounds. An end has an order: its DELETE, the stop signal, the exit.
        """
        wide = {name: moment for name in _ASKED if (moment := getattr(self, name)) and not moment.is_exact}
        outages = self._outages()
        if not wide and len(outages) == 1:
            yield self
            return
        ordered = dict(zip(_END, in_order([getattr(self, name) for name in _END]), strict=True))
        wide |= {name: moment for name, moment in ordered.items() if name in wide and moment is not None}
        for ends in product(*(moment.corners() for moment in wide.values())):
            for those in outages:
                yield replace(self, outages=those, **dict(zip(wide, ends, strict=True)))

    def _outages(self) -> list[list[Outage]]:
        """The exact ones alone, and with the others, of which neither the time nor the reason is known."""
        exact = [each for each in self.outages if each.is_exact]
        if len(exact) == len(self.outages):
            return [self.outages]
        either = [(each, each) if each.is_exact else each.reasons() for each in self.outages]
        return [exact, [crash for crash, _ in either], [stopped for _, stopped in either]]

    def phase(self, at: float) -> Phase:
        """Return what it was doing at a moment."""
        if is_over(self.exited, at):
            return "after its exit"
        if is_over(self.signalled, at):
            return "draining"
        if is_over(self.deleted, at):
            return "preStop hook" if self.hook is not None else "draining"
        if not is_over(self.ready, at):
            return "before it was ready"
        return "restarting" if self.outage(at, at) is not None else "ready"

    def outage(self, sent: float, finished: float) -> Outage | None:
        """Return the outage that a request fell into, the last one of several."""
        return next((each for each in reversed(self.outages) if each.covers(sent, finished)), None)

    @property
    def signalled(self) -> Moment | None:
        """Return the moment from which it may have had its stop signal."""
        return self.term if self.term is None else first_of(self.stop, self.term)

    @property
    def quit(self) -> Moment | None:
        """Return when it closed its port while its preStop hook ran; None where it did not."""
        closed, signalled = self.listener_closed, self.signalled
        if self.hook is None or closed is None:
            return None
        return closed if signalled is None or closed.latest < signalled.earliest else None

    @property
    def deaf(self) -> Moment | None:
        """Return the moment from which it may not have listened any more. A signal that was sent may have been acted on
        at once; a port that was seen open later refuses nobody."""
        return first_of(self.open_until or self.term, self.listener_closed, self.exited)

    def is_named(self, at: float) -> bool:
        """Return whether the rules named it at a moment."""
        if not is_over(self.routed, at):
            return False
        if any(begin.latest + SKEW_SECONDS < at < end.earliest for begin, end in self.pauses):
            return False
        return self.unrouted is None or at <= self.unrouted.latest

    def is_named_all_along(self, sent: float, finished: float) -> bool:
        """Return whether the rules named it from before one moment until after another, whatever their clocks differ
        by."""
        begin, end = sent - SKEW_SECONDS, finished + SKEW_SECONDS
        if not is_over(self.routed, begin) or (self.unrouted is not None and self.unrouted.earliest < end):
            return False
        return not any(begin < until.latest and since.earliest < end for since, until in self.pauses)

    def is_published_unready(self, at: float) -> bool:
        """Return whether the rules named it at a moment at which it was not Ready yet: publishNotReadyAddresses."""
        return is_over(self.routed, at) and not is_over(self.ready, at)

    @property
    def unready(self) -> bool:
        """Return whether it stopped being ready although nothing ended it."""
        if self.pauses or self.unrouted is None:
            return bool(self.pauses)
        return self.deleted is None or self.unrouted.latest < self.deleted.earliest

    def listens(self, at: float) -> bool:
        """Return whether it was ready before a moment, and it had not been asked to stop, nor its listener closed."""
        if not is_over(self.ready, at) or self.outage(at, at) is not None:
            return False
        return not is_over(first_of(self.signalled, self.deaf), at)

    def refuses(self, sent: float, finished: float) -> bool:
        """Return whether the rules named it between two moments when it did not listen, or may not have listened any
        more.

        A refusal is answered at some moment between the two: the generator may be late with either.
        """
        if not (self.is_named(sent) or self.is_named(finished)):
            return False
        return is_over(self.deaf, finished + SKEW_SECONDS) or self.outage(sent, finished) is not None

    @property
    def routing_lag(self) -> float | None:
        """Return the seconds from the DELETE to the moment from which no new connection came."""
        if self.deleted is None or self.unrouted is None:
            return None
        return self.unrouted.since(self.deleted)

    def between(self, at: float) -> tuple[str, str]:
        """Return the kinds of the records before and after a moment, "" where there is none."""
        before = [each.kind for each in self.records if seconds(each) <= at]
        after = [each.kind for each in self.records if seconds(each) > at]
        return (before[-1] if before else "", after[0] if after else "")


MOMENTS = ("created", "ready", "unreadied", "deleted", "hook", "stop", "term", "open_until", "listener_closed",
           "exited", "routed", "unrouted", "probed")  # fmt: skip
"""The fields of `PodLife` that are moments."""
_ASKED = ("ready", "deleted", "stop", "term", "open_until", "listener_closed", "exited", "routed", "unrouted")
"""Those that the questions depend on."""
_END = ("deleted", "term", "exited")
"""Those of an end, in its order."""


def seconds(record: Record) -> float:
    return record.at_ns / 1e9


def by_address(lives: Sequence[PodLife]) -> dict[str, list[PodLife]]:
    """Map each address to the Pods that had it, one after the other."""
    found: dict[str, list[PodLife]] = {}
    for life in lives:
        found.setdefault(life.ip, []).append(life)
    return found


def led_to(outcome: Outcome, addresses: Mapping[str, Sequence[PodLife]]) -> PodLife | None:
    """Return the Pod that had the address that it led to: the last one that was there by then."""
    those = addresses.get(outcome.served_by, ()) if outcome.served_by else ()
    there = [life for life in those if not life.records or seconds(life.records[0]) <= outcome.sent]
    return there[-1] if there else (those[0] if those else None)
