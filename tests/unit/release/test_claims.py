"""What README and the guides claim in numbers and names is what the project has."""

import json
import re
from pathlib import Path

import pytest

from lastcall.cli.options import DEFAULT_KUBERNETES_VERSION, KUBERNETES_VERSIONS
from lastcall.kube.api.features.releases import DEFAULT_VERSION, RELEASES
from lastcall.kube.cluster import MOST_NODES
from lastcall.kube.node.versions import VERSIONS, behaviour_of

ROOT = Path(__file__).parents[3]
GUIDES = sorted(path for folder in ("", "docs", "examples") for path in (ROOT / folder).glob("*.md"))
SOURCE = ROOT / "src" / "lastcall"
_PATH = re.compile(r"`((?:src|tools|tests|bench|examples|web|templates)/[\w./*-]+)")


def page(name: str) -> str:
    return " ".join((ROOT / name).read_text("utf-8").split())


def test_the_two_first_pages_are_short() -> None:
    for name in ("README.md", "ARCHITECTURE.md"):
        assert len((ROOT / name).read_text("utf-8").splitlines()) <= 150, name


def test_the_changelog_is_short_until_something_was_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert len(text.splitlines()) <= 40 or re.search(r"^## \[\d", text, re.MULTILINE)


def test_no_requirement_of_an_example_is_a_name_of_ours_that_somebody_else_could_register() -> None:
    files = sorted((ROOT / "examples").rglob("requirements*.txt"))
    lines = [line for file in files for line in file.read_text().splitlines() if line.startswith("lastcall")]
    assert lines and all(line.startswith("lastcall @ git+https://") for line in lines), lines


def test_readme_counts_the_symptoms_that_pains_has() -> None:
    (claimed,) = re.findall(r"goes from (\d+) symptoms", page("README.md"))
    assert f"{claimed} pains, " in page("docs/pains.md")


def test_every_page_counts_the_steps_that_the_tour_has() -> None:
    steps = len(json.loads((ROOT / "ui/src/tour.json").read_bytes())["steps"])
    found = {(path.name, int(n)) for path in GUIDES for n in re.findall(r"\b(\d+) steps\b", path.read_text("utf-8"))}
    assert {number for _, number in found} == {steps}, found


def test_the_comparison_has_the_last_result_of_the_conformance_suite() -> None:
    (claimed,) = re.findall(r"conformance suite \| (\d+ of \d+)", page("docs/comparison.md"))
    last = re.findall(r"(\d+) of (\d+) passed", page("docs/conformance.md"))[0]
    assert claimed == " of ".join(last)


def test_the_comparison_names_the_versions_that_the_option_takes() -> None:
    (row,) = [line for line in (ROOT / "docs/comparison.md").read_text().splitlines() if "| Kubernetes is |" in line]
    assert set(re.findall(r"\b1\.\d\d\b", row)) == set(KUBERNETES_VERSIONS)


def test_the_options_have_the_versions_and_the_default_of_the_rules() -> None:
    assert (DEFAULT_VERSION, tuple(RELEASES)) == (DEFAULT_KUBERNETES_VERSION, KUBERNETES_VERSIONS)
    assert behaviour_of(DEFAULT_VERSION).version == DEFAULT_VERSION and tuple(RELEASES) == VERSIONS


def test_clusters_names_the_most_nodes() -> None:
    assert f"up to {MOST_NODES} nodes" in page("docs/clusters.md")


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_a_guide_names_are_there(path: Path) -> None:
    missing = {name for name in _PATH.findall(path.read_text("utf-8")) if not any(ROOT.glob(name.rstrip("./")))}
    assert not missing


def lines_of(path: Path) -> int:
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return sum(len(each.read_text("utf-8").splitlines()) for each in files)


def test_what_is_written_by_hand_is_where_dependencies_says_and_about_as_long() -> None:
    table = (ROOT / "docs/dependencies.md").read_text("utf-8").partition("## Written by hand")[2]
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines() if line.startswith("| ")]
    seen = 0
    for what, lines in rows:
        if names := re.findall(r"`([\w./]+)`", what):
            assert all((SOURCE / name).exists() for name in names), what
            counted = sum(lines_of(SOURCE / name) for name in names)
            assert abs(counted - int(lines)) <= counted / 5, (what, counted)
            seen += 1
    assert seen >= 15
