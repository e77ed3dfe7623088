"""ResourceQuota admission: what a write takes from which quota, what is refused, what is given back."""

import asyncio
from datetime import UTC, datetime

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resource_lists import parse, written
from lastcall.kube.api.resources import CONFIGMAPS, PODS, RESOURCEQUOTAS, SECRETS, SERVICES
from lastcall.kube.apiserver.admission.quota import check, without_amounts
from lastcall.kube.apiserver.wire.context import RequestContext

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def quota(hard, used=None, name="q", **spec):
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") | (used or {})}
    return {"metadata": {"name": name}, "spec": {"hard": hard, **spec}, "status": status}


def pod(requests=None, **spec):
    resources = {"requests": requests} if requests else {}
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "resources": resources}], **spec}}


def taken(*args):
    return {each.quota: written(each.amounts) for each in check(*args, NOW)}


def test_a_write_takes_from_every_quota_that_concerns_it():
    quotas = [
        quota({"pods": "2", "services": "1"}, name="a"),
        quota({"requests.cpu": "1", "count/pods": "9"}, name="b"),
        quota({"secrets": "1"}, name="c"),
        quota({"pods": "1"}, name="d", scopes=["BestEffort"]),
    ]
    assert taken(PODS, pod({"cpu": "250m"}), None, quotas) == {
        "a": {"pods": "1"},
        "b": {"count/pods": "1", "requests.cpu": "250m"},
    }


def refusal(*args):
    with pytest.raises(StatusError) as refused:
        check(*args, NOW)
    assert refused.value.code == 403
    return refused.value.message


@pytest.mark.parametrize(
    ("made", "quotas", "expected"),
    [
        (pod(), [quota({"pods": "2"}, {"pods": "2"})],
         "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"),
        (
            pod({"cpu": "600m", "memory": "1Gi"}),
            [quota({"pods": "9", "requests.cpu": "1", "memory": "1Gi"}, {"requests.cpu": "500m", "memory": "512Mi"})],
            "exceeded quota: q, requested: memory=1Gi,requests.cpu=600m, used: memory=512Mi,requests.cpu=500m, "
            "limited: memory=1Gi,requests.cpu=1",
        ),
        (pod(), [quota({"requests.cpu": "1"})], "failed quota: q: must specify requests.cpu for: main"),
        (
            pod(),
            [{"metadata": {"name": "q"}, "status": {"hard": {"pods": "1", "count/pods": "1"}, "used": {"pods": "0"}}}],
            "status unknown for quota: q, resources: count/pods,pods",
        ),
        (pod({"a.com/x": "-1"}), [quota({"pods": "1"})], "quota usage is negative for resource(s): requests.a.com/x"),
        (pod(), [quota({"pods": "1"}, name="a"), quota({"pods": "0"}, name="b")],
         "exceeded quota: b, requested: pods=1, used: pods=0, limited: pods=0"),
    ],
)  # fmt: skip
def test_what_a_quota_refuses(made, quotas, expected):
    assert refusal(PODS, made, None, quotas) == f'pods "p" is forbidden: {expected}'


def test_a_quota_that_nobody_has_counted_yet_limits_nothing():
    assert taken(PODS, pod(), None, [{"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}]) == {}


def test_what_was_beyond_its_limit_already_is_no_matter_for_what_does_not_use_it():
    assert taken(PODS, pod(), None, [quota({"pods": "5", "requests.a.com/x": "1"}, {"requests.a.com/x": "3"})]) == {
        "q": {"pods": "1"}
    }


def service(type_, ports=1):
    return {"metadata": {"name": "s"}, "spec": {"type": type_, "ports": [{}] * ports}}


def test_an_update_takes_what_it_adds():
    quotas = [quota({"services": "1", "services.nodeports": "2"}, {"services": "1"})]
    assert taken(SERVICES, service("NodePort", 2), service("ClusterIP", 2), quotas) == {
        "q": {"services.nodeports": "2"}
    }
    assert taken(SERVICES, service("ClusterIP"), service("NodePort"), quotas) == {}
    assert refusal(SERVICES, service("NodePort", 3), service("NodePort", 0), quotas) == (
        'services "s" is forbidden: exceeded quota: q, requested: services.nodeports=3, used: services.nodeports=0, '
        "limited: services.nodeports=2"
    )


def test_a_pod_that_comes_into_a_scope_takes_all_it_uses():
    quotas = [
        quota({"pods": "1"}, name="ends", scopes=["Terminating"]),
        quota({"pods": "1"}, {"pods": "1"}, name="stays", scopes=["NotTerminating"]),
    ]
    assert taken(PODS, pod(activeDeadlineSeconds=5), pod(), quotas) == {"ends": {"pods": "1"}}


def test_nothing_is_given_back_below_zero():
    counted = quota({"pods": "5"}, {"pods": "1"})
    assert written(without_amounts(counted, parse({"pods": "2"}))) == {"pods": "0"}


# -- through the API -------------------------------------------------------------------------------------------------


async def make_quota(api, hard, name="q"):
    made = await api.admin.create(RESOURCEQUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard}}, "default")
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    await api.admin.update(RESOURCEQUOTAS, {**made, "status": status}, "default", subresource="status")


async def used(api, name="q"):
    return (await api.admin.get(RESOURCEQUOTAS, name, "default"))["status"]["used"]


BODY = {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "main", "image": "x"}]}}


def test_of_many_at_once_as_many_come_through_as_there_is_room(virtual):
    async def scenario(api):
        await make_quota(api, {"pods": "3"})
        results = await asyncio.gather(
            *(api.admin.create(PODS, BODY, "default") for _ in range(8)), return_exceptions=True
        )
        refused = [each for each in results if isinstance(each, StatusError)]
        assert len(refused) == 5
        assert all("exceeded quota: q" in each.message for each in refused)
        assert all(each.message.startswith('pods "p-') for each in refused)
        assert await used(api) == {"pods": "3"}
        assert len((await api.admin.list(PODS, "default")).items) == 3

    virtual(scenario)


def test_what_a_write_that_fails_took_is_given_back(virtual):
    async def scenario(api):
        await make_quota(api, {"configmaps": "5"})
        await make_quota(api, {"configmaps": "5"}, "second")
        await api.admin.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
        with pytest.raises(StatusError) as refused:
            await api.admin.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
        assert refused.value.reason == "AlreadyExists"
        assert (await used(api), await used(api, "second")) == ({"configmaps": "1"}, {"configmaps": "1"})

    virtual(scenario)


def test_where_one_of_two_quotas_refuses_the_other_keeps_its_count(virtual):
    async def scenario(api):
        await make_quota(api, {"secrets": "5"}, "a")
        await make_quota(api, {"secrets": "1"}, "b")
        await api.admin.create(SECRETS, {"metadata": {"name": "a"}}, "default")
        with pytest.raises(StatusError, match="exceeded quota: b"):
            await api.admin.create(SECRETS, {"metadata": {"name": "b"}}, "default")
        assert (await used(api, "a"), await used(api, "b")) == ({"secrets": "1"}, {"secrets": "1"})

    virtual(scenario)


def test_a_dry_run_is_refused_and_takes_nothing(virtual):
    async def scenario(api):
        await make_quota(api, {"configmaps": "1"})
        dry = RequestContext(api.admin._user, dry_run=True)
        create = api.server.operations.create
        await create(dry, CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
        assert await used(api) == {"configmaps": "0"}
        await api.admin.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
        with pytest.raises(StatusError, match="exceeded quota: q"):
            await create(dry, CONFIGMAPS, {"metadata": {"name": "b"}}, "default")

    virtual(scenario)


def test_a_service_that_becomes_a_node_port_takes_the_ports(virtual):
    async def scenario(api):
        await make_quota(api, {"services.nodeports": "1"})
        ports = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
        await api.admin.create(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": ports}}, "default")
        with pytest.raises(StatusError, match="exceeded quota: q, requested: services"):
            await api.admin.patch(SERVICES, "s", {"spec": {"type": "NodePort"}}, "default")
        await api.admin.patch(SERVICES, "s", {"spec": {"type": "NodePort", "ports": ports[:1]}}, "default")
        assert await used(api) == {"services.nodeports": "1"}

    virtual(scenario)


def test_a_pod_that_was_there_before_the_quota_may_be_written(virtual):
    async def scenario(api):
        made = await api.admin.create(PODS, BODY, "default")
        await make_quota(api, {"requests.cpu": "1", "pods": "0"})
        name = made["metadata"]["name"]
        await api.admin.patch(PODS, name, {"metadata": {"labels": {"a": "b"}}}, "default")
        await api.admin.patch(PODS, name, {"status": {"phase": "Running"}}, "default", subresource="status")
        assert await used(api) == {"pods": "0", "requests.cpu": "0"}

    virtual(scenario)
