"""`$(VAR)` in command, args and env (third_party/forked/golang/expansion/expand.go).

`$(NAME)` becomes the value, or stays as written when the name is unknown; `$$` becomes `$`.
"""

from collections.abc import Mapping


def expand(text: str, *scopes: Mapping[str, str]) -> str:
    """Replace references; earlier scopes win."""
    if "$" not in text:
        return text
    out: list[str] = []
    position, checked = 0, 0
    while position < len(text):
        if text[position] == "$" and position + 1 < len(text):
            out.append(text[checked:position])
            piece, width = _reference(text, position + 1, scopes)
            out.append(piece)
            position += width
            checked = position + 1
        position += 1
    out.append(text[checked:])
    return "".join(out)


def _reference(text: str, start: int, scopes: tuple[Mapping[str, str], ...]) -> tuple[str, int]:
    """Return the replacement for the characters after a `$` at `start - 1`, and how many of them it used."""
    if text[start] == "$":
        return "$", 1
    if text[start] != "(":
        return "$" + text[start], 1
    end = text.find(")", start)
    if end < 0:
        return "$(", 1
    name = text[start + 1 : end]
    for scope in scopes:
        if name in scope:
            return scope[name], end - start + 1
    return f"$({name})", end - start + 1
