"""The parts of `aiohttp.web` that servers here use, by the modules that have them.

`aiohttp.web` also brings applications, routes and files, and reads the machine's MIME types: 1 MB and 30 ms of the
API server's start.
"""

from typing import Any

from aiohttp import helpers
from aiohttp.web_exceptions import HTTPException
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server
from aiohttp.web_ws import WebSocketResponse

__all__ = ["BaseRequest", "HTTPException", "RequestKey", "Response", "Server", "StreamResponse", "WebSocketResponse"]

RequestKey: Any = getattr(helpers, "RequestKey", None)
"""None in older versions of aiohttp, which serve as well: they know only strings."""
