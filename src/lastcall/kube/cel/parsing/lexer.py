"""The words of an expression (cel-go parser/gen/CEL.g4)."""

import re

from lastcall.kube.cel.errors import Issue
from lastcall.world.dataclass import dataclass

_ESCAPE = r"""(?:\\[abfnrtv"'\\?`]|\\[0-3][0-7][0-7]|\\[xX][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8})"""
_STRING = "|".join(
    (
        r'[rR]"""[\s\S]*?"""',
        r"[rR]'''[\s\S]*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
_EXPONENT = r"[eE][+-]?[0-9]+"
_TOKEN = re.compile(
    rf"""
    (?P<SPACE>[\t \r\n\f]+|//[^\n]*)
  | (?P<BYTES>[bB](?:{_STRING}))
  | (?P<STRING>{_STRING})
  | (?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:{_EXPONENT})?|[0-9]+{_EXPONENT}|\.[0-9]+(?:{_EXPONENT})?)
  | (?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
  | (?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<ESC_IDENTIFIER>`[A-Za-z0-9_./\- ]+`)
  | (?P<OPERATOR>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE | re.ASCII,
)
_WORDS = frozenset(("in", "true", "false", "null"))
END = "<EOF>"


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is the word of the grammar for what has many texts (NUM_INT, IDENTIFIER …), else the text itself."""

    kind: str
    text: str
    offset: int


def tokens(source: str) -> tuple[list[Token], list[Issue]]:
    """Return the tokens with END at last, and what is not a token."""
    found: list[Token] = []
    issues: list[Issue] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            end = _unknown_until(source, at)
            issues.append(Issue(at, f"Syntax error: token recognition error at: '{_escaped(source[at:end])}'"))
            at = end
            continue
        kind, text = match.lastgroup or "", match[0]
        if kind != "SPACE":
            plain = kind == "OPERATOR" or text in _WORDS
            found.append(Token(text if plain else kind, text, at))
        at = match.end()
    found.append(Token(END, END, len(source)))
    return found, issues


def _unknown_until(source: str, at: int) -> int:
    """An open string is unknown until its line ends, everything else is so character by character."""
    quote = at
    while source[quote : quote + 1] and source[quote] in "bBrR" and source[quote + 1 : quote + 2] in ("'", '"'):
        quote += 1
    if source[quote] in "'\"":
        end = quote + 1
        while end < len(source) and source[end] not in "\n\r":
            end += 1
        return end
    return min(at + (2 if source[at] in "=&|" else 1), len(source))


def _escaped(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
