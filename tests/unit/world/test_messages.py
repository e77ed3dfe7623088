"""Typed messages of the private protocols."""

from __future__ import annotations

from typing import Any

import pytest

from lastcall.world.messages import Message, Verbs, WrongMessage


class Item(Message):
    exit_code: int
    info: dict[str, str] | None = None


class Told(Message, verb="told"):
    id: str
    seconds: float
    items: list[Item]
    names: list[str] | None = None
    one: Item | None = None
    follow: bool = False


class More(Told, verb="more"):
    why: str


GOOD: dict[str, Any] = {"verb": "told", "id": "a", "seconds": 1, "items": [{"exitCode": 3}]}


def test_a_message_is_the_same_at_the_other_end_and_what_was_left_out_is_not_sent() -> None:
    told = Told(id="a", seconds=1, items=[Item(exit_code=3)])
    assert told.to_wire() == GOOD
    assert Told.read(GOOD) == told != Told(id="b", seconds=1, items=[])
    assert (told.follow, told.names, told.items[0].exit_code) == (False, None, 3)
    assert repr(told) == "Told(id='a', seconds=1, items=[Item(exit_code=3)])"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": 1}, "id must be str, not 1"),
        ({"id": None}, "id must be str, not None"),
        ({"seconds": True}, "seconds must be float, not True"),
        ({"follow": 1}, "follow must be bool, not 1"),
        ({"names": ["a", 1]}, "names must be list[str] | None, not ['a', 1]"),
        ({"items": [1]}, "items must be list[Item], not 1"),
        ({"items": [{}]}, "Item needs exitCode"),
        ({"items": [{"exitCode": "3"}]}, "exitCode must be int, not '3'"),
        ({"one": []}, "one must be Item | None, not []"),
        ({"other": 1}, "told has no field 'other'"),
        ({"id": ["x" * 1000]}, "id must be str, not ['" + "x" * 78 + "…"),
    ],
)
def test_what_is_wrong_with_a_field_is_said(change: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongMessage) as caught:
        Told.read({**GOOD, **change})
    assert str(caught.value) == said


def test_missing_fields_are_named() -> None:
    with pytest.raises(WrongMessage, match="told needs items, seconds"):
        Told.read({"id": "a"})


def test_a_newer_end_may_say_more_and_the_envelope_is_nobodys_field() -> None:
    assert Told.read({**GOOD, "call": 7, "fds": 0}) == Told.read(GOOD)
    assert Told.read({**GOOD, "colour": "red"}, newer=True) == Told.read(GOOD)


def test_a_message_may_extend_another() -> None:
    more = More(id="a", seconds=0.5, items=[], why="so")
    assert More.read(more.to_wire()) == more and more.to_wire()["verb"] == "more"


@pytest.mark.parametrize("verb", ["dance", None, 7, [], {}, "__init__"])
def test_an_unknown_verb_is_answered_with_those_that_are_known(verb: object) -> None:
    verbs = Verbs({Told: print, More: print})
    with pytest.raises(WrongMessage, match=r"unknown verb .*: known are told, more"):
        verbs.read({"verb": verb})


def test_a_verb_is_looked_up_with_what_is_done_about_it() -> None:
    heard: list[Told] = []
    do, message = Verbs({Told: heard.append}).read(GOOD)
    do(message)
    assert heard == [Told.read(GOOD)]


def test_a_message_that_could_not_be_read_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="missing or not known"):
        Told(id="a")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing or not known"):
        Item(exit_code=1, colour="red")  # type: ignore[call-arg]


class OfNothing(Message):
    it: Unknown  # type: ignore[name-defined]  # noqa: F821


class OfTheEnvelope(Message):
    call: int


def test_a_field_that_cannot_be_checked_is_refused() -> None:
    with pytest.raises(TypeError, match="no kind of a message's field: Unknown"):
        OfNothing(it=1)
    with pytest.raises(TypeError, match="the envelope's"):
        OfTheEnvelope(call=1)
