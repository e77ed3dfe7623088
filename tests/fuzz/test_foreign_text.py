"""Whatever somebody else wrote, no output obeys it: every renderer and every format of output, with hostile text."""

import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import click
import pytest
import rich.text
from click.testing import CliRunner
from foreign_text import foreign_texts, harm_in, texts_in
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rollout_results import rollout_result
from sarif import sarif_problems
from story_samples import hostile

from lastcall.cli.cleanup import tell_found
from lastcall.cli.confirmation import confirm
from lastcall.cli.errors import guarded
from lastcall.cli.lint import FORMATS as LINT_FORMATS
from lastcall.cli.lint import lint
from lastcall.cli.output import FORMATS, document
from lastcall.cli.terminal import say, say_all, say_from
from lastcall.endings.render.checks import as_github, as_junit
from lastcall.endings.render.console import SafeConsole, Text
from lastcall.endings.render.json_text import quoted_json
from lastcall.endings.render.json_v1 import record_line
from lastcall.endings.render.live import LiveTimeline
from lastcall.endings.render.redraw import redraw
from lastcall.endings.render.status_line import StatusLine
from lastcall.endings.render.text import print_endings
from lastcall.endings.render.versions import plain_versions
from lastcall.endings.story import Ending, Finding
from lastcall.endings.versions import VersionStory
from lastcall.errors import UserError, WorldError
from lastcall.experiment.existing.ledger import Changed, Created, Holder, Ledger, Target
from lastcall.experiment.existing.leftovers import Leftovers
from lastcall.experiment.not_simulated import Note
from lastcall.experiment.reasons.failures import NotWell
from lastcall.experiment.rollout import checks as rollout_checks
from lastcall.experiment.rollout.html import html_page as rollout_page
from lastcall.experiment.rollout.report import tell_limits, tell_results
from lastcall.experiment.rollout.report_json import as_json
from lastcall.experiment.rollout.result import Result
from lastcall.experiment.run import checks as run_checks
from lastcall.kube.api.resources import DEPLOYMENTS
from lastcall.kube.client.access.config import Overrides
from lastcall.kube.client.access.errors import KubeconfigError
from lastcall.kube.client.access.merging import merged
from lastcall.kube.client.access.selecting import select
from lastcall.records.quoting import is_plain, log_line, one_line
from lastcall.trace.exporting.health import Health
from lastcall.trace.exporting.metrics import Metrics
from lastcall.traffic.thresholds import MaxLost, Thresholds
from lastcall.world.world import World

fuzzed = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
foreign = given(foreign_texts())
WIDTHS = (20, 40, 79, 100)


def story(text: str) -> Ending:
    """A Pod of which every name, reason, message and line is `text`."""
    made = hostile(text, text)
    findings = tuple(replace(each, text=text, advice=text) for each in made.findings)
    containers = tuple(
        replace(each, exit=replace(each.exit, reason=text), seen=replace(each.seen, last_lines=(text, text)))
        for each in made.containers
    )
    return replace(made, findings=findings, containers=containers, not_known=(text,))


def printed(work: Callable[[], object]) -> str:
    """Return what `work` writes to stdout and stderr."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        work()
    return out.getvalue()


# -- the rules ------------------------------------------------------------------------------------------------------


@fuzzed
@foreign
def test_a_line_is_one_line_and_is_quoted_once(text: str) -> None:
    assert is_plain(one_line(text)) and "\n" not in log_line(text)
    assert one_line(one_line(text)) == one_line(text)
    assert harm_in(log_line(text)) == ""


@fuzzed
@foreign
def test_json_is_quoted_and_read_as_it_was(text: str) -> None:
    made = quoted_json({text: [text]})
    assert harm_in(made) == "" and json.loads(made) == {text: [text]}


@fuzzed
@foreign
def test_lines_of_commands_are_quoted_one_by_one(text: str) -> None:
    for lines in (
        printed(lambda: say(text, text)),
        printed(lambda: say(text, text, err=True)),
        printed(lambda: say_from("lastcall", text)),
        printed(lambda: say_all(text)),
    ):
        assert harm_in(lines) == ""
    assert printed(lambda: say(text, text)).count("\n") == 2
    assert all(line.startswith("trace: ") for line in printed(lambda: say_from("trace", text)).splitlines())


# -- stories --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", FORMATS)
@fuzzed
@given(foreign_texts(), st.sampled_from(WIDTHS), st.booleans())
def test_a_story_obeys_nobody_in_any_format(format_: str, text: str, width: int, explain: bool) -> None:
    ending = story(text)
    more = {"explain": explain, "width": width, "error": text}
    told = document([ending, ending], format_, kubernetes_version="1.36", status=3, **more)
    assert harm_in(told, own_commands=format_ == "github") == ""
    if format_ == "junit":
        ET.fromstring(told.encode("utf-8", "strict"))
    if format_ in ("json", "chrome-trace"):
        assert any(text in each for each in texts_in(told))


@fuzzed
@given(foreign_texts(), st.sampled_from(WIDTHS))
def test_stories_on_a_terminal_have_only_our_own_colours(text: str, width: int) -> None:
    out = io.StringIO()
    console = SafeConsole(file=out, width=width, force_terminal=True, color_system="truecolor")
    print_endings(console, [story(text)] * 2, explain=True)
    console.print(
        text, Text(text, style="red"), rich.text.Text(text), rich.text.Text.from_markup("[b]x[/b]").append(text)
    )
    assert harm_in(out.getvalue(), colours=True) == ""
    assert "\x1b[8m" not in out.getvalue()


@fuzzed
@given(foreign_texts(), st.sampled_from((80, 140)))
def test_versions_beside_one_another_obey_nobody(text: str, width: int) -> None:
    stories = [VersionStory("1.23", (story(text),), 3, text), VersionStory("1.36", (hostile("x", "y"),), 0, "")]
    assert harm_in(plain_versions(stories, width, explain=True)) == ""


@fuzzed
@foreign
def test_summaries_of_jobs_obey_nobody(text: str) -> None:
    ending = replace(story(text), outcome="killed")
    assert harm_in(run_checks.summary_of([ending], kubernetes_version="1.36", error=text)) == ""


@pytest.mark.parametrize("terminal", [False, True])
@fuzzed
@foreign
def test_a_live_timeline_obeys_nobody(terminal: bool, text: str) -> None:
    out = io.StringIO()
    console = SafeConsole(file=out, width=60, force_terminal=terminal, color_system="truecolor" if terminal else None)
    live = LiveTimeline(console, console, details=True)
    ending = story(text)
    live.begin([ending.pod, replace(ending.pod, uid="other", name=f"{text}2")])
    live.note(text)
    live.waiting(100.0, 99.0, text)
    for entry in ending.entries:
        live.record(entry.record)
        assert harm_in(record_line(entry.record)) == ""
    live.tick(10**15)
    live.end()
    assert out.getvalue() and harm_in(out.getvalue(), colours=terminal, redraws=terminal) == ""


@fuzzed
@foreign
def test_a_line_that_changes_in_place_obeys_nobody(text: str) -> None:
    out = io.StringIO()
    StatusLine(say, out).show(100.0, 99.0, text)
    redraw(out, text)
    assert harm_in(out.getvalue(), redraws=True) == ""
    assert out.getvalue().count("\r") == out.getvalue().count("\x1b") == 2


@fuzzed
@foreign
def test_metrics_obey_nobody(text: str) -> None:
    metrics = Metrics(World(), Health)
    metrics.ended(story(text))
    for accept in ("text/plain", "application/openmetrics-text"):
        page, _ = metrics.page(accept)
        assert harm_in(page.decode("utf-8", "strict").replace("##[", "").replace("##vso[", "")) == ""


# -- rollout --------------------------------------------------------------------------------------------------------


def hostile_result(text: str) -> Result:
    """An experiment in which every name and sentence is `text`."""
    finding = Finding(text, "problem", text, text, text)
    made = rollout_result(text, text, what=f"Deployment {text}", service=text, node=text)
    made = replace(made, notes=(Note(text, text, text),), not_well=(NotWell(text, (finding,), (text,)),))
    advice = [
        replace(each, patch={"spec": {" ".join(text.split("\n")): 1}}, sentence=text)
        for each in made.judgement.advice * 2
    ]
    judged = replace(made.judgement, advice=tuple(advice), sentence=text)
    return replace(made, judgement=judged)


@settings(fuzzed, max_examples=10)
@given(foreign_texts(), st.sampled_from((40, 100)))
def test_a_rollout_obeys_nobody_in_any_format(text: str, width: int) -> None:
    results, limits = [hostile_result(text)] * 2, Thresholds(max_lost=MaxLost(0))
    out = io.StringIO()
    console = SafeConsole(file=out, width=width, force_terminal=True, color_system="standard")
    tell_results(console, results)
    tell_limits(console, results, limits)
    assert harm_in(out.getvalue(), colours=True) == ""
    told = rollout_checks.checks_of(results, limits, text)
    assert harm_in(as_github(told), own_commands=True) == ""
    for each in (
        rollout_checks.plain_text(results, limits),
        rollout_checks.summary_of(results, limits, text),
        rollout_page(results, limits),
        quoted_json(as_json(results, limits), 1),
        as_junit(text, told),
    ):
        assert harm_in(each) == ""


# -- lint -----------------------------------------------------------------------------------------------------------


def manifests(text: str) -> str:
    """A list of objects that break many rules, each name in them `text`. JSON is YAML."""
    metadata = {"name": text, "namespace": text, "labels": {"app": text}}
    metadata["annotations"] = {f"lint.lastcall/ignore.{text}": ""}
    container = {"name": text, "image": text, "ports": [{"containerPort": 0, "name": text}], text: text}
    container["env"] = [{"name": text, "valueFrom": {"secretKeyRef": {"name": text, "key": text}}}]
    pod = {"metadata": metadata, "spec": {"containers": [container, container], "restartPolicy": text}}
    service = {"ports": [{"port": 80}], "selector": {"a": text}}
    selectors = [{"matchLabels": {"app": each}} for each in (f"{text}2", text)]
    deployments = [{"selector": each, "template": pod} for each in selectors]
    objects = [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        *({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": each} for each in deployments),
        {"apiVersion": "v1", "kind": "Pod", **pod},
        {"apiVersion": text, "kind": text, "metadata": metadata},
    ]
    return "\n---\n".join(map(json.dumps, objects))


@pytest.mark.parametrize("format_", LINT_FORMATS)
@fuzzed
@foreign
def test_lint_obeys_no_manifest_in_any_format(format_: str, text: str) -> None:
    done = CliRunner().invoke(lint, ["-", "-o", format_], input=manifests(text))
    assert done.output and harm_in(done.output, own_commands=format_ == "github") == ""
    if format_ == "junit":
        ET.fromstring(done.stdout)
    if format_ == "sarif":
        assert sarif_problems(json.loads(done.stdout)) == []


def test_lint_obeys_no_name_of_a_file(tmp_path: Path) -> None:
    names = ("a\n::error::x\x1b[2J.yaml", "##[error]\u202e.yaml", "::warning::y.yaml")
    for name in names:
        (tmp_path / name).write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}')
    (tmp_path / "bad\r::x::y.yaml").write_text("a: [")
    for format_ in LINT_FORMATS:
        done = CliRunner().invoke(lint, [str(tmp_path), "-o", format_])
        assert done.output and harm_in(done.output, own_commands=format_ == "github") == "", format_
        if format_ == "sarif":
            assert sarif_problems(json.loads(done.stdout)) == []


# -- lines ----------------------------------------------------------------------------------------------------------


def test_a_newline_in_a_text_begins_no_line_of_its_own() -> None:
    text = "x\nFORGED: nothing is wrong"
    wide = io.StringIO()
    console = SafeConsole(file=wide, width=5000)
    print_endings(console, [story(text)] * 2, explain=True)
    tell_results(console, [hostile_result(text)] * 2)
    live = LiveTimeline(console, console, details=True)
    live.begin([story(text).pod])
    live.note(text)
    for entry in story(text).entries:
        live.record(entry.record)
    live.end()
    versions = plain_versions([VersionStory("1.36", (story(text),), 3, text)], 5000, explain=True)
    linted = CliRunner().invoke(lint, ["-"], input=manifests(text)).output
    summary = run_checks.summary_of([replace(story(text), outcome="killed")], kubernetes_version="1.36", error=text)
    for told in (wide.getvalue(), versions, linted, summary, printed(lambda: say(text))):
        assert "\\nFORGED" in told or "x FORGED" in told
        assert [line for line in told.splitlines() if line.lstrip(" |-#>`").startswith("FORGED")] == []


# -- experiments and errors -----------------------------------------------------------------------------------------


@fuzzed
@foreign
def test_the_question_of_cleanup_cannot_be_forged(text: str) -> None:
    target = Target("apps", "v1", "deployments", text, text, text)
    ledger = Ledger(text, Holder(text, 1, 1), (Created(target), Changed(target, (text,), 1, 2)))
    orphan = {"metadata": {"name": text, "namespace": text}}
    found = Leftovers([(text, ledger)], [(text, ledger)], [(DEPLOYMENTS, orphan)], [text], [text])
    lines = ["In context mine lastcall will", *(f"  - {line}" for line in found.lines)]
    asked = printed(lambda: confirm("mine", lines, "mine"))
    assert harm_in(asked) == ""
    assert [line[:4] for line in asked.splitlines()] == ["In c", *["  - "] * 3]
    assert harm_in(printed(lambda: tell_found(found))) == ""


@pytest.mark.parametrize(
    "error",
    [UserError, WorldError, click.UsageError, click.ClickException, ValueError, lambda text: OSError(5, text, text)],
)
@fuzzed
@foreign
def test_no_error_obeys_what_it_tells(error: Callable[[str], Exception], text: str) -> None:
    def fail() -> int:
        raise error(text)

    said = printed(lambda: guarded(fail))
    assert said and harm_in(said) == ""


@fuzzed
@foreign
def test_no_kubeconfig_and_no_plugin_is_obeyed(text: str) -> None:
    user = {"name": text, "user": {"exec": {"command": text, "apiVersion": text, "installHint": text, "args": [1]}}}
    file = {
        "current-context": text,
        "clusters": [{"name": text, "cluster": {"server": text, "certificate-authority": text}}],
        "users": [user],
        "contexts": [{"name": text, "context": {"cluster": text, "user": text}}],
    }

    def fail() -> int:
        try:
            select(merged([(text, file)]), Overrides(), lambda path: b"")
        except KubeconfigError as error:
            raise UserError(str(error)) from error
        return 0

    assert harm_in(printed(lambda: guarded(fail))) == ""
    assert harm_in(printed(lambda: guarded(lambda: merged([(text, [user])]) and 0))) == ""
