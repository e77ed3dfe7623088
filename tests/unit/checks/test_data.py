"""A default that instances of a dataclass would share and could change is found."""

from checks.data import defaults


def test_a_default_that_can_be_changed_is_found(find) -> None:
    code = (
        "@dataclass(frozen=True)\nclass Amount: ...\n"
        "@dataclass\nclass Counter: ...\n"
        "@dataclass(slots=True)\nclass Node:\n"
        "    names: list[str] = field(default_factory=list)\n"
        "    amount: Amount = Amount()\n"
        "    seen: frozenset[str] = frozenset()\n"
        "    counter: Counter = Counter()\n"
        "class Other:\n"
        "    counter: Counter = Counter()\n"
    )
    assert find(defaults, {"a.py": code}) == ["a.py:10"]
