"""A client's session that sends each request once."""

from lastcall.world.aiohttp_inside.client import aiohttp


def send_once(session: aiohttp.ClientSession) -> aiohttp.ClientSession:
    """Return the session, set to send each request once: by itself it repeats a request without a body when its
    connection breaks, also a fresh one.
    """
    session._retry_connection = False
    return session
