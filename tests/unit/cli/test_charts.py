"""Charts as arguments of lint, run and rollout: what helm is asked, what it says, and where findings point.

No Helm is here: a stand-in prints a rendering of the chart of tests/data/charts, or fails as Helm does.
"""

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner
from published_schema import problems
from sarif import sarif_problems

from lastcall.cli.errors import guarded
from lastcall.cli.lint import lint
from lastcall.cli.rollout.command import rollout
from lastcall.cli.run.command import run
from lastcall.manifests.charts import is_chart
from lastcall.manifests.helm import Chart, rendered
from lastcall.manifests.read import load_manifests

pytestmark = pytest.mark.loopback  # helm is a process

DATA = Path(__file__).parents[2] / "data/charts"
SCHEMA = json.loads((Path(__file__).parents[3] / "docs/lint-v1.schema.json").read_text())
SHOP = str(DATA / "shop")

Helm = Callable[..., Path]


@pytest.fixture
def helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Helm:
    """Make a stand-in for helm: it notes its arguments in the file that is returned, and does what `script` says."""
    directory, asked = tmp_path / "bin", tmp_path / "asked"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")

    def made(script: str = f"cat {DATA / 'shop.yaml'}") -> Path:
        program = directory / "helm"
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {asked}\nenv > {asked}.env\n{script}\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return asked

    return made


class Typed(NamedTuple):
    """What a command said, its errors as the real command line tells them, and its exit status."""

    exit_code: int
    output: str


def typed(command: click.Command, *arguments: str, stdin: str | None = None) -> Typed:
    lines: list[str] = []
    said: list[str] = []

    def invoked() -> int:
        result = CliRunner().invoke(command, list(arguments), input=stdin, standalone_mode=False)
        said.append(result.output)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code

    status = guarded(invoked, lines.append)
    return Typed(status, "\n".join([*said, *lines]))


def linted(*arguments: str) -> Typed:
    return typed(lint, *arguments)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_helm_gets_release_namespace_values_and_settings(helm: Helm, tmp_path: Path) -> None:
    asked = helm()
    values = tmp_path / "prod.yaml"
    values.write_text("replicas: 3\n")
    linted(SHOP, "--release", "r1", "-n", "prod", "-f", str(values), "--set", "a=b", "--set", "c=d,e=f")
    assert asked.read_text().splitlines() == [
        "template", "r1", SHOP, "--namespace", "prod", "--include-crds", "-f", str(values), "--set", "a=b",
        "--set", "c=d,e=f",
    ]  # fmt: skip


def test_helm_reaches_no_network(helm: Helm) -> None:
    asked = helm()
    linted(SHOP)
    assert "HTTPS_PROXY=http://127.0.0.1:1" in Path(f"{asked}.env").read_text().splitlines()


def test_findings_point_at_the_template_and_at_the_rendered_line(helm: Helm) -> None:
    helm()
    result = linted(SHOP)
    assert result.exit_code == 3, result.output
    name = f"<helm template {SHOP}>"
    assert f"{name}:8:3 (shop/templates/budget.yaml): error budgetNeverAllows" in result.output
    assert f"{name}:28:11 (shop/templates/deployment.yaml): error invalidValue" in result.output
    assert f"Job r1-migrate (batch/v1), {name}:31 (shop/templates/migrate.yaml)" in result.output
    document = json.loads(linted(SHOP, "-o", "json").output)
    assert list(problems(document, SCHEMA, root=SCHEMA)) == []
    found = {each["rule"]: (each["template"], each["line"]) for each in document["findings"]}
    assert found["budgetNeverAllows"] == ("shop/templates/budget.yaml", 8)
    assert [each["template"] for each in document["notChecked"]] == ["shop/templates/migrate.yaml"]
    assert "imagePullPolicy: Sometimes" in (DATA / "shop.yaml").read_text().splitlines()[28 - 1]


def test_a_rendering_that_is_piped_in_names_its_templates_too() -> None:
    result = typed(lint, "-", stdin=(DATA / "shop.yaml").read_text())
    assert "<stdin>:8:3 (shop/templates/budget.yaml): error" in result.output


def test_run_reads_a_chart_and_lists_its_hooks(helm: Helm) -> None:
    helm(f"sed s/Sometimes/Always/ {DATA / 'shop.yaml'}")
    notes: list[str] = []
    loaded = load_manifests((), chart=Chart(SHOP), note=notes.append)
    assert [each.resource.kind for each in loaded] == ["PodDisruptionBudget", "Deployment"]
    place = f"<helm template {SHOP}>:31 (shop/templates/migrate.yaml)"
    assert notes == [f"skipped, because Helm runs them as hooks: Job r1-migrate (pre-upgrade; {place})"]


@pytest.mark.parametrize("command", [run, rollout])
def test_run_and_rollout_refuse_a_chart_that_kubernetes_refuses_with_its_template(command, helm: Helm) -> None:
    helm()
    result = typed(command, SHOP)
    assert result.exit_code == 2
    assert f"<helm template {SHOP}>:28 (shop/templates/deployment.yaml): document 2" in result.output


def test_without_helm_the_error_shows_what_to_pipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    values = tmp_path / "my values.yaml"
    values.write_text("a: b\n")
    result = linted(SHOP, "-f", str(values), "--set", "a=b", "--release", "r1")
    assert result.exit_code == 1
    shown = f"helm template r1 {SHOP} --namespace default --include-crds -f '{values}' --set a=b | lastcall lint -"
    assert shown in result.output.replace("\n", "")


def test_what_helm_says_of_a_broken_chart_is_the_error(helm: Helm) -> None:
    helm("echo 'Error: template: shop/templates/x.yaml:3:14: nil pointer evaluating' >&2; exit 1")
    result = linted(SHOP)
    assert result.exit_code == 2
    assert f"{SHOP}: Error: template: shop/templates/x.yaml:3:14: nil pointer evaluating" in result.output


@pytest.mark.parametrize(
    ("script", "status", "words"),
    [
        ("exit 3", 2, "helm ended with 3"),
        ("true", 2, "helm template printed nothing"),
        (r"printf '\377\376'", 2, "not UTF-8"),
        ("echo 'a: [b'", 2, "not readable as YAML"),
    ],
)
def test_a_helm_that_prints_nothing_usable_is_an_error(helm: Helm, script: str, status: int, words: str) -> None:
    helm(script)
    result = linted(SHOP)
    assert (result.exit_code, words in result.output) == (status, True), result.output


def test_a_helm_that_does_not_end_is_ended(helm: Helm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastcall.manifests.helm.HELM_SECONDS", 0.2)
    asked = helm("exec sleep 60")
    result = linted(SHOP)
    assert (result.exit_code, "helm did not end within 0.2 s" in result.output) == (1, True), result.output
    assert asked.exists()


def test_values_that_are_not_a_file_are_refused_before_helm_runs(helm: Helm) -> None:
    asked = helm()
    for values in ("missing.yaml", "https://example.com/values.yaml", os.fspath(DATA)):
        result = linted(SHOP, "-f", values)
        assert (result.exit_code, "values are read from files" in result.output) == (2, True), result.output
    assert not asked.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((str(DATA / "shop.yaml"), "--set", "a=b"), "--set is for a chart"),
        (("-", "--release", "r1"), "--release is for a chart"),
        ((SHOP, str(DATA / "shop.yaml")), "is a chart, which is read alone"),
        ((SHOP, "-k", "there"), "is a chart, which is read alone: leave out -k there"),
        ((SHOP, "--fix"), "cannot change stdin, a chart's templates"),
    ],
)
def test_options_that_do_not_go_with_or_without_a_chart_are_refused(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(lint, list(arguments))
    assert (result.exit_code, words in " ".join(result.output.split())) == (2, True), result.output


def test_a_chart_is_a_directory_with_its_file_or_a_package(tmp_path: Path) -> None:
    (tmp_path / "shop-0.1.0.tgz").write_bytes(b"")
    (tmp_path / "plain").mkdir()
    assert is_chart(SHOP)
    assert is_chart(str(tmp_path / "shop-0.1.0.tgz"))
    assert not any(is_chart(str(each)) for each in (tmp_path / "plain", tmp_path / "no.tgz", DATA / "shop.yaml", "-"))


def test_a_rendering_is_what_helm_printed(helm: Helm) -> None:
    helm("printf 'a: b\\n'")
    assert rendered(Chart(SHOP)) == "a: b\n"


def test_a_chart_whose_path_begins_with_a_dash_is_no_option_of_helm(
    helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = helm()
    shutil.copytree(SHOP, tmp_path / "-shop")
    monkeypatch.chdir(tmp_path)
    assert typed(lint, "--", "-shop").exit_code in (0, 3)
    assert asked.read_text().splitlines()[:3] == ["template", "release-name", "./-shop"]


def test_sarif_of_a_chart_leads_to_the_chart(helm: Helm) -> None:
    helm()
    document = json.loads(typed(lint, SHOP, "-o", "sarif").output)
    places = [each["locations"][0]["physicalLocation"] for each in document["runs"][0]["results"]]
    assert places and all(each == {"artifactLocation": {"uri": f"file://{SHOP}"}} for each in places)
    assert sarif_problems(document) == []
