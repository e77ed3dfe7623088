"""What a Job does next and how it counts, as tables (job/decide.py, job/tracking.py).

Source: pkg/controller/job/job_controller.go (syncJob, manageJob, trackJobStatusAndRemoveFinalizers, enactJobFinished).
"""

from datetime import UTC, datetime, timedelta

import pytest

from lastcall.kube.controllers.job import tracking
from lastcall.kube.controllers.job.backoff import BackOff
from lastcall.kube.controllers.job.decide import (
    FAILURE,
    MAX_PODS_PER_SYNC,
    SUCCESS,
    Decision,
    Target,
    View,
    decide,
    find_target,
    finished,
    wanted_active,
)
from lastcall.kube.controllers.job.pods import INDEX_FAILURES, INDEX_IGNORED_FAILURES, TRACKING
from lastcall.kube.controllers.job.tracking import Outcome, events_at_the_end, settle, track

MOMENT = datetime(2030, 1, 1, 12, tzinfo=UTC)
NOW = MOMENT.timestamp()
INDEX = "batch.kubernetes.io/job-completion-index"
ENDING = {"deletionTimestamp": "2030-01-01T11:59:00Z"}
STAMP = "2030-01-01T12:00:00Z"


def ago(seconds: float) -> str:
    return (MOMENT - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def job(*, restart: str = "Never", status: dict | None = None, meta: dict | None = None, **spec: object) -> dict:
    made = {"parallelism": 2, "backoffLimit": 6, "template": {"spec": {"restartPolicy": restart}}, **spec}
    return {
        "metadata": {"name": "j", "namespace": "default", "uid": "j", **(meta or {})},
        "spec": made,
        "status": {"startTime": ago(100)} if status is None else status,
    }


def indexed(completions: int = 3, **more: object) -> dict:
    return job(completionMode="Indexed", completions=completions, **more)


def pod(
    name: str, phase: str = "Running", index: int | None = None, *, ended: float = 5000, code: int = 1,
    tracked: bool = True, failures: int = 0, ignored: int = 0, **meta: object,
) -> dict:  # fmt: skip
    marks = {} if index is None else {INDEX: str(index)}
    marks |= {INDEX_FAILURES: str(failures)} if failures else {}
    marks |= {INDEX_IGNORED_FAILURES: str(ignored)} if ignored else {}
    made = {"name": name, "namespace": "default", "uid": name, "annotations": marks, "creationTimestamp": ago(9000)}
    status: dict = {"phase": phase, "conditions": [{"type": "Ready", "status": str(phase == "Running")}]}
    if phase in ("Failed", "Succeeded"):
        exit_code = code if phase == "Failed" else 0
        state = {"terminated": {"exitCode": exit_code, "finishedAt": ago(ended)}}
        status |= {"containerStatuses": [{"name": "app", "state": state}], "conditions": []}
    return {"metadata": {**made, "finalizers": [TRACKING] if tracked else [], **meta}, "spec": {}, "status": status}


def restarted(name: str, phase: str, init: int, regular: int) -> dict:
    made = pod(name, phase)
    made["status"]["initContainerStatuses"] = [{"name": "i", "restartCount": init}]
    made["status"]["containerStatuses"] = [{"name": "app", "restartCount": regular}, {"name": "other"}]
    return made


def view(of: dict, *pods: dict, removed: tuple = (), back_off: BackOff | None = None) -> View:
    return View(of, pods, set(removed), back_off or BackOff(), NOW)


def names(pods: object) -> list[str]:
    return [each["metadata"]["name"] for each in pods]


def condition(kind: str, status: str = "True", reason: str = "R", message: str = "M") -> dict:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def stamped(kind: str, reason: str, message: str, status: str = "True") -> dict:
    return {**condition(kind, status, reason, message), "lastProbeTime": STAMP, "lastTransitionTime": STAMP}


def policy(action: str, code: int = 1) -> dict:
    codes = {"operator": "In", "values": [code]}
    return {"podFailurePolicy": {"rules": [{"action": action, "onExitCodes": codes}]}}


# -- what a sync sees ----------------------------------------------------------------------------------------------


def test_pods_are_sorted_by_what_the_job_has_to_do_with_them() -> None:
    pods = [
        pod("run"), pod("wait", "Pending"), pod("end", **ENDING), pod("ok", "Succeeded"), pod("bad", "Failed"),
        pod("counted", "Succeeded"), pod("lost", "Failed"), pod("free", "Failed", tracked=False),
        pod("removed", "Failed"), pod("over", "Succeeded", **ENDING),
    ]  # fmt: skip
    uncounted = {"succeeded": ["counted"], "failed": ["lost"]}
    status = {"succeeded": 4, "failed": 5, "uncountedTerminatedPods": uncounted}
    seen = view(job(status=status), *pods, removed=("removed",))
    assert names(seen.active) == ["run", "wait"] and seen.ready == 1
    assert names(seen.terminating) == ["end"]
    assert names(seen.tracked) == ["run", "wait", "end", "ok", "bad", "counted", "lost", "over"]
    assert names(seen.succeeded_now) == ["ok", "over"]
    assert names(seen.failed_now) == ["end", "bad"]
    assert (seen.succeeded, seen.failed) == (4 + 1 + 2, 5 + 1 + 2)
    assert (seen.completed, seen.newly_completed, seen.failed_indexes) == (None, None, None)


def test_a_job_without_a_status_has_counted_nothing() -> None:
    of = job()
    del of["status"]
    assert (view(of).succeeded, view(of).failed) == (0, 0)


def test_an_indexed_job_looks_at_its_pods_by_index_and_leaves_out_what_it_did_not_ask_for() -> None:
    pods = [pod("c", "Succeeded", 2), pod("x", "Succeeded", 3), pod("n", "Succeeded"), pod("a", "Succeeded", 0)]
    seen = view(indexed(status={"completedIndexes": "1"}), *pods)
    assert names(seen.pods) == ["n", "a", "c", "x"]
    assert names(seen.succeeded_now) == ["a", "c"]
    assert (str(seen.completed), str(seen.newly_completed), seen.succeeded) == ("1", "0-2", 3)


def test_an_index_fails_after_as_many_failures_as_it_is_allowed() -> None:
    pods = [pod("a", "Failed", 0), pod("b", "Failed", 1, failures=1), pod("c", "Failed", 2, failures=2)]
    seen = view(indexed(9, backoffLimitPerIndex=2, status={"failedIndexes": "7"}), *pods)
    assert str(seen.failed_indexes) == "2,7"
    assert {index: names([each])[0] for index, each in seen.delayed.items()} == {0: "a", 1: "b"}


@pytest.mark.parametrize(
    ("pods", "delayed"),
    [
        ([pod("a", "Failed", 0, ended=9), pod("b", "Failed", 0, ended=5)], "b"),
        ([pod("b", "Failed", 0, ended=5), pod("a", "Failed", 0, ended=9)], "b"),
        ([pod("a", "Failed", 0, ended=9, failures=1), pod("b", "Failed", 0, ended=5)], "a"),
        ([pod("a", "Failed", 0, ended=9, ignored=1), pod("b", "Failed", 0, ended=5)], "a"),
        ([pod("a", "Failed", 0), pod("b", index=0)], None),
        ([pod("a", "Failed", 0), pod("b", "Succeeded", 0)], None),
        ([pod("a", "Failed", 9)], None),
        ([pod("a", "Failed", 0, tracked=False)], None),
        ([pod("a", index=0)], None),
    ],
)
def test_the_last_failed_pod_of_an_index_stays_until_it_is_replaced(pods: list, delayed: str | None) -> None:
    found = view(indexed(backoffLimitPerIndex=5), *pods).delayed
    assert names(found.values()) == ([delayed] if delayed else [])


# -- how it ends ---------------------------------------------------------------------------------------------------

BACKOFF = (FAILURE, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = (FAILURE, "DeadlineExceeded", "Job was active longer than specified deadline")
EXITED = "Container app for pod default/a failed with exit code 1"
POLICY = (FAILURE, "PodFailurePolicy", f"{EXITED} matching FailJob rule at index 0")
MOST = (FAILURE, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes")
INDEXES = (FAILURE, "FailedIndexes", "Job has failed indexes")
MATCHED = (SUCCESS, "SuccessPolicy", "Matched rules at index 0")
LATE = {"activeDeadlineSeconds": 60, "status": {"startTime": ago(60)}}
PER_INDEX = {"backoffLimitPerIndex": 0}


@pytest.mark.parametrize(
    ("of", "pods", "expected"),
    [
        (job(), [], None),
        (job(), [pod("a", "Failed"), pod("b", "Succeeded"), pod("c")], None),
        (job(backoffLimit=1), [pod("a", "Failed")], None),
        (job(backoffLimit=1), [pod("a", "Failed"), pod("b", "Failed")], BACKOFF),
        (job(backoffLimit=0), [pod("a", "Failed")], BACKOFF),
        (job(backoffLimit=1, status={"failed": 1}), [pod("a", "Failed")], BACKOFF),
        (job(backoffLimit=0, status={"uncountedTerminatedPods": {"failed": ["x"]}}), [], BACKOFF),
        (job(backoffLimit=0, **policy("Ignore")), [pod("a", "Failed")], None),
        (job(backoffLimit=0, **policy("Count")), [pod("a", "Failed")], BACKOFF),
        (job(backoffLimit=0), [pod("a", **ENDING)], BACKOFF),
        (job(backoffLimit=0, podReplacementPolicy="Failed"), [pod("a", **ENDING)], None),
        (job(**policy("FailJob")), [pod("a", "Failed")], POLICY),
        (job(backoffLimit=0, **LATE, **policy("FailJob")), [pod("a", "Failed")], POLICY),
        (job(**policy("FailJob")), [pod("a", "Failed", code=2)], None),
        (job(**policy("FailJob")), [pod("a", "Failed", tracked=False)], POLICY),
        (job(**LATE), [], DEADLINE),
        (job(backoffLimit=0, **LATE), [pod("a", "Failed")], BACKOFF),
        (job(activeDeadlineSeconds=60, status={"startTime": ago(59)}), [], None),
        (job(activeDeadlineSeconds=60, status={}), [], None),
        (job(suspend=True, **LATE), [], None),
        (indexed(maxFailedIndexes=1, **PER_INDEX), [pod("a", "Failed", 0)], None),
        (indexed(maxFailedIndexes=1, **PER_INDEX), [pod("a", "Failed", 0), pod("b", "Failed", 1)], MOST),
        (indexed(maxFailedIndexes=0, **PER_INDEX), [pod("a", "Failed", 0)], MOST),
        (indexed(maxFailedIndexes=0, **PER_INDEX), [], None),
        (indexed(2, **PER_INDEX), [pod("a", "Failed", 0), pod("b", "Succeeded", 1)], INDEXES),
        (indexed(3, **PER_INDEX), [pod("a", "Failed", 0), pod("b", "Succeeded", 1)], None),
        (indexed(2, **PER_INDEX), [pod("a", "Succeeded", 0), pod("b", "Succeeded", 1)], None),
        (indexed(successPolicy={"rules": [{"succeededCount": 1}]}), [pod("a", "Succeeded", 1)], MATCHED),
        (indexed(successPolicy={"rules": [{"succeededCount": 2}]}), [pod("a", "Succeeded", 1)], None),
    ],
)  # fmt: skip
def test_how_a_job_ends(of: dict, pods: list, expected: tuple | None) -> None:
    assert find_target(view(of, *pods)) == (None if expected is None else Target(*expected))


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([condition(SUCCESS)], Target(SUCCESS, "R", "M", stated=True)),
        ([condition(FAILURE)], Target(FAILURE, "R", "M", stated=True)),
        ([condition(FAILURE), condition(SUCCESS)], Target(SUCCESS, "R", "M", stated=True)),
        ([{"type": FAILURE, "status": "True"}], Target(FAILURE, "", "", stated=True)),
        ([condition(FAILURE, "False"), condition("Suspended")], None),
    ],
)
def test_an_end_that_the_status_says_already_stands(conditions: list, expected: Target | None) -> None:
    assert find_target(view(job(status={"conditions": conditions}))) == expected


@pytest.mark.parametrize(
    ("restart", "limit", "pods", "expected"),
    [
        ("OnFailure", 3, [restarted("a", "Running", 0, 2)], None),
        ("OnFailure", 3, [restarted("a", "Running", 1, 2)], BACKOFF),
        ("OnFailure", 3, [restarted("a", "Running", 0, 1), restarted("b", "Pending", 2, 0)], BACKOFF),
        ("OnFailure", 3, [restarted("a", "Succeeded", 0, 9)], None),
        ("OnFailure", 0, [restarted("a", "Running", 0, 1)], BACKOFF),
        ("OnFailure", 0, [restarted("a", "Running", 0, 0)], None),
        ("OnFailure", 1, [restarted("a", "Running", 0, 0)], None),
        ("Never", 3, [restarted("a", "Running", 9, 9)], None),
    ],
)
def test_restarts_in_place_count_as_failures(restart: str, limit: int, pods: list, expected: tuple | None) -> None:
    found = find_target(view(job(restart=restart, backoffLimit=limit), *pods))
    assert found == (None if expected is None else Target(*expected))


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([condition("Complete")], "Complete"), ([condition("Failed")], "Failed"), ([condition("Failed", "False")], ""),
        ([condition(SUCCESS)], ""), ([], ""),
    ],
)  # fmt: skip
def test_a_job_has_finished_when_it_is_complete_or_failed(conditions: list, expected: str) -> None:
    assert finished({"status": {"conditions": conditions}}) == expected
    assert finished({}) == ""


@pytest.mark.parametrize(
    ("of", "pods", "why"),
    [
        (job(**LATE), [], "was active longer than its activeDeadlineSeconds of 60 s"),
        (job(backoffLimit=0), [pod("x", "Failed")], "has 2 failed Pods at a backoffLimit of 0"),
        (indexed(successPolicy={"rules": [{"succeededCount": 1}]}), [pod("x", "Succeeded", 1)],
         "has met its success policy (matched rules at index 0)"),
        (job(status={"conditions": [condition(SUCCESS)]}), [], "has its completions"),
        (job(status={"conditions": [condition(FAILURE)]}), [], "has failed: M"),
    ],
)  # fmt: skip
def test_what_still_runs_goes_when_the_job_ends(of: dict, pods: list, why: str) -> None:
    seen = view(of, *pods, pod("a", index=0), pod("b", index=2, **ENDING))
    decision = decide(seen, satisfied=True)
    assert decision.target == find_target(seen)
    assert [(each.pod["metadata"]["name"], each.reason) for each in decision.delete] == [("a", why)]
    assert not decision.manages and decision.look_again is None
    assert decide(seen, satisfied=False) == Decision(decision.target)


# -- how many Pods -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "succeeded", "running", "expected"),
    [
        ({"parallelism": 3}, 0, 1, 3), ({"parallelism": 3}, 1, 2, 2), ({"parallelism": 3, "completions": 5}, 0, 0, 3),
        ({"parallelism": 3, "completions": 5}, 3, 0, 2), ({"parallelism": 3, "completions": 5}, 6, 0, 0),
        ({"parallelism": 0, "completions": 5}, 0, 0, 0),
    ],
)  # fmt: skip
def test_how_many_pods_are_to_run(spec: dict, succeeded: int, running: int, expected: int) -> None:
    pods = [pod(f"r{number}") for number in range(running)]
    assert wanted_active(view(job(status={"succeeded": succeeded}, **spec), *pods)) == expected


def created(of: dict, *pods: dict, **more: object) -> tuple:
    found = decide(view(of, *pods, **more), satisfied=True)
    assert found.manages and found.delete == () and found.target is None
    return found.create, found.look_again, found.backs_off


@pytest.mark.parametrize(
    ("of", "pods", "expected"),
    [
        (job(), [], (None, None)),
        (job(), [pod("a")], (None,)),
        (job(), [pod("a"), pod("b")], ()),
        (job(), [pod("a"), pod("b", **ENDING)], (None,)),
        (job(podReplacementPolicy="Failed"), [pod("a"), pod("b", **ENDING)], ()),
        (job(podReplacementPolicy="Failed"), [pod("b", **ENDING)], (None,)),
        (job(completions=5), [pod("a", "Succeeded")], (None, None)),
        (job(parallelism=1000), [], (None,) * MAX_PODS_PER_SYNC),
        (indexed(), [], (0, 1)),
        (indexed(), [pod("a", index=0)], (1,)),
        (indexed(), [pod("a", index=1)], (0,)),
        (indexed(4), [pod("a", "Succeeded", 0), pod("b", index=2)], (1,)),
        (indexed(parallelism=3), [pod("a", index=0, **ENDING), pod("b", index=2)], (0, 1)),
        (indexed(parallelism=3, podReplacementPolicy="Failed"), [pod("a", index=0, **ENDING), pod("b", index=2)], (1,)),
        (indexed(**PER_INDEX), [pod("a", "Failed", 0, ended=1)], (1, 2)),
        (indexed(backoffLimitPerIndex=2), [pod("a", "Failed", 0)], (0, 1)),
    ],
)  # fmt: skip
def test_what_is_missing_is_made_the_lowest_index_first(of: dict, pods: list, expected: tuple) -> None:
    assert created(of, *pods) == (expected, None, False)
    assert MAX_PODS_PER_SYNC == 500


@pytest.mark.parametrize(
    ("of", "pods", "expected"),
    [
        (job(), [pod("a", "Failed", ended=4)], ((), 6.0, True)),
        (job(), [pod("a", "Failed", ended=10)], ((None, None), None, False)),
        (job(), [pod("a", "Failed", ended=30), pod("b", "Failed", ended=4)], ((), 16.0, True)),
        (job(), [pod("a", "Failed", ended=4), pod("b"), pod("c")], ((), None, False)),
        (job(activeDeadlineSeconds=103), [pod("a", "Failed", ended=4)], ((), 3.0, True)),
        (job(activeDeadlineSeconds=300), [pod("a", "Failed", ended=4)], ((), 6.0, True)),
        (job(activeDeadlineSeconds=300), [pod("a"), pod("b")], ((), 200.0, False)),
        (indexed(), [pod("a", "Failed", 0, ended=4)], ((), 6.0, True)),
        (indexed(backoffLimitPerIndex=2), [pod("a", "Failed", 0, ended=4)], ((1,), 6.0, False)),
        (indexed(2, backoffLimitPerIndex=2), [pod("a", "Failed", 0, ended=4), pod("b", index=1)], ((), 6.0, True)),
        (indexed(2, backoffLimitPerIndex=2), [pod("a", "Failed", 0, ended=4), pod("b", "Failed", 1, ended=7)],
         ((), 3.0, True)),
        (indexed(2, backoffLimitPerIndex=2), [pod("a", "Failed", 0, ended=4, failures=1), pod("b", index=1)],
         ((), 16.0, True)),
    ],
)  # fmt: skip
def test_a_failed_pod_is_replaced_after_its_back_off(of: dict, pods: list, expected: tuple) -> None:
    assert created(of, *pods) == expected


@pytest.mark.parametrize(
    ("of", "pods", "expected"),
    [
        (job(parallelism=1), [pod("a"), pod("b", "Pending")],
         [("b", "wants 1 active Pods and has 2: phase before Running")]),
        (job(suspend=True), [pod("a"), pod("b", **ENDING)], [("a", "is suspended")]),
        (indexed(), [pod("a", index=0), pod("b", "Pending", 0)],
         [("b", "wants 2 active Pods and has 2: another Pod has its completion index 0")]),
    ],
)  # fmt: skip
def test_what_is_too_many_is_deleted(of: dict, pods: list, expected: list) -> None:
    found = decide(view(of, *pods), satisfied=True)
    assert [(each.pod["metadata"]["name"], each.reason) for each in found.delete] == expected
    assert found.manages and found.create == ()
    assert found.wanted == (0 if of["spec"].get("suspend") else of["spec"]["parallelism"])


def test_a_sync_deletes_five_hundred_pods_at_most() -> None:
    found = decide(view(job(parallelism=0), *(pod(f"p{number}") for number in range(501))), satisfied=True)
    assert len(found.delete) == 500


def test_nothing_is_managed_while_the_cache_is_behind_or_the_job_goes() -> None:
    late = job(activeDeadlineSeconds=300)
    assert decide(view(late), satisfied=False) == Decision(look_again=200.0)
    assert decide(view(job(meta=ENDING)), satisfied=True) == Decision()


# -- counting ------------------------------------------------------------------------------------------------------

GOES_ON = Decision(manages=True)
FAILS = Decision(Target(*BACKOFF))
BEFORE = {"startTime": ago(100)}
KEPT = {"a": {"uncountedTerminatedPods": {"succeeded": ["a"]}}}


def tracked(
    of: dict, *pods: dict, decision: Decision = GOES_ON, active: int = 1, declared: bool = True
) -> tuple[dict, list[str], tracking.Tracking]:
    """Return the status without what is the same in each row, the Pods that are released, and all."""
    found = track(view(of, *pods), decision, Outcome(active, 7, 8, declared), STAMP)
    status = dict(found.status)
    assert (status.pop("active", 0), status.pop("ready"), status.pop("terminating")) == (active, 7, 8)
    assert found.tracked == frozenset(names(view(of, *pods).tracked))
    return status, names(found.release), found


@pytest.mark.parametrize(
    ("of", "pods", "status", "released"),
    [
        (job(), [pod("a", "Succeeded"), pod("b")], {"uncountedTerminatedPods": {"succeeded": ["a"]}}, ["a"]),
        (job(), [pod("a", "Failed"), pod("b")], {"uncountedTerminatedPods": {"failed": ["a"]}}, ["a"]),
        (job(**policy("Ignore")), [pod("a", "Failed")], {"uncountedTerminatedPods": {}}, ["a"]),
        (job(), [pod("a", **ENDING)], {"uncountedTerminatedPods": {"failed": ["a"]}}, ["a"]),
        (job(podReplacementPolicy="Failed"), [pod("a", **ENDING)], {"uncountedTerminatedPods": {}}, []),
        (job(meta=ENDING), [pod("a"), pod("b", "Succeeded")],
         {"uncountedTerminatedPods": {"succeeded": ["b"]}}, ["a", "b"]),
        (job(status={**BEFORE, **KEPT["a"]}), [pod("a", "Succeeded")], KEPT["a"], ["a"]),
        (job(status={**BEFORE, **KEPT["a"]}), [], {"succeeded": 1, "uncountedTerminatedPods": {}}, []),
        (job(status={**BEFORE, "succeeded": 2, **KEPT["a"]}), [pod("a", "Succeeded", tracked=False)],
         {"succeeded": 3, "uncountedTerminatedPods": {}}, []),
        (job(status={**BEFORE, "failed": 2, "uncountedTerminatedPods": {"failed": ["a", "b", "c"]}}),
         [pod("b", "Failed")], {"failed": 4, "uncountedTerminatedPods": {"failed": ["b"]}}, ["b"]),
        (indexed(), [pod("a", "Succeeded", 0), pod("b", "Failed", 1)],
         {"succeeded": 1, "completedIndexes": "0", "uncountedTerminatedPods": {"failed": ["b"]}}, ["a", "b"]),
        (indexed(status={**BEFORE, "completedIndexes": "1", "succeeded": 1}), [pod("a", "Succeeded", 0)],
         {"succeeded": 2, "completedIndexes": "0,1", "uncountedTerminatedPods": {}}, ["a"]),
        (indexed(status={**BEFORE, "completedIndexes": "7", "succeeded": 1, "failedIndexes": "1"}), [],
         {"uncountedTerminatedPods": {}}, []),
        (indexed(), [pod("a", "Succeeded", 5)], {"uncountedTerminatedPods": {}}, ["a"]),
        (indexed(backoffLimitPerIndex=1), [pod("a", "Failed", 0), pod("b", "Failed", 1, failures=1)],
         {"failedIndexes": "1", "uncountedTerminatedPods": {"failed": ["b"]}}, ["b"]),
    ],
)  # fmt: skip
def test_an_ended_pod_is_entered_before_it_loses_its_finalizer(
    of: dict, pods: list, status: dict, released: list
) -> None:
    found, release, whole = tracked(of, *pods)
    assert (found, release) == ({**BEFORE, **status}, released)
    assert (whole.target, whole.events, whole.more) == (None, (), False)


def test_an_end_is_stated_once_and_what_has_not_ended_fails_with_the_job() -> None:
    pods = [pod("a"), pod("b", "Failed"), pod("c", "Succeeded")]
    found, release, whole = tracked(job(), *pods, decision=FAILS)
    assert found["uncountedTerminatedPods"] == {"succeeded": ["c"], "failed": ["a", "b"]}
    assert found["conditions"] == [stamped(*BACKOFF)] and whole.target == FAILS.target
    assert release == ["a", "b", "c"]
    again = Decision(Target(*BACKOFF, stated=True))
    found, release, whole = tracked(job(), *pods, decision=again)
    assert "conditions" not in found and release == ["a", "b", "c"] and whole.target == again.target


def test_a_job_that_succeeds_does_not_count_as_failed_what_it_ends() -> None:
    found, release, _ = tracked(job(), pod("a"), decision=Decision(Target(*MATCHED)))
    assert (found["uncountedTerminatedPods"], release) == ({}, ["a"])


def test_while_an_end_cannot_be_stated_nothing_goes_that_says_why() -> None:
    before = {**BEFORE, **KEPT["a"]}
    found, release, whole = tracked(job(status=before), pod("b", "Failed"), decision=FAILS, declared=False)
    assert found == {**BEFORE, "succeeded": 1, "uncountedTerminatedPods": {}}
    assert (release, whole.target) == ([], None)


@pytest.mark.parametrize(
    ("completions", "succeeded", "active", "declared", "expected"),
    [
        (2, 2, 0, True, True), (2, 3, 0, True, True), (2, 1, 0, True, False), (2, 2, 1, True, False),
        (2, 2, 0, False, False), (None, 1, 0, True, True), (None, 0, 0, True, False), (None, 1, 1, True, False),
    ],
)  # fmt: skip
def test_a_job_is_complete_with_enough_successes_and_no_active_pod(
    completions: int | None, succeeded: int, active: int, declared: bool, expected: bool
) -> None:
    of = job(status={"succeeded": succeeded}, **({} if completions is None else {"completions": completions}))
    found, _, whole = tracked(of, active=active, declared=declared)
    reached = (SUCCESS, "CompletionsReached", "Reached expected number of succeeded pods")
    assert whole.target == (Target(*reached) if expected else None)
    assert found.get("conditions") == ([stamped(*reached)] if expected else None)


def test_a_sync_counts_only_so_many_pods_and_says_that_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tracking.MAX_UNCOUNTED == 500
    monkeypatch.setattr(tracking, "MAX_UNCOUNTED", 2)
    pods = [pod("a", "Succeeded"), pod("b", "Failed"), pod("c", "Failed")]
    _, release, whole = tracked(job(), *pods)
    assert (release, whole.more) == (["a", "b"], True)
    _, release, whole = tracked(job(), *pods[:2])
    assert (release, whole.more) == (["a", "b"], False)
    indexes = [pod(f"p{index}", "Succeeded", index) for index in range(3)]
    _, release, whole = tracked(indexed(), *indexes)
    assert (release, whole.more) == (["p0", "p1"], True)


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [({}, {}, STAMP), ({}, {"startTime": ago(9)}, ago(9)), ({"suspend": True}, {}, None)],
)
def test_a_job_starts_when_it_is_first_seen_unless_it_is_suspended(
    spec: dict, status: dict, expected: str | None
) -> None:
    assert tracked(job(status=status, **spec))[0].get("startTime") == expected


SUSPENDED = stamped("Suspended", "JobSuspended", "Job suspended")
RESUMED = stamped("Suspended", "JobResumed", "Job resumed", "False")
OTHER = condition("Other")


@pytest.mark.parametrize(
    ("suspend", "before", "after", "event"),
    [
        (True, [], [SUSPENDED], ("Normal", "Suspended", "Job suspended")),
        (True, [RESUMED, OTHER], [SUSPENDED, OTHER], ("Normal", "Suspended", "Job suspended")),
        (True, [{**SUSPENDED, "lastProbeTime": "before"}], [{**SUSPENDED, "lastProbeTime": "before"}], None),
        (True, [OTHER], [OTHER, SUSPENDED], ("Normal", "Suspended", "Job suspended")),
        (False, [], None, None),
        (False, [OTHER], [OTHER], None),
        (False, [SUSPENDED, OTHER], [RESUMED, OTHER], ("Normal", "Resumed", "Job resumed")),
        (False, [RESUMED], [RESUMED], None),
    ],
)
def test_a_job_that_is_suspended_or_goes_on_says_so(
    suspend: bool, before: list, after: list | None, event: tuple | None
) -> None:
    status = {**BEFORE, **({"conditions": before} if before else {})}
    found, _, whole = tracked(job(suspend=suspend, status=status), active=0)
    assert (found.get("conditions"), whole.events) == (after, (event,) if event else ())
    assert found["startTime"] == (STAMP if event and not suspend else ago(100))
    untouched, _, whole = tracked(job(suspend=suspend, status=status), decision=Decision())
    assert (untouched.get("conditions"), whole.events) == (before or None, ())


# -- the second write ----------------------------------------------------------------------------------------------


def settled(target: tuple | None, status: dict, still: tuple = (), *, more: bool = False) -> tuple[dict, bool]:
    made = tracking.Tracking({}, (), frozenset(), None if target is None else Target(*target), (), more)
    return settle(status, set(still), made, STAMP)


def test_a_job_finishes_when_its_last_pod_is_a_number() -> None:
    status = {"uncountedTerminatedPods": {"failed": ["a"]}, "conditions": [OTHER]}
    failed = {"failed": 1, "uncountedTerminatedPods": {}}
    assert settled(BACKOFF, status) == (
        {**failed, "conditions": [OTHER, stamped("Failed", *BACKOFF[1:])]}, True,
    )  # fmt: skip
    assert settled(MATCHED, {}) == (
        {"uncountedTerminatedPods": {}, "conditions": [stamped("Complete", *MATCHED[1:])], "completionTime": STAMP},
        True,
    )
    assert "failed" not in status


@pytest.mark.parametrize(
    ("target", "status", "still", "more"),
    [
        (None, {}, (), False),
        (BACKOFF, {}, (), True),
        (BACKOFF, {"terminating": 1}, (), False),
        (BACKOFF, {"uncountedTerminatedPods": {"succeeded": ["a"]}}, ("a",), False),
        (MATCHED, {"uncountedTerminatedPods": {"failed": ["a"]}}, ("a",), False),
    ],
)
def test_a_job_does_not_finish_before(target: tuple | None, status: dict, still: tuple, more: bool) -> None:
    found, over = settled(target, status, still, more=more)
    assert not over and "conditions" not in found
    assert found == {"uncountedTerminatedPods": {}, **status}


@pytest.mark.parametrize(
    ("completions", "succeeded", "expected"),
    [(2, 2, ["Completed"]), (2, 3, ["TooManySucceededPods", "Completed"]), (None, 3, ["Completed"]), (2, None, None)],
)
def test_the_events_of_a_job_that_has_finished(
    completions: int | None, succeeded: int | None, expected: list | None
) -> None:
    of = job(**({} if completions is None else {"completions": completions}))
    status = {} if succeeded is None else {"succeeded": succeeded}
    found = events_at_the_end(of, status, Target(*MATCHED))
    assert [reason for _, reason, _ in found] == (expected or ["Completed"])
    assert found[-1] == ("Normal", "Completed", "Job completed")
    assert events_at_the_end(of, status, Target(*BACKOFF)) == [("Warning", *BACKOFF[1:])]
