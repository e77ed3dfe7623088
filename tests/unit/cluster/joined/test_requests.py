"""The certificates that a node asks for, when it asks again, and which of its requests are approved for it."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lastcall.apiserver.auth.pki import ClusterCA
from lastcall.cluster.joined.requests import (
    Wanted,
    answer_of,
    is_approved,
    is_good,
    kube_proxy,
    kubelet_client,
    kubelet_server,
    life_of,
    may_be_approved,
    new_key,
    renew_at,
    request_of,
)

NODE = "system:node:n1"
WANTED = (kubelet_client("n1"), kubelet_server("n1", "10.0.0.2"), kube_proxy())


def asked(wanted: Wanted, user: str = NODE, **spec: Any) -> dict[str, Any]:
    request = request_of(wanted, new_key())
    return {**request, "spec": {**request["spec"], "username": user, **spec}}


def signed(wanted: Wanted, hours: float = 24) -> bytes:
    pem = base64.b64decode(request_of(wanted, new_key())["spec"]["request"])
    return ClusterCA.create().sign_request(pem, wanted.usages, timedelta(hours=hours))


@pytest.mark.parametrize("wanted", WANTED, ids=lambda each: each.file)
def test_what_a_node_asks_for_itself_is_approved(wanted: Wanted) -> None:
    assert may_be_approved(asked(wanted), WANTED, NODE)


@pytest.mark.parametrize(
    "request_",
    [
        asked(kubelet_client("n1"), user="system:node:n2"),
        asked(kubelet_client("n2")),
        asked(kubelet_server("n1", "10.0.0.9")),
        asked(kubelet_server("n1", "10.0.0.2"), signerName="kubernetes.io/kube-apiserver-client"),
        asked(kube_proxy(), usages=["digital signature", "client auth", "server auth"]),
        asked(Wanted("x", WANTED[2].signer, WANTED[2].usages, "kubernetes-admin", ("system:masters",))),
        asked(Wanted("x", WANTED[2].signer, WANTED[2].usages, "system:kube-proxy", ("system:masters",))),
        asked(Wanted("x", WANTED[1].signer, WANTED[1].usages, NODE, ("system:nodes",), ("n1", "evil"), ("10.0.0.2",))),
        asked(kube_proxy(), request="bm8gcmVxdWVzdA=="),
    ],
)
def test_whatever_differs_waits_for_the_administrator(request_: dict[str, Any]) -> None:
    assert not may_be_approved(request_, WANTED, NODE)


@pytest.mark.parametrize(("wanted", "others"), [
    (kubelet_client("n1"), [kubelet_client("n2"), kube_proxy()]),
    (kubelet_server("n1", "10.0.0.2"), [kubelet_server("n1", "10.0.0.3"), kubelet_client("n1")]),
])  # fmt: skip
def test_a_request_that_asks_for_the_same_has_the_same_name_and_no_other_has(
    wanted: Wanted, others: list[Wanted]
) -> None:
    """A node that has another address or name now must not be given what it asked for before."""
    key = new_key()
    first = request_of(wanted, key)["metadata"]["name"]
    assert request_of(wanted, key)["metadata"]["name"] == first
    for other in others:
        assert request_of(other, key)["metadata"]["name"] != first
    assert request_of(wanted, new_key())["metadata"]["name"] != first


@pytest.mark.parametrize(
    ("status", "answer", "approved"),
    [
        ({}, (b"", ""), False),
        ({"conditions": [{"type": "Approved"}]}, (b"", ""), True),
        ({"conditions": [{"type": "Approved"}], "certificate": "cGVt"}, (b"pem", ""), True),
        ({"conditions": [{"type": "Denied", "reason": "No", "message": "never"}]}, (b"", "denied (No: never)"), True),
        ({"conditions": [{"type": "Approved"}, {"type": "Failed"}]}, (b"", "failed ()"), True),
    ],
)
def test_an_answer_is_a_certificate_or_why_there_will_be_none(
    status: dict[str, Any], answer: tuple[bytes, str], approved: bool
) -> None:
    assert answer_of({"status": status}) == answer
    assert is_approved({"status": status}) == approved


def test_a_certificate_is_renewed_between_70_and_90_percent_of_its_life() -> None:
    pem = signed(kubelet_client("n1"), hours=100)
    begin, end = life_of(pem)
    for chance, part in ((0.0, 0.7), (0.5, 0.8), (1.0, 0.9)):
        assert abs((renew_at(pem, chance) - begin) / (end - begin) - part) < 1e-6


def test_a_kept_certificate_is_good_for_its_names_while_it_lives() -> None:
    now = datetime.now(UTC)
    serving = signed(kubelet_server("n1", "10.0.0.2"))
    assert is_good(serving, kubelet_server("n1", "10.0.0.2"), now)
    assert not is_good(serving, kubelet_server("n1", "10.0.0.3"), now), "the machine has another address now"
    assert not is_good(serving, kubelet_server("n1", "10.0.0.2"), now + timedelta(hours=25))
    client = signed(kubelet_client("n1"))
    assert is_good(client, kubelet_client("n1"), now)
    assert not is_good(client, kubelet_client("n2"), now)
    assert not is_good(b"nonsense", kubelet_client("n1"), now)


def test_a_key_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="PEM"):
        request_of(kube_proxy(), b"")
