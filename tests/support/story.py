"""Reads one Pod's story in `lastcall/ending/v1`, in the words of a test."""

from collections.abc import Sequence
from typing import Any


class Story:
    """One element of `pods`."""

    def __init__(self, pod: dict[str, Any]) -> None:
        self.pod = pod

    def __getitem__(self, key: str) -> Any:
        return self.pod[key]

    def records(self, kind: str, container: str | None = None, **facts: Any) -> list[dict[str, Any]]:
        """Records of a kind, with these facts, in order of time."""
        return [
            record
            for record in self.pod["records"]
            if record["kind"] == kind
            and (container is None or record["container"] == container)
            and all(record["facts"].get(name) == value for name, value in facts.items())
        ]

    def record(self, kind: str, container: str | None = None, **facts: Any) -> dict[str, Any]:
        """The only record of a kind with these facts."""
        found = self.records(kind, container, **facts)
        assert len(found) == 1, f"{len(found)} of {kind} {facts} in {self.brief()}"
        return found[0]

    def at(self, kind: str, container: str | None = None, **facts: Any) -> float:
        return float(self.record(kind, container, **facts)["at"])

    @property
    def container(self) -> dict[str, Any]:
        (only,) = self.pod["containers"]
        return dict(only)

    def findings(self) -> dict[str, str]:
        """Id → text."""
        return {each["id"]: each["text"] for each in self.pod["findings"]}

    def assert_order(self, *steps: Sequence[Any]) -> None:
        """Each step is (kind, facts); the first record that fits, after the one of the step before."""
        rest = list(self.pod["records"])
        for kind, facts in steps:
            while rest and not (
                rest[0]["kind"] == kind and all(rest[0]["facts"].get(name) == value for name, value in facts.items())
            ):
                rest.pop(0)
            assert rest, f"no {kind} {facts} in its place:\n{self.brief()}"
            rest.pop(0)

    def brief(self) -> str:
        return "\n".join(
            f"{r['at']:+.3f} {r['actor']} {r['kind']} {r['container']} {r['facts']}" for r in self["records"]
        )


def stories(document: dict[str, Any]) -> dict[str, Story]:
    """Pod name → story."""
    return {pod["name"]: Story(pod) for pod in document["pods"]}
