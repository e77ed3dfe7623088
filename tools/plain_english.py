"""Words that readers of many languages stumble over, and better ones. `python tools/plain_english.py` lists every use.

Reads the strings, docstrings and comments of the code, and the documents; a sentence that goes over several lines is
read as one. A new pattern comes with its reason, and every use is replaced.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PATTERNS: dict[str, str] = {
    r"\bin vain\b": "poetic; say that it timed out, failed or cannot succeed",
    r"\b(?:could|can)(?:not| not) be had\b": "not English; say 'is not available'",
    r"\bfor want of\b": "old; say 'because … ran out' or 'without'",
    r"\bway out:|\bways? out,|(?:and|,) (?:the|a) way out\b": "ambiguous; say 'fix'",
    r"\b(?:what|that|which|when it|he|`\w+`) (?:is|are) none\b(?! of)": "say 'invalid', 'is not a …', 'there is none'",
    r"(?<![Tt]here )\b(?:is|are|was|were) no "
    r"(?!longer|more|such|other|better|worse|later|earlier|further|less)[A-Za-z`]": "a negated noun; say 'is not a …'",
    r"\b[Nn]obody's\b|\bof nobody\b": "a negated noun; say what it is, or that no one owns it",
    r"; [Ww]ho |[a-z]\. Who\b(?![^.?]*\?)": "a bare 'who' as subject; name the actor, or 'whoever'",
    r"\b[Ww]ho (?:only asks|has none gets|finds it free|deletes it|knows its source|asks again)\b": "as above",
    r"\b[Ww]ho (?:may|can|asks|calls|makes|remembers|reads|wants|has|did|does not)(?: [^\s.:;,?]+){1,8} "
    r"(?:may|is|are|has|would|never|asks|learns|gets|does) ": "as above",
    r"\b(?:to|for|from|with|by|than|but for) who\b": "as above; say 'clients that', 'the caller that'",
    r"\b[Ww]hose rules to follow\b|\bwhose rules were followed\b": "say 'Kubernetes version to emulate'",
    r"\bthere yet or not\b": "say 'already there, or not yet'",
    r"\b[Mm]end(?:s|ed|ing)?\b(?! ==|\()": "for clothes; say 'fix', 'reconnect'",
    r"\bfor ever\b(?! )": "say 'forever'",
    r"\bheld against\b": "say 'checked against', 'compared with'",
    r"\b(?:go|goes|gone|went) on with\b": "say 'continue'",
    r", for (?:it|they|there|that|none|nobody|no \w+) "
    r"(?:is|are|was|were|has|have|had|may|must|can|cannot|will|would|ends?|stays?|takes?|decides)\b": "say 'because'",
    r"\bshall\b": "say 'must', 'is to'",
    r"\bsurely\b": "ambiguous; say 'certainly'",
    r"(?:^|[.:] )So (?:many|much|long)\b": "inverted; say 'how many', 'how long'",
    r"\b(?:he|him|his)\b": "say 'they', or name the actor",
    r"\b[Tt]ells? of\b": "say 'report', 'show'",
    r"\bas far as\b": "vague; say 'where', 'if', 'within', 'the part that'",
}
"""Regular expression → why it is not used, and what to write instead."""

DOCUMENTS = ("README.md", "CHANGELOG.md", "SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
CODE = ("src/lastcall", "tools", "tests/support")
LEAST_FILES = 500
"""There are more; fewer mean that the folders are no longer found."""
GENERATED = ("docs/fidelity.md",)
"""Made of names of tests."""

Passage = tuple[int, str]
"""The line it begins on, and what it says."""


def files() -> Iterator[Path]:
    """Everything that is looked at."""
    for folder in CODE:
        yield from (path for path in sorted((ROOT / folder).rglob("*.py")) if path != Path(__file__).resolve())
    yield from (ROOT / name for name in DOCUMENTS)
    for folder in ("docs", "examples"):
        for path in sorted((ROOT / folder).rglob("*.md")):
            if path.relative_to(ROOT).as_posix() not in GENERATED:
                yield path


def strings(tree: ast.AST) -> Iterator[Passage]:
    """Every string, however many literals it is written in; what an f-string puts in is an ellipsis."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values),
            )
        yield from strings(node) if not isinstance(node, ast.JoinedStr) else ()


def comments(code: str) -> Iterator[Passage]:
    """Comments; those of lines that follow each other are one."""
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        if block and line != last + 1:
            yield first, "\n".join(block)
            block = []
        if not block:
            first = line
        block.append(token.string.lstrip("# "))
        last = line
    if block:
        yield first, "\n".join(block)


def paragraphs(text: str) -> Iterator[Passage]:
    """Of a document; a row of a table and an item of a list stand for themselves."""
    block: list[str] = []
    first = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if block and (not line.strip() or line.lstrip().startswith(("|", "- ", "#"))):
            yield first, "\n".join(block)
            block = []
        if line.strip():
            first = first if block else number
            block.append(line)


def passages(path: Path) -> Iterator[Passage]:
    text = path.read_text()
    if path.suffix == ".py":
        yield from strings(ast.parse(text))
        yield from comments(text)
    else:
        yield from paragraphs(text)


def hits(text: str) -> Iterator[tuple[int, str, str]]:
    """(lines after the first, the words, why not) of every use in `text`."""
    lines = [line.strip() for line in text.split("\n")]
    whole = " ".join(lines)
    ends = [len(" ".join(lines[: number + 1])) for number in range(len(lines))]
    for pattern, why in PATTERNS.items():
        for match in re.finditer(pattern, whole):
            yield next(number for number, end in enumerate(ends) if match.start() < end), match[0], why


def report() -> list[str]:
    """A line for each use in the project."""
    return [
        f"{path.relative_to(ROOT)}:{first + after}: '{words}': {why}"
        for path in files()
        for first, passage in passages(path)
        for after, words, why in hits(passage)
    ]


if __name__ == "__main__":
    found = report()
    if (count := len(list(files()))) < LEAST_FILES:
        found.append(f"looked at {count} files, fewer than {LEAST_FILES}; correct the folders in {__file__}")
    sys.stdout.write("\n".join(found) or "plain English: nothing found")
    sys.stdout.write("\n")
    sys.exit(bool(found))
