"""Read the texts of the page and its tour: one file per language below `catalogue/`, all with the same keys.

`ui/build.mjs` builds the page from the same files. A file that is added is a language that is added.
"""

# check: pure

import functools
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import orjson

from lastcall.records.language import ENGLISH

Text = Mapping[str, str]
"""Language → the text in it."""


@functools.cache
def texts() -> Mapping[str, Any]:
    """Return the catalogue with a `Text` in place of each string."""
    merged: dict[str, Any] = merge(read_languages(resources.files("lastcall.ui") / "catalogue"))
    return merged


def read_languages(folder: Traversable) -> Mapping[str, Any]:
    """Return each language's texts as they are in its file, English first."""
    names = sorted(each.name for each in folder.iterdir() if each.name.endswith(".json"))
    found = {name.removesuffix(".json"): orjson.loads((folder / name).read_bytes()) for name in names}
    return {ENGLISH: found.pop(ENGLISH), **found}


def merge(languages: Mapping[str, Any]) -> Any:
    """Return one tree with a `Text` for each leaf. Raises LookupError for a text that English has and another lacks."""
    english = languages[ENGLISH]
    if isinstance(english, dict):
        return {key: merge({each: part[key] for each, part in languages.items()}) for key in english}
    if isinstance(english, list):
        return [merge({each: part[at] for each, part in languages.items()}) for at in range(len(english))]
    return languages
