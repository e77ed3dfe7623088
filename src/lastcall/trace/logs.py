"""What the containers of a Pod print from the DELETE to their ends: one stream each, opened then, bounded."""

from collections.abc import AsyncIterator
from typing import Protocol

MAX_STREAMS = 64
"""Followed at once; the containers of further Pods are not read, and their stories say so."""
MAX_LINE = 4096
MAX_BYTES = 256 << 10
"""Of one container."""


class LogClient(Protocol):
    """`HTTPClient.pod_log`."""

    def pod_log(
        self,
        namespace: str,
        name: str,
        container: str = "",
        *,
        follow: bool = False,
        timestamps: bool = False,
        since_seconds: int | None = None,
        limit_bytes: int | None = None,
    ) -> AsyncIterator[bytes]: ...


def split(line: bytes) -> tuple[str, str]:
    """Split a line that begins with its time, as the kubelet writes it, into (stamp, text); ("", text) for others."""
    stamp, space, text = line.partition(b" ")
    if not space or not stamp[:4].isdigit() or b"T" not in stamp:
        return "", line[:MAX_LINE].decode("utf-8", "replace")
    return stamp.decode("ascii", "replace"), text[:MAX_LINE].decode("utf-8", "replace")


async def lines(client: LogClient, namespace: str, name: str, container: str, since: int) -> AsyncIterator[bytes]:
    """Yield the lines of a container since `since` seconds, until it ends or MAX_BYTES were read.

    Raises StatusError and ConnectionLost.
    """
    rest, read = b"", 0
    stream = client.pod_log(namespace, name, container, follow=True, timestamps=True, since_seconds=since)
    async for chunk in stream:
        read += len(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        for each in whole:
            yield each
        if len(rest) > MAX_LINE:
            yield rest
            rest = b""
        if read > MAX_BYTES:
            return
    if rest:
        yield rest
