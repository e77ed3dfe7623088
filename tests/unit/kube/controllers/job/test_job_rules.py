"""The rules of Jobs as tables: indexes, policies, times, who goes first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.kube.controllers.job.backoff import BackOff
from lastcall.kube.controllers.job.controller import batch_seconds
from lastcall.kube.controllers.job.decide import matching_success_rule
from lastcall.kube.controllers.job.indexes import Indexes
from lastcall.kube.controllers.job.pods import choose_surplus, finish_time, match_failure_policy, new_pod

SETS = st.sets(st.integers(0, 40))
INDEX = "batch.kubernetes.io/job-completion-index"


@given(indexes=SETS)
def test_indexes_are_read_as_they_were_written(indexes):
    made = Indexes.of(indexes)
    assert Indexes.parse(str(made), 100) == made
    assert len(made) == len(indexes)
    assert [index for index in range(45) if index in made] == sorted(indexes)


@given(one=SETS, other=SETS, completions=st.integers(0, 45), count=st.integers(0, 10))
def test_sets_of_indexes_behave_as_sets(one, other, completions, count):
    first, second = Indexes.of(one), Indexes.of(other)
    assert first | second == Indexes.of(one | other)
    assert first.common(second) == len(one & other)
    missing = [index for index in range(completions) if index not in one]
    assert first.first_missing(count, completions) == missing[:count]


WRITTEN = [
    ([], ""),
    ([3], "3"),
    ([3, 4], "3,4"),
    ([3, 4, 5], "3-5"),
    ([0, 2, 3, 5, 6, 7], "0,2,3,5-7"),
]


@pytest.mark.parametrize(("indexes", "text"), WRITTEN)
def test_indexes_as_the_status_writes_them(indexes, text):
    assert str(Indexes.of(indexes)) == text


READ = [("0,2-9", 5, "0,2-4"), ("7", 5, ""), ("x,1,2-,3", 9, "1,3"), (None, 5, ""), ("3-1,4", 9, "4")]


@pytest.mark.parametrize(("text", "completions", "expected"), READ)
def test_what_cannot_be_read_or_is_beyond_the_completions_is_left_out(text, completions, expected):
    assert str(Indexes.parse(text, completions)) == expected


SUCCESS = [
    ([{"succeededIndexes": "0-2"}], {0, 1, 2}, 0),
    ([{"succeededIndexes": "0-2"}], {0, 1, 5}, None),
    ([{"succeededIndexes": "0-2", "succeededCount": 2}], {0, 2}, 0),
    ([{"succeededIndexes": "0-2", "succeededCount": 2}], {0, 5, 6}, None),
    ([{"succeededCount": 3}], {1, 5, 7}, 0),
    ([{"succeededCount": 3}], {1, 5}, None),
    ([{"succeededIndexes": "9"}, {"succeededCount": 1}], {4}, 1),
    ([{"succeededCount": 0}], set(), None),
]


@pytest.mark.parametrize(("rules", "succeeded", "expected"), SUCCESS)
def test_success_policies(rules, succeeded, expected):
    spec = {"completions": 10, "successPolicy": {"rules": rules}}
    assert matching_success_rule(spec, Indexes.of(succeeded)) == expected


def container(name, code=None):
    state = {"running": {}} if code is None else {"terminated": {"exitCode": code}}
    return {"name": name, "state": state}


def a_pod(*containers, init=(), conditions=(), name="p", **meta):
    status = {"phase": "Failed", "containerStatuses": list(containers), "initContainerStatuses": list(init)}
    status["conditions"] = [{"type": each, "status": "True"} for each in conditions]
    return {"metadata": {"name": name, "namespace": "default", "uid": name, **meta}, "spec": {}, "status": status}


def rule(action, operator="In", values=(1,), container_name=None):
    codes = {"operator": operator, "values": list(values)}
    if container_name:
        codes["containerName"] = container_name
    return {"action": action, "onExitCodes": codes}


DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
POLICIES = [
    ("no policy counts", [], a_pod(container("app", 1)), ("", True)),
    ("the code is in the list", [rule("FailJob")], a_pod(container("app", 1)), ("FailJob", True)),
    ("the code is not in the list", [rule("FailJob")], a_pod(container("app", 2)), ("", True)),
    ("NotIn", [rule("FailIndex", "NotIn", (1,))], a_pod(container("app", 2)), ("FailIndex", True)),
    ("0 never fits", [rule("FailJob", "NotIn", (1,))], a_pod(container("app", 0)), ("", True)),
    ("what runs has no code", [rule("FailJob", "NotIn", (9,))], a_pod(container("app")), ("", True)),
    ("init containers count", [rule("Ignore")], a_pod(container("app"), init=[container("i", 1)]), ("Ignore", False)),
    ("one container only", [rule("Ignore", container_name="b")], a_pod(container("a", 1)), ("", True)),
    ("the first rule that fits", [rule("Count"), rule("FailJob")], a_pod(container("app", 1)), ("Count", True)),
    ("a condition", [DISRUPTED], a_pod(container("app", 137), conditions=["DisruptionTarget"]), ("Ignore", False)),
    ("another condition", [DISRUPTED], a_pod(container("app", 137), conditions=["Ready"]), ("", True)),
]


@pytest.mark.parametrize(("rules", "pod", "expected"), [case[1:] for case in POLICIES], ids=[c[0] for c in POLICIES])
def test_failure_policies(rules, pod, expected):
    match = match_failure_policy({"spec": {"podFailurePolicy": {"rules": rules}}}, pod)
    assert (match.action, match.counts) == expected


def test_a_condition_that_fails_the_job_is_named_in_the_message():
    rules = [{"action": "FailJob", "onPodConditions": [{"type": "Bad", "status": "True"}]}]
    match = match_failure_policy({"spec": {"podFailurePolicy": {"rules": rules}}}, a_pod(conditions=["Bad"]))
    assert match.message == "Pod default/p has condition Bad matching FailJob rule at index 0"


def stamp(second):
    return f"2030-01-01T00:00:{second:02}Z"


def terminated(second):
    return {"name": "x", "state": {"terminated": {"exitCode": 1, "finishedAt": stamp(second)}}}


TIMES = [
    ("the last container", [terminated(4), terminated(7)], {}, 7),
    ("not Ready since, while a container runs", [terminated(4), container("app")], {"ready": 5}, 5),
    ("the beginning of the deletion", [container("app")], {"deleted": 50}, 20),
    ("the creation", [], {}, 1),
]


@pytest.mark.parametrize(("containers", "what", "expected"), [c[1:] for c in TIMES], ids=[c[0] for c in TIMES])
def test_when_a_pod_ended(containers, what, expected):
    meta = {"creationTimestamp": stamp(1)}
    if "deleted" in what:
        meta |= {"deletionTimestamp": stamp(what["deleted"]), "deletionGracePeriodSeconds": 30}
    pod = a_pod(*containers, **meta)
    if "ready" in what:
        pod["status"]["conditions"] = [{"type": "Ready", "status": "False", "lastTransitionTime": stamp(what["ready"])}]
    assert finish_time(pod) - finish_time(a_pod(creationTimestamp=stamp(0))) == expected


WAITS = [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (50, 600)]


@pytest.mark.parametrize(("failures", "seconds"), WAITS)
def test_the_wait_doubles_up_to_ten_minutes(failures, seconds):
    assert BackOff(failures, 1000.0).remaining(1000.0) == seconds
    assert BackOff(failures, 1000.0).remaining(1000.0 + seconds) == 0


def ended_at(second, name):
    return a_pod(terminated(second), name=name, creationTimestamp=stamp(0))


def test_a_success_forgives_the_failures_before_it():
    start = finish_time(ended_at(0, "x"))
    assert BackOff().after([], [ended_at(3, "a"), ended_at(5, "b")]) == BackOff(2, start + 5)
    assert BackOff(4, start).after([], [ended_at(3, "a")]) == BackOff(5, start + 3)
    assert BackOff(4, start).after([ended_at(4, "s")], [ended_at(3, "a"), ended_at(5, "b")]) == BackOff(1, start + 5)
    assert BackOff(4, start).after([ended_at(4, "s")], []) == BackOff()
    assert BackOff(4, start).after([], []) == BackOff(4, start)


def active(name, index=None, *, node="n", phase="Running", ready=True):
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": stamp(1)}]}
    annotations = {} if index is None else {INDEX: str(index)}
    meta = {"name": name, "uid": name, "annotations": annotations, "creationTimestamp": stamp(0)}
    return {"metadata": meta, "spec": {"nodeName": node} if node else {}, "status": status}


PLAIN = {"spec": {"parallelism": 2}}
INDEXED = {"spec": {"completionMode": "Indexed", "completions": 3}}
SURPLUS = [
    (PLAIN, [active("a"), active("b", ready=False)], 1, [("b", "not Ready")]),
    (PLAIN, [active("a", ready=False), active("b", node="")], 1, [("b", "not assigned to a node")]),
    (PLAIN, [active("a"), active("b", phase="Pending")], 1, [("b", "phase before Running")]),
    (PLAIN, [active("a"), active("b")], 2, [("a", "all of them go"), ("b", "all of them go")]),
    (PLAIN, [active("a"), active("b")], 0, []),
    (INDEXED, [active("a", 0), active("b", 0, ready=False), active("c", 1)], 0,
     [("b", "another Pod has its completion index 0")]),
    (INDEXED, [active("a", 3), active("b")], 0,
     [("a", "the Job does not ask for its completion index"),
      ("b", "the Job does not ask for its completion index")]),
]  # fmt: skip


@pytest.mark.parametrize(("job", "pods", "at_least", "expected"), SURPLUS)
def test_which_active_pods_go(job, pods, at_least, expected):
    chosen = choose_surplus(job, pods, at_least)
    assert [(each.pod["metadata"]["name"], each.reason) for each in chosen] == expected


def test_a_long_name_leaves_room_for_the_index():
    job = {"metadata": {"name": "j" * 63, "uid": "u", "namespace": "default"},
           "spec": {"template": {"spec": {"containers": []}}, "completions": 200}}  # fmt: skip
    pod = new_pod(job, 137, None)
    assert pod["metadata"]["generateName"] == "j" * 53 + "-137-"
    assert len(pod["metadata"]["generateName"]) == 58


def test_a_pod_of_an_index_tells_it_by_host_name_label_and_annotation():
    """job_controller.go:manageJob: the host name has the whole name of the Job."""
    job = {"metadata": {"name": "j", "uid": "u"}, "spec": {"template": {"spec": {"containers": []}}, "completions": 3}}
    pod = new_pod(job, 2, None)
    assert pod["spec"]["hostname"] == "j-2" and pod["metadata"]["generateName"] == "j-2-"
    assert pod["metadata"]["labels"][INDEX] == pod["metadata"]["annotations"][INDEX] == "2"
    assert "hostname" not in new_pod(job, None, None)["spec"]


def test_an_env_variable_of_the_user_stays():
    mine = {"name": "JOB_COMPLETION_INDEX", "value": "mine"}
    spec = {"containers": [{"name": "app", "env": [mine]}], "initContainers": [{"name": "i"}]}
    job = {"metadata": {"name": "j", "uid": "u"}, "spec": {"template": {"spec": spec}, "completions": 3}}
    pod = new_pod(job, 1, None)
    assert pod["spec"]["containers"][0]["env"] == [mine]
    assert pod["spec"]["initContainers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
    assert spec["containers"][0]["env"] == [mine]


FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"


@pytest.mark.parametrize(
    ("before", "code", "expected"),
    [
        (None, 0, {FAILURES: "0"}),
        ({}, 1, {FAILURES: "1"}),
        ({FAILURES: "2"}, 1, {FAILURES: "3"}),
        ({FAILURES: "2", IGNORED: "1"}, 1, {FAILURES: "3", IGNORED: "1"}),
        ({FAILURES: "2"}, 42, {FAILURES: "2", IGNORED: "1"}),
        ({FAILURES: "2", IGNORED: "4"}, 42, {FAILURES: "2", IGNORED: "5"}),
    ],
)
def test_a_pod_takes_over_the_failures_of_its_index_and_names_ignored_ones_only_if_there_are_any(
    before: dict | None, code: int, expected: dict
) -> None:
    """indexed_job_utils.go:getNewIndexFailureCounts, addIndexFailureCountAnnotation."""
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}
    spec = {"template": {"spec": {"containers": []}}, "completions": 3, "backoffLimitPerIndex": 9}
    job = {"metadata": {"name": "j", "uid": "u"}, "spec": {**spec, "podFailurePolicy": {"rules": [rule]}}}
    ended = {"name": "c", "state": {"terminated": {"exitCode": code}}}
    failed = {"metadata": {"name": "j-1", "namespace": "n", "annotations": before}}
    failed["status"] = {"phase": "Failed", "containerStatuses": [ended]}
    made = new_pod(job, 1, None if before is None else failed)
    assert made["metadata"]["annotations"] == {INDEX: "1", **expected}


def test_small_jobs_are_looked_at_soon_and_big_ones_once_a_second():
    assert batch_seconds(1) < 0.03
    assert batch_seconds(100_000) == 1.0
