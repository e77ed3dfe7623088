"""aiohttp, imported without reading the machine's certificate authorities.

Its connector reads them twice at import, for default contexts that nobody here uses: every client names its own. That
is 40 ms of each start and some MB of each process. Somebody else's code in this process may use them, so they read
theirs before their first connection.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["aiohttp"]


class _LaterContext(ssl.SSLContext):
    """A context that reads the default authorities when it is first used, and is an ordinary one from then on."""

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        self._read_authorities()
        return self.wrap_bio(*arguments, **named)

    def wrap_socket(self, *arguments: Any, **named: Any) -> ssl.SSLSocket:
        self._read_authorities()
        return self.wrap_socket(*arguments, **named)

    def _read_authorities(self) -> None:
        self.__class__ = ssl.SSLContext  # type: ignore[assignment]
        self.set_default_verify_paths()


@contextmanager
def _authorities_later() -> Iterator[None]:
    def later(context: ssl.SSLContext) -> None:
        context.__class__ = _LaterContext

    name = "set_default_verify_paths"
    setattr(ssl.SSLContext, name, later)  # hides the method of the C class below it
    try:
        yield
    finally:
        delattr(ssl.SSLContext, name)


with _authorities_later():
    import aiohttp
