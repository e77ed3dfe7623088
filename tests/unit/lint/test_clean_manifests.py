"""Manifests as teams have them, which are in order: nothing is found in them, not even a note."""

from pathlib import Path

import pytest

from lastcall.lint.early import certain_errors
from lastcall.lint.engine import lint
from lastcall.lint.rules.references import RULE_OF
from lastcall.lint.sources import read
from lastcall.manifests.read import load_manifests

CLEAN = sorted((Path(__file__).parents[2] / "clean").rglob("*.yaml"))


def test_there_are_clean_manifests():
    assert len(CLEAN) >= 40


@pytest.mark.parametrize("file", CLEAN, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_nothing_is_found_in_a_clean_manifest(file: Path):
    found = read([str(file)])
    assert found.of_texts == []
    assert [(each.rule, each.message) for each in lint(found.subjects).findings] == []


@pytest.mark.parametrize("file", CLEAN, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_run_and_rollout_say_nothing_of_a_clean_manifest(file: Path):
    text = file.read_text()
    if "kind: CronJob" in text:
        pytest.skip("`lastcall run` takes no CronJob")
    found = [each.finding for each in certain_errors(load_manifests([str(file)]))]
    # What is not in the file is not in a new cluster: that is true, and nothing is wrong with the file.
    assert {each.rule for each in found} <= set(RULE_OF.values())
