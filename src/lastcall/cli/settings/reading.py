"""lastcall.yaml: `{all: {KEY: VALUE}, COMMAND: {KEY: VALUE}, image: {pull: {KEY: VALUE}}}`, checked for a command."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import click
import yaml

from lastcall.cli.settings.context import variables
from lastcall.cli.settings.file import Found, content, shown
from lastcall.cli.settings.keys import ALL, COMMAND_LINE, NAMED, PROJECT
from lastcall.errors import UserError
from lastcall.manifests.yaml_documents import YAMLProblem, read_documents


class Setting(NamedTuple):
    """A value as an option takes it from the command line (bool for flags, a tuple where several are given)."""

    value: Any
    where: str
    """`lastcall.yaml:3: up.nodes`"""


class _Section(NamedTuple):
    """A mapping of the file, and its place in it."""

    node: yaml.MappingNode
    path: tuple[str, ...]


def read_settings(
    found: Found, command: tuple[str, ...], options: Mapping[str, click.Option], commands: Mapping[str, object]
) -> dict[str, Setting]:
    """Key → setting, for a command with these options (by key). `commands` are the names of all, groups with theirs.

    Names of sections, `all` and this command's section are checked. Raises UserError with file, line and key.
    """
    file = shown(found)
    try:
        documents = list(read_documents(content(found)))
    except YAMLProblem as problem:
        raise UserError(f"{file}:{problem.line}: {problem}") from problem
    if len(documents) > 1:
        raise UserError(f"{file}:{documents[1].line}: a second document: keep one")
    if not documents:
        return {}
    for each in documents[0].doubled:
        raise UserError(f"{file}:{each.line}: {each}: keep one")
    root = documents[0].root
    if not isinstance(root, yaml.MappingNode):
        raise UserError(
            f"{file}:{documents[0].line}: is not a mapping; fix: write a command and its options: up: {{nodes: 2}}"
        )
    settings: dict[str, Setting] = {}
    own: list[_Section] = []
    for name, line, node in _items(file, root):
        _check_known(file, line, name, name, {ALL: None, **commands}, "section")
        section = _Section(_mapping(file, node, line, name), (name,))
        below = commands.get(name)
        if name == ALL:
            for key, setting in _settings(file, section, options, found.named, PROJECT | NAMED):
                settings[key] = setting
        elif not isinstance(below, Mapping):
            own += [section] if command == section.path else []
        else:
            for inner, inner_line, inner_node in _items(file, section.node):
                path = (name, inner)
                _check_known(file, inner_line, ".".join(path), inner, below, "command")
                checked = _mapping(file, inner_node, inner_line, ".".join(path))
                own += [_Section(checked, path)] if command == path else []
    for section in own:  # after `all`, wherever they stand
        settings.update(_settings(file, section, options, found.named, frozenset(options)))
    return settings


def _settings(
    file: str, section: _Section, options: Mapping[str, click.Option], named: bool, known: frozenset[str]
) -> Iterator[tuple[str, Setting]]:
    """The checked values of a section; those of options that the command does not have are left out."""
    for key, line, node in _items(file, section.node):
        path = ".".join((*section.path, key))
        where = f"{file}:{line}: {path}"
        meant = next((each for each, option in options.items() if f"--{key}" in option.opts), key)
        if meant != key:
            raise UserError(f"{where}: unknown key; did you mean {meant}?")
        if key in COMMAND_LINE:
            raise UserError(f"{where}: --{key} is for the command line only; fix: remove it here")
        _check_known(file, line, path, key, dict.fromkeys(sorted(known - COMMAND_LINE)), "key")
        if not named and key in NAMED:
            option = f"--{key}" if key in options else key
            raise UserError(
                f"{where}: a {file} that was not named does not set this (it may come with a repository); "
                f"fix: give {option} or {variables(section.path, key)[section.path[0] == ALL]}, or --config {file}"
            )
        if key in options:
            yield key, Setting(_value(where, node, options[key]), where)


def _value(where: str, node: yaml.Node, option: click.Option) -> Any:
    if option.is_flag:
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:bool":
            raise UserError(f"{where}: {_told(node)} is not true or false")
        return node.value.lower() in ("true", "yes", "on")
    if option.multiple and isinstance(node, yaml.SequenceNode):
        return tuple(_text(where, each, "a list of texts or numbers") for each in node.value)
    text = _text(where, node, "a text or number, or a list of them" if option.multiple else "a text or number")
    return (text,) if option.multiple else text


def _text(where: str, node: yaml.Node, wanted: str) -> str:
    """As it was written: 1.30 is not 1.3. What it means, the option's type says."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        raise UserError(f"{where}: {_told(node)} is not {wanted}")
    return str(node.value)


def _told(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "an empty value" if not node.value else repr(str(node.value))


def _items(file: str, node: yaml.MappingNode) -> Iterator[tuple[str, int, yaml.Node]]:
    """(key, line, value) in their order, what a merge key brought before the mapping's own keys."""
    return ((str(key.value), key.start_mark.line + 1, value) for key, value in node.value)


def _mapping(file: str, node: yaml.Node, line: int, path: str) -> yaml.MappingNode:
    if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
        return yaml.MappingNode("tag:yaml.org,2002:map", [])  # `up:` with nothing below it
    if not isinstance(node, yaml.MappingNode):
        raise UserError(f"{file}:{line}: {path}: {_told(node)} is not a mapping of options to values")
    return node


def _check_known(file: str, line: int, path: str, name: str, known: Mapping[str, object], what: str) -> None:
    if name in known:
        return
    near = get_close_matches(name.replace("_", "-").lstrip("-"), known, 1)
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    raise UserError(f"{file}:{line}: {path}: unknown {what}; {meant}")
