"""Encode the state of an experiment for another process: its sentences can still be translated there. Pure."""

# check: pure

from collections.abc import Callable, Mapping
from typing import Any

from lastcall.records.said import from_wire, to_wire

_TEXTS = ("phase", "error", "sentence", "disagreements")
"""What of a state is a sentence, or a list of them; all else is data, and may be a user's."""
_PARTS = ("search", "lag", "preStopSleep")


def state_to_wire(state: Mapping[str, Any]) -> dict[str, Any]:
    return _changed(state, to_wire)


def state_from_wire(wired: Mapping[str, Any]) -> dict[str, Any]:
    return _changed(wired, from_wire)


def _changed(state: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    found = dict(state)
    for name in _TEXTS:
        if name in found:
            text = found[name]
            found[name] = [change(each) for each in text] if isinstance(text, list) else change(text)
    for name in _PARTS:
        if found.get(name):
            found[name] = _changed(found[name], change)
    return found
