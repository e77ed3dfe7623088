"""Translate what lastcall writes: `translate(content, "ja")`. Japanese is read when it is first asked for."""

import functools
from importlib import resources
from typing import Any, TypeVar

import orjson

from lastcall.records.said import Catalogue, Said, in_language

T = TypeVar("T")

ENGLISH = "en"
_FOLDERS = {"ja": "japanese"}
"""Language → its folder in `endings/catalogue`."""
LANGUAGES = (ENGLISH, *_FOLDERS)


@functools.cache
def catalogue_of(language: str) -> Catalogue:
    """Return a map of English templates to that language's; empty for English.

    Raises KeyError for a language that is not in `LANGUAGES`.
    """
    if language == ENGLISH:
        return {}
    folder = resources.files("lastcall.endings.catalogue") / _FOLDERS[language]
    files = sorted((each for each in folder.iterdir() if each.name.endswith(".json")), key=lambda each: each.name)
    return {english: other for each in files for english, other in orjson.loads(each.read_bytes()).items()}


def translate(content: T, language: str) -> T:
    """Return a text, or a document of texts (as JSON has it), in that language. All but `Said` stays as it is."""
    return content if language == ENGLISH else _translated(content, catalogue_of(language))


def _translated(content: Any, catalogue: Catalogue) -> Any:
    if isinstance(content, Said):
        return in_language(content, catalogue)
    if isinstance(content, dict):
        return {key: _translated(value, catalogue) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_translated(each, catalogue) for each in content]
    return content
