"""An answer in HTTP/1.1, out of the bytes as they come (RFC 9112). Pure: `connection.py` reads and writes.

Only what a client of an API server meets: one request at a time, no upgrade. All sizes are bytes.
"""

import re

LARGEST_HEAD = 1 << 16
LONGEST_LINE = 1 << 12
"""Of a chunk's size, or a trailer."""

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: .*)?")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):(.*)")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")


class Malformed(ConnectionError):
    """What came is no answer in HTTP/1.1, or half of one."""


class Answer:
    """The answer to one request. `status` is 0 until its head is there; `unread` is what has come of the body.

    `done`: it is whole. `reusable`: its connection takes another request then.
    """

    def __init__(self, method: str) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.unread = 0
        self.done = False
        self.reusable = True
        self._method = method
        self._pieces: list[bytes] = []
        self._rest = b""
        self._left = -1
        """What the body, or its chunk, still has; -1: all that comes until the connection ends."""
        self._chunked = self._after_chunk = self._in_trailers = False

    @property
    def begun(self) -> bool:
        """Something of it has come."""
        return bool(self.status or self._rest)

    def take(self) -> bytes:
        """All of the body that has come since the last call."""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self.unread = 0
        return data

    def feed(self, data: bytes) -> None:
        """What came next. Raises Malformed."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        position = 0
        while not self.status:
            end = data.find(b"\r\n\r\n", position)
            if end < 0:
                self._keep(data[position:], LARGEST_HEAD)
                return
            self._head(data[position:end])
            position = end + 4
        if self._chunked and not self.done:
            position = self._chunks(data, position)
        elif not self.done:
            position = self._take(data, position)
            self.done = self._left == 0
        if self.done and position < len(data):
            raise Malformed("the server sent more than its answer")

    def end(self) -> None:
        """The connection has ended. Raises Malformed in the middle of an answer."""
        if self.done:
            return
        if not self.status or self._chunked or self._left >= 0:
            raise Malformed("the server closed the connection" + (" in the middle of its answer" if self.begun else ""))
        self.done, self.reusable = True, False

    def _keep(self, data: bytes, most: int) -> None:
        if len(data) > most:
            raise Malformed(f"the server's answer has a line or a head of more than {most} bytes")
        self._rest = data

    def _take(self, data: bytes, position: int) -> int:
        """As much as belongs to the body, or its chunk; answers where it ends."""
        piece = data[position:] if self._left < 0 else data[position : position + self._left]
        if piece:
            self._pieces.append(piece)
            self.unread += len(piece)
            if self._left > 0:
                self._left -= len(piece)
        return position + len(piece)

    def _chunks(self, data: bytes, position: int) -> int:
        while not self.done:
            if self._left > 0:
                position = self._take(data, position)
                if self._left:
                    break
                self._after_chunk = True
            end = data.find(b"\r\n", position)
            if end < 0:
                self._keep(data[position:], LONGEST_LINE)
                return len(data)
            line, position = data[position:end], end + 2
            if self._after_chunk:
                if line:
                    raise Malformed(f"a chunk of the server's answer is longer than it said: {line[:80]!r}")
                self._after_chunk = False
            elif self._in_trailers:
                self.done = not line
            elif size := _CHUNK_SIZE.fullmatch(line):
                self._left = int(size[1], 16)
                self._in_trailers = self._left == 0
            else:
                raise Malformed(f"{line[:80]!r} is no size of a chunk")
        return position

    def _head(self, head: bytes) -> None:
        first, *lines = head.split(b"\r\n")
        found = _STATUS_LINE.fullmatch(first)
        if found is None:
            raise Malformed(f"{first[:80]!r} is no status line of HTTP/1.1")
        status = int(found[2])
        if 100 <= status < 200 and status != 101:
            return  # the answer is still to come
        fields: dict[str, str] = {}
        for line in lines:
            field = _FIELD.fullmatch(line)
            if field is None:
                raise Malformed(f"{line[:80]!r} is no field of an HTTP head")
            name, value = field[1].decode(), field[2].strip(b" \t").decode("latin-1")
            key = name.lower()
            if key == "content-length" and fields.get(key, value) != value:
                raise Malformed("the server's answer has two lengths")
            fields[key] = f"{fields[key]}, {value}" if key in fields and key != "content-length" else value
            self.headers[name] = fields[key]
        self._framing(status, fields)
        connection = fields.get("connection", "").lower()
        self.reusable = self._left >= 0 or self._chunked or self.done
        self.reusable &= connection == "keep-alive" if found[1] == b"0" else "close" not in connection
        self.status = status

    def _framing(self, status: int, fields: dict[str, str]) -> None:
        """Where the body ends (RFC 9112, 6.3)."""
        length = fields.get("content-length")
        if self._method == "HEAD" or status in (204, 304):
            self._left, self.done = 0, True
        elif coding := fields.get("transfer-encoding", "").lower():
            if coding != "chunked" or length is not None:
                raise Malformed(f"the server's answer is framed in a way that nobody asked for ({coding})")
            self._left, self._chunked = 0, True
        elif length is not None:
            if not (length.isascii() and length.isdecimal()):
                raise Malformed(f"the server's answer has the length {length[:80]!r}")
            self._left = int(length)
            self.done = self._left == 0
