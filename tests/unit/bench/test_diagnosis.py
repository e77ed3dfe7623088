"""The cases of `bench.diagnosis`, and the judge: the same seed gives the same case, and every grade has an example."""

import ast
import json
from random import Random

import pytest
import yaml
from bench.diagnosis.application import template_of
from bench.diagnosis.case import FAULTS, Case, build, draw_cases
from bench.diagnosis.fault import Injected
from bench.diagnosis.judge import (
    Answer,
    Named,
    false_alarms,
    grade,
    is_open,
    is_well,
    mentions,
    named_of,
    offered,
    proposals,
    read_answer,
    wrongly_named,
)
from bench.diagnosis.page import counted, page
from bench.diagnosis.programs import render
from bench.diagnosis.repair import mapping_in, patch_of, patch_template, patch_workload
from bench.diagnosis.running import manifest, run_case
from bench.diagnosis.shapes import SHAPES
from bench.diagnosis.virtual import VirtualPlace

from lastcall.endings import CATALOGUE
from lastcall.lint.catalogue.lookup import RULES
from lastcall.lint.engine import lint
from lastcall.lint.sources import read as read_subjects

EACH = [
    pytest.param(Case(0, f"test/{name}/{shape}", shape, ((name, False),)), id=f"{name}-{shape}")
    for name, fault in FAULTS.items()
    for shape in fault.shapes[:1]
]
INVALID = {"imageNameInvalid"}
"""Faults that make an object one that lint finds invalid: that is the fault."""


def test_the_same_seed_gives_the_same_manifests_and_another_one_others() -> None:
    def drawn(seed: str) -> list[str]:
        return [manifest(build(each)[0].objects()) for each in draw_cases(40, seed)]

    assert drawn("a") == drawn("a")
    assert drawn("a") != drawn("b")


def test_a_run_takes_every_fault_before_it_takes_one_again() -> None:
    cases = draw_cases(len(FAULTS), "a")
    assert sorted(each.faults[0][0] for each in cases) == sorted(FAULTS)


def test_every_shape_has_a_fault_and_every_fault_a_shape() -> None:
    assert {shape for fault in FAULTS.values() for shape in fault.shapes} == set(SHAPES)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_every_fault_has_a_truth_in_the_catalogue_or_proposes_an_id(fault) -> None:
    assert fault.causes
    if fault.proposed:
        assert fault.causes == {fault.proposed}
        assert fault.proposed not in CATALOGUE
    else:
        assert fault.causes <= set(CATALOGUE)
    assert fault.symptoms <= set(CATALOGUE)
    assert fault.lint <= set(RULES)
    assert not fault.causes & fault.symptoms


@pytest.mark.parametrize("case", EACH)
def test_a_fault_changes_the_manifests_and_off_there_is_none(case: Case) -> None:
    broken, injected = build(case)
    sound, none = build(case, [case.faults[0][0]])
    assert [each.fault.id for each in injected] == [case.faults[0][0]]
    assert none == []
    assert manifest(broken.objects()) != manifest(sound.objects())
    assert (broken.command, broken.name, broken.image) == (sound.command, sound.name, sound.image)
    unbroken, _ = build(Case(0, case.seed, case.shape, ()))
    assert manifest(sound.objects()) == manifest(unbroken.objects())


@pytest.mark.parametrize("case", EACH)
def test_a_fault_whose_repair_nobody_can_try_says_what_it_has_to_mention(case: Case) -> None:
    _, (truth,) = build(case)
    assert truth.words or not (truth.fault.by_words or truth.fault.worded)


@pytest.mark.parametrize("case", EACH)
def test_nothing_of_an_application_says_which_fault_it_has(case: Case) -> None:
    app, (truth,) = build(case)
    text = manifest(app.objects())
    words = {truth.fault.id, *truth.fault.causes} - {"finalizer", "killed", "crash", "crashed"}
    assert not [each for each in words if each in text]


@pytest.mark.parametrize("case", EACH)
def test_the_programs_of_a_case_are_programs(case: Case) -> None:
    for name in ("broken", "sound"):
        app, _ = build(case, [] if name == "broken" else [case.faults[0][0]])
        for program in app.programs.values():
            for file, text in render(program).items():
                if file.endswith(".py"):
                    ast.parse(text)


@pytest.mark.parametrize("case", EACH)
def test_the_manifests_of_a_case_are_kubernetes_objects(case: Case, tmp_path) -> None:
    """No field that is unknown or has another type; a fault breaks what objects mean, not what they are."""
    app, _ = build(case)
    path = tmp_path / "case.yaml"
    path.write_text(manifest(app.objects()))
    given = read_subjects([str(path)])
    invalid = {"unreadable", "unknownApiVersion", "unknownField", "wrongType", "invalidValue", "notAnObject"}
    found = [each.finding for each in given.of_texts] + list(lint(given.subjects).findings)
    assert len(given.subjects) >= len(app.objects())
    assert not [each for each in found if each.rule in invalid and case.faults[0][0] not in INVALID]


def test_the_neighbour_can_have_the_second_fault() -> None:
    case = Case(0, "double", "pair", (("exitCode", False), ("noHandler", True)))
    app, injected = build(case)
    assert [each.container for each in injected] == [app.main, app.neighbour]
    assert "trap" not in render(app.programs[app.neighbour])[app.programs[app.neighbour].file]
    _, (left,) = build(case, ["exitCode"])
    assert left.fault.id == "noHandler"


# -- the judge ---------------------------------------------------------------------------------------------------------

TRUTH = Injected(FAULTS["noHandler"], "app")


def answer(*named: Named, **facts) -> Answer:
    well = {
        "status": 0,
        "ready": True,
        "exitCodes": {"app": 0},
        "hooks": {},
        "outcomes": ["graceful"],
        "lost": 0,
        "verdicts": [],
    }
    return Answer(facts.get("status", 3), named, {**well, **facts})


def problem(id_: str, container: str = "app", advice: str = "", text: str = "", **change) -> Named:
    return Named(id_, "problem", container, text, advice, change)


CAUSE = problem("stopSignalNotHandled")


@pytest.mark.parametrize(
    ("named", "removed", "expected"),
    [
        pytest.param([CAUSE, problem("killed")], True, "right", id="named, and the change removes it"),
        pytest.param([CAUSE], False, "half", id="named, and nothing removes it"),
        pytest.param([problem("killed")], True, "half", id="not named, and the change removes it all the same"),
        pytest.param([], False, "silent", id="nothing is named"),
        pytest.param([problem("killed")], False, "silent", id="only what it leads to is named"),
        pytest.param([problem("outOfMemory")], False, "wrong", id="another cause is named"),
        pytest.param([problem("outOfMemory")], True, "wrong", id="another cause, though its change helps"),
        pytest.param([CAUSE, problem("outOfMemory")], True, "right", id="both: the true one is named"),
        pytest.param([problem("outOfMemory", text="(inferred)")], False, "silent", id="another one, as a guess"),
        pytest.param([problem("imageSubstituted")], False, "silent", id="only something of this machine"),
    ],
)
def test_the_grade_of(named, removed, expected) -> None:
    assert grade(answer(*named), TRUTH, removed=removed) == expected


def test_the_cause_of_another_fault_is_no_mistake_and_does_not_name_this_one() -> None:
    beside = problem("hookFailed", "tail")
    assert wrongly_named(answer(beside), TRUTH) == ["hookFailed"]
    assert wrongly_named(answer(beside), TRUTH, frozenset({"hookFailed"})) == []
    assert named_of(answer(problem("stopSignalNotHandled", "tail")), TRUTH, frozenset({"tail"})) == []


@pytest.mark.parametrize(
    ("named", "kind", "accepted"),
    [
        (problem("stopSignalNotHandled", program="handleStopSignal"), "program", True),
        (problem("stopSignalNotHandled", program="useLessMemory"), "program", False),
        (problem("stopSignalNotHandled", patch={"shareProcessNamespace": True}), "patch", False),
        (problem("stopSignalNotHandled", workload={"spec": {}}), "workload", False),
        (problem("stopSignalNotHandled", advice="`lifecycle: {preStop: {sleep: {seconds: 5}}}`."), "mapping", False),
    ],
)  # fmt: skip
def test_what_counts_as_a_proposed_change(named, kind, accepted) -> None:
    (proposal,) = proposals([named], TRUTH)
    assert (proposal.kind, proposal.accepted) == (kind, accepted)


def test_a_verb_that_is_half_of_the_repair_needs_words_beside_it() -> None:
    truth = Injected(FAULTS["closesWithoutGoAway"], "app")
    alone = problem("staleConnection", program="closeIdleConnections", advice="Close idle connections.")
    whole = problem("staleConnection", program="closeIdleConnections", advice="Send GOAWAY, and close then.")
    assert [each.accepted for each in proposals([alone], truth)] == [False]
    assert [each.accepted for each in proposals([whole], truth)] == [True]


def test_a_symptom_names_the_fault_where_its_advice_says_exactly_what_is_broken() -> None:
    truth = Injected(FAULTS["interpreterMissing"], "app", ("/opt/venv/bin/python",))
    vague = problem("crashed", advice="See what it printed.", text="/opt/venv/bin/python")
    exact = problem("crashed", advice="Use an image that has /opt/venv/bin/python.")
    assert named_of(answer(vague), truth) == []
    assert named_of(answer(exact), truth) == [exact]
    assert wrongly_named(answer(vague), truth) == []
    assert grade(answer(vague), truth, removed=False) == "silent"


def test_a_finding_about_another_container_names_the_fault_only_if_it_is_one_of_both() -> None:
    assert named_of(answer(problem("stopSignalNotHandled", "tail")), TRUTH) == []
    holds = problem("sidecarHoldsJob", "tail")
    assert named_of(answer(holds), Injected(FAULTS["sidecarHoldsJob"], "app")) == [holds]


def test_a_patch_of_another_finding_is_tried_after_those_of_the_one_that_names_the_fault() -> None:
    pause = {"spec": {"template": {"spec": {}}}}
    other = problem("lateEndpoint", workload=pause)
    own = problem("stopSignalNotHandled", patch={"shareProcessNamespace": True})
    assert [each.kind for each in offered(answer(other, own), TRUTH)] == ["patch", "workload"]
    assert [each.kind for each in offered(answer(other), TRUTH)] == ["workload"]
    verb = problem("outOfMemory", program="handleStopSignal")
    assert [each.kind for each in offered(answer(own, own, verb), TRUTH)] == ["program", "patch"]


def test_words_of_another_finding_count_only_where_nothing_names_the_fault() -> None:
    truth = Injected(FAULTS["keyMissing"], "app", ("web-env", "region"))
    other = problem("crashed", advice="Set region of web-env.")
    assert offered(answer(other, problem("configMissing")), truth) == []
    assert [each.kind for each in offered(answer(other), truth)] == ["words"]
    verb = problem("outOfMemory", program="handleStopSignal")
    assert [each.accepted for each in offered(answer(verb, CAUSE), TRUTH)] == [True]
    assert offered(answer(problem("lateEndpoint", "tail", workload={"spec": {}})), TRUTH, frozenset({"tail"})) == []


def test_the_port_that_the_program_printed_is_no_advice() -> None:
    truth = Injected(FAULTS["portMismatch"], "app", ("4711",))
    vague = problem("probeFailed", advice="Correct the port.", text="| serving on 4711")
    exact = problem("probeFailed", advice="The program listens on 4711: correct the port.")
    assert proposals([vague], truth) == []
    assert [each.kind for each in proposals([exact], truth)] == ["words"]


def test_words_are_a_change_only_where_the_repair_is_outside_of_the_pod() -> None:
    truth = Injected(FAULTS["keyMissing"], "app", ("web-env", "region"))
    good = problem("configMissing", advice="Add the key region to ConfigMap web-env.")
    assert [each.kind for each in proposals([good], truth)] == ["words"]
    assert proposals([problem("configMissing", advice="Add it.", text="web-env")], truth) == []
    assert proposals([problem("stopSignalNotHandled", advice="Install a handler.")], TRUTH) == []
    assert mentions("Line ends with a carriage return", ("crlf|carriage return",))
    assert not mentions("anything", ())


@pytest.mark.parametrize(
    "facts",
    [
        {"status": 3},
        {"ready": False},
        {"exitCodes": {"app": 137}},
        {"hooks": {"app": "failed"}},
        {"hooks": {"app": "skipped"}},
        {"hooks": {"app": "interrupted"}},
        {"lost": 2},
        {"verdicts": ["inconclusive"]},
    ],
)
def test_an_application_with_a_measured_fact_of_a_fault_is_not_well(facts) -> None:
    assert is_well(answer(status=0))
    assert not is_well(answer(**{"status": 0, **facts}))


def test_an_application_of_which_the_cause_is_still_named_is_not_well() -> None:
    for severity in ("warning", "info"):
        still = answer(Named("zombies", severity, "app"), status=0)
        assert is_well(still)
        assert not is_well(still, frozenset({"zombies"}), "app")
        assert is_well(still, frozenset({"zombies"}), "tail")


def test_an_experiment_that_lost_nothing_and_proves_nothing_is_made_again() -> None:
    assert is_open(answer(verdicts=["inconclusive"], status=4))
    assert not is_open(answer(verdicts=["inconclusive"], status=4, lost=3))
    assert not is_open(answer(verdicts=["nothing lost"], status=0))


def test_a_warning_about_a_sound_application_is_a_false_alarm() -> None:
    named = (Named("zombies", "warning"), Named("connectionsCut", "info"), Named("imageSubstituted", "warning"))
    assert false_alarms(answer(*named)) == ["zombies"]


def test_an_answer_is_read_from_a_story() -> None:
    finding = {"id": "killed", "severity": "problem", "container": "app", "text": "t", "advice": None}
    container = {"name": "app", "exitCode": 137, "preStop": None}
    pod = {"findings": [finding], "containers": [container], "outcome": "killed"}
    read = read_answer(3, json.dumps({"error": None, "pods": [pod]}), "")
    assert [(each.id, each.container, each.advice) for each in read.named] == [("killed", "app", "")]
    assert read.facts["exitCodes"] == {"app": 137}


def test_a_note_of_a_rollout_names_a_fault_and_is_no_alarm() -> None:
    note = {"id": "connectionsPinned", "what": "http2", "text": "uneven (a 9, b 0). fix: close connections after 100"}
    experiment = {"lost": 0, "control": {"lost": 0}, "verdict": "nothing lost", "sentence": "", "notes": [note]}
    read = read_answer(0, json.dumps({"experiments": [{**experiment, "advice": [], "lostRequests": []}]}), "")
    truth = Injected(FAULTS["pinnedChannel"], "app", ("close connections",))
    assert named_of(read, truth) == list(read.named)
    assert (read.named[0].text, read.named[0].advice) == ("uneven (a 9, b 0).", "close connections after 100")
    assert [each.kind for each in offered(read, truth)] == ["words"]
    assert false_alarms(read) == []


def test_an_answer_is_read_from_an_error() -> None:
    lines = [
        "error: case.yaml:3: Pod web needs ConfigMap flags",
        "  fix: Add flags. (lastcall lint: configMissing)",
        "lastcall: default/web is not Ready: phase Pending",
        "lastcall:   condition Ready is False: ContainersNotReady: containers with unready status: [app]",
        "lastcall:   fix: Correct the image's name [imageNotPulled]",
    ]
    read = read_answer(1, "", "\n".join(lines))
    assert [(each.id, each.by, each.severity) for each in read.named] == [
        ("configMissing", "lint", "problem"),
        ("imageNotPulled", "error", "problem"),
    ]
    assert read.named[1].advice == "Correct the image's name"
    assert not read.facts["ready"]


def test_the_text_of_a_cause_in_an_error_is_that_of_its_own_object() -> None:
    lines = [
        "lastcall: default/db is not Ready: perhaps it waits for 4711",
        "lastcall:   fix: See its log [crashed]",
        "lastcall: default/web is not Ready: phase Pending",
        "lastcall:   fix: Correct the image's name [imageNotPulled]",
    ]
    first, second = read_answer(1, "", "\n".join(lines)).named
    assert (first.certain, second.certain) == (False, True)
    assert second.text == lines[2]


def test_a_case_in_virtual_time_is_run_and_judged() -> None:
    case = Case(0, "virtual", "batch", (("exitCode", False),))
    result, said = run_case(VirtualPlace(), case)
    assert result.error == ""
    assert (result.sound, result.alarms) == (True, [])
    assert said is not None
    assert any(said.facts["exitCodes"].values())
    assert [each.fault for each in result.verdicts] == ["exitCode"]
    assert "exitCodeNotZero" in result.verdicts[0].named


# -- changes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "mapping"),
    [
        ("lifecycle: {preStop: {sleep: {seconds: 5}}}", {"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}),
        ("Set `terminationGracePeriodSeconds: 12` for it.", {"terminationGracePeriodSeconds": 12}),
        ("terminationGracePeriodSeconds: 12, or a quicker end", {"terminationGracePeriodSeconds": 12}),
        ("resources.limits.memory: 256Mi", {"resources": {"limits": {"memory": "256Mi"}}}),
        ("shareProcessNamespace: true, or an init", {"shareProcessNamespace": True}),
        (
            "startupProbe: failureThreshold * periodSeconds at least 30 s (2 s were not enough).",
            {"startupProbe": {"failureThreshold": 30, "periodSeconds": 1}},
        ),
        ("fix: See what it printed", {}),
        ("Install a handler: see the manual", {}),
        ("", {}),
    ],
)
def test_a_reader_finds_the_mapping_in_a_sentence(sentence, mapping) -> None:
    assert mapping_in(sentence) == mapping


def test_a_patch_reaches_the_pods_spec_and_the_container_and_init_containers() -> None:
    app, _ = build(Case(0, "patch", "sidecar", ()))
    sidecar = app.spec["initContainers"][-1]["name"]
    patch = patch_of({"terminationGracePeriodSeconds": 9, "resources": {"limits": {"memory": "1Gi"}}}, app.main)
    changed = next(filter(None, map(template_of, patch_template(app.objects(), patch, app.main))))
    assert changed["terminationGracePeriodSeconds"] == 9
    assert changed["containers"][0]["resources"] == {"limits": {"memory": "1Gi"}}
    of_sidecar = patch_of({"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}, sidecar)
    changed = next(filter(None, map(template_of, patch_template(app.objects(), of_sidecar, sidecar))))
    assert changed["initContainers"][-1]["lifecycle"]["preStop"] == {"sleep": {"seconds": 1}}
    assert len(changed["containers"]) == len(app.spec["containers"])


def test_a_container_becomes_a_native_sidecar_where_the_advice_says_so() -> None:
    app, _ = build(Case(0, "patch", "pair", ()))
    patch = patch_of({"restartPolicy": "Always"}, app.neighbour)
    changed = next(filter(None, map(template_of, patch_template(app.objects(), patch, app.neighbour))))
    assert app.neighbour not in [each["name"] for each in changed["containers"]]
    moved = changed["initContainers"][-1]
    assert (moved["name"], moved["restartPolicy"], moved["image"]) == (app.neighbour, "Always", app.image)


def test_a_patch_of_the_workload_reaches_the_deployment_alone() -> None:
    app, _ = build(Case(0, "patch", "web", ()))
    changed = patch_workload(app.objects(), {"spec": {"replicas": 7}})
    assert [each["spec"]["replicas"] for each in changed if each["kind"] == "Deployment"] == [7]
    assert [each for each in changed if each["kind"] != "Deployment"] == [
        each for each in app.objects() if each["kind"] != "Deployment"
    ]


# -- the page ----------------------------------------------------------------------------------------------------------


def result(grade_: str, *, sound: bool = True, alarms: tuple[str, ...] = ()) -> dict:
    verdict = {"fault": "noHandler", "grade": grade_, "named": ["killed"], "beside": []}
    return {"case": f"000-{grade_}", "sound": sound, "alarms": list(alarms), "verdicts": [verdict]}


def test_cases_that_prove_nothing_are_counted_apart() -> None:
    results = [result("right"), result("right"), result("wrong"), result("silent", sound=False)]
    assert counted(results)["noHandler"] == {"right": 2, "wrong": 1}


def test_the_page_has_a_row_for_a_fault_and_its_false_alarms() -> None:
    text = page({"kernel": [result("right"), result("half", alarms=("zombies",))]}, "seed", "abc", "2026-01-01")
    assert "| noHandler | `stopSignalNotHandled` | 1 | 1 |  |  | killed 1 |" in text
    assert "False alarms: 1 of 2 sound applications (zombies 1)." in text


def test_manifests_survive_yaml() -> None:
    for case in draw_cases(20, str(Random(1).random())):
        app, _ = build(case)
        assert list(yaml.safe_load_all(manifest(app.objects()))) == app.objects()
