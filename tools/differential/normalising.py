"""All that is not compared: what a server chooses by itself. Nothing else is left out.

Each value becomes a word: the first address of a Service that an answer shows is `<ip>`, a time `<time>`.
"""

import re
from typing import Any

UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
TIME = re.compile(r"\b20[2-9]\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?: \+0000 UTC|Z)?(?: m=\+[0-9.]+)?")
SERVICE_ADDRESS = re.compile(r"\b10\.(?:125|96)\.\d+\.\d+\b|\bfd00[0-9a-f:]+\b")
FURTHER_RANGE = "10.200."
"""Of the ServiceCIDR in the seeds: the real server may take a Service's address from it."""
GENERATED = re.compile(r"\b(gen-|kube-api-access-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
QUOTED_VERSION = re.compile(
    r"(\\?\"resourceVersion\\?\":\\?\"|the ResourceVersion in (?:record|the precondition) \("
    r"|ResourceVersion in object meta: |Too large resource version: 99999999, current: )\d+"
)
NODE_PORT = re.compile(r"(\\?\"(?:nodePort|healthCheckNodePort)\\?\":)3[0-2]\d{3}\b")
"""A Service that does not say which one gets any."""
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
    """A string with what is chosen by the server replaced."""
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


def normalised(value: Any, key: str = "") -> Any:
    """A JSON value, all of it."""
    match value:
        case dict():
            if (prefix := value.get("generateName")) and _is_generated(value.get("name"), prefix):
                value = {**value, "name": f"{prefix}<generated>"}
            return {text(name): normalised(each, name) for name, each in value.items()}
        case list():
            return [normalised(each, key) for each in value]
        case str() if key in RESOURCE_VERSION:
            return "<resourceVersion>" if value not in ("", "0") else value
        case str() if key in TOKENS and value:
            return "<token>"
        case str() if key == "cells" and AGE.fullmatch(value):
            return "<age>"
        case str() if key in ("clusterIP", "clusterIPs") and value.startswith(FURTHER_RANGE):
            return "<ip>"
        case str():
            return text(value)
        case int() if key in ("nodePort", "healthCheckNodePort") and 30000 <= value <= 32767:
            return "<nodePort>"
    return value
