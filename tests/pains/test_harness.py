"""The pains' own book-keeping: what they say of themselves is in step with the catalogue and with docs/pains.md."""

import documents
import pytest
import yaml
from lint_objects import findings
from pain import Expected, Fixed, Pain, load_all
from trial import Said, Verdict, judge_broken, judge_fixed, said_of_experiment, summary

from lastcall.lint.catalogue.lookup import RULES
from lastcall.manifests.read import load_manifests

PAINS = load_all()


def a_pain(**changes) -> Pain:
    words = dict.fromkeys(("title", "symptom", "why", "words", "proof"), "x")
    given = {"expect": Expected(3, ("killed",), fix="above 3"), "area": "kills", "name": "k", "command": "run"}
    return Pain(**words | given | changes)


def test_docs_pains_is_made_of_the_directories() -> None:
    assert documents.PATH.read_text() == documents.text(), "run `python tests/pains --docs`"


def test_every_cause_stands_in_the_catalogue_and_every_area_has_a_heading() -> None:
    assert not documents.unknown_ids()
    assert {each.area for each in PAINS} <= set(documents.AREAS)
    assert len({each.name for each in PAINS}) == len(PAINS)
    assert {rule for each in PAINS for rule in each.lint} <= set(RULES)


def test_at_most_five_pains_are_not_made_and_each_says_why() -> None:
    not_made = documents.read_not_made()
    assert len(not_made) <= 5 and all(len(why) > 40 for why in not_made.values())


@pytest.mark.parametrize("pain", PAINS, ids=lambda each: each.name)
def test_a_pain_is_whole(pain: Pain, tmp_path) -> None:
    for fixed in (False, True):
        path = tmp_path / f"{fixed}.yaml"
        path.write_text(pain.manifest(fixed=fixed))
        if pain.command != "lint":
            assert load_manifests([str(path)])
    assert pain.title and pain.symptom and pain.why and pain.words and pain.proof
    assert (pain.directory / "steps.sh").exists() or pain.command != "story"
    if not pain.silent:
        changed = yaml.safe_load_all(pain.manifest(fixed=True)) != yaml.safe_load_all(pain.manifest())
        assert pain.expect.fix and (changed or pain.fixed.advice or pain.fixed.args is not None)


def test_a_cause_that_is_not_named_fails_and_so_does_a_wrong_one_beside_it() -> None:
    for causes, problems, passes in (
        ({"killed"}, {"killed"}, True),
        (set(), set(), False),
        ({"killed", "zombies"}, {"killed", "zombies"}, False),
        ({"killed", "zombies"}, {"killed"}, True),
    ):
        verdict = Verdict("kills/k")
        said = Said(3, "", causes, problems, ["terminationGracePeriodSeconds above 3"])
        judge_broken(a_pain(), said, verdict)
        assert verdict.named is passes and verdict.proposed


def test_a_fix_that_leaves_the_cause_or_brings_another_problem_does_not_remove_it() -> None:
    for said, passes in (
        (Said(0, ""), True),
        (Said(3, ""), False),
        (Said(0, "", {"killed"}), False),
        (Said(0, "", {"zombies"}, {"zombies"}), False),
        (Said(0, "", {"zombies"}, set()), True),
    ):
        verdict = Verdict("kills/k")
        judge_fixed(a_pain(), said, verdict)
        assert verdict.removed is passes


def test_silence_is_broken_by_any_problem() -> None:
    pain = a_pain(expect=Expected(0), fixed=Fixed())
    for problems, passes in ((set(), True), ({"killed"}, False)):
        verdict = Verdict("kills/k")
        judge_broken(pain, Said(0, "", problems, problems), verdict)
        assert verdict.named is passes


def test_a_rollout_names_the_cause_of_most_lost_requests() -> None:
    lost = [{"cause": "cut off", "causeId": "cutOff"}, {"cause": "late endpoint", "causeId": "lateEndpoint"}]
    advice = [{"id": "lateEndpoint", "sentence": "A preStop hook", "saves": 5}]
    experiment = {"verdict": "requests lost", "sentence": "…", "byCause": {"cut off": 1, "late endpoint": 5}}
    said = said_of_experiment(3, "", experiment | {"lostRequests": lost, "advice": advice})
    assert said.problems == {"lateEndpoint"} and said.fixes == ["A preStop hook"]


def test_what_is_expected_to_fail_is_counted_and_told() -> None:
    good = Verdict("a/good", True, True, True)
    known = Verdict("a/known", True, False, True, known="not yet")
    mended = Verdict("a/mended", True, True, True, known="not yet")
    assert summary([good, known]) == "1/2 (1 expected to fail: a/known)"
    assert mended.word == "MENDED" and "did not" in summary([mended])


@pytest.mark.parametrize("pain", PAINS, ids=lambda each: each.name)
def test_lint_says_exactly_what_a_pain_says_that_it_does_and_is_content_with_the_fix(pain: Pain) -> None:
    told = {fixed: findings(*yaml.safe_load_all(pain.manifest(fixed=fixed))) for fixed in (False, True)}
    alarms = {each.rule for each in told[False] if each.severity != "info"}
    assert alarms <= {*pain.lint, *pain.lint_also}
    assert {*pain.lint, *pain.lint_also} <= {each.rule for each in told[False]}
    if not pain.fixed.advice:
        assert not set(pain.lint) & {each.rule for each in told[True]}
    if pain.silent:
        assert not told[False]


def test_the_table_of_other_linters_is_read_for_the_rules_that_it_names() -> None:
    beside = documents.other_linters()
    assert beside["probePortUnresolved"] == "kube-linter"
    assert set(beside) <= set(RULES)


def test_a_pain_without_a_rule_is_told_as_one_that_the_manifest_does_not_show() -> None:
    assert "the manifest does not show it" in documents.predicted_by(a_pain())
    assert "dependsOnApplication" in documents.predicted_by(a_pain(lint=("hookEatsGrace",)))
    assert "certain" in documents.predicted_by(a_pain(lint=("budgetNeverAllows",)))
