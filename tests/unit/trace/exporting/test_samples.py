"""What one end adds to the metrics."""

from collections import Counter

import pytest
from story_samples import samples

from lastcall.endings.node_facts import ListenerClosed, Sockets
from lastcall.endings.story import EndpointTransition, PreStop
from lastcall.trace.exporting.samples import (
    MOST_EXEMPLAR,
    cause_of_137,
    exemplar_of,
    grace_used,
    lost_endpoint_windows,
    measure,
    trace_id_of,
)


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"code": 0}, None),
        ({"code": 143, "signal": "SIGTERM"}, None),
        ({"code": 137, "signal": "SIGKILL", "killed_by": "grace over"}, "grace"),
        ({"code": 137, "signal": "SIGKILL", "killed_by": "out of memory", "reason": "OOMKilled"}, "oom"),
        # The API's reason alone, where nobody saw the signal; and a child's death before the grace period was over.
        ({"code": 137, "reason": "OOMKilled"}, "oom"),
        ({"code": 137, "signal": "SIGKILL", "killed_by": "grace over", "reason": "OOMKilled"}, "grace"),
        ({"code": 137, "signal": "SIGKILL", "killed_by": "grace over", "ended_by": "livenessProbe"}, "liveness"),
        ({"code": 137, "signal": "SIGKILL", "killed_by": "grace over", "ended_by": "startupProbe"}, "startup"),
        ({"code": 137, "signal": "SIGKILL", "killed_by": "unknown sender"}, "other"),
        ({"code": 137, "signal": None, "killed_by": None}, "itself"),
    ],
)
def test_137_has_one_cause(container, fields, cause):
    assert cause_of_137(container(**fields)) == cause


def test_the_grace_that_was_used_is_hook_wait_and_drain(ending_of, container):
    assert grace_used(ending_of(container(), used=(6, 3, 9))) == pytest.approx(0.6)
    assert grace_used(ending_of(container(), used=(6, 0, 30))) == pytest.approx(1.2)
    assert grace_used(ending_of(container())) is None
    assert grace_used(ending_of(container(), used=(0, 0, 0), grace=0)) is None


def _endpoint(at, ready, service="web"):
    state = {} if ready is None else {"ready": ready, "serving": True, "terminating": True}
    return EndpointTransition(at, service, f"{service}-x", "10.0.0.2", **state)


def test_a_window_is_lost_from_the_last_exit_until_the_service_knows(ending_of, container):
    late = ending_of(container(at=1.0), container("log", at=2.0), endpoints=(_endpoint(3.5, False),))
    assert lost_endpoint_windows(late) == [pytest.approx(1.5)]


def test_a_window_is_lost_from_the_first_listener_that_closes_where_the_node_saw_it(ending_of, container):
    sockets = Sockets((), 0, "container", closed=(ListenerClosed("0.0.0.0", 80, 0.5, 0.4),))
    late = ending_of(container(at=9.0, sockets=sockets), endpoints=(_endpoint(2.0, None),))
    assert lost_endpoint_windows(late) == [pytest.approx(1.5)]


def test_nothing_is_lost_when_the_service_knew_first_or_nobody_saw_the_exit(ending_of, container):
    in_time = (_endpoint(0.01, False), _endpoint(6.0, None))
    assert lost_endpoint_windows(ending_of(container(at=5.0), endpoints=in_time)) == []
    assert lost_endpoint_windows(ending_of(container(at=None), endpoints=(_endpoint(9, None),))) == []
    assert lost_endpoint_windows(ending_of(container(at=1.0))) == []


def test_each_service_has_a_window_of_its_own(ending_of, container):
    seen = (
        _endpoint(3.0, False, "a"),
        _endpoint(4.0, None, "a"),
        _endpoint(0.1, False, "b"),
        _endpoint(5.0, None, "c"),
    )
    assert lost_endpoint_windows(ending_of(container(at=2.0), endpoints=seen)) == [1.0, 3.0]


def test_what_nobody_saw_has_no_sample(ending_of, container):
    hook = PreStop("exec", "unknown", 4.0)
    _, found = measure(ending_of(container(signal_at=None, at=None, code=None, hook=hook)))
    assert [(each.metric, each.labels) for each in found] == [
        ("ends", ("graceful", "deleted")),
        ("hooks", ("unknown",)),
    ]


def test_runs_before_the_last_one_count_too(ending_of, container):
    killed = container(code=137, signal="SIGKILL", killed_by="out of memory", signal_at=None, ended_by="itself")
    _, found = measure(ending_of(container(), earlier=(killed, killed)))
    assert Counter(each.metric for each in found)["sigkills"] == 2
    assert [each.labels for each in found if each.metric == "exits137"] == [("oom",)] * 2


def test_stories_of_whole_clusters_have_their_samples():
    by_name = {name: Counter((each.metric, *each.labels[:1]) for each in measure(samples()[name][0])[1])
               for name in ("graceful", "sigkill", "overrun")}  # fmt: skip
    assert by_name["graceful"][("ends", "graceful")] == 1
    assert not by_name["graceful"][("sigkills",)]
    killed = by_name["sigkill"]
    assert killed[("ends", "killed")] == killed[("sigkills",)] == killed[("exits137", "grace")] == 1
    assert by_name["overrun"][("hooks", "outlived")] == 1
    assert dict(_values(samples()["sigkill"][0]))["graceUsed"] == pytest.approx(1.0, abs=0.05)


def _values(ending):
    return [(each.metric, each.value) for each in measure(ending)[1]]


def test_the_trace_has_the_pod_s_uid_and_another_kind_of_uid_is_hashed(ending_of):
    assert trace_id_of(ending_of()) == "11111111222243338444555555555555"
    other = trace_id_of(ending_of(uid="static-pod"))
    assert len(other) == 32 and int(other, 16)
    assert trace_id_of(ending_of(uid="0" * 32)) != "0" * 32


@pytest.mark.parametrize("size", [1, 60, 90, 253])
def test_an_exemplar_is_no_longer_than_openmetrics_allows(ending_of, size):
    labels = exemplar_of(ending_of(name="p" * size), "c" * size)
    assert sum(len(name) + len(value) for name, value in labels) <= MOST_EXEMPLAR
    assert dict(labels)["pod"] == "p" * min(size, 128 - 40 - 3)
