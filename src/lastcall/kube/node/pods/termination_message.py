"""The termination message of a container. Source: kuberuntime_container.go:getTerminationMessage.

A container writes it to a file of its own that the kubelet mounted at `terminationMessagePath`; with the policy
FallbackToLogsOnError the end of its log takes the place of an empty file after a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lastcall.kube.cri.api import ContainerStatus
from lastcall.kube.node.logs.reader import tail_log_text

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container

MAX_FILE_BYTES = 4096
MAX_LOG_BYTES = 2048
MAX_LOG_LINES = 80
MAX_POD_BYTES = 12288
DEFAULT_PATH = "/dev/termination-log"


def read_at_most(path: Path, limit: int) -> bytes:
    """Read the last `limit` bytes of a file; b"" if it cannot be read. A symbolic link is not followed."""
    try:
        if path.is_symlink() or not path.is_file():
            return b""
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - limit))
            return file.read(limit)
    except OSError:
        return b""


def termination_message(container: Container, status: ContainerStatus, file_text: str) -> str:
    """Return the message of an exited container: the runtime's own, then the file's or the log's.

    `container` is the spec; `file_text` the content of the file. Reads the log only when the policy asks for it.
    """
    text = file_text
    if (
        not text
        and container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        and status.exit_code != 0
        and status.reason != "ContainerCannotRun"
        and status.log_path
    ):
        text = tail_log_text(Path(status.log_path), MAX_LOG_LINES, MAX_LOG_BYTES)
    if status.message and text:
        return f"{status.message}: {text}"
    return status.message or text


class TerminationMessages:
    """Reads each exited container's message once: its file may be gone when the status is generated again.

    `read(pod uid, container name, attempt)` is asked where the runtime does not tell the container's mounts
    (`VolumeManager.read_termination_message`).
    """

    def __init__(self, read: Callable[[str, str, int], str] = lambda uid, name, attempt: "") -> None:
        self._read = read
        self._messages: dict[str, dict[str, str]] = {}

    def get(self, pod_uid: str, container: Container, status: ContainerStatus) -> str:
        known = self._messages.setdefault(pod_uid, {})
        message = known.get(status.id)
        if message is None:
            message = known[status.id] = termination_message(
                container, status, self._file_text(pod_uid, container, status)
            )
        return message

    def forget_except(self, pod_uids: set[str]) -> None:
        """Drop the messages of all other Pods."""
        for uid in [uid for uid in self._messages if uid not in pod_uids]:
            del self._messages[uid]

    def _file_text(self, pod_uid: str, container: Container, status: ContainerStatus) -> str:
        wanted = container.get("terminationMessagePath") or DEFAULT_PATH
        for mount in status.mounts:
            if mount.container_path == wanted:
                return read_at_most(Path(mount.host_path), MAX_FILE_BYTES).decode("utf-8", "replace")
        return self._read(pod_uid, status.metadata.name, status.metadata.attempt)
