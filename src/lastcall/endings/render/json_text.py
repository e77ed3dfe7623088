"""JSON that may be shown on a terminal and written into the log of a CI job. Pure."""

# check: pure

import json
from typing import Any

from lastcall.records.quoting import each_unseen, without_commands


def quoted_json(document: Any, indent: int | None = None) -> str:
    """Return the document, with a newline at its end; on one line without `indent` (in blanks).

    Characters that are not seen stand as the escapes of JSON, so that every reader gets what was there.
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(document, indent=indent, ensure_ascii=False, separators=separators) + "\n"
    return without_commands(each_unseen(text, _escape), _escape)


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1] if ord(character) > 0x7E else f"\\u{ord(character):04x}"
