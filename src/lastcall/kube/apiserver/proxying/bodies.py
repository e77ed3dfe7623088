"""Bodies of answers on their way: decompressed, links rewritten, compressed again, piece by piece.

Source: apimachinery pkg/util/proxy/transport.go:rewriteResponse; net/http Transport, which asks for gzip by itself and
undoes it, and net/http/sniff.go:DetectContentType (its most common cases).
"""

import zlib
from collections.abc import Iterator
from typing import Protocol

from lastcall.kube.apiserver.proxying.html import LinkRewriter

PIECE = 16 << 10
"""Bytes that are worked on before others get their turn."""
_WBITS = {"gzip": 31, "deflate": -15}
_HTML = (
    b"<!DOCTYPE HTML", b"<HTML", b"<HEAD", b"<SCRIPT", b"<IFRAME", b"<H1", b"<DIV", b"<FONT", b"<TABLE", b"<A",
    b"<STYLE", b"<TITLE", b"<B", b"<BODY", b"<BR", b"<P", b"<!--",
)  # fmt: skip
_SIGNATURES = (
    (b"%PDF-", "application/pdf"), (b"\xff\xfe", "text/plain; charset=utf-16le"),
    (b"\xfe\xff", "text/plain; charset=utf-16be"), (b"\xef\xbb\xbf", "text/plain; charset=utf-8"),
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"), (b"\x1f\x8b\x08", "application/x-gzip"), (b"PK\x03\x04", "application/zip"),
    (b"\x00asm", "application/wasm"),
)  # fmt: skip
_BINARY = bytes({*range(0x20)} - {0x09, 0x0A, 0x0C, 0x0D, 0x1B})


class Step(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]: ...
    def finish(self) -> Iterator[bytes]: ...


class Decompressed:
    """Raises zlib.error. A little that becomes much does so piece by piece."""

    def __init__(self, encoding: str) -> None:
        self._zlib = zlib.decompressobj(_WBITS[encoding])

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if out := self._zlib.decompress(data, PIECE):
                yield out
            data = self._zlib.unconsumed_tail

    def finish(self) -> Iterator[bytes]:
        if not self._zlib.eof:
            raise zlib.error("unexpected EOF")
        yield from ()


class Compressed:
    def __init__(self, encoding: str) -> None:
        self._zlib = zlib.compressobj(wbits=_WBITS[encoding])

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield self._zlib.compress(data)

    def finish(self) -> Iterator[bytes]:
        yield self._zlib.flush()


class Linked:
    def __init__(self, rewriter: LinkRewriter) -> None:
        self._rewriter = rewriter

    def feed(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), PIECE):
            yield self._rewriter.feed(data[at : at + PIECE])

    def finish(self) -> Iterator[bytes]:
        yield self._rewriter.finish()


def through(steps: list[Step], data: bytes) -> Iterator[bytes]:
    """Yield what comes out behind all steps, in small pieces."""
    if not steps:
        yield data
        return
    for piece in steps[0].feed(data):
        yield from through(steps[1:], piece)


def ends(steps: list[Step]) -> Iterator[bytes]:
    """Yield what they still had."""
    if steps:
        for piece in steps[0].finish():
            yield from through(steps[1:], piece)
        yield from ends(steps[1:])


def is_html(content_type: str) -> bool:
    return content_type.partition(";")[0].strip() == "text/html"


def sniffed(data: bytes) -> str:
    """Return the Content-Type of an answer that has none."""
    data = data[:512]
    start = data.lstrip(b"\t\n\x0c\r ")
    upper = start.upper()
    if any(upper.startswith(tag) and start[len(tag) : len(tag) + 1] in (b" ", b">") for tag in _HTML):
        return "text/html; charset=utf-8"
    if start.startswith(b"<?xml"):
        return "text/xml; charset=utf-8"
    for signature, name in _SIGNATURES:
        if data.startswith(signature):
            return name
    return "application/octet-stream" if data.translate(None, _BINARY) != data else "text/plain; charset=utf-8"
