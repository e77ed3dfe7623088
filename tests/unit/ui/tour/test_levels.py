"""The levels of the tour in virtual time: the goal is missed as the level is given, and reached by its solution."""

from typing import Any

import make_tour
import orjson
import pytest

from lastcall.endings import waits_of
from lastcall.kube.api import parse_rfc3339
from lastcall.records.explain import explain
from lastcall.records.language import translate
from lastcall.ui.texts import texts
from lastcall.ui.tour.experiments import EXPERIMENTS, Act
from lastcall.ui.tour.giving_up import why_give_up
from lastcall.ui.tour.goals import Condition, check_goal, look_up, verdict
from lastcall.ui.tour.levels import BadManifest, experiment_of, levels

LESSON: Any = orjson.loads(make_tour.LESSON.read_bytes())
POD = "{kind: Pod, metadata: {name: a}, spec: {}}"
NOTHING = {"en": "", "ja": ""}


@pytest.mark.parametrize("name", list(levels()))
def test_a_level_is_missed_as_it_is_given_and_reached_by_its_solution(name: str) -> None:
    level = levels()[name]
    given, _ = make_tour.play_level(level, solved=False)
    assert (given["state"], given["error"]) == ("done", NOTHING)
    assert not all(each["held"] for each in given["goal"])
    solved, _ = make_tour.play_level(level, solved=True)
    assert (solved["state"], solved["error"]) == ("done", NOTHING)
    assert [each for each in solved["goal"] if not each["held"]] == []


@pytest.mark.parametrize("name", list(levels()))
def test_one_of_the_choices_of_a_level_is_what_happens(name: str) -> None:
    level = levels()[name]
    for solved in (False, True):
        shown, _ = make_tour.play_level(level, solved=solved)
        assert shown["happened"].count(True) == 1, (solved, shown["happened"])
        assert len(shown["happened"]) == len(level.expect.choices)


def test_a_run_keeps_what_its_learner_expected_and_only_a_choice_that_there_is() -> None:
    level = levels()["kill"]
    assert [experiment_of(level, level.manifest, None, guess).guess for guess in (2, 3, -1, None)] == [2, *[None] * 3]
    shown, _ = make_tour.play(experiment_of(level, level.manifest, None, 1))
    assert (shown["guess"], shown["happened"]) == (1, [True, False, False])
    steps, _ = make_tour.play(EXPERIMENTS["graceful"])
    assert (steps["guess"], steps["happened"]) == (None, None)


def test_each_level_says_what_is_new_in_its_rule() -> None:
    said = [level.says["en"] for level in levels().values()]
    assert len(set(said)) == len(said)
    assert not [level.id for level in levels().values() if level.says["en"] == explain(level.rule)]


def test_there_are_at_most_twelve_and_the_catalogue_has_the_texts_of_each() -> None:
    assert len(levels()) <= 12
    assert LESSON["levels"] == list(levels()) == list(texts()["titles"]) == list(texts()["levels"])
    for level in levels().values():
        assert level.hints and len(level.expect.choices) in (2, 3)
        assert explain(level.rule), level.rule
        assert not level.versions or level.versions in orjson.loads(make_tour.VERSIONS_FILE.read_bytes())["runs"]
        assert level.run not in EXPERIMENTS, "what a run shows has one name"


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        ("", "no Pod"),
        ("a: [", "not readable as YAML"),
        ("- 1", "not list"),
        ("? [a]\n: 1", "line 1 of the manifest: a key must be a string"),
        ("{kind: ClusterRole, metadata: {name: a}}", "not ClusterRole"),
        ("{kind: Pod, metadata: {}}", "no name"),
        ("{kind: Pod, metadata: []}", "not a mapping"),
        ("{kind: Pod, metadata: {name: a, labels: 1}}", "not a mapping"),
        ("\n---\n".join([POD] * 9), "9 objects"),
    ],
)
def test_a_manifest_that_cannot_be_run_is_refused_with_a_reason(manifest: str, why: str) -> None:
    with pytest.raises(BadManifest, match=why):
        experiment_of(levels()["grace"], manifest, None)


def test_a_namespace_of_the_learner_s_is_not_used() -> None:
    made = experiment_of(levels()["grace"], "{kind: Pod, metadata: {name: a, namespace: kube-system}, spec: {}}", 3)
    assert "namespace" not in made.objects[0]["metadata"] and made.acts == (Act(grace=3),)


POD_OF_A_DOCUMENT = {
    "gone": 3.0,
    "containers": [{"name": "app", "exitCode": 0, "exitedAt": 2.0, "preStop": None}],
    "records": [{"kind": "A", "at": at} for at in (-1.0, 1.0, 2.5)],
}


def test_a_goal_looks_up_both_of_its_sides() -> None:
    (check,) = check_goal([Condition("last.A", "<", "gone")], POD_OF_A_DOCUMENT)
    assert (check.left, check.right, check.held) == (2.5, 3.0, True)
    assert look_up("first.A", POD_OF_A_DOCUMENT) == 1.0


@pytest.mark.parametrize(
    ("condition", "held"),
    [
        (("containers.app.exitCode", "=", 0), True),
        (("containers.app.preStop", "=", None), True),
        (("containers.app.preStop.seconds", ">", 1), False),
        (("containers.none.exitedAt", "<", 5), False),
        (("first.B", "<", "gone"), False),
        (("gone", "!=", 3.0), False),
    ],
)
def test_what_was_not_seen_reaches_no_goal(condition: Any, held: bool) -> None:
    assert check_goal([Condition(*condition)], POD_OF_A_DOCUMENT)[0].held is held


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (("gone", "<", 4, "The object is gone", "gone after {left}"), "gone after 3.00 s"),
        (("gone", "<", 2, "The object is gone", "gone after {left}"), "gone after 3.00 s, wanted < 2 s"),
        (("containers.app.exitCode", "=", 1, "", "exit code {left}"), "exit code 0, wanted 1"),
        (("containers.app.exitedAt", "=", None, "", "end {left}"), "end 2.00 s, wanted none"),
        (("gone", "<", "last.A", "So", "gone {left}, A {right}"), "gone 3.00 s, A 2.50 s, wanted: So"),
        (("containers.app.preStop", "=", None, "There is no hook", "a hook"), "There is no hook"),
        (("first.B", "<", "gone", "B comes first", "B after {left}"), "not seen: B comes first"),
    ],
)
def test_a_verdict_says_what_was_found_and_what_was_wanted(condition: Any, found: str) -> None:
    path, sign, want, says, seen = condition
    made = Condition(path, sign, want, {"en": says}, {"en": seen})
    assert verdict(check_goal([made], POD_OF_A_DOCUMENT)) == {"en": found}


def test_a_goal_that_is_missed_names_only_what_misses_it() -> None:
    held = Condition("gone", "=", 3.0, NOTHING, {"en": "gone after {left}", "ja": "{left} で消滅"})
    code = {"en": "exit code {left}", "ja": "終了コード {left}"}
    missed = Condition("containers.app.exitCode", "!=", 0, NOTHING, code)
    assert verdict(check_goal([held, missed], POD_OF_A_DOCUMENT)) == {
        "en": "exit code 0, wanted != 0",
        "ja": "終了コード 0、目標 != 0",
    }


def test_a_pod_that_cannot_start_ends_the_run_at_once_with_the_reason_and_without_a_story() -> None:
    level = levels()["grace"]
    missing = level.manifest + "    env: [{name: A, valueFrom: {configMapKeyRef: {name: none, key: a}}}]\n"
    told, ending = make_tour.play(experiment_of(level, missing, None))
    assert (told["state"], told["uid"], ending) == ("failed", "", None)
    assert told["error"]["en"] == "app cannot start: add ConfigMap none to the manifests"
    assert "none" in told["error"]["ja"] and told["error"]["ja"] != told["error"]["en"]
    assert told["words"] == 'configmap "none" not found'


def test_a_pod_that_no_node_takes_ends_the_run_with_what_the_scheduler_says() -> None:
    level = levels()["grace"]
    asks = level.manifest + "  nodeSelector: {disk: ssd}\n"
    told, ending = make_tour.play(experiment_of(level, asks, None))
    assert (told["state"], ending) == ("failed", None)
    assert told["error"]["en"].startswith("no node takes grace: no node has the labels that nodeSelector")
    assert told["words"].startswith("0/2 nodes are available: ")


@pytest.mark.parametrize(
    ("change", "english", "japanese"),
    [
        ("    readinessProbe: {exec: {command: ['false']}}\n", "its readiness probe has not", "readiness プローブ"),
        (
            "    startupProbe: {exec: {command: ['false']}, failureThreshold: 99}\n",
            "its startup probe",
            "startup プローブ",
        ),
        (
            "  initContainers: [{name: i, image: 'busybox:1.36', command: [sh, -c, sleep 999]}]\n",
            "i still runs",
            "i がまだ",
        ),
    ],
)
def test_a_run_that_waits_in_vain_says_for_what_in_both_languages(change: str, english: str, japanese: str) -> None:
    level = levels()["grace"]
    told, _ = make_tour.play(experiment_of(level, level.manifest + change, None))
    assert told["state"] == "failed"
    assert (
        told["error"]["en"].startswith("timed out waiting 60 s for the Pod to be ready: ")
        and english in told["error"]["en"]
    )
    assert told["error"]["ja"].startswith("Pod の準備完了を 60 秒") and japanese in told["error"]["ja"]


def waits(state: Any, **status: Any) -> Any:
    containers = [{"name": "app", "state": state, **status}]
    spec = {"containers": [{"name": "app", "command": ["shh"], "volumeMounts": [{"name": "etc", "mountPath": "/a"}]}]}
    return {"metadata": {"name": "a"}, "spec": spec, "status": {"phase": "Pending", "containerStatuses": containers}}


def refused(message: str, since: str) -> Any:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastTransitionTime": since,
    }
    return {"metadata": {"name": "a"}, "spec": {}, "status": {"phase": "Pending", "conditions": [condition]}}


NOW = parse_rfc3339("2030-01-01T00:00:10Z")
NOT_FOUND = 'runc create failed: exec: "shh": executable file not found in $PATH: unknown'
LABELS = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
CPU = "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (waits({"waiting": {"reason": "ContainerCreating"}}), ""),
        (waits({"running": {}}, ready=False), ""),
        (waits({"waiting": {"reason": "StartError", "message": "what nobody knows"}}), "app cannot start: what nobody"),
        (waits({"waiting": {"reason": "StartError", "message": NOT_FOUND}}), "app cannot start: command: no directory"),
        (waits({"waiting": {"reason": "ErrImageNeverPull", "message": "not here"}}), "app cannot start: "),
        (refused(LABELS, "2030-01-01T00:00:10Z"), "no node takes a: no node has the labels"),
        (refused(CPU, "2030-01-01T00:00:09Z"), ""),
        (refused(CPU, "2030-01-01T00:00:07Z"), "no node takes a: Insufficient cpu: lower resources.requests"),
        (refused("what nobody knows", "2030-01-01T00:00:07Z"), "no node takes a: what nobody knows"),
        (waits({"waiting": {"reason": "CreateContainerError"}}), "app cannot start: CreateContainerError"),
        (waits({"terminated": {"exitCode": 127, "reason": "Error"}}, restartCount=0), ""),
        (waits({"terminated": {"exitCode": 127}}, restartCount=2), "crashes again and again: app: exit code 127"),
    ],
)
def test_a_run_is_given_up_for_what_waiting_does_not_change(pod: Any, why: str) -> None:
    found = why_give_up(pod, NOW)
    assert why in found.text if why else found.text == ""


def test_the_words_of_the_runtime_are_beside_what_repairs_the_start() -> None:
    known, unknown = (
        {"waiting": {"reason": "StartError", "message": each}} for each in (NOT_FOUND, "what nobody knows")
    )
    assert why_give_up(waits(known), NOW).words == NOT_FOUND
    assert why_give_up(waits(unknown), NOW).words == "", "they are the text"


@pytest.mark.parametrize("restarts", [2, 3])
def test_what_a_container_waits_for_is_told_in_japanese(restarts: int) -> None:
    crashed = {"terminated": {"exitCode": 127}}
    pod = waits({"waiting": {"reason": "CrashLoopBackOff"}}, lastState=crashed, restartCount=restarts)
    said = translate(why_give_up(pod, NOW).text, "ja")
    assert said == "コンテナーがクラッシュを繰り返しています: app: CrashLoopBackOff"
    last = [message for _, _, message in waits_of(pod)][1]
    assert last == f"last time exit code 127 (restarted {restarts} times)"
    assert translate(last, "ja") == f"前回の終了コード 127 ({restarts} 回再起動)"


def test_a_pod_that_has_ended_is_not_waited_for() -> None:
    pod = {"metadata": {"name": "a"}, "spec": {}, "status": {"phase": "Succeeded"}}
    assert why_give_up(pod, NOW).text == "a ended before it was Ready"


def test_a_run_tells_the_manifest_and_the_grace_period_that_it_had() -> None:
    level = levels()["force"]
    told, _ = make_tour.play_level(level, solved=True)
    assert (told["manifest"], told["grace"]) == (level.manifest, 0)
