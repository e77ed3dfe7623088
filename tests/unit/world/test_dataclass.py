"""Dataclasses that compile their methods late: the same as those of the standard library."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import KW_ONLY, FrozenInstanceError, asdict, field, replace
from typing import Any

import pytest

from lastcall.world.dataclass import dataclass

Decorator = Callable[..., Any]
OPTIONS = ({}, {"slots": True}, {"frozen": True}, {"frozen": True, "slots": True}, {"slots": True, "eq": False})


def made_by(decorator: Decorator, **options: bool) -> Any:
    @decorator(**options)
    class Base:
        """A base."""

        name: str
        count: int = 1

        def twice(self) -> int:
            return self.count * 2

    @decorator(**options)
    class Pod(Base):
        labels: list[str] = field(default_factory=list, hash=False)
        secret: str = field(default="s", repr=False, compare=False)
        seen: list[int] = field(init=False, default_factory=list, repr=False, compare=False)
        tries: int = field(init=False, default=3)
        _: KW_ONLY
        uid: str = "u"

    return Pod


def outcome(call: Callable[[Any], object], made: Any) -> object:
    try:
        return call(made)
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


CALLS: tuple[Callable[[Any], object], ...] = (
    lambda Pod: repr(Pod("web", 2, ["a"], uid="v")),
    lambda Pod: Pod("web") == Pod("web", secret="t"),
    lambda Pod: Pod("web") == Pod("db"),
    lambda Pod: Pod("web") == 3,
    lambda Pod: Pod("web").__eq__(3),
    lambda Pod: hash(Pod("web")) == hash(Pod("web", labels=["x"])),
    lambda Pod: Pod.__hash__ is None,
    lambda Pod: Pod(),
    lambda Pod: Pod("web", 1, [], "s", "too many"),
    lambda Pod: Pod("web", seen=[]),
    lambda Pod: Pod("web").labels is Pod("web").labels,
    lambda Pod: (Pod("web").seen, Pod("web").tries, Pod("web").twice()),
    lambda Pod: asdict(Pod("web", 5)),
    lambda Pod: repr(replace(Pod("web"), count=4)),
    lambda Pod: setattr(Pod("web"), "name", "db"),
    lambda Pod: delattr(Pod("web"), "name"),
    lambda Pod: Pod.__match_args__,
    lambda Pod: getattr(Pod, "__slots__", None),
    lambda Pod: repr(copy.copy(Pod("web"))),
    lambda Pod: repr(copy.deepcopy(Pod("web", labels=["a"]))),
)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_dataclass_does_what_one_of_the_standard_library_does(options: dict[str, bool]) -> None:
    for call in CALLS:
        ours, theirs = made_by(dataclass, **options), made_by(dataclasses.dataclass, **options)
        assert outcome(call, ours) == outcome(call, theirs)


def test_methods_are_compiled_once_and_by_their_first_call() -> None:
    Pod = made_by(dataclass, frozen=True, slots=True)
    before = [Pod.__init__, Pod.__eq__, Pod.__hash__]
    pods = [Pod("web"), Pod("web")]
    assert len({*pods}) == 1
    after = [Pod.__init__, Pod.__eq__, Pod.__hash__]
    assert all(one is not other for one, other in zip(before, after, strict=True))
    assert len({*pods, Pod("db")}) == 2
    assert [Pod.__init__, Pod.__eq__, Pod.__hash__] == after


def test_methods_of_the_class_itself_stay() -> None:
    @dataclass(frozen=True, slots=True)
    class Name:
        text: str

        def __repr__(self) -> str:
            return self.text

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Name) and self.text.lower() == other.text.lower()

        def __hash__(self) -> int:
            return hash(self.text.lower())

    assert {Name("Web"), Name("web")} == {Name("WEB")}
    assert repr(Name("Web")) == "Web"
    assert Name.__doc__ is None


def test_what_follows_init_is_called_and_an_init_of_the_class_stays() -> None:
    @dataclass(slots=True)
    class Sum:
        one: int
        both: int = 0

        def __post_init__(self) -> None:
            self.both = self.one * 2

    @dataclass(slots=True)
    class Own:
        one: int

        def __init__(self) -> None:
            self.one = 7

    assert (Sum(2), Own().one) == (Sum(2, 9), 7)


@dataclass(frozen=True, slots=True)
class Kept:
    name: str
    again: "Kept | None" = None


def test_a_frozen_one_is_pickled_and_says_what_cannot_be_assigned() -> None:
    kept = Kept("web", Kept("db"))
    assert pickle.loads(pickle.dumps(kept)) == kept
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        kept.name = "db"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'other'"):
        kept.other = "db"  # type: ignore[attr-defined]


def test_one_that_contains_itself_is_shown() -> None:
    @dataclass(slots=True)
    class Node:
        next: Any = None

    node = Node()
    node.next = node
    assert repr(node).endswith("Node(next=...)")


def test_a_default_that_can_be_changed_is_refused() -> None:
    with pytest.raises(ValueError, match="mutable default"):

        @dataclass
        class Wrong:
            names: list[str] = []
