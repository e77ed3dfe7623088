"""Rows about readiness probes that have never succeeded, of containers that run: who listens where. Pure."""

# check: pure

import re
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address
from typing import Any

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.findings.changes import container_change
from lastcall.endings.findings.subjects import RunSubject
from lastcall.endings.findings.table import Fact, Row
from lastcall.endings.findings.words import listed
from lastcall.endings.story import Change, ContainerEnding, ContainerFacts, Ending, Finding, PodFacts
from lastcall.records import kinds
from lastcall.world.dataclass import dataclass

REFUSED = re.compile(r":(\d+): connect: connection refused")
"""What Go says of a port on which nothing listens (net.OpError)."""
_REFUSED = "connection refused"


@dataclass(frozen=True, slots=True)
class Refused:
    """A probe's connection to `port` was refused. `reachable` are ports that the container had open on an address of
    the Pod, `loopback` the addresses at which it listened on `port` itself."""

    port: int
    reachable: tuple[int, ...]
    loopback: tuple[str, ...]


def other_port(ending: Ending, run: ContainerEnding, port: int, reachable: Sequence[int]) -> Change | None:
    """Return the change for probes that ask a port on which nothing listens; None unless one port is the one meant.

    That is the only one that is open, or the only one of them that the spec declares.
    """
    facts = next((each for each in ending.pod.containers if each.name == run.name), None)
    if facts is None:
        return None
    declared = [each for each in reachable if each in facts.ports]
    meant = reachable if len(reachable) == 1 else declared
    return container_change(run.name, run.kind, **_on_port(facts, port, meant[0])) if len(meant) == 1 else None


def _on_port(facts: ContainerFacts, port: int, meant: int) -> dict[str, Any]:
    """Return the fields of the container with another port in the place of `port`. A probe that names a port keeps the
    name."""
    fields: dict[str, Any] = {each.field: {each.handler: {"port": meant}} for each in facts.probes if each.port == port}
    for each in facts.declared_ports:
        if each.number == port and meant not in facts.ports:
            named = {"name": each.name} if each.name else {}
            host = {"hostPort": each.host_port} if each.host_port else {}
            protocol = {"protocol": each.protocol} if each.protocol else {}
            moved = {"containerPort": meant, **named, **protocol, **host}
            fields["ports"] = [moved, {"containerPort": port, "$patch": "delete"}]
    return fields


def asked_node(pod: PodFacts, container: str, field: str) -> tuple[str, str, str] | None:
    """Return (field, handler, host) of a probe or hook that asks the node in place of the Pod; None for any other."""
    facts = next((each for each in pod.containers if each.name == container), None)
    return next((each for each in facts.asks_node if each[0] == field), None) if facts else None


def without_host(run: ContainerEnding, asked: tuple[str, str, str]) -> Change:
    """Return the change of a probe or hook that lets it ask the Pod."""
    field, handler, _ = asked
    fields: dict[str, Any] = {handler: {"host": None}}
    for name in reversed(field.split(".")):
        fields = {name: fields}
    return container_change(run.name, run.kind, **fields)


# -- the rows --------------------------------------------------------------------------------------------------------


def _refused(s: RunSubject) -> Refused | None:
    """Return what the last failure shows; None for a container that ended, is to end, or has answered."""
    if s.run.exit.at is not None or s.ending.zero_kind:
        return None
    seen = list(s.entries((kinds.PROBE_FAILING, kinds.PROBE_CHANGED)))
    if not seen or seen[-1].record.kind != kinds.PROBE_FAILING:
        return None
    facts = seen[-1].facts_as(kinds.PROBE_FAILING)
    listeners = facts.get("listeners")
    if not listeners or _REFUSED not in str(facts.get("output")):
        return None
    port = int(facts["port"])
    open_ = [(str(each["address"]), int(each["port"])) for each in listeners]
    reachable = sorted({number for address, number in open_ if not is_loopback(address)})
    if asked_node(s.ending.pod, s.run.name, "readinessProbe"):
        return None
    return Refused(port, tuple(reachable), tuple(address for address, number in open_ if number == port))


def is_loopback(address: str) -> bool:
    """Return whether only the Pod itself reaches what listens at this address."""
    return ip_address(address).is_loopback


def _fact(name: str, test: Callable[[Refused], bool]) -> Fact[RunSubject]:
    def holds(s: RunSubject) -> bool:
        refused = _refused(s)
        return refused is not None and test(refused)

    return Fact(name, holds, (kinds.PROBE_FAILING,))


_ELSEWHERE = _fact("on which ports it listens", lambda refused: bool(refused.reachable) and not refused.loopback)
_ONLY_LOOPBACK = _fact("at which addresses it listens", lambda refused: bool(refused.loopback))


def _other_port(s: RunSubject) -> Finding:
    refused, name = _refused(s), s.run.name
    assert refused is not None
    facts = {"port": refused.port, "others": _ports(refused.reachable)}
    text = said("probeFailed", "otherPort", container=name, **facts)
    change = other_port(s.ending, s.run, refused.port, refused.reachable) or Change(program="fixProbe")
    return Finding("probeFailed", "problem", text, name, fix("probeFailed", "otherPort", **facts), change=change)


def _only_loopback(s: RunSubject) -> Finding:
    refused, name = _refused(s), s.run.name
    assert refused is not None
    facts = {"address": refused.loopback[0]}
    text = said("probeFailed", "loopback", container=name, port=refused.port, **facts)
    change = Change(program="listenEverywhere")
    return Finding("probeFailed", "problem", text, name, fix("probeFailed", "loopback", **facts), change=change)


def _ports(those: Iterable[int]) -> str:
    return listed(list(map(str, those)))


ROWS = (
    Row("probeFailed", (_ELSEWHERE,), _other_port, variant="otherPort"),
    Row("probeFailed", (_ONLY_LOOPBACK,), _only_loopback, variant="loopback"),
)
