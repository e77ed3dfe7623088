"""kind's words, both ways to name a cluster, and what was meant."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lastcall.cli.commands import COMMANDS, OTHER_WORDS, cli
from lastcall.errors import UserError


def say(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), prog_name="lastcall")


@pytest.mark.parametrize("word", [*COMMANDS, *OTHER_WORDS])
def test_every_word_has_a_command(word: str) -> None:
    result = say(word, "--help")
    assert result.exit_code == 0 and f"Usage: lastcall {word}" in result.output


@pytest.mark.parametrize(
    "words",
    [
        ("create", "cluster"),
        ("delete", "cluster"),
        ("get", "clusters"),
        ("get", "nodes"),
        ("get", "kubeconfig"),
        ("load", "docker-image"),
        ("load", "image-archive"),
    ],
)
def test_kind_s_words_are_there(words: tuple[str, str]) -> None:
    assert say(*words, "--help").exit_code == 0


@pytest.mark.parametrize(
    ("word", "text"),
    [("rollot", "Did you mean rollout?"), ("statsu", "Did you mean status?"), ("xyzzy", "lists the commands")],
)
def test_a_word_that_is_none_says_what_was_meant(word: str, text: str) -> None:
    result = say(word)
    assert result.exit_code == 2 and text in result.output


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """With what clusters would be started."""
    found: list[Any] = []
    monkeypatch.setattr("lastcall.cli.staying.starting.in_background", lambda options: found.append(options) or 0)
    return found


@pytest.mark.parametrize(
    ("words", "name", "timeout"),
    [
        (("--wait", "60s"), "lastcall", 60.0),
        (("--wait", "5m", "--name", "demo"), "demo", 300.0),
        (("demo", "--wait", "2m"), "demo", 120.0),
        (("--wait=0s",), "lastcall", 60.0),
        (("--name", "demo", "--wait"), "demo", 60.0),
    ],
)
def test_kind_s_wait_is_the_limit_of_the_start(
    started: list[Any], words: tuple[str, ...], name: str, timeout: float
) -> None:
    result = say("create", "cluster", *words)
    assert result.exit_code == 0, result.output
    assert [(each.name, each.timeout, each.wait) for each in started] == [(name, timeout, False)]


def test_a_time_after_wait_does_not_become_the_name_of_a_cluster(started: list[Any]) -> None:
    result = say("up", "--wait", "60s")
    assert result.exit_code == 2 and "--wait takes no time: write --wait --timeout 60s" in result.output
    assert not started


def test_a_configuration_of_kind_is_answered_with_options(tmp_path: Path) -> None:
    file = tmp_path / "kind.yaml"
    file.write_text(
        "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: control-plane}, {role: worker}]\n"
    )
    result = say("create", "cluster", "--config", str(file))
    assert isinstance(result.exception, UserError)
    assert "a configuration of kind" in str(result.exception) and "--nodes 2" in str(result.exception)


@pytest.mark.parametrize("command", ["up", "down", "status", "kubeconfig", "logs", "ls"])
def test_a_cluster_is_named_by_one_name(command: str) -> None:
    result = say(command, "one", "--name", "two")
    assert result.exit_code == 2 and "are two names: give only one" in result.output
    result = say(command, "--name", "NOT-OK")
    assert result.exit_code == 2 and "'NOT-OK' is not a valid cluster name" in result.output


def test_a_cluster_in_the_background_has_no_parent_to_die_with() -> None:
    result = say("up", "-d", "--die-with-parent")
    assert result.exit_code == 2 and "do not work together" in result.output


@pytest.mark.loopback
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_completion(shell: str) -> None:
    result = say("completion", shell)
    assert result.exit_code == 0 and "_LASTCALL_COMPLETE" in result.output


def test_exec_needs_a_command() -> None:
    assert "COMMAND is missing" in say("exec", "--", "--").output or say("exec").exit_code == 2
