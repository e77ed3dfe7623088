"""Find what a regular expression matches (apiserver pkg/cel/library/regex.go)."""

from collections.abc import Callable

from lastcall.kube.api.custom.patterns import Pattern, pattern
from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.libraries.measures import find_cost, find_estimate, for_all
from lastcall.kube.cel.values import EvaluationError

ROWS = """
find     string_find_string          string.(string) -> string
findAll  string_find_all_string      string.(string) -> list(string)
findAll  string_find_all_string_int  string.(string, int) -> list(string)
"""


CONTINUES = frozenset(bytes((code,)) for code in range(0x80, 0xC0))
"""Bytes within a character: Go finds no empty match there, and none right behind another match."""


def read(regex: str) -> Pattern:
    found = pattern(regex)
    if found.error:
        raise EvaluationError(f"Illegal regex: {found.error}")
    return found


def find(text: str, regex: str) -> str:
    compiled = read(regex).compiled
    found = compiled.search(text.encode("utf-8", "replace")) if compiled else None
    return found[0].decode() if found else ""


def find_all(text: str, regex: str, count: int = -1) -> list[str]:
    compiled = read(regex).compiled
    if compiled is None or count == 0:
        return []
    found: list[str] = []
    data, end = text.encode("utf-8", "replace"), -1
    for match in compiled.finditer(data):
        start, before, end = match.start(), end, match.end()
        if start == end and (start == before or data[start : start + 1] in CONTINUES):
            continue
        found.append(match[0].decode("utf-8", "replace"))
        if len(found) == count:
            break
    return found


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "string_find_string": find,
    "string_find_all_string": find_all,
    "string_find_all_string_int": find_all,
}
LIBRARY = Library(
    "regex",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    costs=for_all(IMPLEMENTATIONS, find_cost),
    estimates=dict.fromkeys(IMPLEMENTATIONS, find_estimate),
)
