"""The arithmetic of grace periods: the tables of kubelet pod_workers_test.go and kuberuntime_container_test.go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.kube.node.stopping.grace import (
    KillReason,
    StopTimeout,
    budget_before_hook,
    calculate_effective_grace_period,
    probe_grace_period_seconds,
    set_termination_grace_period,
    spend,
    stop_timeout,
)
from lastcall.kube.node.versions import behaviour_of

V123, V127, V136 = (behaviour_of(version) for version in ("1.23", "1.27", "1.36"))


@pytest.mark.rule("node-semantics 5.1/least, 5.1/spec, 5.1/floor, 5.1/zero, 5.1/override")
@pytest.mark.parametrize(
    ("current", "deletion", "override", "spec", "expected"),
    [
        pytest.param(0, None, None, 30, (30, False), id="the spec's period when nobody asks for another"),
        pytest.param(0, 5, None, 30, (5, False), id="the deletion's period"),
        pytest.param(0, 300, None, 30, (300, False), id="the first deletion may be longer than the spec"),
        pytest.param(0, 5, 2, 30, (2, False), id="a shorter override"),
        pytest.param(0, None, 0, 30, (1, False), id="an override of 0 is 1"),
        pytest.param(0, 0, None, 30, (1, False), id="a deletion of 0 is 1"),
        pytest.param(0, 0, 20, 30, (20, False), id="0 means unset: an override in the same evaluation wins"),
        pytest.param(0, None, None, 0, (1, False), id="a spec of 0 is 1"),
        pytest.param(0, None, None, None, (1, False), id="nothing at all is 1"),
        pytest.param(30, 30, None, 30, (30, False), id="the same again"),
        pytest.param(30, 5, None, 30, (5, True), id="a second delete may shorten"),
        pytest.param(30, 30, 1, 30, (1, True), id="hard eviction of a Pod that is ending"),
        pytest.param(5, 60, 60, 600, (5, False), id="nobody may lengthen"),
        pytest.param(5, None, None, 600, (5, False), id="editing the spec has no effect any more"),
    ],
)
def test_the_effective_grace_period(current, deletion, override, spec, expected):
    answer = calculate_effective_grace_period(
        current,
        deletion_grace_period_seconds=deletion,
        override=override,
        termination_grace_period_seconds=spec,
    )
    assert answer == expected


seconds = st.one_of(st.none(), st.integers(0, 10_000))


@pytest.mark.rule("node-semantics 5.1/never-grows, 5.1/floor")
@given(st.integers(1, 10_000), seconds, seconds, seconds)
def test_a_decided_grace_period_never_grows_and_is_never_below_one(current, deletion, override, spec):
    period, shortened = calculate_effective_grace_period(
        current,
        deletion_grace_period_seconds=deletion,
        override=override,
        termination_grace_period_seconds=spec,
    )
    assert period >= 1 and shortened == (period != current)
    if deletion != 0 or override is None:  # the one exception: see the next test
        assert period <= current


@pytest.mark.rule("node-semantics 5.1/zero")
def test_a_deletion_of_0_beside_an_override_is_kubernetes_s_one_way_to_lengthen():
    """0 reads as "unset" within the evaluation, so the override is taken as it is: kept, because Kubernetes does it."""
    period = calculate_effective_grace_period(
        5, deletion_grace_period_seconds=0, override=7, termination_grace_period_seconds=30
    )
    assert period == (7, True)


@pytest.mark.rule("node-semantics 5.3/start, 5.3/probe")
@pytest.mark.parametrize(
    ("deletion", "spec", "reason", "expected"),
    [
        (None, None, None, 2),
        (None, 30, None, 30),
        (7, 30, None, 7),
        (None, 30, KillReason.LIVENESS_PROBE, 5),
        (None, 30, KillReason.STARTUP_PROBE, 100),
        (None, 30, KillReason.FAILED_POST_START_HOOK, 30),
        (7, 30, KillReason.LIVENESS_PROBE, 7),
    ],
)
def test_the_period_a_stop_starts_from(deletion, spec, reason, expected):
    container = {
        "livenessProbe": {"terminationGracePeriodSeconds": 5},
        "startupProbe": {"terminationGracePeriodSeconds": 100},
    }
    period = set_termination_grace_period(
        V136,
        deletion_grace_period_seconds=deletion,
        termination_grace_period_seconds=spec,
        probe_grace_period_seconds=probe_grace_period_seconds(container, reason),
    )
    assert period == expected


@pytest.mark.rule("node-semantics 24/probe-grace")
def test_probe_level_periods_are_unknown_to_1_23():
    period = set_termination_grace_period(
        V123,
        deletion_grace_period_seconds=None,
        termination_grace_period_seconds=30,
        probe_grace_period_seconds=5,
    )
    assert period == 30


def timeline(behaviour, period, override, hook, *, runs_hook=True):
    """Seconds of SIGTERM and SIGKILL for a container that ignores SIGTERM; `hook` seconds, None for no hook."""
    budget = budget_before_hook(behaviour, period, override)
    elapsed = min(hook, budget) if hook is not None and budget > 0 and runs_hook else 0
    stop = stop_timeout(behaviour, spend(budget, elapsed), override)
    return elapsed, elapsed + stop.timeout


@pytest.mark.rule("node-semantics 5.3/no-budget, 5.3/truncated, 5.3/floor")
@pytest.mark.parametrize(
    ("period", "override", "hook", "term", "kill"),
    [
        pytest.param(30, 30, None, 0, 30, id="no hook"),
        pytest.param(30, 30, 10, 10, 30, id="hook of 10 s"),
        pytest.param(30, 30, 1000, 30, 32, id="hook hangs: floor of 2 s"),
        pytest.param(30, 30, 29.5, 29.5, 31.5, id="hook of 29.5 s: 30-29=1 is raised to 2"),
        pytest.param(30, 30, 0.9, 0.9, 30.9, id="less than a second costs nothing"),
        pytest.param(1, 1, 5, 1, 3, id="grace 1"),
        pytest.param(0, 1, 5, 1, 3, id="grace 0 with a finalizer: the worker makes it 1"),
        pytest.param(30, 0, 5, 0, 2, id="override 0 (restart of all containers): no hook"),
    ],
)
def test_when_the_signals_come_in_1_36(period, override, hook, term, kill):
    assert timeline(V136, period, override, hook) == (term, kill)


@pytest.mark.rule("node-semantics 24/hook-budget")
@pytest.mark.parametrize(
    ("behaviour", "override", "kill"),
    [(V123, 10, 12), (V127, 10, 12), (V136, 10, 10)],
    ids=["1.23", "1.27", "1.36"],
)
def test_a_hook_of_2_s_in_a_grace_of_10_s_by_version(behaviour, override, kill):
    assert timeline(behaviour, 10, override, 2) == (2, kill)


def test_a_hanging_hook_doubles_the_grace_period_from_1_22_to_1_27():
    assert timeline(V123, 5, 5, 1000) == (5, 10)
    assert timeline(V136, 5, 5, 1000) == (5, 7)
    assert "does not take the preStop hook's time off" in V123.why_hook_time_does_not_count
    assert V136.why_hook_time_does_not_count == ""


@pytest.mark.rule("node-semantics 24/floor")
def test_an_override_may_undercut_the_floor_before_1_28():
    assert stop_timeout(V123, 30, 1) == StopTimeout(1, False)
    assert stop_timeout(V136, 1, 1) == StopTimeout(2, True)


@pytest.mark.parametrize("version", ["1.18", "1.20"])
def test_an_unknown_kubernetes_version_is_refused_by_name(version):
    with pytest.raises(ValueError, match=rf"'{version}' is not one of 1\.23, 1\.27, 1\.36"):
        behaviour_of(version)
    assert behaviour_of("v1.36.2").minor == 36
