"""Records: one fact each, with who saw it, when, and by which Kubernetes rule it happened.

Standard library only: the shim writes records too.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Evidence = Literal["observed", "inferred", "predicted"]
"""
observed: the code that wrote the record saw it happen. inferred: concluded from something else. predicted: simulated.
"""


@dataclass(frozen=True, slots=True)
class Record:
    """One fact.

    `id` is `<actor>-<boot id>-<sequence>`; `at_ns` the monotonic clock (comparable between processes of a machine),
    `wall_ns` nanoseconds since the epoch. `kind` is one of `lastcall.timeline.kinds`, which says what `facts` hold.
    `rule` is the Kubernetes source path and function, "" where none applies. `cause_id` is the id of the record that
    led to this one, when the writer knows it; causes across processes are joined by the story through
    `facts["resourceVersion"]` (written) and `facts["observedResourceVersion"]` (reacted to).
    """

    id: str
    at_ns: int
    wall_ns: int
    actor: str
    kind: str
    pod_uid: str = ""
    container: str = ""
    rule: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    cause_id: str = ""
    evidence: Evidence = "observed"


class Recorder(Protocol):
    """Writes records. Never blocks, never raises."""

    def record(
        self,
        kind: str,
        *,
        pod_uid: str = "",
        container: str = "",
        rule: str = "",
        facts: dict[str, Any] | None = None,
        cause_id: str = "",
        evidence: Evidence = "observed",
    ) -> str:
        """Write one record stamped with now; answers its id."""
        ...
