"""A request as both servers get it, and the values in it that each server has chosen itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Held:
    """In a body or a query: what this server has at `keys` of the object at `path`; "" for nothing."""

    path: str
    keys: tuple[str | int, ...]

    def __str__(self) -> str:
        return f"<its {'.'.join(map(str, self.keys))}>"


@dataclass(frozen=True, slots=True)
class Request:
    """`body` is bytes as they are sent, or a value that is sent as JSON with each `Held` replaced. `about` names the
    resource (`apps/v1 deployments/scale`), `verb` what is done to it; both group what differs."""

    method: str
    path: str
    about: str
    verb: str
    query: tuple[tuple[str, str | Held], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    @property
    def is_read(self) -> bool:
        return self.method == "GET"

    def as_line(self) -> str:
        """Return the request as one line of a report, with what reproduces it."""
        query = "&".join(f"{key}={value}" for key, value in self.query)
        body = ""
        if isinstance(self.body, bytes):
            body = repr(self.body[:300])
        elif self.body is not None:
            body = json.dumps(self.body, default=str)[:1200]
        headers = {key: value for key, value in self.headers.items() if value != JSON}
        return f"{self.method} {self.path}{'?' if query else ''}{query} {headers or ''} {body}".strip()


def settled(value: Any, held: Mapping[str, Any]) -> Any:
    """Return `value` with each `Held` replaced by what `held` (path → object) has."""
    match value:
        case Held(path, keys):
            at: Any = held.get(path)
            for key in keys:
                if isinstance(at, dict):
                    at = at.get(str(key))
                else:
                    at = at[key] if isinstance(at, list) and isinstance(key, int) and key < len(at) else None
            return "" if at is None else at
        case dict():
            return {key: settled(each, held) for key, each in value.items()}
        case list():
            return [settled(each, held) for each in value]
    return value
