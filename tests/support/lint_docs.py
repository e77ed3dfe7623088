"""The table of rules in docs/lint.md, made of the catalogue. `python tests/support/lint_docs.py` writes it."""

import re
from pathlib import Path

from lastcall.lint.catalogue.api import API
from lastcall.lint.catalogue.endings import ENDINGS
from lastcall.lint.catalogue.together import TOGETHER

DOCUMENT = Path(__file__).parents[2] / "docs" / "lint.md"
FAMILIES = {
    "What the API server and the namespace refuse": API,
    "How containers stop, and how they are probed": ENDINGS,
    "Objects together": TOGETHER,
}


def table() -> str:
    parts = []
    for title, rules in FAMILIES.items():
        rows = [
            f"| `{each.id}` | {each.severity} | {each.certainty} | {each.title} {each.why} | {each.fix} | "
            f"{each.source} |"
            for each in rules
        ]
        columns = ("rule", "severity", "how sure", "what, and what follows", "fix", "source of the rule")
        head = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"
        parts.append(f"### {title}\n\n{head}\n" + "\n".join(rows).replace("*/", "\\*/") + "\n")
    return "\n".join(parts)


def with_table(text: str) -> str:
    begin, end = "<!-- rules: begin -->\n", "<!-- rules: end -->"
    return re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{table()}\n{end}", text, flags=re.DOTALL)


if __name__ == "__main__":
    DOCUMENT.write_text(with_table(DOCUMENT.read_text()))
