"""From any table to any other: each transaction is one that the kernel would take, and leads where it should."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from rule_kernel import Kernel
from services import endpoint, endpoint_slice, service

from lastcall.kube.nftables.encode import batch
from lastcall.kube.nftables.objects import AddSet, DeleteSet
from lastcall.kube.nftables.state import Fragment, TableState
from lastcall.kube.nftables.text import text_of_transaction
from lastcall.kube.proxy.endpoints import endpoints_of
from lastcall.kube.proxy.libnftables_sink import pieces
from lastcall.kube.proxy.names import TABLE
from lastcall.kube.proxy.netlink_sink import in_batches
from lastcall.kube.proxy.rules import PortRules, rules_of
from lastcall.kube.proxy.services import parse_service
from lastcall.kube.proxy.sink import RecordingSink
from lastcall.kube.proxy.table import fragment_of, service_chains, skeleton
from lastcall.kube.proxy.topology import Node
from lastcall.world.netlink import Message

NODE = Node("node-1", addresses=("172.18.0.2",))


def fragment(obj: dict[str, Any] | None, *addresses: str, node: Node = NODE) -> Fragment:
    parsed = parse_service(obj) if obj is not None else None
    if parsed is None:
        return {}
    slices = [endpoint_slice(*map(placed, addresses))]
    return fragment_of(rules_of(parsed, endpoints_of(slices), node))


def new_state() -> TableState:
    return TableState(skeleton("10.244.0.0/16", "10.96.0.0/16"), service_chains)


addresses = st.lists(st.integers(1, 12).map(lambda n: f"10.244.0.{n}"), unique=True, max_size=12)
specs = st.fixed_dictionaries(
    {"externalTrafficPolicy": st.sampled_from(["Cluster", "Local"])},
    optional={
        "sessionAffinity": st.just("ClientIP"),
        "internalTrafficPolicy": st.just("Local"),
        "externalIPs": st.just(["192.0.2.7"]),  # one for all: they collide
        "ports": st.just([{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080}]),
        "loadBalancerSourceRanges": st.sampled_from([["10.0.0.0/8"], ["10.1.0.0/16", "192.0.2.1/32"]]),
        "type": st.just("LoadBalancer"),
        "ingress": st.just([{"ip": "172.18.255.1"}]),
    },
)
changes = st.lists(
    st.dictionaries(st.integers(1, 4), st.one_of(st.none(), st.tuples(specs, addresses)), min_size=1, max_size=3),
    max_size=8,
)


@given(changes)
@settings(max_examples=60, deadline=None)
def test_step_by_step_leads_to_what_a_new_table_would_hold(steps: list[dict[int, Any]]) -> None:
    state, kernel = new_state(), Kernel()
    kernel.apply(state.everything())
    for step in steps:
        fragments: dict[Any, Fragment] = {}
        for number, wanted in step.items():
            obj = service(f"s{number}", f"10.96.0.{number}", **wanted[0]) if wanted else None
            fragments[number] = fragment(obj, *(wanted[1] if wanted else ()))
        kernel.apply(state.change(fragments))
        anew = Kernel()
        anew.apply(state.everything())
        assert kernel.holds() == anew.holds()


def test_nothing_is_written_when_nothing_changes() -> None:
    state = new_state()
    web = fragment(service(), "10.244.0.1", "10.244.0.2")
    assert state.change({"web": web})
    assert not state.change({"web": fragment(service(), "10.244.0.1", "10.244.0.2")})


def test_a_changed_endpoint_touches_its_own_elements_only() -> None:
    state = new_state()
    state.change({n: fragment(service(f"s{n}", f"10.96.1.{n}"), "10.244.0.1", "10.244.0.3") for n in range(200)})
    changed = state.change({7: fragment(service("s7", "10.96.1.7"), "10.244.0.1", "10.244.0.4")})
    assert text_of_transaction(changed, TABLE).splitlines()[1:] == [
        "delete element ip lastcall-proxy endpoints-2 { 10.96.1.7 . tcp . 80 . 1 }",
        "add element ip lastcall-proxy endpoints-2 { 10.96.1.7 . tcp . 80 . 1 : 10.244.0.4 . 8080 }",
        "add element ip lastcall-proxy hairpin-endpoints { 10.244.0.4 . 10.244.0.4 }",
    ]


def test_of_two_services_with_one_external_address_the_first_has_it_and_then_the_other() -> None:
    state, kernel = new_state(), Kernel()
    kernel.apply(state.everything())
    for number, address in ((1, "10.244.0.1"), (2, "10.244.0.3")):
        obj = service(f"s{number}", f"10.96.0.{number}", externalIPs=["192.0.2.7"])
        kernel.apply(state.change({number: fragment(obj, address)}))
    slot = ("192.0.2.7", "TCP", 80, 0)
    assert kernel.sets["endpoints-1"][slot] == ("10.244.0.1", 8080)
    kernel.apply(state.change({1: {}}))
    assert kernel.sets["endpoints-1"][slot] == ("10.244.0.3", 8080)


def test_an_endpoint_that_stays_keeps_its_clients() -> None:
    """sessionAffinity: the set of an endpoint's clients is not touched when another endpoint comes or goes."""
    state = new_state()
    sticky = service(sessionAffinity="ClientIP")
    state.change({"web": fragment(sticky, "10.244.0.1", "10.244.0.3")})
    before = {name for name in _sets(state) if name.startswith("clients-")}
    changed = state.change({"web": fragment(sticky, "10.244.0.1")})
    gone = {command.name for command in changed.commands if isinstance(command, DeleteSet)}
    assert len(before) == 2
    assert len(gone & before) == 1
    assert not any(isinstance(c, AddSet) and c.set.name in before for c in changed.commands)


def _sets(state: TableState) -> list[str]:
    return [c.set.name for c in state.everything().commands if isinstance(c, AddSet)]


def test_a_long_transaction_is_cut_between_messages_and_keeps_its_order() -> None:
    state = new_state()
    state.change({n: fragment(service(f"s{n}", f"10.96.{n // 250}.{n % 250}"), "10.244.0.1") for n in range(2000)})
    messages = batch(state.everything(), TABLE)
    pieces = in_batches(messages, 100_000)
    assert len(pieces) > 1
    assert [m for piece in pieces for m in piece] == messages
    assert all(sum(16 + len(m.body) for m in piece) <= 100_000 for piece in pieces)
    assert in_batches([Message("one", 0, b"x" * 200)], 100) == [[Message("one", 0, b"x" * 200)]]


def test_a_long_text_is_cut_between_elements_and_leads_to_the_same_table() -> None:
    state = new_state()
    state.change({n: fragment(service(f"s{n}", f"10.96.0.{n}"), "10.244.0.1", "10.244.0.3") for n in range(100)})
    at_once, in_parts = Kernel(), Kernel()
    at_once.apply(state.everything())
    parts = pieces(state.everything(), most=70)
    for part in parts:
        in_parts.apply(part)
    assert [part.replace for part in parts] == [True] + [False] * (len(parts) - 1)
    assert len(parts) > 1
    assert in_parts.holds() == at_once.holds()
    assert pieces(state.everything()) == [state.everything()]


@given(changes)
@settings(max_examples=60, deadline=None)
def test_the_recording_sink_knows_where_a_connection_goes(steps: list[dict[int, Any]]) -> None:
    """It answers for the last step what the rules themselves say."""
    state, sink = new_state(), RecordingSink()
    asyncio.run(sink.apply(state.everything()))
    rules: dict[int, tuple[PortRules, ...]] = {}
    for step in steps:
        fragments: dict[Any, Fragment] = {}
        for number, wanted in step.items():
            spec = {k: v for k, v in wanted[0].items() if k not in SHARED} if wanted else {}
            spec["externalIPs"] = [f"192.0.2.{number}"]  # its own: nothing collides
            parsed = parse_service(service(f"s{number}", f"10.96.0.{number}", **spec))
            assert parsed is not None
            slices = [endpoint_slice(*map(placed, wanted[1] if wanted else ()))]
            rules[number] = rules_of(parsed, endpoints_of(slices), NODE)
            fragments[number] = fragment_of(rules[number])
        asyncio.run(sink.apply(state.change(fragments)))
    for each in rules.values():
        for port in each:
            for frontend in port.frontends:
                where = (frontend.address, frontend.protocol, frontend.port)
                assert sink.target(*where) == frontend.inside
                wanted_outside = frontend.inside if frontend.outside is None else frontend.outside
                assert sink.target(*where, outside=True) == wanted_outside
    assert sink.target("10.96.0.77", "TCP", 80) is None


SHARED = ("externalIPs", "ports", "ingress")


def placed(address: str) -> dict[str, Any]:
    return endpoint(address, node="node-1" if int(address[-1]) % 2 else "node-2")
