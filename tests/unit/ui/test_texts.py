"""The catalogue of the page: each language has the same texts, and one more is one file more."""

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import orjson
import pytest
from japanese import LETTERS

from lastcall.ui.texts import merge, read_languages, texts

LANGUAGES = read_languages(resources.files("lastcall.ui") / "catalogue")
OTHERS = [each for each in LANGUAGES if each != "en"]
NAMES = {"Pod", "app", "proxy", "app=web,tier in (a,b)", "kubectl delete --grace-period=0 --force"}


def leaves(part: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (path, text) for each text of a language."""
    if isinstance(part, str):
        yield path, part
    else:
        for key, inner in part.items() if isinstance(part, dict) else enumerate(part):
            yield from leaves(inner, f"{path}/{key}")


def values(text: str) -> set[str]:
    """Return the `{values}` that a text takes."""
    return set(re.findall(r"\{(\w+)\}", text))


def test_english_has_every_text_and_none_is_empty() -> None:
    english = dict(leaves(LANGUAGES["en"]))
    assert len(english) > 500 and all(english.values())


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_the_same_keys_and_the_same_values(language: str) -> None:
    english, other = dict(leaves(LANGUAGES["en"])), dict(leaves(LANGUAGES[language]))
    assert list(other) == list(english)
    assert [path for path, text in other.items() if not text or values(text) != values(english[path])] == []


def test_japanese_is_japanese() -> None:
    foreign = {re.sub(r"\{\w+\}", "", text) for _, text in leaves(LANGUAGES["ja"]) if not LETTERS.search(text)}
    assert {text for text in foreign if re.search("[a-z]", text)} == NAMES


def test_a_third_language_is_one_file_more(tmp_path: Path) -> None:
    for language in ("en", "ja", "de"):
        (tmp_path / f"{language}.json").write_bytes(orjson.dumps({"a": ["b"], "c": {"d": f"in {language}"}}))
    found = read_languages(tmp_path)
    assert list(found) == ["en", "de", "ja"]
    assert merge(found)["c"]["d"] == {"en": "in en", "de": "in de", "ja": "in ja"}
    assert merge(found)["a"] == [{"en": "b", "de": "b", "ja": "b"}]


def test_a_text_that_a_language_lacks_is_an_error() -> None:
    with pytest.raises(LookupError):
        merge({"en": {"a": "b"}, "de": {}})


def test_each_text_is_given_by_language() -> None:
    assert texts()["page"]["overview"] == {"en": "Overview", "ja": "概要"}
