"""YAML as kubectl reads it, with the line of every field. Hostile input is a YAMLProblem, never a crash.

As JSON has them: no dates (they stay text), text keys, no NaN, a key only once.
"""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_CHARACTERS = 16 * 1024 * 1024
MAX_VALUES = 1_000_000
"""Of a document with its aliases written out, so that a few lines cannot stand for a machine's memory."""


class YAMLProblem(Exception):
    """The text is not YAML, or not JSON's part of it. `line` counts from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its value, its number and first line (both from 1), and where its fields stand."""

    value: Any
    number: int
    line: int
    _root: yaml.Node | None = field(default=None, repr=False, compare=False)

    def line_of(self, path: str) -> int:
        """The line of `spec.containers[0].image`, or of the nearest field above it that exists."""
        node, line = self._root, self.line
        for step in _steps(path):
            found = _child(node, step)
            if found is None:
                return line
            line, node = found
        return line


class _Loader(yaml.CSafeLoader):
    """Safe, without dates, and with every key once."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def read_documents(text: str) -> Iterator[Document]:
    """The documents of a text, empty ones left out. Raises YAMLProblem."""
    if len(text) > MAX_CHARACTERS:
        raise YAMLProblem(f"the text has {len(text)} characters, at most {MAX_CHARACTERS} are read", 1)
    loader: _Loader | None = None
    number = 0
    try:
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            number += 1
            if node is None or _is_empty(node):
                continue
            _check(node)
            value = _to_json(loader.construct_document(node), node)
            yield Document(value, number, node.start_mark.line + 1, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise YAMLProblem(f"not readable as YAML: {what}", mark.line + 1 if mark else 1) from error
    except yaml.YAMLError as error:
        raise YAMLProblem(f"not readable as YAML: {error}".splitlines()[0], 1) from error
    except RecursionError:
        raise YAMLProblem("nested too deeply", 1) from None
    except ValueError as error:
        # PyYAML lets a malformed tagged scalar (`!!int x`) and an impossible number through to Python.
        raise YAMLProblem(f"not readable as YAML: {error}", 1) from error
    finally:
        if loader is not None:
            loader.dispose()


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _check(root: yaml.Node) -> None:
    """Each key once, no recursion, and a bounded size with aliases written out."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def visit(node: yaml.Node) -> int:
        known = sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in open_nodes:
            raise YAMLProblem("an alias refers to what it is part of", node.start_mark.line + 1)
        open_nodes.add(id(node))
        size = 1
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
            size += sum(visit(value) for _, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            size += sum(visit(value) for value in node.value)
        open_nodes.discard(id(node))
        if size > MAX_VALUES:
            raise YAMLProblem(f"more than {MAX_VALUES} values with its aliases written out", node.start_mark.line + 1)
        sizes[id(node)] = size
        return size

    visit(root)


def _check_keys(node: yaml.MappingNode) -> None:
    seen: dict[Hashable, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise YAMLProblem("a key must be a text", line)
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        if key.value in seen:
            raise YAMLProblem(f"key {key.value!r} is there twice (first in line {seen[key.value]}): keep one", line)
        seen[key.value] = line


def _to_json(value: Any, node: yaml.Node) -> Any:
    """The value as JSON can have it: text keys, finite numbers."""
    match value:
        case dict():
            return {_key(key): _to_json(each, node) for key, each in value.items()}
        case list():
            return [_to_json(each, node) for each in value]
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
    line = node.start_mark.line + 1
    raise YAMLProblem(f"{value!r} is not a value of the Kubernetes API: put it in quotes", line)


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def _steps(path: str) -> Iterator[str | int]:
    """`spec.containers[0].env[A].name` → spec, containers, 0, env, "A", name."""
    for part in path.replace("]", "").replace("[", ".\0").split("."):
        if part.startswith("\0"):
            yield int(part[1:]) if part[1:].isdigit() else part[1:]
        elif part:
            yield part


def _child(node: yaml.Node | None, step: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        child = node.value[step]
        return child.start_mark.line + 1, child
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return key.start_mark.line + 1, value
    return None
