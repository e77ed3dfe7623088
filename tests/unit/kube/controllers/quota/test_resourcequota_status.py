"""What a quota's status says of the objects that are there."""

from datetime import UTC, datetime

from lastcall.kube.api.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    EVENTS,
    EVENTS_V1,
    NODES,
    PODS,
    SECRETS,
    SERVED,
    SERVICES,
)
from lastcall.kube.controllers.quota.status import counted_kinds, lessens, status_of

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def pod(cpu="", phase="Running"):
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "resources": resources}]},
        "status": {"phase": phase},
    }


def quota(hard, status=None, **spec):
    return {"spec": {"hard": hard, **spec}, **({} if status is None else {"status": status})}


def test_which_kinds_are_counted():
    hard = ["pods", "count/deployments.apps", "services.nodeports", "count/events", "count/nodes", "count/no.such"]
    assert counted_kinds(hard, SERVED) == [PODS, SERVICES, DEPLOYMENTS]
    assert not {EVENTS, EVENTS_V1, NODES} & {*counted_kinds(hard, SERVED)}


def test_a_status_counts_what_is_in_scope():
    made = quota({"pods": "5", "requests.cpu": "2", "secrets": "1"}, {}, scopes=["NotBestEffort"])
    pods = [pod("250m"), pod(), pod("1", "Succeeded"), pod("500m")]
    assert status_of(made, {PODS: pods, SECRETS: [{}]}, NOW) == {
        "hard": {"pods": "5", "requests.cpu": "2", "secrets": "1"},
        "used": {"pods": "2", "requests.cpu": "750m", "secrets": "0"},
    }


def test_what_is_the_same_is_not_written():
    hard = {"pods": "5", "requests.cpu": "2000m"}
    same = {"hard": {"pods": "5", "requests.cpu": "2"}, "used": {"pods": "1", "requests.cpu": "0.25"}}
    assert status_of(quota(hard, same), {PODS: [pod("250m")]}, NOW) is None
    assert status_of(quota(hard, {"hard": same["hard"]}), {PODS: []}, NOW) is not None
    assert status_of(quota({}, {}), {}, NOW) == {"hard": {}, "used": {}}


def test_what_is_no_longer_limited_is_no_longer_counted():
    before = {"hard": {"pods": "5", "configmaps": "2"}, "used": {"pods": "1", "configmaps": "2"}}
    assert status_of(quota({"configmaps": "2"}, before), {CONFIGMAPS: [{}]}, NOW) == {
        "hard": {"configmaps": "2"},
        "used": {"configmaps": "1"},
    }


def test_usage_that_nobody_here_can_count_stays():
    before = {"hard": {"count/x.a.com": "5"}, "used": {"count/x.a.com": "3"}}
    assert status_of(quota({"count/x.a.com": "6"}, before), {}, NOW) == {
        "hard": {"count/x.a.com": "6"},
        "used": {"count/x.a.com": "3"},
    }


def test_when_less_is_used_than_before():
    before = quota({}, {"used": {"pods": "2", "cpu": "500m"}})
    assert lessens(before, {"used": {"pods": "1", "cpu": "1"}})
    assert not lessens(before, {"used": {"pods": "2", "cpu": "0.5", "memory": "0"}})
    assert not lessens(quota({}), {"used": {"pods": "0"}})
