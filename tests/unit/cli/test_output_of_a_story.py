"""`--output` and `--output-file`: where a story goes, and what is said before anything is done."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lastcall.cli.output import checked_output, write_file
from lastcall.cli.run.command import run
from lastcall.cli.run.experiment import run_manifests
from lastcall.cli.run.option_values import make_options
from lastcall.experiment.run.options import RunOptions
from lastcall.manifests.read import load_manifests

FAST = RunOptions(after=0, timeout=60)


def options(**given):
    known = {
        "kubernetes_version": ("1.36",), "output": None, "output_file": None, "explain": False, "grace": None,
        "after": 0.0, "timeout": 5.0, "state_size": "50%", "keep": False,
        "keep_on_failure": False, "ui": False, "ui_port": None, "opens": False, "ui_read_only": False, "ui_view": "",
    }  # fmt: skip
    return make_options(**{**known, **given})


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("a.html", "html"), ("A.HTM", "html"), ("a.json", "json"), ("a.trace.json", "chrome-trace"), ("a.txt", "text"),
        ("story", "text"),
    ],
)  # fmt: skip
def test_the_name_of_the_file_says_how_unless_an_option_does(tmp_path, name, output):
    assert options(output_file=tmp_path / name).output == output
    assert options(output_file=tmp_path / name, output="json").output == "json"
    assert options().output == "text"


@pytest.mark.parametrize("name", ["story.pdf", "a.yaml", "a.html.gz"])
def test_a_name_that_no_story_has_is_an_error_that_says_which_there_are(tmp_path, name):
    with pytest.raises(click.UsageError, match=r"\.\w+ is not a format of reports: use \.html, \.json"):
        options(output_file=tmp_path / name)
    assert options(output_file=tmp_path / name, output="html").output == "html"


@pytest.mark.loopback
def test_steps_that_were_seen_to_happen_are_not_told_again(new_cluster, pod_file, capsys):
    run_manifests(load_manifests([str(pod_file)]), FAST, lambda _: new_cluster(kill=True))
    out = capsys.readouterr().out
    assert out.count("SIGKILL → PID 1") == 1
    assert "web was killed" in out
    run_manifests(load_manifests([str(pod_file)]), replace(FAST, explain=True), lambda _: new_cluster(kill=True))
    assert capsys.readouterr().out.count("SIGKILL → PID 1") > 1, "the rules stand with the steps"


@pytest.mark.loopback
def test_html_goes_to_stdout_alone_when_it_is_piped(new_cluster, pod_file, capsys):
    made = replace(FAST, output="html")
    assert run_manifests(load_manifests([str(pod_file)]), made, lambda _: new_cluster(kill=True)) == 3
    out, err = capsys.readouterr()
    assert out.startswith("<!doctype html>")
    assert out.rstrip().endswith("</html>")
    assert "web was killed" in out
    assert "SIGKILL → PID 1" in err


@pytest.mark.loopback
def test_a_trace_on_stdout_is_json(new_cluster, pod_file, capsys):
    run_manifests(load_manifests([str(pod_file)]), replace(FAST, output="chrome-trace"), lambda _: new_cluster())
    assert json.loads(capsys.readouterr().out)["traceEvents"]


@pytest.mark.loopback
def test_with_a_file_stdout_has_the_text_as_always(new_cluster, pod_file, capsys, tmp_path):
    path = tmp_path / "out" / "story.html"
    path.parent.mkdir()
    made = replace(FAST, output="html", output_file=path)
    assert run_manifests(load_manifests([str(pod_file)]), made, lambda _: new_cluster()) == 0
    out, err = capsys.readouterr()
    assert "default/web ended gracefully" in out
    assert f"Report written to {path}" in err
    assert path.read_text().startswith("<!doctype html>")
    assert [each.name for each in path.parent.iterdir()] == ["story.html"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o111 == 0


@pytest.mark.loopback
def test_the_story_of_an_error_is_a_page_with_the_error_in_it(new_cluster, pod_file, tmp_path):
    path = tmp_path / "story.html"
    made = replace(FAST, output="html", output_file=path)
    cluster = new_cluster(die_at="deleted", stuck=True)
    with pytest.raises(Exception, match="node-1"):
        run_manifests(load_manifests([str(pod_file)]), made, lambda _: cluster.at_start())
    page = path.read_text()
    assert '"error":"the cluster\'s node-1' in page
    assert "<span>the cluster&#x27;s node-1" in page  # without JavaScript


@pytest.mark.parametrize("output", ["html", "chrome-trace"])
def test_a_page_is_not_poured_into_a_terminal(monkeypatch, output):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    with pytest.raises(click.UsageError, match=r"add --output-file story\.(html|trace\.json), or redirect stdout"):
        checked_output(output, None)
    assert checked_output("json", None) == "json"


def test_a_place_that_cannot_be_written_is_refused_before_anything_starts(tmp_path, pod_file):
    missing = tmp_path / "no" / "story.html"
    done = CliRunner().invoke(run, [str(pod_file), "--output-file", str(missing)])
    assert done.exit_code == 2
    assert f"there is no directory '{missing.parent}'" in done.output
    done = CliRunner().invoke(run, [str(pod_file), "--output-file", str(tmp_path)])
    assert done.exit_code == 2
    assert "is a directory" in done.output


def test_a_directory_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)  # root may write everywhere
    with pytest.raises(click.UsageError, match="you have no permission to write there"):
        checked_output("html", tmp_path / "story.html")


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "story.html"
    path.write_text("old")
    write_file(path, "new ✓ \ud800")
    assert path.read_text() == "new ✓ ?"

    def full(self, data):
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_file(path, "newer")
    assert path.read_text() == "new ✓ ?"
    assert [each.name for each in tmp_path.iterdir()] == ["story.html"]


def test_a_link_stays_a_link_and_a_pipe_is_written_to(tmp_path):
    target, link = tmp_path / "target.html", tmp_path / "link.html"
    target.write_text("old")
    link.symlink_to(target)
    write_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    write_file(Path("/dev/null"), "x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
