"""How dataclasses become the objects of a document."""

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

import pytest

from lastcall.endings.render.json_v1 import DEFINITIONS, LAYOUT, Document
from lastcall.records.json_shape import HIDDEN, Key, Layout, key, rfc3339


@dataclass(frozen=True)
class Inner:
    seconds_left: float
    why: Literal["", "late", "early"] = field(default="", metadata=key(null=True))
    secret: str = field(default="s", metadata=HIDDEN)


@dataclass(frozen=True)
class Outer:
    name: str = field(default="", metadata=key("title", null=True))
    parts: tuple[Inner, ...] = ()
    flat: Inner = field(default=Inner(1.0), metadata=key(flat=True))
    wall_ns: int | None = field(default=None, metadata=key("wall", write=rfc3339))
    notes: tuple[str, ...] | None = field(default=None, metadata=key(optional=True))
    size: str = field(default="S", metadata=key(schema={"enum": ["S", "L"]}))
    facts: dict[str, Any] = field(default_factory=dict)


def shouts(outer: Outer) -> bool:
    return outer.name.isupper()


PLAIN = Layout()


def test_keys_are_camel_case_and_times_end_with_the_microsecond() -> None:
    assert PLAIN.to_json(Inner(1.23456789, "late")) == {"secondsLeft": 1.234568, "why": "late"}


def test_metadata_renames_hides_flattens_and_converts() -> None:
    made = PLAIN.to_json(Outer(parts=(Inner(2.0),), wall_ns=1_900_000_000_000_000_000))
    assert made == {
        "title": None,
        "parts": [{"secondsLeft": 2.0, "why": None}],
        "secondsLeft": 1.0,
        "why": None,
        "wall": "2030-03-17T17:46:40.000000Z",
        "size": "S",
        "facts": {},
    }
    assert list(made) == ["title", "parts", "secondsLeft", "why", "wall", "size", "facts"]


def test_an_optional_key_is_there_with_a_value_even_an_empty_one() -> None:
    assert PLAIN.to_json(Outer(notes=()))["notes"] == []


def test_mappings_are_shown_as_they_are() -> None:
    assert PLAIN.to_json(Outer(facts={"some_key": 1.23456789}))["facts"] == {"some_key": 1.23456789}


def test_a_layout_orders_keys_and_computes_some() -> None:
    layout = Layout(order={Inner: ("why", "secondsLeft")}, computed={Outer: {"shouts": shouts}})
    assert list(layout.to_json(Inner(1.0))) == ["why", "secondsLeft"]
    assert layout.to_json(Outer("A"))["shouts"] is True
    assert layout.keys_of(Outer)[-1] == Key("shouts", bool)


@pytest.mark.parametrize("order", [("why",), ("why", "secondsLeft", "more")])
def test_an_order_that_lacks_a_key_or_has_another_is_an_error(order: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="Inner: the order has not the same keys"):
        Layout(order={Inner: order}).to_json(Inner(1.0))


def test_types_are_those_of_the_json() -> None:
    found = {each.name: each for each in PLAIN.keys_of(Outer)}
    assert found["title"].type == str | None
    assert found["why"].type == Literal["late", "early"] | None
    assert found["wall"].type == Annotated[str | None, {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"}]
    assert found["size"].type == Annotated[str, {"enum": ["S", "L"]}]
    assert found["notes"] == Key("notes", tuple[str, ...], False)
    assert all(each.required for each in found.values() if each.name != "notes")


def test_the_keys_of_a_value_are_those_of_its_type() -> None:
    layout = Layout(computed={Outer: {"shouts": shouts}})
    assert list(layout.to_json(Outer(notes=()))) == [each.name for each in layout.keys_of(Outer)]


@pytest.mark.parametrize("shape", [*DEFINITIONS.values(), Document])
def test_every_object_of_the_document_has_its_keys_once(shape: type) -> None:
    names = [each.name for each in LAYOUT.keys_of(shape)]
    assert fields(shape) and len(set(names)) == len(names) > 0
