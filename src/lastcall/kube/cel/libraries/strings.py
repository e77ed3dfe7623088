"""Strings, version 2 (it has format, quote and join, but no reverse) (cel-go ext/strings.go)."""

import math
from collections.abc import Callable, Sequence

from lastcall.kube.cel.bounds import UNBOUNDED, Bounds, Operand
from lastcall.kube.cel.libraries.formatting import formatted
from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.libraries.measures import TRAVERSAL, deep_traversal, first_traversed, for_all, read_once
from lastcall.kube.cel.operations import MAX_CHARACTERS, cost_size, elements
from lastcall.kube.cel.text import shown
from lastcall.kube.cel.values import CostExceeded, EvaluationError

ROWS = """
charAt         string_char_at_int                string.(int) -> string
indexOf        string_index_of_string            string.(string) -> int
indexOf        string_index_of_string_int        string.(string, int) -> int
lastIndexOf    string_last_index_of_string       string.(string) -> int
lastIndexOf    string_last_index_of_string_int   string.(string, int) -> int
lowerAscii     string_lower_ascii                string.() -> string
replace        string_replace_string_string      string.(string, string) -> string
replace        string_replace_string_string_int  string.(string, string, int) -> string
split          string_split_string               string.(string) -> list(string)
split          string_split_string_int           string.(string, int) -> list(string)
substring      string_substring_int              string.(int) -> string
substring      string_substring_int_int          string.(int, int) -> string
trim           string_trim                       string.() -> string
upperAscii     string_upper_ascii                string.() -> string
format         string_format                     string.(list(dyn)) -> string
strings.quote  strings_quote                     (string) -> string
join           list_join                         list(string).() -> string
join           list_join_string                  list(string).(string) -> string
"""

SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What Go's strings.TrimSpace removes."""
LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
ESCAPES = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
        **dict.fromkeys(map(chr, range(0xD800, 0xE000)), "\ufffd"),
    }
)


def out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise out_of_range(index)
    return text[index : index + 1]


def index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise out_of_range(offset)
    return text.find(part, offset)


def last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def last_index_from(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise out_of_range(offset)
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = len(text) + 1 if not old else text.count(old)
    if len(text) + found * (len(new) - len(old)) > MAX_CHARACTERS:
        raise CostExceeded
    return text.replace(old, new, count if count >= 0 else -1)


def split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    letters = list(text)
    return letters if count < 0 or count >= len(letters) else [*letters[: count - 1], text[count - 1 :]]


def substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise out_of_range(start)
    return text[start:]


def substring_between(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise out_of_range(index)
    return text[start:end]


def join(parts: Sequence[object], separator: str = "") -> str:
    texts, length = [], 0
    for part in elements(parts):
        if not isinstance(part, str):
            raise EvaluationError(f"join: invalid input: {shown(part)}")
        texts.append(part)
        length += len(part) + len(separator)
        if length > MAX_CHARACTERS:
            raise CostExceeded
    return separator.join(texts)


def quote(text: str) -> str:
    return f'"{text.translate(ESCAPES)}"'


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "string_char_at_int": char_at,
    "string_index_of_string": index_of,
    "string_index_of_string_int": index_of,
    "string_last_index_of_string": last_index_of,
    "string_last_index_of_string_int": last_index_from,
    "string_lower_ascii": lambda text: text.translate(LOWER),
    "string_upper_ascii": lambda text: text.translate(UPPER),
    "string_replace_string_string": replace,
    "string_replace_string_string_int": replace,
    "string_split_string": split,
    "string_split_string_int": split,
    "string_substring_int": substring,
    "string_substring_int_int": substring_between,
    "string_trim": lambda text: text.strip(SPACES),
    "string_format": formatted,
    "strings_quote": quote,
    "list_join": join,
    "list_join_string": join,
}
SEARCHES = (
    "string_index_of_string",
    "string_index_of_string_int",
    "string_last_index_of_string",
    "string_last_index_of_string_int",
)
READS = (
    "string_lower_ascii",
    "string_upper_ascii",
    "string_substring_int",
    "string_substring_int_int",
    "string_trim",
)
REPLACES = ("string_replace_string_string", "string_replace_string_string_int")
SPLITS = ("string_split_string", "string_split_string_int")
JOINS = ("list_join", "list_join_string")


def joined_cost(result: object) -> int:
    return math.ceil(cost_size(result) * 2 * TRAVERSAL)


def replace_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    text, old, new = (operand.size for operand in operands[:3])
    most, kept_most, least, kept_least = 0, 0, 0, 0
    if old.min == 0:
        most, kept_most = min(text.max + 1, UNBOUNDED), text.max
    elif new.max <= old.min:
        kept_most = text.max
    else:
        most = math.ceil(float(text.max) / float(old.min))
    if old.max == 0:
        least, kept_least = min(text.min + 1, UNBOUNDED), text.min
    elif old.max <= new.min:
        kept_least = text.min
    else:
        least = math.ceil(float(text.min) / float(old.max))
    size = Bounds(least, min(most, UNBOUNDED)) * new + Bounds(kept_least, kept_most)
    return text.times(2 * TRAVERSAL), size


def split_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    size = operands[0].size
    count = operands[2].literal if len(operands) > 2 else None
    most = count % 2**64 if isinstance(count, int) and not isinstance(count, bool) else size.max
    return size.times(2 * TRAVERSAL), Bounds(0, most)


def join_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    count, element = operands[0].size, operands[0].element()
    size = count * element.size if element else Bounds(0, 0)
    if len(operands) > 1:
        size += operands[1].size * Bounds(max(count.min - 1, 0), max(count.max - 1, 0))
    return size.times(TRAVERSAL), size


def quote_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    size = operands[0].size
    return size.times(TRAVERSAL), size * Bounds(1, 2) + Bounds(2, 2)


LIBRARY = Library(
    "strings",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    costs={
        **for_all(SEARCHES, lambda arguments: deep_traversal(arguments[0])),
        **for_all((*READS, "string_format", "strings_quote"), first_traversed()),
        **for_all((*REPLACES, *SPLITS), first_traversed(2 * TRAVERSAL)),
    },
    result_costs=dict.fromkeys(JOINS, joined_cost),
    estimates={
        **dict.fromkeys((*SEARCHES, "string_format"), read_once()),
        **dict.fromkeys(READS, read_once(same_size=True)),
        **dict.fromkeys(REPLACES, replace_estimate),
        **dict.fromkeys(SPLITS, split_estimate),
        **dict.fromkeys(JOINS, join_estimate),
        "strings_quote": quote_estimate,
    },
)
