"""CI, the workflow and the Makefile run the same."""

import re
from pathlib import Path

import yaml

PROJECT = Path(__file__).parents[3]


def test_the_workflow_runs_what_ci_runs() -> None:
    workflow = yaml.safe_load((PROJECT / ".github/workflows/test.yml").read_text())
    steps = workflow["jobs"]["test"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == ["sudo --preserve-env=CI bash .ci/run"]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert (PROJECT / ".ci/run").read_text().strip().endswith("\nexec make test")
    assert re.search(r"^\$ make test\b", (PROJECT / "README.md").read_text(), re.MULTILINE)


def test_the_page_is_built_again_and_compared_only_where_its_source_changes() -> None:
    workflow = yaml.safe_load((PROJECT / ".github/workflows/page.yml").read_text())
    on = workflow[True]  # YAML 1.1 reads `on` as a boolean
    for event in ("push", "pull_request"):
        assert {"ui/**", "src/lastcall/ui/assets/**", "src/lastcall/ui/catalogue/**"} <= set(on[event]["paths"])
    ran = [step["run"] for step in workflow["jobs"]["page"]["steps"] if "run" in step]
    assert ran == ["make ui", "git diff --exit-code -- src/lastcall/ui/assets"]


def test_hooks_before_a_commit_fetch_nothing() -> None:
    hooks = yaml.safe_load((PROJECT / ".pre-commit-config.yaml").read_text())
    assert [each["repo"] for each in hooks["repos"]] == ["local"]
