"""docs/engines.md shows what the tests of containerd found, and of every test that there is."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import engine_results
import pytest


def test_the_page_shows_the_results_that_were_kept() -> None:
    results = json.loads(engine_results.RESULTS.read_text())
    text = engine_results.PAGE.read_text()
    assert engine_results.page(text, results) == text, "run: python tools/engine_results.py"


@pytest.mark.parametrize("version", ["1.6", "1.7"])
def test_every_test_of_containerd_was_run_on_each_version(version: str) -> None:
    results = json.loads(engine_results.RESULTS.read_text())
    missing = set(engine_results.tests()) - set(results[version]["tests"])
    assert not missing, f"as root: python tools/engine_results.py run {version}"


def test_of_several_cases_the_worst_is_shown(tmp_path: Path) -> None:
    suite = ElementTree.Element("testsuite")
    cases = [("test_a[1.7-x]", None), ("test_a[1.7-y]", "failure"), ("test_b[1.7]", "skipped"), ("test_b[1.6]", None)]
    for name, child in cases:
        case = ElementTree.SubElement(suite, "testcase", name=name)
        if child:
            ElementTree.SubElement(case, child)
    ElementTree.ElementTree(suite).write(tmp_path / "report.xml")
    assert engine_results.outcomes(tmp_path / "report.xml", "1.7") == {"test_a": "failed", "test_b": "skipped"}


def test_of_recorded_lifecycles_those_that_differ_are_shown_with_the_reason(tmp_path: Path, monkeypatch) -> None:
    suite = ElementTree.Element("testsuite")
    for name, found in (("test_r[1.7-a]", {"one": [], "two": ["x"]}), ("test_r[1.7-b]", {"three": []})):
        properties = ElementTree.SubElement(ElementTree.SubElement(suite, "testcase", name=name), "properties")
        ElementTree.SubElement(properties, "property", name="recordings", value=json.dumps(found))
    ElementTree.ElementTree(suite).write(tmp_path / "report.xml")
    found = engine_results.recordings(tmp_path / "report.xml", "1.7")
    assert found == {"one": [], "two": ["x"], "three": []}
    assert engine_results.recordings(tmp_path / "report.xml", "1.6") == {}
    monkeypatch.setitem(engine_results.ON_CONTAINERD, "two", ("x", "CRI does not say it"))
    version = {"containerd": "1.7.24", "runc": "1.1.5", "date": "d", "commit": "c", "tests": {}, "recordings": found}
    text = engine_results.section({"1.7": version})
    assert "| recorded lifecycles | 1.7.24 |\n|---|---|\n| replayed | 3 |\n| as recorded | 2 |\n" in text
    assert text.endswith("| `two`: CRI does not say it | differs |\n")
