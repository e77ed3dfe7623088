"""A record before it has an id and a place on our clock. Pure.

Rules answer drafts; `PodTimeline` makes records of them. A draft says by which clock it was stamped: an observation is
placed when it came, what a status or an Event says is placed by its own stamp.
"""

# check: pure

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from lastcall.records.record import Evidence, Facts
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.record import Kind
    from lastcall.records.rules import Rule

ClockName = Literal["", "server", "node"]
""" "": ours. server: the API server's, of deletionTimestamp and creationTimestamp. node: a kubelet's."""


@dataclass(frozen=True, slots=True)
class Draft:
    """As `Record`. `stamp` is a time of the cluster's as the object has it, "" for what is placed when it came.

    `at_ns` places it on our monotonic clock, where a rule has concluded that; it goes before `stamp`.
    """

    kind: str
    facts: Mapping[str, Any]
    actor: str
    container: str = ""
    rule: str = ""
    evidence: Evidence = "observed"
    stamp: str = ""
    clock: ClockName = ""
    at_ns: int | None = None

    def facts_as(self, kind: "Kind[Facts]") -> Facts:
        """Return its facts, typed as those of `kind`, which the caller has compared."""
        return cast("Facts", self.facts)


def draft(
    kind: "Kind[Facts]",
    facts: Facts,
    actor: str,
    *,
    container: str = "",
    rule: "Rule | Literal['']" = "",
    evidence: Evidence = "observed",
    stamp: str = "",
    clock: ClockName = "",
    at_ns: int | None = None,
) -> Draft:
    """Return a draft whose facts are those of its kind, as mypy sees."""
    mapping = cast(Mapping[str, Any], facts)
    return Draft(str(kind), mapping, actor, container, rule, evidence, stamp, clock, at_ns)
