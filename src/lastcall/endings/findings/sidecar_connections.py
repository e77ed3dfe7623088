"""Rows about a container that waits for connections of a native sidecar, which waits for its end. Pure."""

# check: pure

from ipaddress import ip_address

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.facts.containers import TOGETHER_SECONDS
from lastcall.endings.findings.observed import HANDLED, SIGNALLED, clients_at_exit, looked_at_sockets
from lastcall.endings.findings.signals import WHY_NOT_ENDED
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Row
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.node_facts import AtExit, Peer
from lastcall.endings.story import Change, ContainerEnding, Finding, Severity
from lastcall.records import kinds
from lastcall.records.said import tell


def sidecar_that_holds(s: RunSubject) -> ContainerEnding | None:
    """Return the native sidecar whose connections kept a container that no longer listened; None for none.

    The kubelet stops a native sidecar when all containers have ended, or their time is over
    (kuberuntime_termination_order.go:waitForTurn): it was stopped before the container ended, and no other container
    ran that may have had the other side.
    """
    c, sockets = s.run, s.run.seen.sockets
    if c.kind != "container" or c.exit.at is None or sockets is None or not sockets.closed:
        return None
    late = [each for each in s.ending.containers if each.kind == "sidecar" and each.exit.at is not None]
    if len(late) != 1 or _others_ran(s) or not _stopped_before(late[0], c):
        return None
    end, stopped_at = clients_at_exit(s), late[0].stop.signal_at or 0.0
    if end is not None and (end.connections or end.listeners):
        return late[0] if not end.listeners and _all_of_the_pod(s, end) else None
    closed_at = sockets.connections_closed_at
    both_ends = sockets.scope == "pod" and sockets.connections > 1
    return late[0] if both_ends and closed_at is not None and closed_at >= stopped_at - TOGETHER_SECONDS else None


def _stopped_before(sidecar: ContainerEnding, c: ContainerEnding) -> bool:
    """Return whether a sidecar got its stop signal after a container, and before that ended."""
    first, then = c.stop.signal_at, sidecar.stop.signal_at
    return first is not None and then is not None and first + TOGETHER_SECONDS < then <= (c.exit.at or 0.0)


def _others_ran(s: RunSubject) -> bool:
    """Return whether another container of the Pod ran when this one ended, or nobody knows."""
    others = (each for each in s.ending.containers if each.kind == "container" and each.name != s.run.name)
    until = (s.run.exit.at or 0.0) - TOGETHER_SECONDS
    return any(each.started and (each.exit.at is None or each.exit.at > until) for each in others)


def _all_of_the_pod(s: RunSubject, end: AtExit) -> bool:
    """Return whether all connections that were open came from its own Pod, and none from the program itself: it would
    have the other side, too."""
    sockets = s.run.seen.sockets
    ports = {each.port for each in sockets.closed} if sockets else set()
    peers = [each for each in end.peers if each.accepted]
    return bool(peers) and all(each.own_port in ports for each in peers) and all(_in_pod(s, each) for each in peers)


def _in_pod(s: RunSubject, peer: Peer) -> bool:
    own = f"{s.ending.pod.namespace}/{s.ending.pod.name}"
    return ip_address(peer.address).is_loopback or s.ending.addresses.get(peer.address) == own


def _holds(s: RunSubject) -> bool | None:
    return sidecar_that_holds(s) is not None if looked_at_sockets(s.run) else None


_SHOWN_BY = (
    kinds.SOCKETS_AT_STOP, kinds.LISTENER_CLOSED, kinds.CONNECTIONS_CLOSED, kinds.SOCKETS_AT_EXIT, kinds.SIGNAL_SENT,
    kinds.PROCESS_EXITED, kinds.PROCESS_STARTED,
)  # fmt: skip
HELD_BY_SIDECAR: Fact[RunSubject] = Fact(tell("its sockets"), _holds, _SHOWN_BY)


def _held(s: RunSubject) -> Finding:
    c, sidecar = s.run, sidecar_that_holds(s)
    assert sidecar is not None
    facts = {"container": c.name, "sidecar": sidecar.name, "signal": c.stop.signal, "seconds": _s(c.drain_seconds)}
    text = said("sidecarHoldsConnection", "" if c.exit.sigkilled else "ended", **facts)
    advice = fix("sidecarHoldsConnection", container=c.name, sidecar=sidecar.name, signal=c.stop.signal)
    severity: Severity = "problem" if c.exit.sigkilled else "warning"
    change = Change(program="closeIdleConnections")
    return Finding("sidecarHoldsConnection", severity, text, c.name, advice, change=change)


ROWS = (Row("sidecarHoldsConnection", (SIGNALLED, HANDLED, HELD_BY_SIDECAR), _held, answers=WHY_NOT_ENDED),)
