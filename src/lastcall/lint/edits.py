"""Patches as edits of a YAML text: everything that a patch does not touch stays as it is, byte for byte, comments too.

The parser's marks say where things are. An edit is believed only when the text that it makes reads as the patched
object; what an alias or a merge key shares with other places is not edited.
"""

from collections.abc import Sequence
from typing import Any

import yaml

from lastcall.lint.patching import patched
from lastcall.lint.subject import Op
from lastcall.manifests import Path, YAMLProblem, read_documents, written


class _NoEdit(Exception):
    """The text cannot be edited so: by hand, then."""


def edited(text: str, document: int, prefix: Path, ops: Sequence[Op]) -> str | None:
    """Return `text` with the patch of the object at `prefix` of the document (from 1); None where that
    cannot be done without touching more."""
    whole = [Op(op.op, (*prefix, *op.path), op.value) for op in ops]
    try:
        before = _value_of(text, document)
        wanted = patched(before, whole)
        new = text
        for op in whole:
            new = _perform(new, _root(new, document), op)
        return new if wanted is not None and _value_of(new, document) == wanted else None
    except (_NoEdit, YAMLProblem, yaml.YAMLError):
        return None


def _value_of(text: str, number: int) -> Any:
    return next(each.value for each in read_documents(text) if each.number == number)


def _root(text: str, number: int) -> yaml.Node:
    for index, node in enumerate(yaml.compose_all(text, Loader=yaml.CSafeLoader), 1):
        if index == number and node is not None:
            return node
    raise _NoEdit


def _perform(text: str, root: yaml.Node, op: Op) -> str:
    shared = _shared(root)
    parent = root
    for step in op.path[:-1]:
        parent = _child(parent, step)[1]
        if id(parent) in shared:
            raise _NoEdit
    last = op.path[-1]
    if isinstance(parent, yaml.CollectionNode) and parent.flow_style:
        return _in_flow(text, parent, op)
    if op.op == "add" and not _has(parent, last):
        return _add(text, parent, last, op.value)
    key, value = _child(parent, last)
    if id(value) in shared:
        raise _NoEdit
    if op.op == "remove":
        return _remove(text, parent, key, value)
    if isinstance(parent, yaml.SequenceNode) and op.op == "add":
        raise _NoEdit  # before another item: nobody asks for it
    if isinstance(value, yaml.ScalarNode) and not isinstance(op.value, dict | list) and value.style not in ("|", ">"):
        return text[: value.start_mark.index] + _flow(op.value) + text[value.end_mark.index :]
    if isinstance(parent, yaml.SequenceNode):
        raise _NoEdit
    start = key.start_mark.index
    return text[:start] + _block({str(last): op.value}, key.start_mark.column).rstrip("\n") + text[_end(text, value) :]


# -- nodes -----------------------------------------------------------------------------------------------------------


def _shared(root: yaml.Node) -> set[int]:
    """Nodes that stand in several places, by an alias."""
    seen: set[int] = set()
    twice: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            twice.add(id(node))
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            waiting += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
    return twice


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node]:
    """(the key, or the item; the value). Raises _NoEdit where a merge key brings it, or nothing does."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return key, value
    raise _NoEdit


def _has(node: yaml.Node, step: str | int) -> bool:
    try:
        _child(node, step)
    except _NoEdit:
        return False
    return True


def _end(text: str, node: yaml.Node) -> int:
    """Behind the last thing that it has. (The parser's own end of a block is where the next one begins.)"""
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    start, end = node.start_mark.index, node.end_mark.index
    return start + len(text[start:end].rstrip())


def _line_end(text: str, at: int) -> int:
    """Where the line of `at` ends, without its line break: a comment behind a value stays with it."""
    found = text.find("\n", at)
    end = len(text) if found < 0 else found
    return end - 1 if text[end - 1 : end] == "\r" else end


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


# -- edits -----------------------------------------------------------------------------------------------------------


def _break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _flow(value: Any) -> str:
    return written(value, flow=True).removesuffix("\n").removesuffix("\n...").removesuffix("...").rstrip("\n")


def _block(value: Any, column: int, first: str = "") -> str:
    """`value` as lines of a block at `column`, the first line without its indentation."""
    lines = written(value).rstrip("\n").split("\n")
    return f"\n{' ' * column}".join([f"{first}{lines[0]}", *lines[1:]])


def _add(text: str, parent: yaml.Node, last: str | int, value: Any) -> str:
    if not isinstance(parent, yaml.CollectionNode) or not parent.value:
        raise _NoEdit
    at = _line_end(text, _end(text, parent))
    column = parent.start_mark.column
    if isinstance(parent, yaml.MappingNode):
        made = _block({str(last): value}, column)
    elif isinstance(value, dict | list):
        made = _block(value, column + 2, "- ")
    else:
        made = f"- {_flow(value)}"
    made = made.replace("\n", _break(text))
    return f"{text[:at]}{_break(text)}{' ' * column}{made}{text[at:]}"


def _remove(text: str, parent: yaml.Node, key: yaml.Node, value: yaml.Node) -> str:
    assert isinstance(parent, yaml.CollectionNode)
    if len(parent.value) == 1:
        raise _NoEdit  # nothing would be left: an empty value is another thing
    start = key.start_mark.index
    line = _line_start(text, start)
    before = text[line:start]
    if before.strip(" -") or ("-" in before and isinstance(parent, yaml.MappingNode)):
        # The first key of a list's item: the next key takes its place behind the dash.
        keys = [each[0] for each in parent.value if isinstance(each, tuple)]
        if key is not keys[0] or len(keys) < 2:
            raise _NoEdit
        return text[:start] + text[keys[1].start_mark.index :]
    end = _line_end(text, _end(text, value))
    if text[end : end + 2] == "\r\n":
        end += 1
    return text[:line] + text[end + 1 :]


def _in_flow(text: str, parent: yaml.Node, op: Op) -> str:
    """A collection in braces or brackets is written anew."""
    start, end = parent.start_mark.index, parent.end_mark.index
    if "#" in text[start:end]:
        raise _NoEdit  # a comment in it would be lost
    value = yaml.load(text[start:end], Loader=yaml.CSafeLoader)
    new = patched({"value": value}, [Op(op.op, ("value", op.path[-1]), op.value)])
    if new is None:
        raise _NoEdit
    return text[:start] + _flow(new["value"]) + text[end:]
