"""Rules about what the code says find what they are for."""

import json

import pytest
from checks import sentences
from checks.sentences import findings, japanese

from lastcall.endings.catalogue.cause import Cause


def test_a_finding_or_text_that_is_not_in_the_catalogue_is_found(find, monkeypatch: pytest.MonkeyPatch) -> None:
    cause = Cause(title="T.", texts={"": "One.", "two": "Two."}, fixes={"": "Do."})
    monkeypatch.setattr(sentences, "CATALOGUE", {"known": cause})
    code = (
        'Finding("known", 1)\nFinding("gone", 1)\nsaid("known")\nsaid("known", "two", x=1)\nsaid("known", "three")\n'
        'fix("known", variant)\nfix("gone")\nsaid(id_)\n'
    )
    assert find(findings, {"a.py": code, "endings/catalogue/b.py": code}) == ["a.py:2", "a.py:5", "a.py:7"]


def test_a_text_without_japanese_and_japanese_without_a_text_are_found(find, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "catalogue_of", lambda language: {"a mount": "x"})
    texts = {"a mount": "x", "nobody says this": "y", "${part0} more": "z"}
    files = {
        "a.py": 'tell("a mount")\ntell("a process")\ntell("$n: $m", n=1)\ntell(text)\n',
        "endings/catalogue/japanese/pods.json": json.dumps(texts),
    }
    assert find(japanese, files) == ["a.py:2", "endings/catalogue/japanese/pods.json:1"]
