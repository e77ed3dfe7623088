"""Members of a JSON or YAML body that are there more than once: decoding keeps the last, strict decoding refuses them.

Source: sigs.k8s.io/json (`duplicate field "spec.paused"`), sigs.k8s.io/yaml (`key "paused" already set in map`).
"""

import json
from typing import Any

import orjson

from lastcall.kube.api.field import go_quote


class RepeatedFields:
    """The content of a body, in the order of the document."""

    def __init__(self) -> None:
        self.order: dict[str, int] = {}
        """Path (`spec.containers[0].image`) → where it occurs first."""
        self.repeated: dict[str, int] = {}
        """Path → where it occurs a second time."""

    def problems(self) -> list[str]:
        return [f"duplicate field {go_quote(path)}" for path in self.repeated]

    def merged(self, problems: list[str]) -> list[str]:
        """Return `problems` (`unknown field "…"`) and what is repeated, in the order of the document.

        What is below an unknown field is not checked.
        """
        quoted = {go_quote(path): path for path in self.order}
        unknown = [quoted.get(shown := problem.removeprefix("unknown field "), shown[1:-1]) for problem in problems]
        below = tuple(f"{path}{end}" for path in unknown for end in (".", "["))
        known = {path: at for path, at in self.repeated.items() if path not in unknown and not path.startswith(below)}
        places = [(self.order.get(path, 0), problem) for path, problem in zip(unknown, problems, strict=True)]
        places += [(at, f"duplicate field {go_quote(path)}") for path, at in known.items()]
        return [problem for _, problem in sorted(places, key=lambda place: place[0])]

    def look(self, value: Any, path: str) -> None:
        """Look through `value`, which is a list of pairs for an object."""
        if isinstance(value, _Pairs):
            for key, item in value:
                at = f"{path}.{key}" if path else key
                place = len(self.order) + len(self.repeated)
                if at in self.order:
                    self.repeated.setdefault(at, place)
                else:
                    self.order[at] = place
                self.look(item, at)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self.look(item, f"{path}[{index}]")


class _Pairs(list[tuple[str, Any]]):
    """An object as the list of its members."""


def repeated_fields(body: bytes, decoded: Any) -> RepeatedFields | None:
    """Return what is repeated in the JSON text `body`, None when nothing is. `decoded` is what orjson made of it.

    A text as short as its encoded form repeats nothing: only others are read a second time.
    """
    if len(orjson.dumps(decoded)) >= len(body.rstrip()):
        return None
    found = RepeatedFields()
    try:
        found.look(json.loads(body, object_pairs_hook=_Pairs), "")
    except ValueError:
        return None  # Python's decoder is the stricter one in corners
    return found if found.repeated else None
