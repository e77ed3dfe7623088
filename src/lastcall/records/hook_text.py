"""The part of a failed hook's message that a person needs."""

import re

_WRAPPED = re.compile(r'failed - error: (?P<error>.*?)(?:, message: ".*")?$', re.DOTALL)


def hook_failure(message: str) -> str:
    """Take `exec: "nope": executable file not found in $PATH` out of what kubelet and runtime put around it.

    The handler's own message stays in the record. Source of the outer layer: lifecycle/handlers.go:Run.
    """
    match = _WRAPPED.search(message)
    error = match["error"] if match else message
    start = error.rfind('exec: "')
    core = error[start:] if start >= 0 else error
    return core.removesuffix(": unknown").strip()
