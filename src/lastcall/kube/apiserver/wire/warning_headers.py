"""`Warning` headers: texts that may hold anything as what a header may hold, and not more than a client reads.

Source: apimachinery pkg/util/net/http.go:NewWarningHeader, apiserver pkg/endpoints/filters/warning.go.
"""

import unicodedata
from collections.abc import Iterable

MOST_CHARACTERS = 4096
"""Of all texts. When they are more, each is cut, and when they are still more, the last ones are left out."""
CUT_CHARACTERS = 256


def warning_headers(texts: Iterable[str]) -> list[str]:
    """Return the headers' values, each text once; those that no header can carry are left out."""
    wanted = list(dict.fromkeys(text for text in texts if text and _can_be_sent(text)))
    if sum(map(len, wanted)) <= MOST_CHARACTERS:
        return [_header(text) for text in wanted]
    headers, written = [], 0
    for text in wanted:
        headers.append(_header(text[:CUT_CHARACTERS]))
        written += min(len(text), CUT_CHARACTERS)
        if written >= MOST_CHARACTERS:
            break
    return headers


def _can_be_sent(text: str) -> bool:
    # A lone surrogate is not UTF-8; a control character could end the header.
    return text.isprintable() or not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


def _header(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'
