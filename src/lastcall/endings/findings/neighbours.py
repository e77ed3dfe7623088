"""What to do about a container that starts before another one of its Pod that it needs. Pure."""

# check: pure

import re

from lastcall.endings.catalogue.lookup import fix
from lastcall.endings.findings.changes import Remedy, in_pod
from lastcall.endings.story import ContainerEnding, ContainerFacts, PodFacts

REFUSED = re.compile(r"connection (?:refused|reset)|ECONNREFUSED|ECONNRESET|broken pipe|Errno (?:32|104|111)", re.I)
"""What strerror(3) and runtimes of languages say when the other side is not there."""
_OWN_PORT = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])['\"]?(?::|, ?)(\d+)\b")
_START_SECONDS = 60
"""How long the start of a native sidecar may take: a startupProbe ends with its first success."""


def needs_neighbour(pod: PodFacts, run: ContainerEnding) -> Remedy | None:
    """Return what to do about a crash because nobody answered in the same Pod; None for any other crash.

    The kubelet starts the containers of a Pod without waiting for one another's readiness, except for a native sidecar
    with a startupProbe before them (`kuberuntime_manager.go:computePodActions`).
    """
    lines = run.seen.last_lines
    if run.kind != "container" or not any(REFUSED.search(line) for line in lines):
        return None
    others = [each for each in pod.containers if each.kind == "container" and each.name != run.name and each.ports]
    asked = {int(port) for line in lines for port in _OWN_PORT.findall(line)}
    for other in others:
        if ports := [port for port in other.ports if port in asked]:
            advice = fix("crashed", "refusedByNeighbour", other=other.name, port=ports[0])
            return in_pod(advice, initContainers=[_native(other, ports[0])])
    if not asked and len(others) == 1:
        return Remedy(fix("crashed", "refusedPerhaps", other=others[0].name, port=others[0].ports[0]))
    return None


def _native(other: ContainerFacts, port: int) -> dict[str, object]:
    probe = {"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": _START_SECONDS}
    return {"name": other.name, "restartPolicy": "Always", "startupProbe": probe}
