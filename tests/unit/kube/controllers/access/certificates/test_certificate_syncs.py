"""Which certificate requests are approved, signed and cleared away, with the controller beside an API.

Source: pkg/controller/certificates/{approver/sarapprove,signer/signer,cleaner/cleaner}.go.
"""

import base64
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from fake_api import FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CERTIFICATESIGNINGREQUESTS, Resource
from lastcall.kube.controllers.access.certificates.decide import CLIENT, KUBELET_CLIENT
from lastcall.kube.controllers.access.certificates.first_request import NAME
from lastcall.kube.controllers.manager import run_controllers
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

NODE_USER = "system:node:n1"
KUBELET = ["digital signature", "client auth"]


@cache
def pem(common_name: str) -> bytes:
    group = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes")
    name = x509.Name([group, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    return builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)


def request(signer: str = KUBELET_CLIENT, usages: Sequence[str] = KUBELET, **spec: Any) -> Object:
    known = {
        "request": base64.b64encode(pem(NODE_USER)).decode(),
        "signerName": signer,
        "usages": list(usages),
        "username": "bootstrap",
        "groups": ["g"],
    }
    return {"metadata": {"name": "csr"}, "spec": {**known, **spec}, "status": {}}


def approved(obj: Object) -> Object:
    return {**obj, "status": {"conditions": [{"type": "Approved", "lastUpdateTime": "2030-01-01T00:00:00Z"}]}}


class Cluster(FakeAPI):
    """An API whose reviews say that `allowed` may be done."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.allowed: list[str] = []
        self.reviews: list[Object] = []
        self.signed: list[tuple[bytes, list[str], timedelta]] = []

    async def create(self, resource: Resource, obj: Any, namespace: str = "", **more: Any) -> Object:
        if resource.plural != "subjectaccessreviews":
            return await super().create(resource, obj, namespace, **more)
        self.reviews.append(obj["spec"])
        return {"status": {"allowed": obj["spec"]["resourceAttributes"]["subresource"] in self.allowed}}

    def sign(self, data: bytes, usages: list[str], lifetime: timedelta) -> bytes:
        self.signed.append((data, usages, lifetime))
        return b"a certificate"

    def conditions(self) -> list[tuple[str, str, str]]:
        (found,) = self.of(CERTIFICATESIGNINGREQUESTS)
        return [(c["type"], c["reason"], c["message"]) for c in found["status"].get("conditions") or ()]

    def writes(self) -> list[str]:
        return [verb for verb, plural, _ in self.calls if "requests" in plural and verb not in ("list", "watch")]


def run(test: Callable[[World, Cluster], Awaitable[None]], *, signs: bool = True) -> Cluster:
    async def main(world: World) -> Cluster:
        api, recorder = Cluster(world), ListRecorder(world)
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world, client=api, recorder_for=lambda _: recorder, root_ca_pem=b"ca", names=[NAME],
                sign=api.sign if signs else None,
            )  # fmt: skip
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(1)
            await test(world, api)
            tasks.cancel()
        return api

    return run_virtual(main)


@pytest.mark.parametrize(
    ("username", "allowed", "asked", "message"),
    [
        ("bootstrap", ["nodeclient"], ["nodeclient"], "Auto approving kubelet client certificate"),
        ("bootstrap", ["selfnodeclient"], ["nodeclient"], ""),
        (NODE_USER, ["selfnodeclient"], ["selfnodeclient"], "Auto approving self kubelet client certificate"),
        (NODE_USER, ["nodeclient"], ["selfnodeclient", "nodeclient"], "Auto approving kubelet client certificate"),
        (NODE_USER, [], ["selfnodeclient", "nodeclient"], ""),
    ],
)
def test_a_node_s_client_certificate_is_approved_if_its_asker_may_have_it(
    username: str, allowed: list[str], asked: list[str], message: str
) -> None:
    async def test(world: World, api: Cluster) -> None:
        api.allowed = allowed
        api.put(CERTIFICATESIGNINGREQUESTS, request(username=username, uid="u", extra={"k": ["v"]}))
        await world.clock.sleep(1)

    api = run(test, signs=False)
    assert [each["resourceAttributes"]["subresource"] for each in api.reviews] == asked
    review = api.reviews[0]
    assert {key: review[key] for key in ("user", "uid", "groups", "extra")} == {
        "user": username, "uid": "u", "groups": ["g"], "extra": {"k": ["v"]},
    }  # fmt: skip
    attributes = {key: each for key, each in review["resourceAttributes"].items() if key != "subresource"}
    resource = {"group": "certificates.k8s.io", "resource": "certificatesigningrequests", "version": "*"}
    assert attributes == {**resource, "verb": "create"}
    text = f"{message} after SubjectAccessReview."
    assert api.conditions() == ([("Approved", "AutoApproved", text)] if message else [])


@pytest.mark.parametrize("obj", [request(CLIENT), request(usages=["server auth"])], ids=["signer", "usages"])
def test_what_is_no_node_s_client_certificate_waits_for_somebody_to_approve_it(obj: Object) -> None:
    async def test(world: World, api: Cluster) -> None:
        api.allowed = ["nodeclient", "selfnodeclient"]
        api.put(CERTIFICATESIGNINGREQUESTS, obj)
        await world.clock.sleep(1)

    api = run(test)
    assert (api.reviews, api.writes(), api.signed) == ([], [], [])


def test_an_approved_request_gets_its_certificate_once() -> None:
    async def test(world: World, api: Cluster) -> None:
        api.put(CERTIFICATESIGNINGREQUESTS, approved(request(expirationSeconds=3600)))
        await world.clock.sleep(1)

    api = run(test)
    assert api.signed == [(pem(NODE_USER), KUBELET, timedelta(hours=1))]
    (found,) = api.of(CERTIFICATESIGNINGREQUESTS)
    assert base64.b64decode(found["status"]["certificate"]) == b"a certificate"
    assert [c["type"] for c in found["status"]["conditions"]] == ["Approved"], "what was said stays"


def test_nobody_signs_where_somebody_else_does() -> None:
    async def test(world: World, api: Cluster) -> None:
        api.put(CERTIFICATESIGNINGREQUESTS, approved(request()))
        await world.clock.sleep(1)

    assert run(test, signs=False).writes() == []


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        (request(usages=["client auth"]), "usages did not match [client auth digital signature key encipherment]"),
        (request(request=base64.b64encode(b"nonsense").decode()), ""),
    ],
    ids=["usages", "nonsense"],
)
def test_an_approved_request_that_breaks_its_signer_s_rules_has_failed(obj: Object, why: str) -> None:
    async def test(world: World, api: Cluster) -> None:
        api.put(CERTIFICATESIGNINGREQUESTS, approved(obj))
        await world.clock.sleep(1)
        (found,) = api.of(CERTIFICATESIGNINGREQUESTS)
        approval, failure = found["status"]["conditions"]
        assert (approval["type"], failure["type"], failure["status"]) == ("Approved", "Failed", "True")
        assert failure["reason"] == "SignerValidationFailure" and why in failure["message"]
        assert failure["lastUpdateTime"] == failure["lastTransitionTime"] == "2030-01-01T00:00:01Z"
        assert "certificate" not in found["status"]

    assert run(test).signed == []


@pytest.mark.parametrize(
    ("obj", "hours"), [(request(CLIENT), 24), (approved(request("example.com/mine")), 1)], ids=["pending", "approved"]
)
def test_a_request_is_deleted_when_its_time_is_over(obj: Object, hours: float) -> None:
    async def test(world: World, api: Cluster) -> None:
        api.put(CERTIFICATESIGNINGREQUESTS, obj)
        await world.clock.sleep(hours * 3600 - 2)
        assert len(api.of(CERTIFICATESIGNINGREQUESTS)) == 1
        await world.clock.sleep(2)
        assert api.of(CERTIFICATESIGNINGREQUESTS) == []

    run(test)


@pytest.mark.parametrize(
    ("code", "reason", "tries"), [(409, "Conflict", 2), (404, "NotFound", 1), (500, "InternalError", 2)]
)
def test_a_write_that_fails_is_tried_again_unless_the_request_is_gone(code: int, reason: str, tries: int) -> None:
    async def test(world: World, api: Cluster) -> None:
        api.fail_next("update", "certificatesigningrequests", status_failure(code, reason, "no"))
        api.put(CERTIFICATESIGNINGREQUESTS, approved(request()))
        await world.clock.sleep(30)

    assert run(test).writes() == ["update"] * tries
