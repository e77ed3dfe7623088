"""Commands in a container that runs. Source: containerd internal/cri/server/container_execsync.go."""

import asyncio

from lastcall.kube.cri.api import ExecSyncResponse, RuntimeServiceError
from lastcall.kube.cri.sandbox.shim import messages
from lastcall.kube.cri.sandbox.shim_client import ShimClient
from lastcall.kube.cri.sandbox.streams import ExecStreams, open_exec

_EXEC_FAILED = (
    'failed to start exec "{}": OCI runtime exec failed: exec failed: unable to start container process: {}: unknown'
)


async def run_exec(
    shim: ShimClient, container_id: str, identity: str, cmd: tuple[str, ...], timeout: float
) -> ExecSyncResponse:
    """Run a command until it has ended; `timeout` in seconds, 0 is unlimited.

    Raises RuntimeServiceError: NotFound, StartError, DeadlineExceeded; cancelling kills the command.
    """
    try:
        answer = await shim.call(messages.Exec(id=container_id, exec_id=identity, argv=list(cmd), timeout=timeout))
    except asyncio.CancelledError:
        shim.post(messages.CancelExec(exec_id=identity))
        raise
    except RuntimeServiceError as error:
        if error.reason != "StartError":
            raise RuntimeServiceError(f"failed to exec in container: {error}", error.reason) from error
        text = _EXEC_FAILED.format(identity, error)
        raise RuntimeServiceError(f"failed to exec in container: {text}", "StartError") from error
    ended = answer.read(messages.Ended)
    if ended.killed_because == "exec timeout":
        text = f"failed to exec in container: timeout {timeout:g}s exceeded: context deadline exceeded"
        raise RuntimeServiceError(text, "DeadlineExceeded")
    return ExecSyncResponse(answer.blobs[0], answer.blobs[1], ended.exit_code)


async def start_exec(
    shim: ShimClient, container_id: str, identity: str, cmd: tuple[str, ...], *, tty: bool, stdin: bool
) -> ExecStreams:
    """Start an exec with its streams. Raises RuntimeServiceError: NotFound, StartError."""
    try:
        return await open_exec(shim, container_id, identity, cmd, tty=tty, stdin=stdin)
    except RuntimeServiceError as error:
        text = str(error)
        if error.reason == "StartError":
            text = _EXEC_FAILED.format(identity, text)
        raise RuntimeServiceError(f"failed to exec in container: {text}", error.reason) from error
