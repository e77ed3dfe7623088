"""Pains that lint predicts: each rule that a pain names is found in its manifest."""

from pathlib import Path

import pytest
import yaml

from lastcall.lint.engine import lint
from lastcall.lint.sources import read

PAINS = sorted((Path(__file__).parents[2] / "pains").rglob("pain.yaml"))
PREDICTED = {file: rules for file in PAINS if (rules := yaml.safe_load(file.read_text()).get("lint"))}


@pytest.mark.parametrize("file", PREDICTED, ids=lambda file: f"{file.parent.parent.name}/{file.parent.name}")
def test_lint_names_what_then_happens_on_the_kernel(file: Path):
    found = lint(read([str(file.with_name("manifest.yaml"))]).subjects).findings
    assert {*PREDICTED[file]} <= {each.rule for each in found}
