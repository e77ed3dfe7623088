"""The Leases by which API servers of one store know each other."""

from datetime import UTC, datetime, timedelta

import pytest

from lastcall.kube.api.errors import not_found
from lastcall.kube.api.resources import LEASES
from lastcall.kube.apiserver.bootstrap.identity import IDENTITY_LABEL, Identity, expired
from lastcall.kube.client.api import ListResult
from lastcall.world.virtual import run_virtual

MOMENT = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Api:
    """Leases, as an API server keeps them."""

    def __init__(self, *leases: dict) -> None:
        self.leases = {each["metadata"]["name"]: each for each in leases}

    async def list(self, resource, namespace):
        assert (resource, namespace) == (LEASES, "kube-system")
        return ListResult(list(self.leases.values()), "1")

    async def create(self, resource, obj, namespace):
        assert obj["metadata"]["name"] not in self.leases
        self.leases[obj["metadata"]["name"]] = obj

    async def update(self, resource, obj, namespace):
        assert obj["metadata"]["name"] in self.leases
        self.leases[obj["metadata"]["name"]] = obj

    async def delete(self, resource, name, namespace):
        if self.leases.pop(name, None) is None:
            raise not_found(resource, name)


def kept(server: Identity, api: Api, moment: datetime = MOMENT) -> dict:
    run_virtual(lambda clock: server.keep(api, moment))
    return api.leases


def test_a_server_keeps_one_lease_over_restarts_and_another_server_has_its_own() -> None:
    api = Api()
    kept(Identity("here", "10.0.0.1:6443", "first"), api)
    kept(Identity("here", "10.0.0.1:6443", "second"), api, MOMENT + timedelta(seconds=10))
    kept(Identity("here", "10.0.0.2:6443", "third"), api)
    holders = sorted(each["spec"]["holderIdentity"].rpartition("_")[2] for each in api.leases.values())
    assert holders == ["second", "third"]
    renewed = {
        each["spec"]["holderIdentity"].rpartition("_")[2]: each["spec"]["renewTime"] for each in api.leases.values()
    }
    assert renewed == {"second": "2026-01-01T12:00:10.000000Z", "third": "2026-01-01T12:00:00.000000Z"}
    for each in api.leases.values():
        assert each["metadata"]["labels"] == {IDENTITY_LABEL: "kube-apiserver", "kubernetes.io/hostname": "here"}


def test_the_lease_of_a_server_that_is_gone_is_deleted_after_an_hour() -> None:
    gone, here = Identity("here", "10.0.0.1:6443", "a"), Identity("here", "10.0.0.2:6443", "b")
    api = Api(gone.lease(MOMENT))
    assert set(kept(here, api, MOMENT + timedelta(hours=1))) == {gone.name, here.name}
    assert set(kept(here, api, MOMENT + timedelta(hours=1, seconds=1))) == {here.name}


@pytest.mark.parametrize(
    ("labels", "spec", "over"),
    [
        ({IDENTITY_LABEL: "kube-apiserver"}, {"renewTime": "2026-01-01T10:59:59Z", "leaseDurationSeconds": 3600}, True),
        (
            {IDENTITY_LABEL: "kube-apiserver"},
            {"renewTime": "2026-01-01T11:00:00Z", "leaseDurationSeconds": 3600},
            False,
        ),
        ({IDENTITY_LABEL: "kube-apiserver"}, {"renewTime": "2026-01-01T11:59:59Z"}, True),
        ({IDENTITY_LABEL: "kube-apiserver"}, {}, False),
        ({}, {"renewTime": "2020-01-01T00:00:00Z", "leaseDurationSeconds": 15}, False),
        (None, {"renewTime": "2020-01-01T00:00:00Z"}, False),
    ],
)
def test_only_leases_of_servers_that_nobody_renews_are_over(labels, spec, over) -> None:
    metadata = {"name": "x"} if labels is None else {"name": "x", "labels": labels}
    assert expired({"metadata": metadata, "spec": spec}, MOMENT) is over
