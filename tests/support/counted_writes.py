"""Counts what components write, to find those that never come to rest."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.client.api import Client

WRITES = ("create", "update", "patch", "delete")


def target_of(verb: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[Resource, str]:
    """(resource, name) that a write is about; the name is "" where the server makes it."""
    resource, what = arguments[0], arguments[1]
    if isinstance(what, str):
        return resource, what
    return resource, options.get("name") or (what.get("metadata") or {}).get("name", "")


@dataclass
class CountedWrites:
    """`run_cluster(…, wrap=CountedWrites().wrap)`."""

    by_object: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """(component, verb, plural, name) → requests, refused ones too."""

    def wrap(self, client: Client, component: str) -> Client:
        return _Counted(client, component, self)

    def of(self, component: str = "", verb: str = "", plural: str = "") -> int:
        """How many requests there were; "" is any."""
        return sum(
            count
            for (whose, how, what, _), count in self.by_object.items()
            if component in ("", whose) and verb in ("", how) and plural in ("", what)
        )

    def most(self, component: str, plural: str) -> tuple[int, str]:
        """(requests, name) of the object of a kind that a component wrote most often, creations left out."""
        counts: Counter[str] = Counter()
        for (whose, how, what, name), count in self.by_object.items():
            if (whose, what) == (component, plural) and how != "create":
                counts[name] += count
        return max(((count, name) for name, count in counts.items()), default=(0, ""))


class _Counted:
    def __init__(self, client: Client, component: str, counts: CountedWrites) -> None:
        self._client, self._component, self._counts = client, component, counts

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name not in WRITES:
            return found

        async def counted(*arguments: Any, **options: Any) -> Object:
            resource, about = target_of(name, arguments, options)
            self._counts.by_object[self._component, name, resource.plural, about] += 1
            answer: Object = await found(*arguments, **options)
            return answer

        return counted
