"""The tables of the pod worker: kubelet pod_workers_test.go, and what must hold in every history."""

import random
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lastcall.kube.node.pods.runtime_pod import RunningPod
from lastcall.kube.node.runtime.backoff import BackoffError
from lastcall.kube.node.workers import transitions as t
from lastcall.kube.node.workers.transitions import (
    Cause,
    KillPodOptions,
    PodSyncStatus,
    StartVerdict,
    State,
    Sweep,
    UpdatePodOptions,
    UpdateType,
)


def pod(*, grace=None, phase="Running", tgps=30, static=False):
    metadata = {"name": "p", "namespace": "default", "uid": "u1"}
    if grace is not None:
        metadata |= {"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace}
    if static:
        metadata["annotations"] = {"kubernetes.io/config.source": "file"}
    return {"metadata": metadata, "spec": {"terminationGracePeriodSeconds": tgps}, "status": {"phase": phase}}


def update(kind=UpdateType.UPDATE, the_pod=None, **kill):
    options = KillPodOptions(**kill) if kill else None
    return UpdatePodOptions(kind, the_pod if the_pod is not None else pod(), kill_pod_options=options)


def decide(status, options, known=None, **more):
    return t.decide_update(status, options, known, **more)


NEW = PodSyncStatus("u1", "p_default")
UNSTARTED = t.move(NEW, Cause.FIRST_UPDATE)
SYNCING = t.start(UNSTARTED)
TERMINATING = replace(t.move(SYNCING, Cause.KILL), grace_period=30)
TERMINATED = t.move(TERMINATING, Cause.CONTAINERS_STOPPED)
FINISHED = t.move(TERMINATED, Cause.TEARDOWN_DONE)
RUNTIME = RunningPod("u1", "p", "default")


EXAMPLES = {status.state: status for status in (NEW, SYNCING, TERMINATING, TERMINATED, FINISHED)}
EVERY = [(state, cause) for state in State for cause in Cause]
TARGETS = {(edge.state, edge.cause): edge.target for edge in t.EDGES}


def swept(status):
    return t.remove_terminated_worker(status, pod(), orphaned=True)[0]


TAKEN = {
    (State.UNKNOWN, Cause.FIRST_UPDATE): lambda: decide(None, update()).status,
    (State.UNKNOWN, Cause.FIRST_UPDATE_OF_ENDED_POD): lambda: (
        decide(None, update(the_pod=pod(phase="Failed")), runtime_is_quiet=True).status
    ),
    (State.SYNC, Cause.RUNTIME_ONLY): lambda: (
        decide(SYNCING, UpdatePodOptions(UpdateType.KILL, running_pod=RUNTIME)).status
    ),
    (State.SYNC, Cause.DELETION_TIMESTAMP): lambda: decide(SYNCING, update(the_pod=pod(grace=5))).status,
    (State.SYNC, Cause.API_TERMINAL_PHASE): lambda: decide(SYNCING, update(the_pod=pod(phase="Failed"))).status,
    (State.SYNC, Cause.KILL): lambda: decide(SYNCING, update(UpdateType.KILL)).status,
    (State.SYNC, Cause.COMPLETED): lambda: t.complete_sync(SYNCING),
    (State.SYNC, Cause.REMOVED): lambda: swept(SYNCING),
    (State.SYNC, Cause.FORGOTTEN): lambda: swept(UNSTARTED),
    (State.TERMINATING, Cause.CONTAINERS_STOPPED): lambda: t.complete_terminating(TERMINATING)[0],
    (State.TERMINATING, Cause.RUNTIME_POD_STOPPED): lambda: t.complete_terminating_runtime_pod(TERMINATING),
    (State.TERMINATING, Cause.NEVER_STARTED): lambda: t.cleanup_unstarted_pod(TERMINATING),
    (State.TERMINATING, Cause.FORGOTTEN): lambda: swept(replace(TERMINATING, started=False)),
    (State.TERMINATED, Cause.TEARDOWN_DONE): lambda: t.complete_terminated(TERMINATED),
    (State.TERMINATED, Cause.FORGOTTEN): lambda: swept(replace(TERMINATED, started=False)),
    (State.FINISHED, Cause.FORGOTTEN): lambda: swept(FINISHED),
}
"""A decision for each edge that goes it."""


@pytest.mark.rule("node-semantics 4.7/causes")
@pytest.mark.parametrize(("state", "cause"), EVERY, ids=str)
def test_every_state_leads_only_where_the_table_says(state, cause):
    """Going an edge really ends in the state that the table names, and there is no other way."""
    status = EXAMPLES[state]
    if (state, cause) in TARGETS:
        assert t.move(status, cause).state is TARGETS[state, cause]
    else:
        with pytest.raises(t.IllegalTransition, match=rf"p_default \(u1\).*{state}.*{cause}"):
            t.move(status, cause)


@pytest.mark.rule("node-semantics 4.7/causes")
@pytest.mark.parametrize("edge", t.EDGES, ids=lambda edge: f"{edge.state} by {edge.cause}")
def test_every_edge_of_the_table_is_gone_by_a_decision(monkeypatch, edge):
    gone, move = [], t.move
    monkeypatch.setattr(t, "move", lambda status, cause: gone.append((status.state, cause)) or move(status, cause))
    assert TAKEN[edge.state, edge.cause]().state is edge.target
    assert gone[0] == (edge.state, edge.cause)


def test_an_edge_stands_once_in_the_table():
    assert len(TARGETS) == len(t.EDGES) == len(TAKEN) == 16


@pytest.mark.rule("node-semantics 4.7/forward")
def test_no_edge_leads_back():
    order = [State.SYNC, State.TERMINATING, State.TERMINATED, State.FINISHED]
    for edge in t.EDGES:
        if edge.state is not State.UNKNOWN and edge.target is not State.UNKNOWN:
            assert order.index(edge.target) > order.index(edge.state)


@pytest.mark.rule("node-semantics 4.2/5, 4.1/fields")
@pytest.mark.parametrize(
    ("options", "cause", "deleted", "evicted"),
    [
        pytest.param(update(), None, False, False, id="an ordinary update"),
        pytest.param(update(the_pod=pod(grace=5)), Cause.DELETION_TIMESTAMP, True, False, id="deletionTimestamp"),
        pytest.param(update(the_pod=pod(phase="Failed")), Cause.API_TERMINAL_PHASE, False, False, id="phase Failed"),
        pytest.param(update(the_pod=pod(phase="Succeeded")), Cause.API_TERMINAL_PHASE, False, False, id="Succeeded"),
        pytest.param(update(UpdateType.KILL), Cause.KILL, False, False, id="kill"),
        pytest.param(update(UpdateType.KILL, evict=True), Cause.KILL, False, True, id="eviction"),
        pytest.param(
            update(UpdateType.KILL, pod(grace=5), evict=True), Cause.DELETION_TIMESTAMP, True, False,
            id="a deletion comes before the eviction",
        ),
    ],
)  # fmt: skip
def test_what_ends_a_running_pod(options, cause, deleted, evicted):
    decision = decide(SYNCING, options)
    assert decision.cause is cause
    assert decision.status.termination_requested == (cause is not None)
    assert (decision.status.deleted, decision.status.evicted) == (deleted, evicted)
    assert decision.cancel == (cause is not None)
    assert decision.options is not None


@pytest.mark.rule("node-semantics 4.2/6")
def test_the_grace_period_of_every_terminating_update_is_made_an_override():
    decision = decide(SYNCING, update(the_pod=pod(grace=7)))
    assert decision.status.grace_period == 7
    assert decision.options.kill_pod_options.override == 7


@pytest.mark.rule("node-semantics 4.2/9")
def test_a_second_delete_can_only_shorten_and_cancels_the_running_call():
    longer = decide(TERMINATING, update(the_pod=pod(grace=60)))
    assert (longer.status.grace_period, longer.shortened, longer.cancel) == (30, False, False)
    shorter = decide(TERMINATING, update(the_pod=pod(grace=5)))
    assert (shorter.status.grace_period, shorter.shortened, shorter.cancel) == (5, True, True)


@pytest.mark.rule("node-semantics 4.2/6")
def test_kill_options_mean_nothing_to_a_pod_that_is_not_ending():
    told = []
    decision = decide(SYNCING, update(completed=lambda: told.append(1)))
    assert decision.options.kill_pod_options is None
    assert len(decision.completed) == 1


@pytest.mark.rule("node-semantics 4.1/waiters")
def test_whoever_waits_for_a_terminated_pod_is_told_at_once():
    decision = decide(TERMINATED, update(UpdateType.KILL, completed=print, override=3))
    assert decision.completed == (print,)
    assert decision.options.kill_pod_options is None


@pytest.mark.rule("node-semantics 4.2/2")
def test_a_pod_that_had_ended_before_the_kubelet_started_only_needs_its_teardown():
    decision = decide(None, update(UpdateType.CREATE, pod(phase="Succeeded")), runtime_is_quiet=True)
    assert decision.status.state is State.TERMINATED
    noisy = decide(None, update(UpdateType.CREATE, pod(phase="Succeeded")), runtime_is_quiet=False)
    assert noisy.status.state is State.TERMINATING and noisy.cause is Cause.API_TERMINAL_PHASE


@pytest.mark.rule("node-semantics 4.2/4, 25/30")
def test_the_same_uid_created_again_while_it_ends_is_only_noted():
    decision = decide(TERMINATING, update(UpdateType.CREATE))
    assert decision.status.restart_requested and decision.options is None


@pytest.mark.rule("node-semantics 4.2/4")
def test_a_finished_pod_ignores_everything():
    assert decide(FINISHED, update(UpdateType.KILL)).options is None


@pytest.mark.rule("node-semantics 4.2/1")
def test_a_runtime_only_update_must_be_a_kill():
    assert decide(None, UpdatePodOptions(UpdateType.SYNC, running_pod=RUNTIME)).status is None


@pytest.mark.rule("node-semantics 4.1/fields")
def test_a_runtime_only_kill_ends_an_unknown_pod_with_a_grace_of_one():
    kill = UpdatePodOptions(UpdateType.KILL, running_pod=RUNTIME)
    decision = decide(None, kill)
    assert decision.cause is Cause.RUNTIME_ONLY
    assert (decision.status.deleted, decision.status.observed_runtime) == (True, True)
    assert decision.status.grace_period == 1 and decision.options.running_pod is RUNTIME


@pytest.mark.rule("node-semantics 4.2/3")
def test_a_runtime_only_kill_of_a_known_pod_uses_the_known_pod():
    known = pod()
    decision = decide(SYNCING, UpdatePodOptions(UpdateType.KILL, running_pod=RUNTIME), known)
    assert decision.options.pod is known and decision.options.running_pod is None
    assert decision.status.grace_period == 30
    assert decide(TERMINATED, UpdatePodOptions(UpdateType.KILL, running_pod=RUNTIME), known).options is None


@pytest.mark.rule("node-semantics 4.2/8, 4.3/merge")
def test_a_kill_is_not_lost_to_a_later_update():
    """TestUpdatePodDoesNotForgetSyncPodKill: the active kill options stay until others come."""
    killed = decide(SYNCING, update(UpdateType.KILL, override=4))
    active = t.merge_last_update(None, killed.options)
    merged = t.merge_last_update(active, UpdatePodOptions(UpdateType.SYNC, pod()))
    assert merged.kill_pod_options.override == 4
    assert decide(killed.status, update()).options.kill_pod_options.override == 4


@pytest.mark.rule("node-semantics 4.3/static-start")
def test_static_pods_start_one_at_a_time_and_never_once_they_are_ending():
    static = pod(static=True)
    assert t.allow_pod_start(SYNCING, pod(), full_name_is_taken=True) is StartVerdict.START
    assert t.allow_pod_start(SYNCING, static, full_name_is_taken=False) is StartVerdict.START
    assert t.allow_pod_start(SYNCING, static, full_name_is_taken=True) is StartVerdict.NOT_YET
    assert t.allow_pod_start(TERMINATING, static, full_name_is_taken=False) is StartVerdict.NEVER
    assert t.cleanup_unstarted_pod(TERMINATING).state is State.FINISHED


@pytest.mark.rule("node-semantics 4.1/last-status-function")
def test_the_last_status_function_is_applied():
    status = replace(TERMINATING, status_post_terminating=(len, sum))
    assert t.last_status_function(status) is sum
    assert t.last_status_function(TERMINATING) is None


@pytest.mark.rule("node-semantics 4.3/natural-end, 5.2/none")
def test_a_natural_end_leaves_the_grace_period_open():
    ended = t.complete_sync(SYNCING)
    assert ended.state is State.TERMINATING and ended.grace_period == 0
    assert t.complete_sync(TERMINATING).grace_period == 30


@pytest.mark.rule("node-semantics 4.6/forget, 4.6/orphan")
@pytest.mark.parametrize(
    ("status", "orphaned", "sweep", "cause"),
    [
        (FINISHED, False, Sweep.FORGET, None),
        (TERMINATED, False, Sweep.WAIT, None),
        (UNSTARTED, True, Sweep.FORGET, None),
        (SYNCING, True, Sweep.REPLAY, Cause.REMOVED),
        (TERMINATING, True, Sweep.REPLAY, None),
    ],
    ids=["finished", "not finished but wanted", "never started", "an orphan runs", "an orphan ends"],
)
def test_what_the_sweep_does_with_a_worker(status, orphaned, sweep, cause):
    after, answer, why = t.remove_terminated_worker(status, pod(grace=9), orphaned=orphaned)
    assert (answer, why) == (sweep, cause)
    if cause is Cause.REMOVED:
        assert after.deleted and after.grace_period == 9


def test_an_orphan_without_a_pod_gets_one_second():
    after, _, _ = t.remove_terminated_worker(SYNCING, None, orphaned=True)
    assert after.grace_period == 1


@pytest.mark.rule("node-semantics 4.4/done, 4.4/error, 4.4/network, 4.4/back-off")
@pytest.mark.parametrize(
    ("error", "transition", "least", "most"),
    [
        pytest.param(None, True, 0, 0, id="phase transition"),
        pytest.param(None, False, 60, 90, id="success"),
        pytest.param(RuntimeError("network is not ready: cni"), False, 1, 1.5, id="network not ready"),
        pytest.param(RuntimeError("boom"), False, 10, 15, id="any other error"),
        pytest.param(BackoffError("b", int(5e9)), False, 5, 7.5, id="back-off of 5 s"),
        pytest.param(BackoffError("b", int(300e9)), False, 60, 90, id="back-off of 5 min is cut"),
        pytest.param(BackoffError("b", -int(5e9)), False, 0, 0, id="back-off that is over"),
    ],
)
def test_when_a_worker_is_called_again(error, transition, least, most):
    for seed in range(20):
        delay = t.requeue_delay(error, phase_transition=transition, random=random.Random(seed), now_ns=0)
        assert least <= delay <= most


@pytest.mark.rule(
    "node-semantics 4.5/could-have-running-containers, 4.5/is-termination-requested, "
    "4.5/runtime-be-removed, 4.5/be-finished, 4.5/content-be-removed, 4.5/known-terminated"
)
@pytest.mark.parametrize(
    ("name", "sync", "terminating", "terminated", "finished", "before", "after"),
    [
        ("could_have_running_containers", True, True, False, False, True, False),
        ("is_pod_termination_requested", False, True, True, True, False, False),
        ("should_pod_runtime_be_removed", False, False, True, True, False, True),
        ("should_pod_be_finished", False, False, False, True, False, True),
        ("should_pod_content_be_removed", False, False, False, False, False, True),
        ("is_pod_known_terminated", False, False, True, True, False, False),
    ],
)
def test_the_predicates(name, sync, terminating, terminated, finished, before, after):
    row = [t.predicate(name, each, pods_synced=True) for each in (SYNCING, TERMINATING, TERMINATED, FINISHED)]
    assert row == [sync, terminating, terminated, finished]
    assert t.predicate(name, None, pods_synced=False) is before
    assert t.predicate(name, None, pods_synced=True) is after


@pytest.mark.rule("node-semantics 4.5/content-be-removed")
def test_content_goes_with_a_deleted_pod_that_is_terminated_and_with_an_evicted_one_at_once():
    name = "should_pod_content_be_removed"
    assert t.predicate(name, replace(TERMINATED, deleted=True), pods_synced=True)
    assert not t.predicate(name, replace(TERMINATING, deleted=True), pods_synced=True)
    assert t.predicate(name, replace(TERMINATING, evicted=True), pods_synced=True)


class PodWorkerHistory(RuleBasedStateMachine):
    """Any order of updates, completions and sweeps."""

    def __init__(self):
        super().__init__()
        self.status = None
        self.active = None
        self.highest = 0
        self.grace = 0

    @rule(
        kind=st.sampled_from(UpdateType),
        grace=st.one_of(st.none(), st.integers(0, 60)),
        phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
        override=st.one_of(st.none(), st.integers(1, 60)),
        evict=st.booleans(),
    )
    def update(self, kind, grace, phase, override, evict):
        kill = KillPodOptions(lambda: None, evict, None, override) if kind is UpdateType.KILL else None
        options = UpdatePodOptions(kind, pod(grace=grace, phase=phase), kill_pod_options=kill)
        if grace == 0 and kill is not None and override is not None:
            self.grace = 0  # the one exception (test_grace_periods)
        decision = t.decide_update(self.status, options, self.active)
        if self.status is not None and self.status.termination_requested:
            assert decision.cause is None
        self.status = decision.status
        if decision.options is not None:
            self.active = decision.options.pod
            assert not self.status.finished
            terminating = self.status.state is State.TERMINATING
            kept = decision.options.kill_pod_options
            assert (kept is not None) == terminating
            if terminating:
                assert kept.override == self.status.grace_period >= 1

    @rule()
    def runtime_kill(self):
        options = UpdatePodOptions(UpdateType.KILL, running_pod=RUNTIME)
        self.status = t.decide_update(self.status, options, self.active).status

    @rule()
    def complete(self):
        """The call that the state asks for succeeds."""
        if self.status is None:
            return
        if self.status.state is State.SYNC:
            self.status = t.complete_sync(t.start(self.status))
        elif self.status.state is State.TERMINATING:
            self.status, _ = t.complete_terminating(self.status)
            assert self.status.notify_post_terminating == ()
        elif self.status.state is State.TERMINATED:
            self.status = t.complete_terminated(self.status)

    @rule(orphaned=st.booleans())
    def sweep(self, orphaned):
        if self.status is None or not (orphaned or self.status.restart_requested):
            return
        before = self.status
        self.status, answer, _ = t.remove_terminated_worker(before, self.active, orphaned=orphaned)
        if answer is Sweep.FORGET:
            assert before.finished or not before.started
            assert self.status.state is State.UNKNOWN
            self.status, self.active, self.highest, self.grace = None, None, 0, 0

    @invariant()
    def never_goes_back(self):
        if self.status is None:
            return
        order = [State.SYNC, State.TERMINATING, State.TERMINATED, State.FINISHED]
        position = order.index(self.status.state)
        assert position >= self.highest
        self.highest = position

    @invariant()
    def the_grace_period_never_grows(self):
        if self.status is None or self.status.grace_period == 0:
            return
        assert self.status.grace_period >= 1
        if self.grace:
            assert self.status.grace_period <= self.grace
        self.grace = self.status.grace_period


PodWorkerHistory.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestPodWorkerHistory = PodWorkerHistory.TestCase
