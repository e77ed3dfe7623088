"""kind's words, both ways to name a cluster, and what was meant."""

import pytest
from click.testing import CliRunner, Result

from lastcall.cli.commands import COMMANDS, OTHER_WORDS, cli


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
