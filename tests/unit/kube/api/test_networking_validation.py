"""What NetworkPolicies, IngressClasses and RuntimeClasses are refused for, as a real 1.36.2 answered."""

from typing import Any

import pytest

from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.resources import SERVED
from lastcall.kube.api.schema.decoding import decode_fields
from lastcall.kube.api.validation import validate_create, validate_update

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
C = "spec.controller"
P = "spec.parameters"
PREFIXED = 'must be a domain-prefixed path (such as "acme.io/foo")'


def resource(plural: str) -> Any:
    return next(each for each in SERVED if each.plural == plural)


def made(plural: str, fields: dict[str, Any]) -> dict[str, Any]:
    kind = resource(plural)
    namespaced = {"namespace": "default"} if kind.namespaced else {}
    obj = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "a", "resourceVersion": "1", **namespaced},
        **fields,
    }
    assert decode_fields(kind, obj) == []
    set_defaults(kind, obj)
    return obj


def refusals(plural: str, fields: dict[str, Any]) -> list[str]:
    return [str(error) for error in validate_create(resource(plural), made(plural, fields))]


def parameters(**fields: Any) -> dict[str, Any]:
    return {"spec": {"controller": "a.b/c", "parameters": fields}}


INGRESS_CLASSES = [
    ({}, [f"{C}: Required value"]),
    ({"spec": {"controller": "x"}}, [f'{C}: Invalid value: "x": {PREFIXED}']),
    ({"spec": {"controller": "a.b/"}}, [f'{C}: Invalid value: "a.b/": {PREFIXED}']),
    ({"spec": {"controller": "a" * 250 + ".b/c"}}, [f"{C}: Too long: may not be more than 250 bytes"]),
    (
        {"spec": {"controller": "A.b/c d"}},
        [
            f'{C}: Invalid value: "A.b": {SUBDOMAIN}',
            rf'{C}: Invalid value: "c d": Invalid path (regex used for validation is '
            r"'[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')",
        ],
    ),
    ({"spec": {"controller": "a.b/c"}}, []),
    (parameters(), [f"{P}.kind: Required value", f"{P}.name: Required value"]),
    (
        parameters(kind="k", name="n", scope="Namespace"),
        [f"{P}.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
    ),
    (
        parameters(kind="k/", name="n/x", scope="X", apiGroup="A"),
        [
            f'{P}.apiGroup: Invalid value: "A": {SUBDOMAIN}',
            f"{P}.kind: Invalid value: \"k/\": may not contain '/'",
            f"{P}.name: Invalid value: \"n/x\": may not contain '/'",
            f'{P}.scope: Unsupported value: "X": supported values: "Cluster", "Namespace"',
        ],
    ),
    (
        parameters(kind="k", name="n", scope="Cluster", namespace="x"),
        [f"{P}.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
    ),
    (
        parameters(kind="k", name="n", scope="Namespace", namespace="X_"),
        [f'{P}.namespace: Invalid value: "X_": {LABEL}'],
    ),
]


@pytest.mark.parametrize(("fields", "expected"), INGRESS_CLASSES)
def test_an_ingress_class_is_refused_as_recorded(fields: dict[str, Any], expected: list[str]) -> None:
    assert refusals("ingressclasses", fields) == expected


def test_the_controller_of_an_ingress_class_stays() -> None:
    kind, old = resource("ingressclasses"), made("ingressclasses", {"spec": {"controller": "a.b/c"}})
    new = made("ingressclasses", {"spec": {"controller": "10%"}})
    assert [str(error) for error in validate_update(kind, new, old)] == [
        f'{C}: Invalid value: "10%": field is immutable',
        f'{C}: Invalid value: "10%": {PREFIXED}',
    ]
    assert validate_update(kind, old, made("ingressclasses", {"spec": {"controller": "a.b/c"}})) == []


PORTS = [
    {"protocol": "x", "port": 70000},
    {"port": "_"},
    {"endPort": 3},
    {"port": 5, "endPort": 3},
    {"port": "a", "endPort": 3},
    {"port": 5, "endPort": 70000},
]
PEERS = [
    {},
    {"podSelector": {}, "ipBlock": {"cidr": ""}},
    {"ipBlock": {"cidr": "1.2.3.4"}},
    {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8", "11.0.0.0/9", "x"]}},
]
I0 = "spec.ingress[0]"
E0 = "spec.egress[0].to[0].ipBlock"
INSIDE = "must be a strict subset of `cidr`"
BITS = "must not have bits set beyond the prefix length"
POLICIES = [
    ({}, []),
    (
        {"spec": {"policyTypes": ["x", "Ingress", "Egress"]}},
        ['spec.policyTypes: Invalid value: ["x","Ingress","Egress"]: may not specify more than two policyTypes'],
    ),
    (
        {"spec": {"policyTypes": ["x"]}},
        ['spec.policyTypes[0]: Unsupported value: "x": supported values: "Ingress", "Egress"'],
    ),
    (
        {"spec": {"ingress": [{"ports": PORTS, "from": PEERS}]}},
        [
            f'{I0}.ports[0].protocol: Unsupported value: "x": supported values: "TCP", "UDP", "SCTP"',
            f"{I0}.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
            f'{I0}.ports[1].port: Invalid value: "_": must contain only alpha-numeric characters (a-z, 0-9), and '
            "hyphens (-)",
            f'{I0}.ports[1].port: Invalid value: "_": must contain at least one letter (a-z)',
            f"{I0}.ports[2].endPort: Invalid value: 3: may not be specified when `port` is not specified",
            f"{I0}.ports[3].endPort: Invalid value: 5: must be greater than or equal to `port`",
            f"{I0}.ports[4].endPort: Invalid value: 3: may not be specified when `port` is non-numeric",
            f"{I0}.ports[5].endPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            f"{I0}.from[0]: Required value: must specify a peer",
            f"{I0}.from[1].ipBlock.cidr: Required value",
            f"{I0}.from[1]: Forbidden: may not specify both ipBlock and another peer",
            f'{I0}.from[2].ipBlock.cidr: Invalid value: "1.2.3.4": {CIDR}',
            f'{I0}.from[3].ipBlock.except[0]: Invalid value: "10.0.0.0/8": {INSIDE}',
            f'{I0}.from[3].ipBlock.except[1]: Invalid value: "11.0.0.0/9": {INSIDE}',
            f'{I0}.from[3].ipBlock.except[2]: Invalid value: "x": {CIDR}',
        ],
    ),
    (
        {"spec": {"egress": [{"to": [{"ipBlock": {"cidr": "10.1.0.0/8", "except": ["fd00::/64", "10.2.3.4/16"]}}]}]}},
        [
            f'{E0}.cidr: Invalid value: "10.1.0.0/8": {BITS}',
            f'{E0}.except[0]: Invalid value: "fd00::/64": {INSIDE}',
            f'{E0}.except[1]: Invalid value: "10.2.3.4/16": {BITS}',
        ],
    ),
]


@pytest.mark.parametrize(("fields", "expected"), POLICIES)
def test_a_network_policy_is_refused_as_recorded(fields: dict[str, Any], expected: list[str]) -> None:
    assert refusals("networkpolicies", fields) == expected


def test_a_runtime_class_is_refused_as_recorded() -> None:
    assert refusals("runtimeclasses", {}) == ["handler: Required value"]
    assert refusals("runtimeclasses", {"handler": "A_"}) == [f'handler: Invalid value: "A_": {LABEL}']
    found = refusals("runtimeclasses", {"handler": "a", "scheduling": {"tolerations": [{"operator": "x"}]}})
    assert [text.split(":")[0] for text in found] == ["scheduling.tolerations[0].operator"] * 2
    kind, old, new = (
        resource("runtimeclasses"),
        made("runtimeclasses", {"handler": "a"}),
        made("runtimeclasses", {"handler": "B_"}),
    )
    assert [str(error) for error in validate_update(kind, new, old)] == [
        f'handler: Invalid value: "B_": {LABEL}',
        'handler: Invalid value: "B_": field is immutable',
    ]
