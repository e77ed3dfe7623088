"""Make ui/src/published.ts: the words of the published documents that the page shows, as types (`--check` compares).

The schemas are docs/*.schema.json. A word that is new there is a new member of a type here, and `npm run check` fails
where the page has no text for it.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "ui/src/published.ts"
TYPES = {
    "Outcome": ("ending-v1", "pod.outcome"),
    "Severity": ("ending-v1", "finding.severity"),
    "Evidence": ("ending-v1", "record.evidence"),
    "Disrupt": ("rollout-v1", "experiment.disrupt"),
    "Source": ("rollout-v1", "experiment.from"),
    "Verdict": ("rollout-v1", "experiment.verdict"),
    "Load": ("rollout-v1", "lost.kind"),
    "CauseId": ("rollout-v1", "lost.causeId"),
}
"""Name of a type → schema, and definition and property in it."""


def page_types() -> str:
    """Return the content of the file."""
    lines = ["// Made of docs/*.schema.json by tools/make_page_types.py.", ""]
    for name, (schema, place) in TYPES.items():
        words = " | ".join(json.dumps(word) for word in _words(schema, place))
        lines += [f"/** {place} of {schema}. */", f"export type {name} = {words};", ""]
    return "\n".join(lines)


def _words(schema: str, place: str) -> list[str]:
    """Return the words of a property. Raises KeyError for one that the schema does not have."""
    document: Any = json.loads((ROOT / f"docs/{schema}.schema.json").read_text("utf-8"))
    definition, name = place.split(".")
    words: list[str] = document["$defs"][definition]["properties"][name]["enum"]
    return words


if __name__ == "__main__":
    made = page_types()
    if "--check" not in sys.argv[1:]:
        FILE.write_text(made, "utf-8")
    elif FILE.read_text("utf-8") != made:
        raise SystemExit(f"out of date: {FILE.name}; fix: python tools/make_page_types.py, then make ui")
