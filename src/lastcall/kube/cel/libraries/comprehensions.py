"""What the macros of two variables build maps with (cel-go ext/comprehensions.go)."""

from collections.abc import Callable
from typing import Any

from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.operations import find, keys_of
from lastcall.kube.cel.text import shown
from lastcall.kube.cel.values import NOTHING, BoolKey, EvaluationError

ROWS = """
cel.@mapInsert  @mapInsert_map_map        (map(K, V), map(K, V)) -> map(K, V)
cel.@mapInsert  @mapInsert_map_key_value  (map(K, V), K, V) -> map(K, V)
"""


def key_of(value: object) -> object:
    """Return a key in the form in which a map keeps it."""
    return BoolKey(value) if isinstance(value, bool) else value


def insert_into(target: dict[object, object], key: object, value: object) -> dict[object, object]:
    """Add an entry to a map that nobody else sees yet."""
    if find(target, key) is not NOTHING:
        raise EvaluationError(f"insert failed: key {shown(key)} already exists")
    target[key_of(key)] = value
    return target


def insert_all_into(target: dict[object, object], entries: Any) -> dict[object, object]:
    for key in keys_of(entries):
        insert_into(target, key, find(entries, key))
    return target


def copied(target: Any) -> dict[object, object]:
    return {key_of(key): find(target, key) for key in keys_of(target)}


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "@mapInsert_map_map": lambda target, entries: insert_all_into(copied(target), entries),
    "@mapInsert_map_key_value": lambda target, key, value: insert_into(copied(target), key, value),
}
LIBRARY = Library("comprehensions", declared(ROWS), implementations=IMPLEMENTATIONS)
