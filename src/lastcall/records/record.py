"""Records: one fact each, with the process that saw it, when, and by which Kubernetes rule it happened.

Standard library only: the shim writes records too.
"""

# check: standard library

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, cast

from lastcall.records.json_shape import HIDDEN, key, rfc3339
from lastcall.world.dataclass import dataclass

Facts = TypeVar("Facts", bound=Mapping[str, object])
"""The TypedDict of a kind's facts: `lastcall.records.definitions`."""

if TYPE_CHECKING:
    from lastcall.records.rules import Rule

    class Kind(str, Generic[Facts]):
        """The name of a kind of record that carries these facts. A plain string when the program runs."""


Evidence = Literal["observed", "inferred", "predicted"]
"""
observed: the code that wrote the record saw it happen. inferred: concluded from something else. predicted: simulated.
"""


@dataclass(frozen=True, slots=True)
class Record:
    """One fact.

    `id` is `<actor>-<boot id>-<sequence>`; `at_ns` the monotonic clock (comparable between processes of a machine),
    `wall_ns` nanoseconds since the epoch. `kind` is one of `lastcall.records.kinds`, which says what `facts` hold.
    `rule` is the Kubernetes source path and function, "" where none applies. `cause_id` is the id of the record that
    led to this one, when the writer knows it; causes across processes are joined by the story through
    `facts["resourceVersion"]` (written) and `facts["observedResourceVersion"]` (reacted to).
    """

    id: str
    at_ns: int = field(metadata=HIDDEN)
    wall_ns: int = field(metadata=key("wall", write=rfc3339))
    actor: str
    kind: str
    pod_uid: str = field(default="", metadata=HIDDEN)
    container: str = field(default="", metadata=key(null=True))
    rule: str = field(default="", metadata=key(null=True))
    facts: dict[str, Any] = field(default_factory=dict)
    cause_id: str = field(default="", metadata=HIDDEN)
    evidence: Evidence = "observed"

    def facts_as(self, kind: "Kind[Facts]") -> Facts:
        """Return its facts, typed as those of `kind`, which the caller has compared.

        A record of an older version may lack some: read with `get` what came later.
        """
        return cast("Facts", self.facts)


class Recorder(Protocol):
    """Writes records. Never blocks, never raises."""

    def record(
        self,
        kind: "Kind[Facts]",
        *,
        pod_uid: str = "",
        container: str = "",
        rule: "Rule | Literal['']" = "",
        facts: Facts | None = None,
        cause_id: str = "",
        evidence: Evidence = "observed",
    ) -> str:
        """Write one record stamped with now; answers its id."""
        ...
