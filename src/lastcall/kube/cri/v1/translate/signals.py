"""Stop signals: CRI has a number for each name of Linux. Pure."""

from lastcall.kube.cri.v1.messages import SIGNALS
from lastcall.kube.cri.v1.translate.parts import word


def signal_name_of(number: int) -> str:
    """Return SIGTERM for 23, "" for the runtime's default: CRI names each signal of Linux, RTMIN+1 as SIGRTMINPLUS1."""
    text = str(word(SIGNALS, number, "stop signal"))
    return "" if text == "RUNTIME_DEFAULT" else text.replace("PLUS", "+").replace("MINUS", "-")


def signal_number(name: str) -> int:
    """Return CRI's number of a signal; 0 if it has none."""
    text = name.replace("+", "PLUS").replace("-", "MINUS")
    return SIGNALS.index(text) if text in SIGNALS else 0
