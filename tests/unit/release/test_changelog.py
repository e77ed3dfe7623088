"""CHANGELOG.md keeps the format that tools and people know (keepachangelog.com)."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "CHANGELOG.md").read_text()
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def test_versions_are_headings_and_what_is_not_released_comes_first() -> None:
    versions = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    for each in versions[versions[0] == "[Unreleased]" :]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", each), each


def test_each_version_has_its_changes_by_kind_in_the_usual_order() -> None:
    for version in re.split(r"^## .*$", TEXT, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", version, re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds], kinds
        for kind in re.split(r"^### .*$", version, flags=re.MULTILINE)[1:]:
            assert re.search(r"^- ", kind, re.MULTILINE), "a kind without a change"


def test_every_change_stands_below_a_kind() -> None:
    for version in re.split(r"^## .*$", TEXT, flags=re.MULTILINE)[1:]:
        assert not re.search(r"^- ", version.partition("\n### ")[0], re.MULTILINE)


def test_each_change_since_the_last_version_is_a_file_with_its_kind() -> None:
    for path in (ROOT / "changelog.d").iterdir():
        assert path.name == "README.md" or path.name.split(".")[1:] in [[kind.lower(), "md"] for kind in KINDS], (
            path.name
        )
