"""Whom a node's rules send to, as the agent reads them out of nf_tables."""

import socket
import struct

import pytest

from lastcall.kube.nftables import statements as nft
from lastcall.kube.nftables.encode import batch
from lastcall.kube.nftables.objects import AddChain, AddElements, AddRule, AddSet, Chain, Hook, NftSet, Transaction
from lastcall.trace.agent import service_rules
from lastcall.trace.agent.requests import BadRequest, parse_request
from lastcall.trace.agent.service_rules import RuleSet, TooMany
from lastcall.world.netlink import attribute

POD, OTHER = socket.inet_aton("10.0.0.7"), socket.inet_aton("10.0.0.8")
CHAIN = "endpoint-5OJB2KTY-shop/web/tcp/p80__10.0.0.7/80"
VERDICTS = NftSet("service-ips", "service verdicts")


def read(*bodies: tuple[int, bytes], wanted: bytes = POD) -> RuleSet:
    found = RuleSet(frozenset({wanted}))
    for kind, body in bodies:
        {3: found.chain, 6: found.rule, 9: found.set, 12: found.elements}.get(kind & 0xFF, lambda body: None)(body)
    return found


def written(*commands: object) -> list[tuple[int, bytes]]:
    return [(each.type, each.body) for each in batch(Transaction(commands), "kube-proxy")]  # type: ignore[arg-type]


def base(*rules: nft.Rule) -> list[object]:
    return [
        AddChain(Chain("prerouting", (), Hook("nat", "prerouting", -100))),
        *(AddRule("prerouting", r) for r in rules),
    ]


def endpoint() -> list[object]:
    return [AddChain(Chain(CHAIN)), AddRule(CHAIN, (nft.dnat_to("TCP", "10.0.0.7", 80),))]


def test_a_rule_that_no_hook_leads_to_sends_nobody() -> None:
    found = read(*written(*base(), *endpoint()))
    assert (found.receives(), found.services) == ({}, True)


def test_a_jump_from_a_hook_leads_there() -> None:
    found = read(*written(*endpoint(), *base((nft.verdict(f"jump {CHAIN}"),))))
    assert found.receives() == {POD: frozenset({"web"})}


def test_a_map_of_verdicts_leads_there_once_its_elements_are_known() -> None:
    commands = [*endpoint(), AddSet(VERDICTS), *base((nft.service_verdict("service-ips"),))]
    found = read(*written(*commands))
    assert [name for _, _, name in found.sets] == ["service-ips"]
    assert found.receives() == {}
    more = written(*commands, AddElements("service-ips", ((("10.96.0.1", "TCP", 80), f"goto {CHAIN}"),)))
    assert read(*more).receives() == {POD: frozenset({"web"})}


def test_only_who_is_asked_about_is_kept() -> None:
    found = read(*written(*endpoint(), *base((nft.verdict(f"jump {CHAIN}"),))), wanted=OTHER)
    assert (found.receives(), found.services) == ({}, True)


def expression(name: str, *fields: bytes) -> bytes:
    return attribute(1, attribute(1, name.encode() + b"\0") + attribute(2, b"".join(fields)))


def be32(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack(">I", value))


def of_iptables(revision: int, data: bytes, family: int = socket.AF_INET) -> bytes:
    """A rule in the chain PREROUTING of iptables-nft: a comment and the target DNAT."""
    comment = expression(
        "match", attribute(1, b"comment\0"), be32(2, 0), attribute(3, b"shop/web:http".ljust(256, b"\0"))
    )
    target = expression("target", attribute(1, b"DNAT\0"), be32(2, revision), attribute(3, data))
    names = attribute(1, b"nat\0") + attribute(2, b"PREROUTING\0")
    return struct.pack(">BBH", family, 0, 0) + names + attribute(4, comment + target)


def hook(family: int = socket.AF_INET) -> bytes:
    names = attribute(1, b"nat\0") + attribute(3, b"PREROUTING\0") + attribute(4, b"")
    return struct.pack(">BBH", family, 0, 0) + names


@pytest.mark.parametrize(
    ("revision", "data", "family", "address"),
    [
        (2, struct.pack("=I", 3) + POD.ljust(16, b"\0") * 2 + bytes(8), socket.AF_INET, POD),
        (1, struct.pack("=I", 3) + POD.ljust(16, b"\0") * 2 + bytes(4), socket.AF_INET, POD),
        (0, struct.pack("=II", 1, 3) + POD + POD + bytes(4), socket.AF_INET, POD),
        (2, struct.pack("=I", 3) + b"\xfd" * 32 + bytes(8), socket.AF_INET6, b"\xfd" * 16),
    ],
)
def test_the_target_of_iptables_is_read_in_each_of_its_shapes(
    revision: int, data: bytes, family: int, address: bytes
) -> None:
    found = read((3, hook(family)), (6, of_iptables(revision, data, family)), wanted=address)
    assert found.receives() == {address: frozenset({"web"})}


@pytest.mark.parametrize("cut", range(4, 60, 7))
def test_what_is_cut_off_or_not_understood_is_no_target(cut: int) -> None:
    whole = of_iptables(2, struct.pack("=I", 3) + POD.ljust(16, b"\0") * 2 + bytes(8))
    assert read((3, hook()), (6, whole[:cut])).receives() == {}
    assert read((3, hook()), (6, of_iptables(9, b"\0" * 40))).receives() == {}


def test_of_more_rules_than_are_looked_at_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_rules, "MOST_RULES", 1)
    with pytest.raises(TooMany):
        read(*written(*endpoint(), *base((nft.verdict(f"jump {CHAIN}"),))))


@pytest.mark.parametrize("addresses", ['"10.0.0.7"', "[7]", '["10.0.0.0/8"]', '["a","b","c","d","e"]', "[null]"])
def test_an_address_that_is_none_is_refused(addresses: str) -> None:
    with pytest.raises(BadRequest, match="addresses: "):
        parse_request(f'{{"ending": "u-1", "addresses": {addresses}}}'.encode())


def test_the_addresses_of_a_pod_that_ends_are_those_of_both_families() -> None:
    assert parse_request(b'{"ending": "u-1", "addresses": ["10.0.0.7", "fd00::7"]}').addresses == (
        "10.0.0.7",
        "fd00::7",
    )
