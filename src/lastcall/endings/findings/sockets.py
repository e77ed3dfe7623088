"""Rows that answer: why are requests dropped, and connections waited for? Pure."""

# check: pure

from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address
from typing import TypeVar

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.findings.changes import NOTHING, Remedy, pause
from lastcall.endings.findings.observed import (
    BACKLOG,
    CONNECTIONS_OPEN,
    CUT,
    ENDED,
    HANDLED,
    KILLED,
    clients_at_exit,
    looked_at_sockets,
    open_connections,
)
from lastcall.endings.findings.sidecar_connections import HELD_BY_SIDECAR
from lastcall.endings.findings.signals import WHY_NOT_ENDED
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Row
from lastcall.endings.findings.words import connections as _connections
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.node_facts import AtExit, Listener, ListenerClosed
from lastcall.endings.story import Change, ContainerEnding, Ending, Finding
from lastcall.records import kinds
from lastcall.records.said import joined, tell

_Listens = TypeVar("_Listens", Listener, ListenerClosed)
_SOON_SECONDS = 1.0
"""An endpoint's change has not reached every proxy and client of a real cluster before this."""


def waiting_for_a_stuck_program(c: ContainerEnding) -> int:
    """Return the connections that a killed program had not accepted although it listened to its end; 0 for one that
    did accept.

    It had neither closed its port nor gone on to serve: nothing shows that it would have ended with more time.
    """
    end = c.seen.sockets.at_exit if c.seen.sockets else None
    return end.backlog if c.exit.sigkilled and end is not None and end.listeners else 0


def _at_exit(s: RunSubject) -> AtExit:
    end = clients_at_exit(s)
    assert end is not None
    return end


def _closed_listening(c: ContainerEnding) -> tuple[float, int, str] | None:
    """Return when its first port was closed that others can reach, which, and how to say it."""
    sockets = c.seen.sockets
    if sockets is None:
        return None
    if closed := _reachable(sockets.closed):
        first = min(closed, key=lambda each: each.at)
        return first.at, first.port, tell("closed its port $port", port=first.port)
    still = _reachable(sockets.at_exit.listeners if sockets.at_exit else sockets.listeners)
    if still and c.exit.at is not None:
        return c.exit.at, still[0].port, tell("ended, and with it its port $port,", port=still[0].port)
    return None


def _reachable(those: Sequence[_Listens]) -> list[_Listens]:
    """Return those that are not on a loopback address: only containers of the same Pod send to such a one."""
    return [each for each in those if not each.address or not ip_address(each.address).is_loopback]


def _turned_not_ready(ending: Ending) -> float | None:
    return min((each.at for each in ending.endpoints if each.removed or not each.ready), default=None)


def _closes_before(s: RunSubject) -> bool | None:
    closed, turned = _closed_listening(s.run), _turned_not_ready(s.ending)
    if not looked_at_sockets(s.run):
        return None
    return closed is not None and closed[0] >= 0 and (turned is None or closed[0] < turned)


def _closes_soon_after(s: RunSubject) -> bool | None:
    closed, turned = _closed_listening(s.run), _turned_not_ready(s.ending)
    if not looked_at_sockets(s.run):
        return None
    if closed is None or closed[0] < 0 or turned is None:
        return False
    return 0 <= closed[0] - turned < _SOON_SECONDS


def _closes_in_its_hook(s: RunSubject) -> bool | None:
    """A hook that waits first closes nothing before others have learned of the change."""
    turned = _turned_not_ready(s.ending)
    closed = _reachable(s.run.hook.closed) if s.run.hook is not None else []
    if not closed and not looked_at_sockets(s.run):
        return None
    return any(turned is None or each.at - turned < _SOON_SECONDS for each in closed)


_PORT = "when its port was closed and when its endpoint turned not ready"
_SHOWN_BY = (kinds.LISTENER_CLOSED, kinds.SOCKETS_AT_STOP, kinds.SOCKETS_AT_EXIT, kinds.PROCESS_EXITED)
_HAS_ENDPOINT: Fact[RunSubject] = Fact(
    "its endpoints", lambda s: bool(s.ending.endpoints), (kinds.ENDPOINT_CHANGED, kinds.ENDPOINT_REMOVED)
)
_CLOSED_FIRST: Fact[RunSubject] = Fact(_PORT, _closes_before, _SHOWN_BY)
_CLOSED_SOON: Fact[RunSubject] = Fact(_PORT, _closes_soon_after, _SHOWN_BY)
_CLOSED_IN_HOOK: Fact[RunSubject] = Fact(
    "when its port was closed while its hook ran",
    _closes_in_its_hook,
    (kinds.PRE_STOP_STARTED, kinds.LISTENER_CLOSED_IN_HOOK),
)
_PAUSED: Fact[RunSubject] = Fact("its hook", lambda s: _pauses(s.run), (kinds.PRE_STOP_STARTED,))


def _pauses(c: ContainerEnding) -> bool:
    return c.hook is not None and c.hook.outcome != "skipped"


def _held(s: RunSubject) -> Finding:
    """It handles the signal, and was killed while connections were open."""
    c = s.run
    connections = _connections(open_connections(s))  # those in a backlog are the kernel's alone
    variant = "listening" if _at_exit(s).listeners else ""
    text = said("connectionsOpenAtKill", variant, container=c.name, connections=connections)
    if peers := _peers(s):
        text = joined([text, said("connectionsOpenAtKill", "peers", peers=peers)])
    if s.ending.pod.holds_streams:  # `killed` says what to do
        return Finding("connectionsOpenAtKill", "warning", text, c.name)
    seconds = s.ending.grace_seconds
    advice = fix("connectionsOpenAtKill", "grace" if seconds is not None else "", grace=seconds)
    change = Change(program="closeIdleConnections")
    return Finding("connectionsOpenAtKill", "warning", text, c.name, advice, change=change)


_MOST_PEERS = 4


def _peers(s: RunSubject) -> str:
    """Return the other sides of the connections that the program had accepted: Pods by name, others by address."""
    count = Counter(each.address for each in _at_exit(s).peers if each.accepted)
    own = s.ending.addresses
    parts = []
    for address, number in count.most_common(_MOST_PEERS):
        if address in own:
            who = said("connectionsOpenAtKill", "pod", name=own[address], address=address)
        elif ip_address(address).is_loopback:
            who = said("connectionsOpenAtKill", "itself", address=address)
        else:
            who = said("connectionsOpenAtKill", "noPod", address=address)
        parts.append(tell("$who: $connections", who=who, connections=_connections(number)))
    others = len(count) - len(parts)
    return joined([*parts, *([tell("$count more", count=others)] if others > 0 else [])], ", ")


def _before_endpoint(s: RunSubject) -> Finding:
    kind, turned, closed = "listenerClosedBeforeEndpoint", _turned_not_ready(s.ending), _closed_listening(s.run)
    assert closed is not None
    at, port, how = closed
    later = said(kind, "never") if turned is None else said(kind, "turned", seconds=_s(turned - at))
    text = said(kind, container=s.run.name, closed=how, at=_s(at), later=later)
    remedy = _pause(kind, s, port)
    return Finding(kind, "warning", text, s.run.name, remedy.advice, change=remedy.change)


def _soon_after_endpoint(s: RunSubject) -> Finding:
    kind, turned, closed = "listenerClosedSoon", _turned_not_ready(s.ending), _closed_listening(s.run)
    assert closed is not None
    at, port, how = closed
    text = said(kind, container=s.run.name, closed=how, seconds=_s(at - (turned or 0.0)))
    remedy = _pause(kind, s, port)
    return Finding(kind, "info", text, s.run.name, remedy.advice, change=remedy.change)


def _in_its_hook(s: RunSubject) -> Finding:
    """Report that the hook asked the program to quit while requests still came."""
    kind, c = "hookClosesListener", s.run
    assert c.hook is not None
    first = min(_reachable(c.hook.closed), key=lambda each: each.at)
    text = said(kind, container=c.name, port=first.port, seconds=_s(first.at))
    return Finding(
        kind, "warning", text, c.name, fix(kind, seconds=s.ending.pause_seconds), change=Change(program="fixHook")
    )


def _never_accepted(s: RunSubject) -> Finding:
    kind, c = "backlogNeverAccepted", s.run
    text = said(kind, container=c.name, connections=_connections(_at_exit(s).backlog))
    remedy = NOTHING if waiting_for_a_stuck_program(c) else _pause(kind, s, None)
    return Finding(kind, "warning", text, c.name, remedy.advice, change=remedy.change)


def _cut_off(s: RunSubject) -> Finding:
    """Connections that ended with the process: by a reset, or with requests that nobody had read."""
    c, end = s.run, _at_exit(s)
    whose = (
        tell("The Pod of $container", container=c.name) if c.seen.sockets and c.seen.sockets.scope == "pod" else c.name
    )
    parts = [said("connectionsCut", "open", whose=whose, connections=_connections(end.connections))]
    if end.resets:
        parts.append(said("connectionsCut", "reset", count=end.resets))
    if end.unread:
        size = tell("1 byte") if end.unread_bytes == 1 else tell("$count bytes", count=end.unread_bytes)
        parts.append(said("connectionsCut", "unread", count=end.unread, bytes=size))
    elif end.closed_unread:
        parts.append(said("connectionsCut", "closedUnread", count=end.closed_unread))
    text = said("connectionsCut", parts=joined(parts, ", "), before=_s(end.seconds_before))
    lost = bool(end.resets or end.unread or end.closed_unread)
    if not lost:
        return Finding("connectionsCut", "info", text, c.name)
    if c.exit.sigkilled:
        return Finding("connectionsCut", "warning", text, c.name)  # it had no time to: why it was killed comes first
    change = Change(program="finishRequests")
    return Finding("connectionsCut", "warning", text, c.name, fix("connectionsCut"), change=change)


def _pause(kind: str, s: RunSubject, port: int | None) -> Remedy:
    c, seconds = s.run, s.ending.pause_seconds
    if _pauses(c):
        return NOTHING
    while_ = tell(" (port $port stays open while proxies hear of it)", port=port) if port else ""
    return pause(fix(kind, port=while_, seconds=seconds), c.name, c.kind, seconds)


HELD_ROWS = (
    Row(
        "connectionsOpenAtKill",
        (KILLED, HANDLED, CONNECTIONS_OPEN),
        _held,
        refuted_by=(HELD_BY_SIDECAR,),
        answers=WHY_NOT_ENDED,
    ),
)
ROWS = (
    Row("listenerClosedBeforeEndpoint", (_HAS_ENDPOINT, _CLOSED_FIRST), _before_endpoint),
    Row("listenerClosedSoon", (_HAS_ENDPOINT, _CLOSED_SOON), _soon_after_endpoint, refuted_by=(_PAUSED,)),
    Row("hookClosesListener", (_HAS_ENDPOINT, _CLOSED_IN_HOOK), _in_its_hook),
    Row("backlogNeverAccepted", (ENDED, BACKLOG), _never_accepted),
    Row("connectionsCut", (ENDED, CUT), _cut_off),
)
