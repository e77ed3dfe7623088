"""What lastcall tells in Japanese: whole, with the same facts, and read only when somebody asks for it."""

import json
import re
import subprocess
import sys
from importlib import resources
from string import Template

import pytest

from lastcall.endings.catalogue.lookup import CATALOGUE
from lastcall.records.language import LANGUAGES, catalogue_of, translate
from lastcall.records.said import from_wire, tell, to_wire

JAPANESE = catalogue_of("ja")


def names(template: str) -> set[str]:
    """Of the facts of a template."""
    return {match["named"] or match["braced"] for match in Template.pattern.finditer(template)} - {None}


def codes(text: str) -> set[str]:
    """What is to be typed, and so is the same in every language."""
    return set(re.findall(r"`([^`]+)`", text))


def test_a_japanese_text_has_the_facts_of_the_english_one() -> None:
    assert [each for each in JAPANESE.items() if not Template(each[1]).is_valid()] == []
    assert [(english, other) for english, other in JAPANESE.items() if names(english) != names(other)] == []
    assert [(english, other) for english, other in JAPANESE.items() if codes(english) - codes(other)] == []


def test_every_finding_has_its_japanese() -> None:
    texts = [text for cause in CATALOGUE.values() for text in (*cause.texts.values(), *cause.fixes.values())]
    assert len(texts) > 300
    assert [each for each in texts if each not in JAPANESE] == []


def test_no_text_is_translated_twice() -> None:
    seen: dict[str, str] = {}
    for file in (resources.files("lastcall.endings.catalogue") / "japanese").iterdir():
        if file.name.endswith(".json"):
            pairs = json.loads(file.read_text("utf-8"), object_pairs_hook=list)
            for english, _ in pairs:
                assert english not in seen, f"{english!r} stands in {seen[english]} and {file.name}"
                seen[english] = file.name
    assert seen.keys() == JAPANESE.keys() and len(seen) > 30


def test_a_document_is_told_in_the_language_of_its_reader() -> None:
    english = "Bring the node back."
    text = tell("no process that can be seen")
    document = {"findings": [{"text": text, "n": 1}], "name": "no process that can be seen", "pair": (text, english)}
    assert translate(document, "en") is document
    assert translate(document, "ja") == {
        "findings": [{"text": "見えないプロセス", "n": 1}],
        "name": "no process that can be seen",
        "pair": ["見えないプロセス", english],
    }


def test_a_text_of_another_process_can_still_be_told_in_another_language() -> None:
    text = tell("$holders and $more more", holders=tell("a mount at $path", path="/a mount"), more=2)
    wired = json.loads(json.dumps(to_wire(text)))
    assert from_wire(wired) == text == "a mount at /a mount and 2 more"
    assert translate(from_wire(wired), "ja") == translate(text, "ja") == "/a mount へのマウント ほか 2 件"
    assert from_wire(to_wire("a name")) == "a name"


@pytest.mark.loopback
def test_japanese_is_read_when_somebody_asks_for_it() -> None:
    program = (
        "from lastcall.records.language import catalogue_of, translate\n"
        "import lastcall.ui.server\n"
        "assert translate(['a'], 'en') == ['a'] and catalogue_of.cache_info().currsize == 0\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert set(LANGUAGES) == {"en", "ja"}
