"""JUnit, annotations and Markdown summaries of `run` and `rollout`: well formed, with what failed and why."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from story_samples import samples

from lastcall.cli.output import document
from lastcall.cli.rollout import command as rollout_command
from lastcall.cli.run.command import run
from lastcall.cli.run.experiment import run_manifests
from lastcall.cli.summary import append_summary
from lastcall.endings.render.checks import Check, as_github, as_junit, block, folded, plain, shortened, table
from lastcall.errors import LastcallError
from lastcall.experiment.run.checks import checks_of, summary_of
from lastcall.experiment.run.options import RunOptions
from lastcall.kube.cluster.errors import ClusterStartError


def endings():
    return samples()["graceful"][0], samples()["sigkill"][0]


def test_each_pod_is_a_case_and_fails_when_it_was_not_graceful():
    good, bad = endings()
    root = ET.fromstring(document([good, bad], "junit", kubernetes_version="1.36", status=3))
    cases = root.findall("./testsuite/testcase")
    assert [case.get("name") for case in cases] == [f"{e.pod.namespace}/{e.pod.name}" for e in (good, bad)]
    assert [len(case.findall("failure")) for case in cases] == [0, 1]
    failure = cases[1].find("failure")
    assert failure.get("type") == "killed" and "SIGKILL" in failure.get("message") and "SIGKILL" in failure.text
    assert root.get("failures") == "1"


def test_what_cut_a_run_short_is_a_failure_of_its_own():
    root = ET.fromstring(as_junit("lastcall run", checks_of([], "Pod web is not Ready")))
    assert [each.get("message") for each in root.iter("failure")] == ["Pod web is not Ready"]


def test_a_suite_without_pods_has_a_case():
    assert ET.fromstring(as_junit("lastcall run", [], "no Pod")).find("./testsuite/testcase").get("name") == "no Pod"


@pytest.mark.parametrize("hostile", ["\x00\x1b[31m", "]]>", '"><failure/>', "&amp;", "\ud800", "\ufffe"])
def test_hostile_text_stays_text_in_junit(hostile):
    xml = as_junit(hostile, [Check(hostile, hostile, "error", hostile, hostile), Check("a", "b", skipped=hostile)])
    root = ET.fromstring(xml.encode("utf-8", "strict"))
    assert len(list(root.iter("failure"))) == 1 and len(list(root.iter("testcase"))) == 2


def test_a_hostile_story_is_well_formed_in_every_form():
    hostile = samples()["hostile"]
    ET.fromstring(document(hostile, "junit", kubernetes_version="1.36", status=3).encode("utf-8", "strict"))
    summary = summary_of(hostile, kubernetes_version="1.36")
    outside = [part for number, part in enumerate(summary.split("```")) if number % 2 == 0]
    assert "<script>" not in "".join(outside) and "<img" not in "".join(outside)
    assert not {"\x1b", "\x00", "\u202e", "\ud800"} & set(summary)
    assert document(hostile, "github", kubernetes_version="1.36", status=3).count("\n") == 1


def test_only_what_failed_is_annotated_in_one_line_each():
    good, bad = endings()
    told = as_github(checks_of([good, bad]))
    assert told.count("\n") == 1 and told.startswith("::error title=")
    assert f"{bad.pod.name} was killed" in told and good.pod.name not in told


def test_an_annotation_cannot_begin_a_command_of_its_own():
    told = as_github([Check("s", "a,b::c", "error", "x\n::set-output name=a::b\r%")])
    assert told == "::error title=a%2Cb%3A%3Ac::x%0A\\x3a:set-output name=a::b\\r%25\n"


def test_a_summary_has_a_row_for_each_pod_and_the_stories_to_open():
    good, bad = endings()
    text = summary_of([good, bad], kubernetes_version="1.36")
    assert text.startswith("### ❌ lastcall run: 1 of 2 Pods did not end gracefully\n")
    assert f"| {bad.pod.namespace}/{bad.pod.name} | was killed |" in text
    assert text.count("<details>") == text.count("</details>") == 2
    assert summary_of([good], kubernetes_version="1.36").startswith("### ✅ lastcall run: 1 Pod ended gracefully\n")
    assert "no Pod was ended" in summary_of([], kubernetes_version="1.36", error="Pod web is not Ready")


def test_text_cannot_leave_its_place_in_markdown():
    assert table(("a",), [("x | y\n<script>",)]).splitlines()[2] == r"| x \| y &lt;script&gt; |"
    assert folded("<b>_x_", "").startswith("<details><summary>&lt;b&gt;_x_</summary>")
    assert plain("*a* [b](c)") == r"\*a\* \[b\](c)"
    assert block("a\n````\nb").startswith("`````text\n")


def test_a_summary_that_would_be_too_long_says_what_is_left_out():
    told = shortened(["head\n", "x" * 90, "y" * 90], most=120)
    assert told.startswith("head\n") and "1 more parts are left out" in told and "y" not in told.split("left out")[0]


def test_a_summary_is_appended_to_the_file_and_to_that_of_the_variable(tmp_path, monkeypatch):
    file, github = tmp_path / "a.md", tmp_path / "step.md"
    github.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(github))
    append_summary(str(file), "new\n")
    assert (file.read_text(), github.read_text()) == ("new\n", "before\nnew\n")


def test_a_step_summary_that_cannot_be_written_is_said_and_no_failure(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "step.md"))
    append_summary("", "new\n")
    assert "the summary was not written to" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["none/s.md", "."])
def test_a_summary_that_cannot_be_written_is_refused_before_anything_runs(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("pod.yaml").write_text("x")
    for one in (run, rollout_command.rollout):
        result = CliRunner().invoke(one, ["pod.yaml", "--summary", name])
        assert result.exit_code == 2 and "--summary" in result.output, result.output


def test_a_junit_file_is_known_by_its_suffix(tmp_path):
    from lastcall.cli.output import checked_output

    assert checked_output(None, tmp_path / "a.xml") == "junit"
    with pytest.raises(click.UsageError):
        checked_output(None, tmp_path / "a.yaml")


def test_a_graceful_pod_s_name_is_escaped_too():
    good, _ = endings()
    odd = replace(good, pod=replace(good.pod, name="a|b"))
    assert r"a\|b" in summary_of([odd], kubernetes_version="1.36")


@pytest.mark.parametrize("versions", [(), ("1.23", "1.36")])
@pytest.mark.parametrize("format_", ["junit", "github", "json"])
def test_a_run_that_ended_no_pod_says_so_in_its_test_report(tmp_path, monkeypatch, capsys, versions, format_):
    def refuse(_):
        raise ClusterStartError("no namespaces")

    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    file = tmp_path / "report"
    file.write_text("of an earlier run")
    with pytest.raises(LastcallError):
        run_manifests([], RunOptions(versions=versions, output=format_, output_file=file), refuse)
    told = {"junit": "<failure", "github": "::error title=lastcall run::", "json": "of an earlier run"}
    assert told[format_] in file.read_text() and ("no namespaces" in file.read_text()) is (format_ != "json")
    assert (tmp_path / "step.md").read_text().count("no namespaces") == (len(versions) or 1)
