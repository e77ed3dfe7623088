"""A text that can be told in another language."""

import copy
import pickle

import pytest

from lastcall.records.said import Said, beginning, from_wire, in_language, joined, shown, tell, to_wire

GERMAN = {"$what ended": "$what endete", "by $signal": "durch $signal", "a hook": "ein Hook"}


def test_a_text_is_its_english_and_can_be_told_in_another_language() -> None:
    text = tell("$what ended", what="web")
    assert text == "web ended" and text.upper() == "WEB ENDED"
    assert in_language(text, GERMAN) == "web endete"


def test_a_fact_that_is_a_text_is_told_in_the_other_language_too() -> None:
    text = tell("$what ended", what=tell("by $signal", signal="SIGTERM"))
    assert text == "by SIGTERM ended"
    assert in_language(text, GERMAN) == "durch SIGTERM endete"
    assert in_language(tell("$what ended", what=tell("a hook")), GERMAN) == "ein Hook endete"


def test_a_name_is_never_translated() -> None:
    assert in_language(tell("$what ended", what="a hook"), GERMAN) == "a hook endete"
    assert in_language("a hook", GERMAN) == "a hook"


def test_what_the_catalogue_does_not_have_stays_english() -> None:
    assert in_language(tell("$n of $m", n=1, m=2), GERMAN) == "1 of 2"


def test_joined_texts_are_told_one_by_one() -> None:
    text = joined([tell("$what ended", what="web"), "", "by $signal", tell("by $signal", signal="x")], " $ ")
    assert text == "web ended $ by $signal $ by x"
    assert in_language(text, GERMAN) == "web endete $ by $signal $ durch x"


def test_facts_are_shown_safely_and_the_template_as_it_is() -> None:
    text = shown(tell("$what ended", what=tell("$n", n="a\nb")), lambda each: each.replace("\n", " "))
    assert text == "a b ended" and in_language(text, GERMAN) == "a b endete"


def test_a_copy_keeps_what_it_was_made_of() -> None:
    text = tell("$what ended", what="web")
    for copied in (copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert isinstance(copied, Said) and copied == text
        assert in_language(copied, GERMAN) == "web endete"


def test_a_template_may_have_any_character_and_names_every_fact_it_takes() -> None:
    assert tell("100 % of $$5: ${name}s", name="web") == "100 % of $5: webs"
    assert Said.names("$a and ${b}, $$c") == ("a", "b")
    with pytest.raises(KeyError):
        tell("$what ended")
    with pytest.raises(ValueError, match="not a template"):
        tell("a lone $ sign")


def test_the_beginning_of_a_text_is_that_of_the_language_it_is_told_in() -> None:
    text = beginning(tell("$what ended", what="x" * 20), 10)
    assert text == "xxxxxxxxxx… (16 more characters)"
    german = {**GERMAN, "$text… ($more more characters)": "$text… (noch $more Zeichen)"}
    assert in_language(text, german) == "xxxxxxxxxx… (noch 17 Zeichen)"
    assert in_language(beginning(tell("$what ended", what="web"), 8), {"$what ended": "aus: $what"}) == "aus: web"
    assert shown(text, str.upper) == "XXXXXXXXXX… (16 more characters)"
    for copied in (copy.deepcopy(text), pickle.loads(pickle.dumps(text)), from_wire(to_wire(text))):
        assert copied == text and in_language(copied, german) == in_language(text, german)
