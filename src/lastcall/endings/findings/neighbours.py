"""What to do about a container that starts before another one of its Pod that it needs. Pure."""

# check: pure

import re
from collections.abc import Collection, Sequence

from lastcall.endings.catalogue.lookup import fix
from lastcall.endings.facts.missed import REFUSED
from lastcall.endings.findings.changes import Remedy, in_pod
from lastcall.endings.story import ContainerEnding, ContainerFacts, PodFacts

_OWN_PORT = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])['\"]?(?::|, ?)(\d+)\b")
_START_SECONDS = 60
"""How long the start of a native sidecar may take: a startupProbe ends with its first success."""


def needs_neighbour(pod: PodFacts, run: ContainerEnding, runs: Sequence[ContainerEnding] = ()) -> Remedy | None:
    """Return what to do about a crash because nobody answered in the same Pod; None for any other crash.

    `runs` are those of all containers of the Pod: a later one shows who listened after all.

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
    if asked and (remedy := _by_what_listened(pod, run, asked)) is not None:
        return remedy
    if asked or len(others) != 1:
        return None
    listened_later = any(
        each.name == others[0].name and _listened_after(each, run.exit.at or 0.0, others[0].ports) for each in runs
    )
    return _by_who_refused(pod, run, others[0], listened_later=listened_later)


def _listened_after(run: ContainerEnding, at: float, ports: Collection[int]) -> bool:
    """Return whether a run had one of these ports open when it was stopped, after `at`."""
    sockets, stop = run.seen.sockets, run.stop.signal_at
    found = sockets.listeners if sockets is not None and stop is not None and stop > at else ()
    return any(each.port in ports for each in found)


def _by_who_refused(
    pod: PodFacts, run: ContainerEnding, other: ContainerFacts, *, listened_later: bool
) -> Remedy | None:
    """Return what to do if it connects to the one other container of its Pod that declares a port; None where that
    listened right after the crash, or where the refusal came from outside of the Pod.

    A probe of the kubelet that is refused counts as one of the Pod's refusals, too.
    """
    listeners, port, in_its_pod = run.seen.pod_listeners, other.ports[0], run.seen.refused_in_pod
    if in_its_pod is False or any(each.port in other.ports for each in listeners or ()):
        return None
    if listeners is None:
        return Remedy(fix("crashed", "refusedPerhaps", other=other.name, port=port))
    if in_its_pod and not any(each.probes or each.tcp_probes for each in pod.containers):
        variant = "refusedInPodEarly" if listened_later else "refusedInPod"
        advice = fix("crashed", variant, other=other.name, port=port)
        return in_pod(advice, initContainers=[_native(other, port)])
    return Remedy(fix("crashed", "refusedEarly", other=other.name, port=port))


def _by_what_listened(pod: PodFacts, run: ContainerEnding, asked: Collection[int]) -> Remedy | None:
    """Return what to do by who listened in the Pod right after the crash.

    None where nobody looked, and where another container of the Pod listened nowhere: it may have done so later.
    """
    listeners = run.seen.pod_listeners
    if listeners is None:
        return None
    late = next((each for each in listeners if each.port in asked and each.container), None)
    if late is not None:  # it refused a moment ago, and listens now
        native = [_native(ContainerFacts(late.container), late.port)]
        return in_pod(fix("crashed", "refusedByNeighbour", other=late.container, port=late.port), initContainers=native)
    port, there = min(asked), {each.container for each in listeners}
    others = {each.name for each in pod.containers if each.kind in ("container", "sidecar") and each.name != run.name}
    if any(each.port == port for each in listeners) or not others <= there:
        return None
    found = [f"{each.container or '?'}: {each.port}" for each in listeners]
    if not found:
        return Remedy(fix("crashed", "refusedByPod", port=port))
    return Remedy(fix("crashed", "refusedByOthers", port=port, listeners=", ".join(dict.fromkeys(found))))


def _native(other: ContainerFacts, port: int) -> dict[str, object]:
    probe = {"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": _START_SECONDS}
    return {"name": other.name, "restartPolicy": "Always", "startupProbe": probe}
