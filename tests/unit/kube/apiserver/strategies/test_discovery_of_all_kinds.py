"""What Kubernetes 1.36.2 lists in discovery of the kinds of storage, devices, addresses, flow control, certificates."""

import orjson
import pytest
from api_server import running_server

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import SERVED
from lastcall.kube.apiserver.discovery import Discovery

CONNECTIONS = ("attach", "exec", "portforward", "proxy", "log")
GROUPS = [
    "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch",
    "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
    "apiextensions.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io",
    "resource.k8s.io", "flowcontrol.apiserver.k8s.io",
]  # fmt: skip

HASHES = {
    "/apis/apiextensions.k8s.io/v1": {"customresourcedefinitions": "jfWCUB31mvA="},
    "/apis/networking.k8s.io/v1": {"ipaddresses": "3f/plJFChNE=", "servicecidrs": "gNLvruQhW2g="},
    "/apis/admissionregistration.k8s.io/v1": {
        "mutatingadmissionpolicies": "LYmCf+UMVdg=",
        "mutatingadmissionpolicybindings": "90V5FRZZ3Zg=",
        "mutatingwebhookconfigurations": "Sqi0GUgDaX0=",
        "validatingadmissionpolicies": "6OxvlMmQ6is=",
        "validatingadmissionpolicybindings": "v9715VZqakg=",
        "validatingwebhookconfigurations": "B0wHjQmsGNk=",
    },
    "/apis/storage.k8s.io/v1": {
        "csidrivers": "hL6j/rwBV5w=",
        "csinodes": "Pe62DkZtjuo=",
        "csistoragecapacities": "xeVl+2Ly1kE=",
        "volumeattachments": "tJx/ezt6UDU=",
        "volumeattributesclasses": "tIjydgKBC5w=",
    },
}


@pytest.fixture(scope="module")
def documents():
    return {path: orjson.loads(body) for path, body in Discovery(SERVED, "1.36").documents.items()}


def test_groups_come_in_the_order_of_a_real_server(documents) -> None:
    served = [group["name"] for group in documents["/apis"]["groups"]]
    assert [name for name in GROUPS if name in served] == [name for name in served if name in GROUPS]
    missing = [name for name in GROUPS if name not in served]
    assert missing == ["authentication.k8s.io", "authorization.k8s.io"]  # of the reviews, which are not stored


@pytest.mark.parametrize(("path", "hashes"), HASHES.items())
def test_the_hash_says_as_what_a_kind_is_stored(documents, path, hashes) -> None:
    listed = {each["name"]: each.get("storageVersionHash") for each in documents[path]["resources"]}
    assert {name: listed[name] for name in hashes} == hashes


def test_subresources_of_a_certificate_signing_request_can_be_read_and_written(documents) -> None:
    entries = {each["name"]: each for each in documents["/apis/certificates.k8s.io/v1"]["resources"]}
    assert list(entries) == [f"certificatesigningrequests{tail}" for tail in ("", "/approval", "/status")]
    assert entries["certificatesigningrequests"]["shortNames"] == ["csr"]
    assert entries["certificatesigningrequests/approval"]["verbs"] == ["get", "patch", "update"]


@pytest.mark.loopback
async def test_every_subresource_that_is_listed_to_be_read_can_be_read(documents) -> None:
    async with running_server() as server:
        client = server.http()
        try:
            for path, document in documents.items():
                for entry in document.get("resources") or ():
                    plural, slash, subresource = entry["name"].partition("/")
                    if not slash or "get" not in entry["verbs"] or subresource in CONNECTIONS:
                        continue
                    namespace = "/namespaces/default" if entry["namespaced"] else ""
                    with pytest.raises(StatusError) as refused:
                        await client.request("GET", f"{path}{namespace}/{plural}/nope/{subresource}")
                    assert refused.value.code == 404, entry["name"]
        finally:
            await client.close()


@pytest.mark.loopback
async def test_there_is_no_table_of_a_review_or_of_what_is_posted_to_subresources() -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    async with running_server() as server:
        client = server.http()
        try:
            for path in (
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                "/apis/authentication.k8s.io/v1/tokenreviews",
                "/api/v1/namespaces/default/bindings",
                "/api/v1/namespaces/default/pods/nope/eviction",
                "/api/v1/namespaces/default/serviceaccounts/nope/token",
            ):
                with pytest.raises(StatusError, match="only the following media types are accepted") as refused:
                    await client.request("POST", path, body={}, accept=table)
                assert refused.value.code == 406, path
        finally:
            await client.close()
