"""Which nodes came and went since a cluster began: `nodes.json` of the state directory. Pure but for the writing.

The next start has the nodes of its `--nodes`, with those that were added and without those that were removed.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from lastcall.kube.cluster.layout import number_of
from lastcall.kube.cluster.node_capacity import NodeCapacity
from lastcall.world.dataclass import dataclass

NODES_FILE = "nodes.json"


@dataclass(slots=True)
class KeptNodes:
    """`added` has what was declared of each node by resource. `write` keeps the text; without one nothing is kept."""

    added: dict[str, dict[str, str]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    write: Callable[[str], None] = lambda text: None

    @classmethod
    def read(cls, text: str, write: Callable[[str], None]) -> "KeptNodes":
        """Return what `write` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        found = json.loads(text)
        kept = cls({name: _quantities(sizes) for name, sizes in found["added"].items()}, set(found["removed"]), write)
        for name in (*kept.added, *kept.removed):
            if number_of(name) is None:
                raise ValueError(f"{name!r} is no node")
        return kept

    def numbers(self, count: int) -> tuple[int, ...]:
        """Return the numbers of the nodes of a start with `count` nodes."""
        added, removed = ({number_of(name) or 0 for name in names} for names in (self.added, self.removed))
        return tuple(sorted(({*range(1, count + 1)} | added) - removed))

    def capacity(self, asked: NodeCapacity) -> NodeCapacity:
        """Return the sizes of the nodes of a start: what is asked for comes before what was declared once."""
        return NodeCapacity(asked.every, {**self.added, **asked.nodes})

    def add(self, node: str, capacity: Mapping[str, str]) -> None:
        """Record that a node is about to come. Raises OSError; then nothing is changed."""
        self._change({**self.added, node: dict(capacity)}, self.removed - {node})

    def remove(self, node: str) -> None:
        """Record that a node is about to go. Raises OSError; then nothing is changed."""
        self._change({name: sizes for name, sizes in self.added.items() if name != node}, self.removed | {node})

    def restore(self, before: tuple[dict[str, dict[str, str]], set[str]]) -> None:
        """Restore `added` and `removed` of before: the node has not come. Raises OSError."""
        self._change(*before)

    def _change(self, added: dict[str, dict[str, str]], removed: set[str]) -> None:
        self.write(json.dumps({"added": added, "removed": sorted(removed)}) + "\n")
        self.added, self.removed = added, removed


def _quantities(sizes: Any) -> dict[str, str]:
    if not all(type(each) is str for pair in sizes.items() for each in pair):
        raise ValueError(f"{sizes!r} are no quantities")
    return dict(sizes)
