"""What a runtime says of a container beyond CRI: its process on this machine. Pure.

Source: containerd internal/cri/server/container_status.go:toCRIContainerInfo, and image_status.go:toCRIImageInfo; cri-o
server/container_status.go has `pid`, too.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """`pid` in the runtime's PID namespace, 0 when it has ended or is not told; `argv` empty when it is not told."""

    pid: int = 0
    argv: tuple[str, ...] = ()
    terminal: bool = False


def task_of(info: Mapping[str, str]) -> Task:
    """Return what the verbose information of ContainerStatus says of the process."""
    said = _document(info)
    process = _part(_part(said, "runtimeSpec"), "process")
    pid, argv = said.get("pid"), process.get("args")
    return Task(
        pid if type(pid) is int and pid > 0 else 0,
        tuple(map(str, argv)) if isinstance(argv, list) else (),
        process.get("terminal") is True,
    )


def has_ended(info: Mapping[str, str]) -> bool:
    """Return True if the verbose information of PodSandboxStatus says that the pause process has ended. The state of
    the sandbox follows a moment later (containerd sandbox_status.go:toCRISandboxInfo; others do not tell it)."""
    return _document(info).get("processStatus") in ("stopped", "deleted")


def stop_signal_of(info: Mapping[str, str]) -> str:
    """Return the image's STOPSIGNAL from the verbose information of ImageStatus, "" for none."""
    signal = _part(_part(_document(info), "imageSpec"), "config").get("StopSignal")
    return signal if isinstance(signal, str) else ""


def _document(info: Mapping[str, str]) -> dict[str, Any]:
    try:
        found = orjson.loads(info.get("info", ""))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _part(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}
