"""Requests with methods that aiohttp's parser does not know (`FOO`): it refuses them with 400 before anybody is asked.

net/http takes any token as a method, so that a Kubernetes API server answers 405 with a Status (RFC 9110 section 9.1).
"""

import re
from typing import Any

from lastcall.world.aiohttp_inside.client import aiohttp

# isort: split
from aiohttp import hdrs, web_protocol
from aiohttp.http_exceptions import BadHttpMethod
from aiohttp.http_parser import HttpRequestParser

_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+ HTTP/1\.[01])\r\n")
_STAND_IN = b"SOURCE "
"""Any method that the parser knows and that changes nothing in how it reads."""

__all__ = ["AnyMethodParser", "aiohttp", "take_any_method"]


class AnyMethodParser(HttpRequestParser):
    """aiohttp's parser, which begins anew with another method where it does not know one, and then tells the real one.

    It does so only where the first line of what was read is the line that it refused, so that no body is read as a
    request.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._arguments, self._options = arguments, options
        self._method = ""

    def feed_data(self, data: bytes) -> Any:  # type: ignore[override]  # as the parser of the extension module
        try:
            found = super().feed_data(data)
        except BadHttpMethod as error:
            line = _REQUEST_LINE.match(data)
            if line is None or line[1].decode() in hdrs.METH_ALL or repr(line[0][:-2]) not in str(error.message):
                raise
            super().__init__(*self._arguments, **self._options)
            self._method = line[1].decode()
            found = super().feed_data(_STAND_IN + data[line.start(2) :])
        if not self._method or not found[0]:
            return found
        ((message, payload), *more), *rest = found
        message, self._method = message._replace(method=self._method), ""
        return ([(message, payload), *more], *rest)


def take_any_method() -> None:
    """Let the connections of every server of this process read with `AnyMethodParser`."""
    web_protocol.HttpRequestParser = AnyMethodParser  # type: ignore[attr-defined]  # by its name there
