"""Objects that are larger than etcd takes are refused with the answer of a kube-apiserver."""

from collections.abc import Callable

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CONFIGMAPS, DEPLOYMENTS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.registry.sizes import MOST_SENT, MOST_STORED, check_size
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.store.value import Value

ADMIN = UserInfo("admin", ("system:masters",))
TOO_LARGE = "etcdserver: request is too large"


def deployment(size: int) -> dict:
    container = {"name": "c", "image": "i", "env": [{"name": "X", "value": "y" * size}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"metadata": {"name": "big"}, "spec": spec}


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (MOST_STORED, TOO_LARGE),
        (2_900_000, "rpc error: code = ResourceExhausted desc = trying to send message larger than max ("),
    ],
)
def test_an_object_that_etcd_would_refuse_is_refused_with_a_500(virtual: Callable, size: int, message: str) -> None:
    async def scenario(api) -> None:
        with pytest.raises(StatusError) as refused:
            await api.admin.create(DEPLOYMENTS, deployment(size), "default")
        assert refused.value.code == 500 and not refused.value.reason
        assert refused.value.message.startswith(message)
        assert (await api.admin.list(DEPLOYMENTS, "default")).items == []

    virtual(scenario)


def test_an_object_that_grows_too_large_stays_as_it_was_and_can_be_deleted(virtual: Callable) -> None:
    async def scenario(api) -> None:
        stored = await api.admin.create(DEPLOYMENTS, deployment(1_400_000), "default")
        with pytest.raises(StatusError, match=TOO_LARGE):
            await api.server.operations.update(
                RequestContext(ADMIN), DEPLOYMENTS, deployment(1_600_000), "default", "big"
            )
        assert await api.admin.get(DEPLOYMENTS, "big", "default") == stored
        await api.admin.delete(DEPLOYMENTS, "big", "default", propagation_policy="Background")

    virtual(scenario)


def test_the_size_is_that_of_protobuf_which_is_smaller_than_json() -> None:
    data = {"lines": "\n" * 1_000_000}
    value = Value(None, {"kind": CONFIGMAPS.kind, "apiVersion": "v1", "metadata": {"name": "a"}, "data": data})
    value.encoded()
    assert MOST_STORED < value.size < MOST_SENT * 2
    check_size(value, None)


def test_a_too_large_object_of_an_older_store_can_still_be_changed() -> None:
    value = Value(b'{"kind":"Odd","apiVersion":"v9","data":"%b"}' % (b"x" * MOST_STORED))
    check_size(value, value)
    with pytest.raises(StatusError, match=TOO_LARGE):
        check_size(value, Value(b"{}"))
