"""lastcall.yaml: `{all: {KEY: VALUE}, COMMAND: {KEY: VALUE}, image: {pull: {KEY: VALUE}}}`, checked for a command."""

import sys
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

import click
import yaml

from lastcall.cli.settings.file import Found, content
from lastcall.cli.settings.keys import ALL, COMMAND_LINE, PROJECT, keyed, variable
from lastcall.errors import UserError
from lastcall.manifests import YAMLProblem, read_documents


class _Entry(NamedTuple):
    """A value of the file, its keys from the root on, and the line of the last one."""

    file: str
    line: int
    path: tuple[str, ...]
    node: yaml.Node

    @property
    def key(self) -> str:
        return self.path[-1]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {'.'.join(self.path)}"

    def items(self) -> "Iterator[_Entry]":
        """Yield the entries of a mapping in their order, what a merge key brought before the mapping's own keys."""
        if self.node.tag == "tag:yaml.org,2002:null":
            return  # `up:` with nothing below it
        if not isinstance(self.node, yaml.MappingNode):
            raise UserError(f"{self}: {_kind(self.node)} is not a mapping of options to values")
        for key, value in self.node.value:
            yield _Entry(self.file, key.start_mark.line + 1, (*self.path, str(key.value)), value)

    def check_known(self, known: Iterable[str], what: str) -> None:
        """Raise UserError, with what was probably meant, unless the key is a known one."""
        names = list(known)
        if self.key not in names:
            near = get_close_matches(self.key.replace("_", "-").lstrip("-"), names, 1)
            meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise UserError(f"{self}: unknown {what}; {meant}")


def read_settings(found: Found, words: tuple[str, ...], command: click.Context) -> dict[str, tuple[Any, str]]:
    """Return key → (value as it was written, place) for the command `words`; several values are a tuple.

    Names of sections, `all` and this command's section are checked. Raises UserError with file, line and key.
    """
    root = command.find_root()
    commands = root.command
    assert isinstance(commands, click.Group)
    options = keyed(command.command)
    sections = list(_read(found))
    _refuse_kind(found, sections)
    everywhere: dict[str, tuple[Any, str]] = {}
    own: dict[str, tuple[Any, str]] = {}
    for section in sections:
        section.check_known([ALL, *commands.list_commands(root)], "section")
        if section.key == ALL:
            everywhere = dict(_settings(found, section, options, commands))
        elif section.key == words[0]:
            for each in _own(section, words, command):
                own = dict(_settings(found, each, options, None))
    return everywhere | own


def _refuse_kind(found: Found, sections: Iterable[_Entry]) -> None:
    """Raise UserError for a configuration of kind, with the options that say the same."""
    values = {each.key: each.node for each in sections}
    if str(values["apiVersion"].value if "apiVersion" in values else "").startswith("kind.x-k8s.io/"):
        nodes = values.get("nodes")
        several = f"--nodes {len(nodes.value)}" if isinstance(nodes, yaml.SequenceNode) else "--nodes N"
        raise UserError(
            f"{found}: this is a configuration of kind, which lastcall does not read; fix: use options: {several} for "
            "nodes, --publish 8080:svc/NAME:80 for extraPortMappings, --feature-gates for featureGates"
        )


def _read(found: Found) -> Iterator[_Entry]:
    try:
        documents = list(read_documents(content(found)))
    except YAMLProblem as problem:
        raise UserError(f"{found}:{problem.line}: {problem}") from problem
    if len(documents) > 1:
        raise UserError(f"{found}:{documents[1].line}: the file has a second document: keep one")
    for document in documents:
        for doubled in document.doubled:
            raise UserError(f"{found}:{doubled.line}: {doubled}: keep one")
        if not isinstance(document.root, yaml.MappingNode):
            raise UserError(
                f"{found}:{document.line}: is not a mapping; fix: write a command and its options: up: {{nodes: 2}}"
            )
        yield from _Entry(str(found), document.line, (), document.root).items()


def _own(section: _Entry, words: tuple[str, ...], command: click.Context) -> Iterator[_Entry]:
    """Yield the section of `words`; that of a command below a command is in the section of the latter."""
    if len(words) == 1:
        yield section
        return
    group = command.parent.command if command.parent is not None else None
    assert isinstance(group, click.Group)
    for each in section.items():
        each.check_known(group.commands, "command")
        if each.key == words[1]:
            yield each


def _settings(
    found: Found, section: _Entry, options: dict[str, click.Option], every: click.Group | None
) -> Iterator[tuple[str, tuple[Any, str]]]:
    """Yield the checked values of a section. `every`: the section is `all`, its keys are those of any command."""
    for entry in section.items():
        key = entry.key
        for other, option in options.items():
            if key != other and f"--{key}" in option.opts:
                raise UserError(f"{entry}: unknown key; did you mean {other}?")
        if key in COMMAND_LINE:
            raise UserError(f"{entry}: --{key} works on the command line only; fix: remove it from the file")
        if every is None:
            entry.check_known(sorted(options), "key")
        elif key not in options and key not in PROJECT and sys.platform == "linux":  # elsewhere not all commands exist
            entry.check_known(sorted(_keys_below(every, click.Context(every))), "key")
        if not found.named and key not in PROJECT:
            name = variable(*(section.path if every is None else ()), key)
            raise UserError(
                f"{entry}: only a file given by --config may set this, because a {found} may come with a repository; "
                f"fix: use --{key}, {name} or --config {found}"
            )
        if key in options:
            yield key, (_value(entry, options[key]), str(entry))


def _keys_below(group: click.Group, context: click.Context) -> set[str]:
    """Return the keys of all commands. It imports them, so it is asked only about a key that may be wrong."""
    keys: set[str] = set()
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            keys |= _keys_below(command, context)
        elif command is not None:
            keys |= keyed(command).keys()
    return keys


def _value(entry: _Entry, option: click.Option) -> Any:
    if not option.multiple:
        return _text(entry, entry.node, "a string or number")
    if isinstance(entry.node, yaml.SequenceNode):
        return tuple(_text(entry, each, "a list of strings or numbers") for each in entry.node.value)
    return (_text(entry, entry.node, "a string or number, or a list of them"),)


def _text(entry: _Entry, node: yaml.Node, wanted: str) -> str:
    """Return a value as it was written: 1.30 is not 1.3."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        raise UserError(f"{entry}: {_kind(node)} is not {wanted}")
    return str(node.value)


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "an empty value" if not node.value else repr(str(node.value))
