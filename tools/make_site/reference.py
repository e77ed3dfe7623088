"""The reference, made of the code: commands, records, findings, lint rules, schemas and the Python API, as Markdown."""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import make_catalogue

import lastcall
from lastcall.cli.commands import cli

DOCS = Path(__file__).parents[2] / "docs"


def cell(text: str) -> str:
    """Escape text for a cell of a table: no HTML."""
    return escaped(" ".join(text.split())).replace("|", "\\|")


def escaped(text: str) -> str:
    """Escape, outside of `code`, what HTML or Markdown would take for its own."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;").replace("*", "\\*") for part in parts)


# -- commands


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield every command with its whole name, those of a group after it."""
    yield from _below(cli, click.Context(cli, info_name="lastcall"))


def _below(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from _below(found, click.Context(found, info_name=name, parent=context))


def commands_page() -> str:
    lines = ["# Commands", "", "Made of the commands themselves, as `--help` shows them.", ""]
    for path, command, context in commands():
        usage = " ".join([path, *command.collect_usage_pieces(context)])
        lines += [f"## `{path}`", "", f"```\n{usage}\n```", "", escaped(_help(command)), ""]
        rows = [row for each in command.get_params(context) if (row := each.get_help_record(context)) is not None]
        if rows:
            lines += [
                "| option | meaning |",
                "|---|---|",
                *(f"| `{cell(name)}` | {cell(said)} |" for name, said in rows),
                "",
            ]
    return "\n".join(lines)


def _help(command: click.Command) -> str:
    return inspect.cleandoc(command.help or "").replace("\b\n", "").replace("\f", "")


# -- records and findings


def records_page() -> str:
    head = [
        "# Records",
        "",
        "What the components of a cluster write down, by the component. [`lastcall/ending/v1`](../ending-v1.md) lists "
        "the fields that all of them have.",
        "",
    ]
    return "\n".join(head) + make_catalogue.records_text().replace("### ", "## ") + "\n"


def findings_page() -> str:
    head = [
        "# Findings and causes",
        "",
        "What may be reported of a Pod's end (`findings`), and of requests that a rollout lost (`causeId`).",
        "",
        "## Findings",
        "",
    ]
    causes = ["", "", "## Causes of lost requests", "", make_catalogue.causes_text(), ""]
    return "\n".join(head) + make_catalogue.findings_text() + "\n".join(causes)


# -- schemas


def schemas() -> dict[str, Any]:
    """Map each file to its JSON Schema."""
    return {path.name: json.loads(path.read_text("utf-8")) for path in sorted(DOCS.glob("*.schema.json"))}


def schemas_page() -> str:
    lines = ["# JSON Schemas", "", "Of everything that is printed with `--output json`, and of lastcall.yaml.", ""]
    for name, schema in schemas().items():
        lines += [f"## {schema.get('title', name)}", "", f"[`{name}`](../{name}), `{schema.get('$id', '')}`", ""]
        rows = list(_rows(schema, schema, "", 0))
        lines += ["| field | type | meaning |", "|---|---|---|", *rows, ""] if rows else []
    return "\n".join(lines)


_DEEPEST = 3


def _rows(schema: Any, whole: Any, prefix: str, depth: int) -> Iterator[str]:
    """A row for each property, those of the objects in it after it."""
    required = set(schema.get("required") or ())
    for name, found in (schema.get("properties") or {}).items():
        each = _resolved(found, whole)
        path = f"{prefix}{name}"
        optional = "" if name in required else " (not always)"
        yield f"| `{path}` | {cell(_type(found, whole))}{optional} | {cell(str(each.get('description') or ''))} |"
        if depth >= _DEEPEST:
            continue
        items = _resolved(each.get("items") or {}, whole)
        yield from _rows(each, whole, f"{path}.", depth + 1)
        yield from _rows(items, whole, f"{path}[].", depth + 1)


def _resolved(schema: Any, whole: Any) -> Any:
    reference = schema.get("$ref", "") if isinstance(schema, dict) else ""
    if not reference.startswith("#/$defs/"):
        return schema if isinstance(schema, dict) else {}
    return whole["$defs"][reference.removeprefix("#/$defs/")]


def _type(schema: Any, whole: Any) -> str:
    found = _resolved(schema, whole)
    if "const" in found:
        return f"`{json.dumps(found['const'])}`"
    if "enum" in found:
        return ", ".join(f"`{json.dumps(each)}`" for each in found["enum"])
    choices = found.get("anyOf") or found.get("oneOf")
    if choices:
        return " or ".join(dict.fromkeys(_type(each, whole) for each in choices))
    kind = found.get("type", "anything")
    if kind == "array":
        return f"array of {_type(found.get('items') or {}, whole)}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


# -- Python


def python_page() -> str:
    lines = ["# Python API", "", "What `lastcall.__all__` names. [The guide](../python.md) shows how it is used.", ""]
    for name in sorted(lastcall.__all__):
        if name != "__version__":
            lines += _api(name, getattr(lastcall, name))
    return "\n".join(lines)


def _api(name: str, found: Any) -> Iterator[str]:
    yield from (f"## `{name}`", "")
    if not inspect.isclass(found):
        yield from (f"```python\n{name}{_signature(found)}\n```", "", _doc(found), "")
        return
    bases = [each.__name__ for each in found.__bases__ if each is not object and not each.__name__.startswith("_")]
    kind = f" ({', '.join(bases)})" if bases else ""
    made = _signature(found).removesuffix(" -> None")
    yield from (f"```python\nclass {name}{made}{kind}\n```", "", _doc(found), "")
    for member, value in _members(found):
        if isinstance(value, property):
            yield from (f"### `{name}.{member}`", "", _doc(value), "")
        else:
            call = inspect.unwrap(value.__func__ if isinstance(value, classmethod | staticmethod) else value)
            begin = "async def" if inspect.iscoroutinefunction(call) else "def"
            yield from (f"### `{name}.{member}`", "", f"```python\n{begin} {member}{_signature(call)}\n```", "")
            yield from (_doc(call), "")


def _members(found: type) -> Iterator[tuple[str, Any]]:
    """Its own and those of bases that are not named by themselves, in their order."""
    seen: set[str] = set()
    for each in found.__mro__:
        if not each.__module__.startswith("lastcall"):
            continue
        for name, value in vars(each).items():
            is_call = callable(value) or isinstance(value, property | classmethod | staticmethod)
            if not name.startswith("_") and name not in seen and is_call and not inspect.isclass(value):
                seen.add(name)
                yield name, value


_QUOTED = re.compile(r"(: |-> )'([^']*)'")
"""An annotation that is text in the source."""
_MODULE = re.compile(r"\b(?:lastcall(?:\.\w+)*|collections\.abc|typing|pathlib)\.(?=\w)")


def _signature(call: Any) -> str:
    try:
        said = str(inspect.signature(call))
    except (TypeError, ValueError):
        return "(...)"
    return _MODULE.sub("", _QUOTED.sub(r"\1\2", said))


def _doc(found: Any) -> str:
    """Indented parts stay code, as Markdown has it."""
    return _markdown(inspect.getdoc(found) or "")


def _markdown(text: str) -> str:
    lines = [line if line.startswith("    ") else escaped(line) for line in text.split("\n")]
    return "\n".join(lines)


PAGES = {
    "reference/commands.md": commands_page,
    "reference/records.md": records_page,
    "reference/findings.md": findings_page,
    "reference/schemas.md": schemas_page,
    "reference/python.md": python_page,
}
"""Place in the site → what makes it."""
