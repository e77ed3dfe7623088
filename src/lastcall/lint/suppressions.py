"""Comments of suppressions in a YAML text, and the lines that each is about. Pure."""

# check: pure

from collections.abc import Iterator, Sequence

import yaml

from lastcall.lint.located import Spot
from lastcall.lint.suppressing import COMMENT, Comment, read_comment
from lastcall.manifests import Document


def comments_of(file: str, text: str, documents: Sequence[Document]) -> list[Comment]:
    """Return the suppressions in a text.

    A comment behind something is about that field or item with everything below it; one on a line of its own about what
    begins on the next line that has anything; before a document's first key that is the whole document.
    """
    if "lastcall-lint:" not in text:
        return []
    lines = text.splitlines()
    nodes = [each for document in documents if document.root is not None for each in _nodes(document.root)]
    scalars = [node for node in nodes if isinstance(node, yaml.ScalarNode)]
    extents = [(node.start_mark.line + 1, last_line(node)) for node in nodes]
    extents += _pairs(nodes)
    found = []
    for number, line in enumerate(lines, 1):
        match = COMMENT.search(line)
        if match is None or any(_holds(node, number - 1, match.start()) for node in scalars):
            continue
        start = number
        if not line[: match.start()].strip(" \t-"):
            start = next((at for at in range(number + 1, len(lines) + 1) if _has_content(lines[at - 1])), number)
        last = max((end for first, end in extents if first == start), default=start)
        found.append(read_comment(Spot(file, number, match.start() + 1), match[1], start, last))
    return found


def _has_content(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith("#") and text != "---"


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, yaml.MappingNode):
            waiting += [each for pair in node.value for each in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _pairs(nodes: Sequence[yaml.Node]) -> list[tuple[int, int]]:
    return [
        (key.start_mark.line + 1, last_line(value))
        for node in nodes
        if isinstance(node, yaml.MappingNode)
        for key, value in node.value
        if value.start_mark.line >= key.start_mark.line  # an alias's value is elsewhere
    ]


def _holds(scalar: yaml.ScalarNode, line: int, column: int) -> bool:
    start, end = scalar.start_mark, scalar.end_mark
    return (start.line, start.column) <= (line, column) < (end.line, end.column)


def last_line(node: yaml.Node) -> int:
    """Return its last line, from 1, that has anything. (The parser's end of a block is where the next begins.)"""
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    end = node.end_mark
    return end.line if end.column == 0 and end.line > node.start_mark.line else end.line + 1
