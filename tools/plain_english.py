"""Words that readers of many languages stumble over, and better ones. `python tools/plain_english.py` lists every use.

Looks at the code (names, texts, comments) and the documents. A new pattern comes with its reason, and every use
is replaced.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PATTERNS: dict[str, str] = {
    r"\bin vain\b": "poetic; say that it timed out, failed or cannot succeed",
    r"\b(?:could|can)(?:not| not) be had\b": "not English; say 'is not available'",
    r"\bfor want of\b": "old; say 'because … ran out' or 'without'",
    r"\bway out:|\bways? out,|(?:and|,) (?:the|a) way out\b": "ambiguous; say 'fix'",
    r"\b(?:what|that|which|when it|he|`\w+`) (?:is|are) none\b(?! of)": "say 'invalid', 'is not a …', 'there is none'",
    r"\b[Nn]obody's\b|\bof nobody\b": "a negated noun; say what it is, or that no one owns it",
    r"; [Ww]ho |[a-z]\. Who\b(?![^.?]*\?)": "a bare 'who' as subject; name the actor, or 'whoever'",
    r"\b[Ww]ho (?:only asks|has none gets|finds it free|deletes it|knows its source|asks again)\b": "as above",
    r"\b[Ww]hose rules to follow\b|\bwhose rules were followed\b": "say 'Kubernetes version to emulate'",
    r"\bthere yet or not\b": "say 'already there, or not yet'",
    r"\bmend that first\b|\b[Mm]end what\b": "say 'fix'",
}
"""Regular expression → why it is not used, and what to write instead."""

GENERATED = ("docs/fidelity.md", "docs/pains.md", "docs/lint.md")
"""Made of names of tests, of pains and of the catalogue, which are looked at where they are written."""


def files() -> Iterator[Path]:
    """Everything that is looked at."""
    yield from sorted((ROOT / "src" / "lastcall").rglob("*.py"))
    yield from (ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md")
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if path.relative_to(ROOT).as_posix() not in GENERATED:
            yield path


def hits(text: str) -> Iterator[tuple[int, str, str]]:
    """(line, the words, why not) of every use in `text`."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, why in PATTERNS.items():
            for match in re.finditer(pattern, line):
                yield number, match[0], why


def report() -> list[str]:
    """A line for each use in the project."""
    return [
        f"{path.relative_to(ROOT)}:{number}: '{words}': {why}"
        for path in files()
        for number, words, why in hits(path.read_text())
    ]


if __name__ == "__main__":
    found = report()
    sys.stdout.write("\n".join(found) or "plain English: nothing found")
    sys.stdout.write("\n")
    sys.exit(bool(found))
