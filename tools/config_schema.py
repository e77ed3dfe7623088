"""Make docs/config-v1.schema.json from the commands, what a lastcall.yaml may have: `python tools/config_schema.py`."""

import re
from pathlib import Path
from typing import Any

import click
from make_catalogue import pretty

from lastcall.cli.commands import COMMANDS, cli
from lastcall.cli.options import Whole
from lastcall.cli.settings.keys import ALL, PROJECT, key_of, keyed

OUT = Path(__file__).parents[1] / "docs" / "config-v1.schema.json"


def value(option: click.Option) -> dict[str, Any]:
    """Return the schema of an option's value."""
    if option.is_flag:
        one: dict[str, Any] = {"type": "boolean"}
    elif isinstance(option.type, click.Choice):
        words = list(map(str, option.type.choices))
        one = {"enum": [*words, *(float(each) for each in words if re.fullmatch(r"\d+\.\d*[1-9]", each))]}
    elif isinstance(option.type, Whole):
        one = {"type": "integer"}
    else:
        one = {"type": ["string", "number"]}
    if option.multiple:
        one = {"anyOf": [one, {"type": "array", "items": one}]}
    text = " ".join((option.help or "").split())
    if key_of(option) not in PROJECT:
        text += " Only in a file that --config or LASTCALL_CONFIG names."
    return {"description": text.strip(), **one}


def values(command: click.Command) -> dict[str, Any]:
    """Map each key to its schema, of what a command takes from a file."""
    return {key: value(option) for key, option in keyed(command).items()}


def section(properties: dict[str, Any], words: str) -> dict[str, Any]:
    """Return a mapping with these keys and no others; may be empty."""
    return {
        "description": words,
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": dict(sorted(properties.items())),
    }


def made() -> dict[str, Any]:
    """Return the document."""
    context = click.Context(cli)
    sections: dict[str, Any] = {}
    everywhere: dict[str, list[dict[str, Any]]] = {}
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            below = {each: section(values(it), it.get_short_help_str(200)) for each, it in command.commands.items()}
            sections[name] = section(below, COMMANDS[name][1])
            found = [values(each) for each in command.commands.values()]
        else:
            found = [values(command)]
            sections[name] = section(found[0], COMMANDS[name][1])
        for each in found:
            for key, one in each.items():
                known = everywhere.setdefault(key, [])
                if one not in known:
                    known.append(one)
    anywhere = {key: each[0] if len(each) == 1 else {"anyOf": each} for key, each in everywhere.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "lastcall/config/v1",
        "title": "lastcall.yaml: values of options",
        "type": "object",
        "additionalProperties": False,
        "properties": {ALL: section(anywhere, "For every command that has the option."), **sections},
    }


def text() -> str:
    """Return the text of the file."""
    return pretty(made()) + "\n"


if __name__ == "__main__":
    OUT.write_text(text())
