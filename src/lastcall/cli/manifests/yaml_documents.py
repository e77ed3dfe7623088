"""YAML as kubectl reads it, with the line of every field. Hostile input is a YAMLProblem, never a crash.

As JSON has them: no dates (they stay text), text keys, no NaN, a key only once.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_CHARACTERS = 16 * 1024 * 1024
MAX_DEPTH = 100
"""Of lists and objects in one another. (The parser itself would overflow its stack somewhere above 20 000.)"""

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
        return self.position_of(tuple(_steps(path)))[0]

    def position_of(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Line and column, both from 1, of a field's key or a list's item; of the nearest one above it that exists."""
        node, place = self._root, (self.line, 1)
        for step in path:
            found = _child(node, step)
            if found is None:
                return place
            mark, node = found
            place = (mark.line + 1, mark.column + 1)
        return place

    @property
    def root(self) -> yaml.Node | None:
        """What the parser made of it, merge keys flattened."""
        return self._root


class _Loader(yaml.CSafeLoader):
    """Safe, without dates, and with every key once."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


_TOO_DEEP = "exceeded maximum nesting depth"
"""What libyaml says from 1000 levels on: its scanner reads ahead of the events, so that it may come first."""

_MAP = "tag:yaml.org,2002:map"
_SEQUENCE = "tag:yaml.org,2002:seq"


def read_documents(text: str) -> Iterator[Document]:
    """The documents of a text, empty ones left out. Raises YAMLProblem."""
    if len(text) > MAX_CHARACTERS:
        raise YAMLProblem(f"the text has {len(text)} characters, at most {MAX_CHARACTERS} are read", 1)
    loader: _Loader | None = None
    number = 0
    try:
        _check_depth(text)
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            number += 1
            if node is None or _is_empty(node):
                continue
            _check(node)
            yield Document(_value(loader, node, {}), number, node.start_mark.line + 1, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if error.problem == _TOO_DEEP:
            raise YAMLProblem(f"nested more than {MAX_DEPTH} deep", mark.line + 1 if mark else 1) from error
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise YAMLProblem(f"not readable as YAML: {what}", mark.line + 1 if mark else 1) from error
    except yaml.YAMLError as error:
        raise YAMLProblem(f"not readable as YAML: {error}".splitlines()[0], 1) from error
    except ValueError as error:
        # PyYAML lets a malformed tagged scalar (`!!int x`) and an impossible number through to Python.
        raise YAMLProblem(f"not readable as YAML: {error}", 1) from error
    finally:
        if loader is not None:
            loader.dispose()


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                mark = event.start_mark
                raise YAMLProblem(f"nested more than {MAX_DEPTH} deep", mark.line + 1 if mark else 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


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


def _value(loader: _Loader, node: yaml.Node, done: dict[int, Any]) -> Any:
    """The value as JSON can have it: text keys, finite numbers, no types of other languages. An alias is one value."""
    if id(node) in done:
        return done[id(node)]
    line = node.start_mark.line + 1
    value: Any
    if isinstance(node, yaml.MappingNode) and node.tag == _MAP:
        loader.flatten_mapping(node)
        value = {_key(key): _value(loader, each, done) for key, each in node.value}
    elif isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
        value = [_value(loader, each, done) for each in node.value]
    else:
        value = loader.construct_object(node, deep=True)
        is_plain = value is None or isinstance(value, bool | str)
        is_plain = is_plain or (isinstance(value, int) and -(2**63) <= value < 2**64)
        if not is_plain and not (isinstance(value, float) and math.isfinite(value)):
            raise YAMLProblem(f"{value!r} is not a value of the Kubernetes API: put it in quotes", line)
    done[id(node)] = value
    return value


def _key(key: yaml.ScalarNode) -> str:
    """As it was written; sigs.k8s.io/yaml turns keys into text too."""
    return str(key.value)


def _steps(path: str) -> Iterator[str | int]:
    """`spec.containers[0].env[A].name` → spec, containers, 0, env, "A", name."""
    for part in path.replace("]", "").replace("[", ".\0").split("."):
        if part.startswith("\0"):
            yield int(part[1:]) if part[1:].isdigit() else part[1:]
        elif part:
            yield part


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Mark, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        child = node.value[step]
        return child.start_mark, child
    if isinstance(node, yaml.MappingNode):
        # What a merge key brought stands before the mapping's own keys, which win.
        for key, value in reversed(node.value):
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return key.start_mark, value
    return None
