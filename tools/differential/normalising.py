"""All that is not compared: what a server chooses by itself. Nothing else is left out.

Each value becomes a word: the first address of a Service that an answer shows is `<ip>`, a time `<time>`.
"""

import json
import re
from typing import Any

UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
TIME = re.compile(r"\b20[2-9]\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?: \+0000 UTC|Z)?(?: m=\+[0-9.]+)?")
SERVICE_ADDRESS = re.compile(r"\b10\.(?:125|96)\.\d+\.\d+\b|\bfd00[0-9a-f:]+\b")
FURTHER_RANGE = "10.200."
"""Of the ServiceCIDR in the seeds: the real server may take a Service's address from it."""
GENERATED = re.compile(r"\b(gen-|kube-api-access-|a{58})[bcdfghjklmnpqrstvwxz2456789]{5}\b")
"""After what requests have as `generateName`, which is cut after 58 characters."""
QUOTED_VERSION = re.compile(
    r"(\\?\"resourceVersion\\?\":\\?\"|the ResourceVersion in (?:record|the precondition) \("
    r"|ResourceVersion in object meta: |Too large resource version: 99999999, current: )\d+"
)
NODE_PORT = re.compile(r"(\\?\"(?:nodePort|healthCheckNodePort)\\?\":)3[0-2]\d{3}\b")
"""A Service that does not say which one gets any."""
PORT_IN_A_CELL = re.compile(r"(?<=:)3[0-2]\d{3}(?=/)")
FURTHER_ADDRESS = re.compile(r"(\\?\"clusterIPs?\\?\":\[?\\?\")10\.200\.\d+\.\d+")
AGE = re.compile(r"(?:\d+[ydhms])+")
"""In a cell of a Table: how long ago a time was."""
RESOURCE_VERSION = frozenset({"resourceVersion"})
TOKENS = frozenset({"token", "continue"})
FIXED_TIME = "2024-01-01"
"""Times of requests are of this day, and are compared."""
HEADERS = ("content-type", "warning", "allow", "location")
"""The headers that are compared."""


def text(value: str) -> str:
    """Return a string with what is chosen by the server replaced."""
    value = UID.sub("<uid>", value)
    value = TIME.sub(lambda found: found[0] if found[0].startswith(FIXED_TIME) else "<time>", value)
    value = SERVICE_ADDRESS.sub("<ip>", value)
    value = FURTHER_ADDRESS.sub(r"\1<ip>", value)
    value = NODE_PORT.sub(r"\1<nodePort>", value)
    value = QUOTED_VERSION.sub(r"\1<resourceVersion>", value)
    return GENERATED.sub(r"\1<generated>", value)


def _is_generated(name: Any, prefix: Any) -> bool:
    return (
        isinstance(name, str)
        and isinstance(prefix, str)
        and name[: len(prefix)] == prefix
        and len(name) == len(prefix) + 5
    )


def _by_manager(entries: list[Any]) -> list[Any]:
    """Entries of managedFields without the order of their times: the servers' seconds begin at other moments."""
    if not all(isinstance(each, dict) for each in entries):
        return entries
    keys = ("operation", "manager", "apiVersion", "subresource")
    return sorted(entries, key=lambda each: ([str(each.get(key, "")) for key in keys], "time" in each))


def _in_one_order(value: Any) -> Any:
    """The rules of a user: Kubernetes gives them in another order each time."""
    if isinstance(value, dict):
        return {key: _in_one_order(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted(map(_in_one_order, value), key=lambda each: json.dumps(each, sort_keys=True))
    return value


def normalised(value: Any, key: str = "") -> Any:
    """Return a JSON value with the same replaced in all of it."""
    match value:
        case dict():
            if value.get("kind") == "SelfSubjectRulesReview" and isinstance(value.get("status"), dict):
                value = {**value, "status": _in_one_order(value["status"])}
            if (prefix := value.get("generateName")) and _is_generated(value.get("name"), prefix):
                value = {**value, "name": f"{prefix}<generated>"}
            return {text(name): normalised(each, name) for name, each in value.items()}
        case list():
            found = [normalised(each, key) for each in value]
            return _by_manager(found) if key == "managedFields" else found
        case str() if key in RESOURCE_VERSION:
            return "<resourceVersion>" if value not in ("", "0") else value
        case str() if key in TOKENS and value:
            return "<token>"
        case str() if key == "cells":
            return "<age>" if AGE.fullmatch(value) else text(PORT_IN_A_CELL.sub("<nodePort>", value))
        case str() if key in ("clusterIP", "clusterIPs") and value.startswith(FURTHER_RANGE):
            return "<ip>"
        case str():
            return text(value)
        case int() if key in ("nodePort", "healthCheckNodePort") and 30000 <= value <= 32767:
            return "<nodePort>"
    return value
