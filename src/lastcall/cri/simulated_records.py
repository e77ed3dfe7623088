"""The recorder and the record kinds that the simulated runtime needs.

`lastcall.cri` and `lastcall.timeline` are of one layer and may not import each other; these are the same names as in
`lastcall.timeline.kinds` and the same protocol as `lastcall.timeline.record.Recorder` (a test compares them).
"""

from typing import Any, Literal, Protocol

PROCESS_STARTED = "ProcessStarted"
PROCESS_SIGNAL_STATE = "ProcessSignalState"
SIGNAL_SENT = "SignalSent"
PROCESS_EXITED = "ProcessExited"
EXEC_STARTED = "ExecStarted"
EXEC_EXITED = "ExecExited"
OUTPUT = "Output"
NETWORK_ATTACHED = "NetworkAttached"
NETWORK_DETACHED = "NetworkDetached"


class Recorder(Protocol):
    """`lastcall.timeline.record.Recorder`, structurally."""

    def record(
        self,
        kind: str,
        *,
        pod_uid: str = "",
        container: str = "",
        rule: str = "",
        facts: dict[str, Any] | None = None,
        cause_id: str = "",
        evidence: Literal["observed", "inferred", "predicted"] = "observed",
    ) -> str: ...
