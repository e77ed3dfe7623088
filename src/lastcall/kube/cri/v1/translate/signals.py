"""Stop signals: CRI has a number for each name of Linux. Pure."""

from lastcall.kube.cri.v1.messages import SIGNALS
from lastcall.kube.cri.v1.translate.parts import word


def signal_name_of(number: int) -> str:
    """SIGTERM of 23, "" of the runtime's default: CRI names each signal of Linux, RTMIN+1 as SIGRTMINPLUS1."""
    text = str(word(SIGNALS, number, "stop signal"))
    return "" if text == "RUNTIME_DEFAULT" else text.replace("PLUS", "+").replace("MINUS", "-")


def signal_number(name: str) -> int:
    """The other way; 0 of one that CRI has no number for."""
    text = name.replace("+", "PLUS").replace("-", "MINUS")
    return SIGNALS.index(text) if text in SIGNALS else 0
