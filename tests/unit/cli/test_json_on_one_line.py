"""`--output json-line`: the document of `--output json`, on one line."""

import json
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from lastcall.cli.commands import COMMANDS, cli
from lastcall.cli.options import output_option

DOCUMENTS = (
    ["doctor"],
    ["status"],
    ["image", "ls"],
    ["lint", "-"],
)


def commands(group: click.Group, context: click.Context) -> Iterator[click.Command]:
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, context)
        elif found is not None:
            yield found


def choices(command: click.Command) -> tuple[str, ...]:
    return next(
        (
            tuple(each.type.choices)
            for each in command.params
            if each.name == "output" and hasattr(each.type, "choices")
        ),
        (),
    )


def test_wherever_there_is_json_there_is_json_on_one_line() -> None:
    with click.Context(cli) as context:
        given = {command.name: choices(command) for command in commands(cli, context)}
    assert len(COMMANDS) > 10 and len([1 for each in given.values() if "json" in each]) >= 7
    assert {name for name, each in given.items() if "json" in each and "json-line" not in each} == set()


@pytest.mark.loopback
@pytest.mark.parametrize("arguments", DOCUMENTS, ids=" ".join)
def test_it_is_the_same_document(
    arguments: list[str], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    for _ in range(5):  # the machine that doctor looks at may change between two looks
        text = printed(arguments)
        if json.loads(text["json-line"]) == json.loads(text["json"]):
            break
    assert text["json-line"].count("\n") == 1 and text["json"].count("\n") > 1
    assert json.loads(text["json-line"]) == json.loads(text["json"])


def printed(arguments: list[str]) -> dict[str, str]:
    return {
        each: CliRunner().invoke(cli, [*arguments, "--output", each], input="kind: ConfigMap\napiVersion: v1\n").stdout
        for each in ("json", "json-line")
    }


def test_a_command_of_one_s_own_sees_json_for_both() -> None:
    seen = []

    @click.command()
    @output_option(("text", "json"), "Format.", default="text")
    def tells(output: str) -> None:
        seen.append(output)

    for each in ("json", "json-line", "text"):
        assert CliRunner().invoke(tells, ["--output", each]).exit_code == 0
    assert seen == ["json", "json", "text"]
