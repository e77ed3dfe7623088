"""Where containerd as the runtime may differ from a recording of a real Kubernetes, and why."""

import re

_LOG = (
    r"^log p/app#0: ",
    "The replay reads the log through the node's process, and stops reading when that is killed.",
)
_SHORT = (
    r"sequence of (phase|cond (Ready|ContainersReady))",
    "Its container ends within milliseconds: whether anybody still sees phase Running is chance.",
)
_TERM = (
    r"^pod p (final|sequence)",
    "The kubelet stops the container right after its start. Whether its program has a handler by then is chance.",
)

ON_CONTAINERD: dict[str, tuple[str, str]] = {
    "delete-completed": _SHORT,
    "delete-during-pull-ok": _TERM,
    "delete-during-pull-two": _TERM,
    "exit-during-prestop-exec": (
        "too early",
        "Its container leaves 5 s after its start, and is deleted 3 s after the start was seen in the log: what a busy "
        "machine takes to show it is missing from the 2 s in between.",
    ),
    "kubelet-restart-drain-ends-while-down": (
        f"{_LOG[0]}|^endpoints svc/p: .*serving=false",
        f"{_LOG[1]} Not to serve lasts milliseconds here: whether the endpoints show it is chance.",
    ),
    "kubelet-restart-in-prestop": _LOG,
    "kubelet-restart-running": (f"{_LOG[0]}|^pod done {_SHORT[0]}", _LOG[1]),
    "taint-noexecute-nokubelet": (
        "Cancelling deletion of Pod",
        "The recorded controller took the node for one of that name that it had lost before, and tainted it again.",
    ),
    "termination-message": _SHORT,
}
"""Scenario → (a regular expression over the differences that may be, why)."""


def is_known(scenario: str, difference: str) -> bool:
    found = ON_CONTAINERD.get(scenario)
    return found is not None and re.search(found[0], difference) is not None
