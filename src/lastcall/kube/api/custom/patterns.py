"""Regular expressions that users write: RE2's, which take time linear in what is matched, with Go's words for errors.

Go's regexp and RE2 read the same syntax. Where they differ, and what is done about it:

- `\\C` (one byte) is refused, as Go refuses it.
- Classes by long name (`\\p{Letter}`) and `\\p{LC}`, `\\p{Cn}`, `\\p{Assigned}`, `\\p{ASCII}`, which Go has since 1.25,
  are refused: RE2 has none of them.
- A pattern whose program takes more than `MAX_MEMORY` is refused; Go has no limit but on repetitions (1000, in both).
- Go refuses 1000 nested groups, RE2 does not mind them.

Source: Go's regexp/syntax/parse.go, kube-openapi pkg/validation/validate/values.go:Pattern.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import re2

MAX_MEMORY = 2 << 20
"""Bytes of a pattern and of its automaton, which is made while it is used."""

_WORDS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}
"""RE2's words, and Go's where they differ."""
_ESCAPES = re.compile(r"\\(?:Q.*?(?:\\E|\Z)|.)", re.DOTALL)


class Pattern(NamedTuple):
    """A pattern as it was read; `error` says in Go's words why it cannot be."""

    compiled: "re2._Regexp[bytes] | None"
    error: str

    def matches(self, text: str) -> bool:
        """Return whether some part of `text` matches."""
        return self.compiled is not None and self.compiled.search(text.encode("utf-8", "replace")) is not None


@lru_cache(256)
def pattern(text: str) -> Pattern:
    """Compile the pattern, once. RE2 is imported with the first."""
    # late: 3.0 ms of `demo`
    import re2

    if any(found[0] == "\\C" for found in _ESCAPES.finditer(text)):
        return Pattern(None, _error("invalid escape sequence", "\\C"))
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MAX_MEMORY
    try:
        return Pattern(re2.compile(text.encode("utf-8", "replace"), options), "")
    except re2.error as error:
        said = error.args[0]
        what, colon, where = (said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)).partition(": ")
        if not colon and what not in _WORDS:
            return Pattern(None, f"error parsing regexp: {what}")
        return Pattern(None, _error(_WORDS.get(what, what), where))


def _error(what: str, where: str) -> str:
    return f"error parsing regexp: {what}: `{where}`"
