"""YAML as kubectl reads it, with the line of every field. Hostile input is a YAMLProblem, never a crash.

Words are what they are for Kubernetes (`kube/api/text/yaml_scalars.py`): `y` is true, `12:30` and dates are texts. Of a
key that is there twice the last one counts, and so it does when a merge key brings it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import yaml
from yaml.composer import Composer

from lastcall.kube.api import LONG, MERGE, NULL, STR, NotInJSON, ScalarError, as_json, implicit_tag, key_text, resolve
from lastcall.records.said import tell
from lastcall.world.dataclass import dataclass

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


class DoubledKey(NamedTuple):
    """A key that its mapping has already; lines and columns count from 1. `str()` says so in a sentence."""

    key: str
    line: int
    column: int
    first: int

    def __str__(self) -> str:
        return f"key {self.key!r} is given twice (first on line {self.first})"


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its value, its number and first line (both from 1), and where its fields stand."""

    value: Any
    number: int
    line: int
    doubled: Sequence[DoubledKey] = ()
    template: str = ""
    """The template that Helm made it of: a comment `# Source: …` before it."""
    _root: yaml.Node | None = field(default=None, repr=False, compare=False)

    def line_of(self, path: str) -> int:
        """Return the line of `spec.containers[0].image`, or of the nearest field above it that exists."""
        return self.position_of(tuple(_steps(path)))[0]

    def position_of(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Return line and column, both from 1, of a field's key or a list's item; of the nearest one above it that
        exists."""
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
        """Return what the parser made of it, merge keys flattened."""
        return self._root


class _Loader(yaml.CSafeLoader):
    """Makes nodes; a plain scalar without a tag gets that which Kubernetes would give it."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """Return the tag of a node that has none."""
        if kind is not yaml.ScalarNode:
            return LONG + ("map" if kind is yaml.MappingNode else "seq")
        if not implicit[0]:
            return STR
        return MERGE if value == "<<" else implicit_tag(value)


class _SlowLoader(Composer, _Loader):
    """Makes nodes of a text with an anchor that is there twice, or a lone `!`, which PyYAML alone does not take.

    It is slower.
    """

    def __init__(self, text: str) -> None:
        _Loader.__init__(self, text)
        Composer.__init__(self)

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node; its anchor replaces an earlier one of that name."""
        event = self.peek_event()
        if isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.AliasEvent):
            self.anchors.pop(event.anchor, None)
        return super().compose_node(parent, index)

    def compose_scalar_node(self, anchor: Any) -> Any:
        """Return the next scalar; a lone `!` makes it a text."""
        event = self.peek_event()
        node = super().compose_scalar_node(anchor)
        if isinstance(event, yaml.ScalarEvent) and event.tag == "!":
            node.tag = STR
        return node


class _Dumper(yaml.SafeDumper):
    """Puts texts in quotes that Kubernetes would take for something else."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """Return the tag that a node would be read with."""
        if kind is yaml.ScalarNode and implicit[0]:
            return MERGE if value == "<<" else implicit_tag(value)
        resolved: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]  # PyYAML has no types
        return resolved


def written(value: Any, *, flow: bool = False) -> str:
    """Return a value as YAML that reads as the same value; `flow`: in one line."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=flow, width=10**6, sort_keys=False, allow_unicode=True
    )
    return text


_TOO_DEEP = "exceeded maximum nesting depth"
"""What libyaml says from 1000 levels on: its scanner reads ahead of the events, so that it may come first."""


_SEPARATOR = re.compile(r"^---[ \t\r]*[^# \t\r\n].*$", re.MULTILINE)
"""A line that begins as a separator and is none to kubectl. (apimachinery pkg/util/yaml: YAMLReader)"""
_NEXT_JSON = re.compile(r"[ \t\r]*\n\s*(?=\{)")
_SOLIDUS = re.compile(r"(?<!\\)(?:\\\\)*\\/")


_SOURCE = "# Source: "


def _template(lines: Sequence[str], line: int) -> str:
    """Return what the comments right before a line (from 0) name as the document's source."""
    for above in reversed(lines[:line]):
        if above.startswith(_SOURCE):
            return above.removeprefix(_SOURCE).strip()
        if above.strip() and not above.startswith("#"):
            break
    return ""


def read_documents(text: str) -> Iterator[Document]:
    """Yield the documents of a text, empty ones left out. Raises YAMLProblem."""
    if len(text) > MAX_CHARACTERS:
        raise YAMLProblem(f"the text is longer than {MAX_CHARACTERS} characters: split it into several files", 1)
    if wrong := _SEPARATOR.search(text):
        line = text.count("\n", 0, wrong.start()) + 1
        raise YAMLProblem("not readable as YAML: only a comment may follow --- on its line", line)
    text = _with_separators(text)
    lines = text.splitlines() if _SOURCE in text else []
    loader: _Loader | None = None
    number = 0
    try:
        loader = (_SlowLoader if _check_events(text) else _Loader)(text)
        while loader.check_node():
            node = loader.get_node()
            number += 1
            if node is None or _is_empty(node):
                continue
            doubled = _check(node)
            line = node.start_mark.line
            template = _template(lines, line) if lines else ""
            yield Document(_value(node, {}), number, line + 1, doubled, template, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if error.problem == _TOO_DEEP:
            raise YAMLProblem(f"nested more than {MAX_DEPTH} levels deep", mark.line + 1 if mark else 1) from error
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise YAMLProblem(tell("not readable as YAML: $what", what=what), mark.line + 1 if mark else 1) from error
    except yaml.YAMLError as error:
        raise YAMLProblem(tell("not readable as YAML: $what", what=str(error).splitlines()[0]), 1) from error
    finally:
        if loader is not None:
            loader.dispose()


def _with_separators(text: str) -> str:
    """Return a text of several JSON values, each on lines of its own, with `---` before each but the first.

    kubectl reads such a text to its end (apimachinery pkg/util/yaml: YAMLOrJSONDecoder). Lines stay as they are.
    """
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] != "{" or _NEXT_JSON.search(text) is None:
        return text
    decoder = json.JSONDecoder()
    parts: list[str] = []
    try:
        while True:
            _, end = decoder.raw_decode(text, start)
            following = _NEXT_JSON.match(text, end)
            if following is None:
                return "".join([*parts, text[start:]])
            parts += [text[start:end], following[0], "--- "]
            start = following.end()
    except (ValueError, RecursionError):
        return "".join([*parts, text[start:]])


def _check_events(text: str) -> bool:
    """Return True if an anchor is twice in one document, or there is a lone `!`.

    Raises YAMLProblem for what kubectl's parser refuses.
    """
    depth, is_slow, is_json = 0, False, False
    anchors: set[str] = set()
    solidus = "\\/" in text
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.DocumentStartEvent):
            anchors, is_json = set(), False
            if event.version or event.tags:
                raise YAMLProblem("not readable as YAML: kubectl does not support directives (%YAML, %TAG)", line)
        elif isinstance(event, yaml.CollectionStartEvent):
            is_json = is_json or (depth == 0 and bool(event.flow_style) and isinstance(event, yaml.MappingStartEvent))
            depth += 1
            if depth > MAX_DEPTH:
                raise YAMLProblem(f"nested more than {MAX_DEPTH} levels deep", line)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif solidus and not is_json and _has_solidus(event, text):
            raise YAMLProblem("not readable as YAML: found unknown escape character \\/: write / alone", line)
        if isinstance(event, yaml.NodeEvent) and event.anchor and not isinstance(event, yaml.AliasEvent):
            is_slow = is_slow or event.anchor in anchors
            anchors.add(event.anchor)
        is_slow = is_slow or (isinstance(event, yaml.ScalarEvent) and event.tag == "!")
    return is_slow


def _has_solidus(event: yaml.Event, text: str) -> bool:
    """Return True for a text in double quotes with `\\/`, which JSON has and Go's YAML has not."""
    if not isinstance(event, yaml.ScalarEvent) or event.style != '"' or not event.start_mark or not event.end_mark:
        return False
    return _SOLIDUS.search(text, event.start_mark.index, event.end_mark.index) is not None


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == NULL and not isinstance(node.value, list)


def _check(root: yaml.Node) -> list[DoubledKey]:
    """Return the keys that are there twice. Raises YAMLProblem for recursion and for too much by aliases."""
    doubled: list[DoubledKey] = []
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def visit(node: yaml.Node) -> int:
        known = sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in open_nodes:
            raise YAMLProblem("an alias refers to a node that contains it", node.start_mark.line + 1)
        open_nodes.add(id(node))
        size = 1
        if isinstance(node, yaml.MappingNode):
            doubled.extend(_doubled_keys(node))
            size += sum(visit(value) for _, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            size += sum(visit(value) for value in node.value)
        open_nodes.discard(id(node))
        if size > MAX_VALUES:
            raise YAMLProblem(f"more than {MAX_VALUES} values with its aliases written out", node.start_mark.line + 1)
        sizes[id(node)] = size
        return size

    visit(root)
    return doubled


def _doubled_keys(node: yaml.MappingNode) -> Iterator[DoubledKey]:
    seen: dict[str, int] = {}
    for node_of_key, _ in node.value:
        if node_of_key.tag == MERGE:
            continue
        key, mark = _key(node_of_key), node_of_key.start_mark
        if key in seen:
            yield DoubledKey(key, mark.line + 1, mark.column + 1, seen[key])
        seen.setdefault(key, mark.line + 1)


def _merge(node: yaml.MappingNode) -> None:
    """Put what a mapping's merge keys bring in their place. (goyaml.v2/decode.go:merge)"""
    if not any(key.tag == MERGE for key, _ in node.value):
        return
    pairs: list[tuple[yaml.Node, yaml.Node]] = []
    for key, value in node.value:
        if key.tag != MERGE:
            pairs.append((key, value))
            continue
        parts = value.value[::-1] if isinstance(value, yaml.SequenceNode) else [value]  # the first one wins
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                text = "map merge requires map or sequence of maps as the value"
                raise YAMLProblem(f"not readable as YAML: {text}", value.start_mark.line + 1)
            _merge(part)
            pairs += part.value
    node.value = pairs


def _value(node: yaml.Node, done: dict[int, Any]) -> Any:
    """The value as JSON can have it: text keys, finite numbers, no types of other languages. An alias is one value."""
    if id(node) in done:
        return done[id(node)]
    line = node.start_mark.line + 1
    value: Any
    if isinstance(node, yaml.MappingNode):
        _merge(node)
        value = {_key(key): _value(each, done) for key, each in node.value}
    elif isinstance(node, yaml.SequenceNode):
        value = [_value(each, done) for each in node.value]
    else:
        assert isinstance(node, yaml.ScalarNode)
        try:
            value = as_json(_scalar(node))
        except NotInJSON as error:
            text = f"{node.value} is not a value of the Kubernetes API: put it in quotes"
            raise YAMLProblem(text, line) from error
    done[id(node)] = value
    return value


def _scalar(node: yaml.ScalarNode) -> Any:
    """Return the value of a scalar. Raises YAMLProblem for one that is not what its tag says."""
    try:
        return resolve(node.tag if node.tag != MERGE else STR, node.value, plain=False)
    except ScalarError as error:
        raise YAMLProblem(f"not readable as YAML: {error}", node.start_mark.line + 1) from error


def _key(node: yaml.Node) -> str:
    """Return a key as JSON has it. Raises YAMLProblem for one that cannot be a key there."""
    text = key_text(_scalar(node)) if isinstance(node, yaml.ScalarNode) else None
    if text is None:
        raise YAMLProblem("a key must be a string", node.start_mark.line + 1)
    return text


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
        # Of a key that is there twice, the last one counts.
        for key, value in reversed(node.value):
            if isinstance(key, yaml.ScalarNode) and _key(key) == str(step):
                return key.start_mark, value
    return None
