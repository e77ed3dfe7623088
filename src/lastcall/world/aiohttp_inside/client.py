"""aiohttp, imported without reading the machine's certificate authorities.

Its connector reads them twice at import, for default contexts that nobody here uses: every client names its own. That
is 70 ms of each start and 3 MB. Code that did use such a default would trust nothing.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["aiohttp"]


@contextmanager
def _no_authorities() -> Iterator[None]:
    """OpenSSL takes its default authorities from this file while it lasts (SSL_CTX_set_default_verify_paths(3))."""
    before = os.environ.get("SSL_CERT_FILE")
    os.environ["SSL_CERT_FILE"] = os.devnull
    try:
        yield
    finally:
        if before is None:
            del os.environ["SSL_CERT_FILE"]
        else:
            os.environ["SSL_CERT_FILE"] = before


with _no_authorities():
    import aiohttp
