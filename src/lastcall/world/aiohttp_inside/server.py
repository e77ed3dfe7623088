"""The parts of `aiohttp.web` that servers here use, by the modules that have them.

`aiohttp.web` also brings applications, routes and files, and reads the machine's MIME types: 1 MB and 30 ms of the
API server's start.
"""

import logging
from typing import Any

from lastcall.world.aiohttp_inside.client import aiohttp

# isort: split
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_exceptions import HTTPException
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server
from aiohttp.web_ws import WebSocketResponse

__all__ = [
    "BaseRequest",
    "HTTPException",
    "RequestKey",
    "Response",
    "Server",
    "StreamResponse",
    "WebSocketResponse",
    "drain",
    "log",
]

RequestKey: Any = getattr(aiohttp.helpers, "RequestKey", None)
"""None in older versions of aiohttp, which serve as well: they know only strings."""


async def drain(response: StreamResponse) -> None:
    """Wait until the client has taken most of what was written; aiohttp's `write` waits after 64 KiB only.

    Raises ConnectionResetError.
    """
    await response._payload_writer.drain()  # type: ignore[union-attr]  # it is there once the response is prepared


def _in_a_line(record: logging.LogRecord) -> bool:
    """What a client sends that is not HTTP is its own fault: a line, and no traceback of the parser."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        first = str(error.message).strip().partition("\n")[0]
        record.msg, record.args = f"{record.getMessage()}: {first}", ()
        record.exc_info, record.exc_text = None, None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
    return True


log = logging.getLogger("lastcall.http")
"""For the `logger` of servers."""
log.addFilter(_in_a_line)
