"""Why a connection to an API server was lost, in words that do not need the library that noticed it. Pure."""

import asyncio
import errno
import os
import ssl

from lastcall.world.aiohttp_inside.client import aiohttp


def why_lost(error: BaseException) -> str:
    """Return the text that follows "because"; what is not in the table has the words of the library."""
    if isinstance(error, asyncio.TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the name {error.host} was not found"
    if isinstance(error, ssl.SSLCertVerificationError | aiohttp.ClientConnectorCertificateError):
        return f"its certificate was refused: {error}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the server ended in the middle of an answer"
    number = _number(error)
    if number == errno.ECONNREFUSED:
        return "the server refused the connection"
    if number in (errno.ECONNRESET, errno.EPIPE):
        return "the server reset the connection"
    if number is not None:
        return os.strerror(number)
    return str(error) or type(error).__name__


def _number(error: BaseException) -> int | None:
    """The system's number of what went wrong. aiohttp wraps the system's error; asyncio joins those of several
    addresses without one."""
    below = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(below, ssl.SSLError) or not isinstance(below, OSError):
        return None
    return below.errno if below.errno in errno.errorcode else None
