"""Runs a credential plugin: without a shell, with a time limit, and with limits on what it may write.

Source: client-go plugin/pkg/client/auth/exec/exec.go. kubectl waits for a plugin for any time; here it is ended after
`SECONDS`, with all that it started.
"""

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from contextlib import suppress

from lastcall.kube.client.access.config import ClientConfig, ExecPlugin
from lastcall.kube.client.access.exec_credential import Answer, read_answer, request_document, takes_terminal

Say = Callable[[str], None]
"""Prints a line that the plugin wrote to stderr, and quotes it (`cli/terminal.py:say`)."""

SECONDS = 60.0
INTERACTIVE_SECONDS = 300.0
"""How long a plugin may take; one that may ask a person gets the longer time."""
MOST_BYTES = 1 << 20
"""Of an answer."""
MOST_SAID = 64 << 10
"""Bytes of stderr that are handed on."""

_NOT_INSTALLED = (
    "\nIt looks like you are trying to use a client-go credential plugin that is not installed.\nTo learn more about "
    "this feature, consult the documentation available at:\n  "
    "https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins"
)


class PluginError(Exception):
    """The plugin gave no credentials; the text is kubectl's, where kubectl has one."""


async def ask(config: ClientConfig, plugin: ExecPlugin, say: Say | None = None) -> Answer:
    """Run it once. Raises PluginError."""
    command = plugin.command
    try:
        interactive = takes_terminal(plugin.interactive_mode, sys.stdin is not None and sys.stdin.isatty())
    except ValueError as error:
        raise PluginError(str(error)) from None
    program = shutil.which(command, path=_absolute_path())
    if program is None:
        hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
        raise PluginError(f"exec: executable {command} not found{_NOT_INSTALLED}{hint}")
    info = {"KUBERNETES_EXEC_INFO": request_document(config, plugin, interactive)}
    running = _Running(command, say)
    try:
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: running,
            program,
            *plugin.args,
            stdin=None if interactive else DEVNULL,
            stdout=PIPE,
            stderr=None if interactive else PIPE,
            env={**os.environ, **dict(plugin.env), **info},
            start_new_session=not interactive,  # so that all of it can be ended; one that asks needs the terminal
        )
    except (OSError, ValueError) as error:
        raise PluginError(f"exec: {command}: {error}") from None
    seconds = INTERACTIVE_SECONDS if interactive else SECONDS
    try:
        async with asyncio.timeout(seconds):
            await running.done
    except TimeoutError:
        raise PluginError(
            f"exec: executable {command} gave no credentials within {seconds:g} s, and was ended"
        ) from None
    finally:
        _end(transport, alone=interactive)
    if status := transport.get_returncode():
        raise PluginError(f"exec: executable {command} failed with exit code {status}")
    try:
        return read_answer(bytes(running.output), plugin.api_version)
    except ValueError as error:
        raise PluginError(str(error)) from None


def _absolute_path() -> str:
    """PATH without relative directories: what lies in the current one is never run by its name. (exec.ErrDot)"""
    return os.pathsep.join(each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(each))


class _Running(asyncio.SubprocessProtocol):
    """`done` when it has ended and closed its output, or wrote too much."""

    def __init__(self, command: str, say: Say | None) -> None:
        self.output = bytearray()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._command, self._say = command, say
        self._said, self._line = 0, b""
        self._open = {"output", "process"}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self.output += data
            if len(self.output) > MOST_BYTES and not self.done.done():
                text = f"exec: executable {self._command} wrote more than {MOST_BYTES >> 20} MiB"
                self.done.set_exception(PluginError(text))
            return
        self._said += len(data)
        if self._said <= MOST_SAID:
            *lines, self._line = (self._line + data).split(b"\n")
            for line in lines:
                self._tell(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._closed("output")
        elif self._line:
            self._tell(self._line)

    def process_exited(self) -> None:
        self._closed("process")

    def _closed(self, which: str) -> None:
        self._open.discard(which)
        if not self._open and not self.done.done():
            self.done.set_result(None)

    def _tell(self, line: bytes) -> None:
        if self._say is not None:
            self._say(line.decode("utf-8", "replace"))


def _end(transport: asyncio.SubprocessTransport, *, alone: bool) -> None:
    """What still runs of it ends now; the event loop reaps it."""
    if not alone and hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(transport.get_pid(), signal.SIGKILL)
    transport.close()
