"""What init sees of the cluster's own processes. These records are of no Pod."""

from typing import Annotated, TypedDict

from lastcall.records.fields.parts import WhyItDied

ACTOR = "init"


class ProcessDied(WhyItDied):
    """A process of the cluster has ended."""

    role: Annotated[str, "control-plane, node-1, shim-1 … or orphan"]
    pid: int
    exitCode: int | None
    signal: Annotated[int | None, "number of the signal that ended it"]


class ProcessRestarted(TypedDict):
    """A process of the cluster is started again."""

    role: Annotated[str, "control-plane, node-1, shim-1 …"]
    pid: int
