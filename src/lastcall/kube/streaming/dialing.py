"""Connect to an address by another way than this process's own routes."""

import socket
from collections.abc import Awaitable, Callable


class DialError(Exception):
    """No connection; the text is Go's."""


Dial = Callable[[str, int], Awaitable[socket.socket]]
"""A connected, non-blocking socket to address and port. Raises DialError."""
