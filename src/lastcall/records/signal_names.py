"""Signals by name, whatever a record holds: a name, a number, or nothing."""

import signal
from typing import Any

SIGKILL = "SIGKILL"


def signal_name(value: Any) -> str | None:
    """Return `SIGTERM` for "SIGTERM", "TERM" or 15; None for None, "" and 0; `signal 64` for a number without name."""
    if value is None or value == "" or value == 0:
        return None
    if isinstance(value, int):
        try:
            return signal.Signals(value).name
        except ValueError:
            return f"signal {value}"
    text = str(value)
    return text if text.startswith(("SIG", "signal ")) else f"SIG{text}"
