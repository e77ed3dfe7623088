"""Paths of fields in an object."""

import re
from typing import Any

Path = tuple[str | int, ...]
"""Where a field is in its object: keys and indices."""


_STEPS = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def parsed_path(text: str) -> Path:
    """Parse `spec.containers[0].image`. A key with dots must be in brackets, as `shown_path` writes it."""
    steps: list[str | int] = []
    for inside, plain in _STEPS.findall(text):
        step = inside or plain
        steps.append(int(step) if inside.isdigit() else step)
    return tuple(steps)


def path_in(value: Any, text: str) -> Path:
    """Return a field path of Kubernetes, whose keys may have dots in them, by the keys that `value` has."""
    steps: list[str | int] = []
    while text:
        keys = [key for key in value if isinstance(key, str)] if isinstance(value, dict) else []
        fitting = [key for key in keys if text == key or text.startswith((f"{key}.", f"{key}["))]
        if not fitting or text.startswith("["):
            first = _STEPS.match(text)
            if first is None:
                break
            inside, plain = first.groups()
            step: str | int = int(inside) if inside and inside.isdigit() else inside or plain
            text = text[first.end() :].removeprefix(".")
        else:
            step = max(fitting, key=len)
            text = text[len(str(step)) :].removeprefix(".")
        steps.append(step)
        value = value_at(value, (step,))
    return tuple(steps)


def shown_path(path: Path) -> str:
    """Return `spec.containers[0].image`, as kubectl writes it; keys with dots in brackets."""
    text = ""
    for step in path:
        if isinstance(step, int) or "." in step or "/" in step:
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def value_at(value: Any, path: Path) -> Any:
    """Return what is there; None for nothing."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return None
    return value
