"""NetworkPolicies: the rules that are made of them judge every connection as the documentation of the kind does.

A naive evaluator reads the objects as they are; a small interpreter of rules reads the text of the table. Hypothesis
looks for a connection about which they do not agree.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_kernel import Kernel

from lastcall.kube.nftables import encode
from lastcall.kube.nftables.objects import SetKey
from lastcall.kube.nftables.state import Fragment, Owner, TableState
from lastcall.kube.proxy.policies import decide
from lastcall.kube.proxy.policies.decide import ranges
from lastcall.kube.proxy.policies.pod_table import Surroundings, pod_table
from lastcall.kube.proxy.policies.policy import Block, PolicyPod, closed_policy, parse_pod, parse_policy
from lastcall.kube.proxy.policies.table import Alias, skeleton

Object = dict[str, Any]

API = Alias(("10.96.0.1", 443), ("172.18.0.1", 6443))
NAMESPACES: dict[str, dict[str, str]] = {"x": {"ns": "x", "team": "a"}, "y": {"ns": "y", "team": "a"}, "z": {"ns": "z"}}
PORTS = [{"name": "web", "containerPort": 80}, {"name": "dns", "protocol": "UDP", "containerPort": 53}]
OUTSIDE = ["192.0.2.1", "192.0.2.77", "172.18.0.1", "10.244.0.9"]


def pod(namespace: str, name: str, number: int) -> Object:
    ports = PORTS if name != "c" else [{"name": "web", "containerPort": 81}]
    return {
        "metadata": {"namespace": namespace, "name": name, "labels": {"pod": name}},
        "spec": {"nodeName": "node-1", "containers": [{"name": "c", "ports": ports}]},
        "status": {"podIP": f"10.244.0.{number}", "phase": "Running"},
    }


PODS = [pod(namespace, name, 10 + 3 * i + j) for i, namespace in enumerate("xyz") for j, name in enumerate("abc")]
BY_ADDRESS = {each["status"]["podIP"]: each for each in PODS}


# The naive evaluator


def selects(selector: Object | None, labels: dict[str, str]) -> bool:
    assert selector is not None
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for each in selector.get("matchExpressions") or ():
        present = each["key"] in labels
        chosen = labels.get(each["key"]) in (each.get("values") or ())
        holds = {"In": chosen, "NotIn": not chosen, "Exists": present, "DoesNotExist": not present}
        if not holds[each["operator"]]:
            return False
    return True


def is_peer(peer: Object, namespace: str, address: str) -> bool:
    if block := peer.get("ipBlock"):
        inside = IPv4Address(address) in IPv4Network(block["cidr"])
        return inside and not any(IPv4Address(address) in IPv4Network(each) for each in block.get("except") or ())
    found = BY_ADDRESS.get(address)
    if found is None:
        return False
    its = found["metadata"]["namespace"]
    if peer.get("namespaceSelector") is None:
        if its != namespace:
            return False
    elif not selects(peer["namespaceSelector"], NAMESPACES[its]):
        return False
    return selects(peer.get("podSelector") or {}, found["metadata"]["labels"])


def is_port(entry: Object, destination: str, protocol: str, port: int) -> bool:
    if entry.get("protocol", "TCP") != protocol:
        return False
    wanted = entry.get("port")
    if wanted is None:
        return True
    if isinstance(wanted, int):
        return wanted <= port <= entry.get("endPort", wanted)
    found = BY_ADDRESS.get(destination)
    ports = found["spec"]["containers"][0]["ports"] if found is not None else ()
    return (wanted, protocol, port) in [(p["name"], p.get("protocol", "TCP"), p["containerPort"]) for p in ports]


def one_side(policies: list[Object], address: str, other: str, direction: str, where: tuple[str, str, int]) -> bool:
    its = BY_ADDRESS.get(address)
    if its is None:
        return True
    peers, kind = ("from", "Ingress") if direction == "ingress" else ("to", "Egress")
    isolating = [
        each
        for each in policies
        if each["metadata"]["namespace"] == its["metadata"]["namespace"]
        and selects(each["spec"].get("podSelector") or {}, its["metadata"]["labels"])
        and kind in (each["spec"].get("policyTypes") or (["Ingress"] + ["Egress"] * bool(each["spec"].get("egress"))))
    ]
    if not isolating:
        return True
    return any(
        (not rule.get(peers) or any(is_peer(p, each["metadata"]["namespace"], other) for p in rule[peers]))
        and (not rule.get("ports") or any(is_port(p, *where) for p in rule["ports"]))
        for each in isolating
        for rule in each["spec"].get(direction) or ()
    )


def naive(policies: list[Object], source: str, destination: str, protocol: str, port: int) -> bool:
    if source == destination:
        return True
    where = (destination, protocol, port)
    return one_side(policies, source, destination, "egress", where) and one_side(
        policies, destination, source, "ingress", where
    )


# The rules, as a kernel would read them


class Table:
    def __init__(self, policies: list[Object]) -> None:
        self.pods = [parsed for each in PODS if (parsed := parse_pod(each)) is not None]  # type: ignore[arg-type]
        self.policies = [parse_policy(each) for each in policies]
        around = Surroundings(self.policies, self.pods, NAMESPACES, API)
        tables = {each.key: pod_table(each, around) for each in self.pods}
        self.errors = {key: table.error for key, table in tables.items() if table.error is not None}
        state = TableState(skeleton(["10.96.0.10", "10.96.0.1", "172.18.0.1"]))
        wanted: dict[Owner, Fragment] = {key: each.chains for key, each in tables.items()}
        wanted |= {("set", name): its for each in tables.values() for name, its in each.sets.items()}
        self.kernel = Kernel()
        self.kernel.apply(state.everything())
        transaction = state.change(wanted)
        self.kernel.apply(transaction)
        self.messages = encode.batch(state.everything(), "t")
        self.state = state

    def accepts(self, source: str, destination: str, protocol: str, port: int) -> bool:
        return self._run("connections", (source, destination, protocol, port)) != "drop"

    def _run(self, chain: str, packet: tuple[str, str, str, int]) -> str:
        for rule in self.kernel.chains[chain]:
            verdict = self._rule(rule.split(), packet)
            if verdict.startswith(("jump ", "goto ")):
                verdict = self._run(verdict.split()[1], packet)
                if verdict == "drop" or rule.startswith("goto"):
                    return verdict
            elif verdict:
                return "" if verdict == "return" else verdict
        return ""

    def _rule(self, words: list[str], packet: tuple[str, str, str, int]) -> str:
        """The verdict of one rule, "" when it does not match."""
        source, destination, protocol, port = packet
        sets = self.kernel.sets
        while words:
            match words:
                case ["ip", "saddr", ".", "ip", "daddr", name, *words]:
                    matches = (source, destination) in sets[name[1:]]
                case ["ip", "daddr", ".", "meta", "l4proto", ".", "th", "dport", name, *words]:
                    matches = (destination, protocol, port) in sets[name[1:]]
                case ["ip", field, "vmap", name, *words]:
                    verdict = sets[name[1:]].get((source if field == "saddr" else destination,))
                    return verdict if isinstance(verdict, str) else ""
                case ["ip", field, name, *words] if name.startswith("@"):
                    matches = is_in(source if field == "saddr" else destination, sets[name[1:]])
                case ["ip", field, network, *words]:
                    matches = IPv4Address(source if field == "saddr" else destination) in IPv4Network(network)
                case ["meta", "l4proto", wanted, *words]:
                    matches = protocol == wanted.upper()
                case [wanted, "dport", ports, *words]:
                    first, _, last = ports.partition("-")
                    matches = protocol == wanted.upper() and int(first) <= port <= int(last or first)
                case _:
                    return " ".join(words)
            if not matches:
                return ""
        raise AssertionError("a rule without a verdict")


def is_in(address: str, elements: Iterable[SetKey]) -> bool:
    """Elements are addresses, or ranges of them."""
    ends = [[int(IPv4Address(end)) for end in str(key[0]).split("-")] for key in elements]
    return any(found[0] <= int(IPv4Address(address)) <= found[-1] for found in ends)


# What is tried

label_selectors = st.one_of(
    st.just({}),
    st.sampled_from("abc").map(lambda name: {"matchLabels": {"pod": name}}),
    st.tuples(st.sampled_from(["In", "NotIn"]), st.lists(st.sampled_from("abc"), min_size=1, max_size=2)).map(
        lambda each: {"matchExpressions": [{"key": "pod", "operator": each[0], "values": each[1]}]}
    ),
)
namespace_selectors = st.one_of(
    st.just({}),
    st.sampled_from("xyz").map(lambda name: {"matchLabels": {"ns": name}}),
    st.sampled_from(["Exists", "DoesNotExist"]).map(lambda op: {"matchExpressions": [{"key": "team", "operator": op}]}),
)
blocks = st.sampled_from(
    [
        {"cidr": "0.0.0.0/0"},
        {"cidr": "10.244.0.0/24", "except": ["10.244.0.12/30"]},
        {"cidr": "192.0.2.0/24", "except": ["192.0.2.64/26", "192.0.2.1/32"]},
        {"cidr": "172.18.0.1/32"},
    ]
)
peers = st.one_of(
    st.fixed_dictionaries({"podSelector": label_selectors}),
    st.fixed_dictionaries({"namespaceSelector": namespace_selectors}),
    st.fixed_dictionaries({"namespaceSelector": namespace_selectors, "podSelector": label_selectors}),
    st.fixed_dictionaries({"ipBlock": blocks}),
)
ports = st.sampled_from(
    [
        {"port": 80},
        {"protocol": "UDP"},
        {"protocol": "TCP", "port": 79, "endPort": 81},
        {"protocol": "UDP", "port": 53},
        {"port": "web"},
        {"protocol": "UDP", "port": "dns"},
        {"port": "absent"},
    ]
)


def rules(peer: str) -> st.SearchStrategy[list[Object]]:
    parts = {peer: st.lists(peers, max_size=2), "ports": st.lists(ports, max_size=2)}
    return st.lists(st.fixed_dictionaries({}, optional=parts), max_size=2)


types = st.sampled_from([["Ingress"], ["Egress"], ["Ingress", "Egress"]])
specs = st.fixed_dictionaries(
    {"podSelector": label_selectors},
    optional={"policyTypes": types, "ingress": rules("from"), "egress": rules("to")},
)
policies = st.lists(st.tuples(st.sampled_from("xyz"), specs), min_size=1, max_size=4).map(
    lambda found: [
        {"metadata": {"namespace": namespace, "name": f"p{number}"}, "spec": spec}
        for number, (namespace, spec) in enumerate(found)
    ]
)
packets = st.tuples(
    st.sampled_from([*BY_ADDRESS, *OUTSIDE]),
    st.sampled_from([*BY_ADDRESS, *OUTSIDE]),
    st.sampled_from(["TCP", "UDP", "SCTP"]),
    st.sampled_from([53, 79, 80, 81, 82]),
)


@settings(max_examples=300, deadline=None)
@given(policies, st.lists(packets, min_size=1, max_size=40))
def test_the_rules_judge_every_connection_as_the_policies_say(
    found: list[Object], tried: list[tuple[str, str, str, int]]
) -> None:
    table = Table(found)
    for packet in tried:
        assert table.accepts(*packet) == naive(found, *packet), packet


@settings(max_examples=100, deadline=None)
@given(policies)
def test_a_table_without_policies_is_the_one_that_was_there_before(found: list[Object]) -> None:
    table = Table(found)
    owners = table.state.owned()
    table.kernel.apply(table.state.change({owner: {} for owner in owners}))
    assert table.state.owned() == {}
    assert not any(elements for name, elements in table.kernel.sets.items() if name != "judged-here")


def policy(**spec: Any) -> Object:
    return {"metadata": {"namespace": "x", "name": "p"}, "spec": {"podSelector": {}, **spec}}


A, B, OTHER = "10.244.0.10", "10.244.0.11", "10.244.0.13"


def test_a_policy_without_types_is_about_ingress_and_about_egress_only_when_it_has_rules() -> None:
    assert parse_policy(policy()).ingress == ()
    assert parse_policy(policy()).egress is None
    assert parse_policy(policy(egress=[{}])).egress is not None
    assert parse_policy(policy(policyTypes=["Egress"])).ingress is None


def test_default_deny_lets_nobody_in_and_out_but_the_pod_to_itself() -> None:
    table = Table([policy(policyTypes=["Ingress", "Egress"])])
    assert not table.accepts(OTHER, A, "TCP", 80)
    assert not table.accepts(A, OTHER, "TCP", 80)
    assert not table.accepts(A, B, "TCP", 80)
    assert table.accepts(A, A, "TCP", 80)
    assert table.accepts(OTHER, "10.244.0.14", "TCP", 80), "another namespace is not isolated"


@pytest.mark.parametrize(
    ("rule", "reached"),
    [
        ({}, True),
        ({"to": [{"ipBlock": {"cidr": "172.18.0.1/32"}}], "ports": [{"port": 6443}]}, True),
        ({"to": [{"ipBlock": {"cidr": "172.18.0.1/32"}}], "ports": [{"port": 443}]}, False),
        ({"to": [{"ipBlock": {"cidr": "10.96.0.1/32"}}], "ports": [{"port": 443}]}, False),
        ({"to": [{"namespaceSelector": {}}]}, False),
    ],
)
def test_the_api_server_s_service_is_judged_as_its_endpoint(rule: Object, reached: bool) -> None:
    """As where kube-proxy translates before a policy is asked: the Service's own address is of no use in a policy."""
    table = Table([policy(policyTypes=["Egress"], egress=[rule])])
    assert table.accepts(A, "10.96.0.1", "TCP", 443) == reached


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"status": {"podIP": "10.244.0.10", "phase": "Succeeded"}}, False),
        ({"status": {}}, False),
        ({"spec": {"hostNetwork": True}}, False),
        ({"status": {"podIP": "fd00::1", "phase": "Running"}}, False),
    ],
)
def test_pods_that_have_ended_or_have_no_address_of_their_own_do_not_count(changes: Object, counts: bool) -> None:
    assert (parse_pod({**PODS[0], **changes}) is not None) == counts  # type: ignore[arg-type]


def test_addresses_of_ipv6_in_a_policy_allow_nobody() -> None:
    spec = policy(ingress=[{"from": [{"ipBlock": {"cidr": "::/0"}}]}])
    assert not Table([spec]).accepts(OTHER, A, "TCP", 80)


def test_a_port_s_name_is_that_of_the_receiver() -> None:
    """Pod c has the name for another number."""
    table = Table([policy(ingress=[{"ports": [{"port": "web"}]}])])
    assert table.accepts(OTHER, A, "TCP", 80)
    assert not table.accepts(OTHER, A, "TCP", 81)
    assert table.accepts(OTHER, "10.244.0.12", "TCP", 81)


def test_a_pod_is_known_by_the_names_of_its_sidecars_ports_too() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"name": "metrics", "containerPort": 9090}]}
    found = parse_pod({**PODS[0], "spec": {**PODS[0]["spec"], "initContainers": [sidecar]}})  # type: ignore[arg-type]
    assert isinstance(found, PolicyPod)
    assert ("metrics", "TCP", 9090) in found.ports


networks = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 32)).map(
    lambda each: str(IPv4Network((each[0], each[1]), strict=False))
)


@settings(max_examples=60, deadline=None)
@given(networks, st.lists(networks, min_size=1, max_size=8), st.lists(st.integers(0, 2**32 - 1), max_size=8))
def test_the_ranges_of_a_block_hold_its_addresses_and_none_of_its_excepts(
    network: str, excepts: list[str], tried: list[int]
) -> None:
    found = ranges(Block(network, tuple(excepts)))
    known = [IPv4Network(each) for each in (network, *excepts)]
    edges = [int(each[end]) + step for each in known for end in (0, -1) for step in (-1, 0, 1)]
    for number in (*tried, *edges):
        if 0 <= number < 2**32:
            address = IPv4Address(number)
            inside = address in IPv4Network(network) and not any(address in IPv4Network(each) for each in excepts)
            assert is_in(str(address), [(each,) for each in found]) == inside
    ends = [int(IPv4Address(end)) for each in found for end in each.split("-")]
    assert all(last + 1 < first for last, first in zip(ends[1::2], ends[2::2], strict=False)), "the kernel refuses them"


@pytest.mark.parametrize("direction", [("Ingress", "ingress", "from"), ("Egress", "egress", "to")])
def test_thousands_of_excepts_of_one_block_fit_into_netlink_messages(direction: tuple[str, str, str]) -> None:
    kind, rules_of_kind, peers_of = direction
    block = {"cidr": "0.0.0.0/0", "except": [f"10.{n // 256}.{n % 256}.0/25" for n in range(3_000)]}
    table = Table([policy(policyTypes=[kind], **{rules_of_kind: [{peers_of: [{"ipBlock": block}]}]})])
    assert table.errors == {}
    assert sum(len(message.body) for message in table.messages) > 3_000 * 2 * 20
    assert not table.accepts(*(("10.1.1.1", A) if kind == "Ingress" else (A, "10.1.1.1")), "TCP", 80)
    assert table.accepts(*(("10.1.1.200", A) if kind == "Ingress" else (A, "10.1.1.200")), "TCP", 80)


def test_a_policy_that_multiplies_peers_and_ports_closes_its_own_pods_and_no_others() -> None:
    """In one megabyte there is room for 20 000 peers and 20 000 ports."""
    peers = [{"ipBlock": {"cidr": f"192.0.{n // 256}.{n % 256}/32"}} for n in range(200)]
    many = [{"port": n} for n in range(1, decide.MOST_ALLOWED // 200 + 2)]
    large = policy(ingress=[{"from": peers, "ports": many}])
    other = {"metadata": {"namespace": "y", "name": "p"}, "spec": {"podSelector": {}, "ingress": [{}]}}
    table = Table([large, other])
    assert {key[0] for key in table.errors} == {"x"}
    assert {type(error) for error in table.errors.values()} == {decide.TooManyRulesError}
    assert not table.accepts("192.0.0.1", A, "TCP", 1)
    assert table.accepts(A, "192.0.0.1", "TCP", 1), "it says nothing of egress"
    assert table.accepts("192.0.0.1", OTHER, "TCP", 1)


def test_pods_of_the_same_policies_share_what_is_made_of_them_and_so_does_the_next_look() -> None:
    """A large policy is read once, not once for each Pod and each change of any Pod."""
    block = {"cidr": "0.0.0.0/0", "except": ["192.0.2.0/24"]}
    peers = [{"ipBlock": block}, {"podSelector": {}}]
    policies = [parse_policy(policy(ingress=[{"from": peers, "ports": [{"port": 80}]}]))]
    pods = [parsed for each in PODS[:2] if (parsed := parse_pod(each)) is not None]  # type: ignore[arg-type]
    first = Surroundings(policies, pods, NAMESPACES, API)
    one, two = (pod_table(each, first) for each in pods)
    assert next(iter(one.chains)) is next(iter(two.chains))
    assert all(one.sets[name] is two.sets[name] for name in one.sets)
    again = pod_table(pods[0], Surroundings(policies, pods[:1], NAMESPACES, API, after=first))
    assert next(iter(again.chains)) is next(iter(one.chains))
    same, other = sorted(one.sets)
    assert (same.partition("-")[0], other.partition("-")[0]) == ("block", "pods")
    assert again.sets[same] is one.sets[same]
    assert len(again.sets[other]) < len(one.sets[other]), "who the Pods are is looked at"
    changed = [parse_policy(policy(ingress=[{}]))]
    assert pod_table(pods[0], Surroundings(changed, pods, NAMESPACES, API, after=first)).sets == {}


@pytest.mark.parametrize(
    ("spec", "ingress", "egress"),
    [
        ({"ingress": [{"from": [{"ipBlock": {}}]}]}, (), None),
        ({"policyTypes": ["Egress"], "egress": [{"to": [{"ipBlock": {"cidr": "no"}}]}]}, None, ()),
        ({"podSelector": 1, "ingress": [{"from": 1}]}, (), None),
        ({"policyTypes": 1}, (), ()),
        (1, (), ()),
    ],
)
def test_a_policy_that_cannot_be_read_allows_nothing_in_the_directions_it_is_about(
    spec: Any, ingress: Any, egress: Any
) -> None:
    obj = {"metadata": {"namespace": "x", "name": "p"}, "spec": spec}
    with pytest.raises((KeyError, ValueError, TypeError, AttributeError)):
        parse_policy(obj)
    closed = closed_policy(obj)
    assert (closed.ingress, closed.egress) == (ingress, egress)
    pods = [parsed for each in PODS if (parsed := parse_pod(each)) is not None]  # type: ignore[arg-type]
    assert {each.namespace for each in pods if closed.selects(each)} == {"x"}
