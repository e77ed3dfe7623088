"""SPDY/3.1 frames: bytes to frames and back. Source: the SPDY Protocol draft 3.1, sections 2.2 to 2.6.

A control frame is `1|version:15 type:16 flags:8 length:24`, a data frame `0|stream:31 flags:8 length:24`. Header blocks
are compressed with one zlib stream per direction and a dictionary that both sides know.
"""

import zlib
from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from struct import Struct, error, unpack_from

from lastcall.world.dataclass import dataclass

VERSION = 3
FLAG_FIN = 1
LONGEST_CONTROL = 64 << 10
"""Bytes of a control frame, and of its headers unpacked. Kubernetes's have some hundred."""
INITIAL_WINDOW = 64 << 10

_HEAD = Struct(">II")
_CONTROL = 0x80000000
_ID = 0x7FFFFFFF

_WORDS = (
    "options,head,post,put,delete,trace,accept,accept-charset,accept-encoding,accept-language,accept-ranges,age,allow,"
    "authorization,cache-control,connection,content-base,content-encoding,content-language,content-length,"
    "content-location,content-md5,content-range,content-type,date,etag,expect,expires,from,host,if-match,"
    "if-modified-since,if-none-match,if-range,if-unmodified-since,last-modified,location,max-forwards,pragma,"
    "proxy-authenticate,proxy-authorization,range,referer,retry-after,server,te,trailer,transfer-encoding,upgrade,"
    "user-agent,vary,via,warning,www-authenticate,method,get,status,200 OK,version,HTTP/1.1,url,public,set-cookie,"
    "keep-alive,origin"
)
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = b"".join(len(word).to_bytes(4, "big") + word.encode() for word in _WORDS.split(",")) + _TEXT.encode()


class SpdyError(Exception):
    """The other side does not speak SPDY/3.1."""


class Type(IntEnum):
    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    HEADERS = 8
    WINDOW_UPDATE = 9


class ResetStatus(IntEnum):
    """Why a stream was reset."""

    PROTOCOL_ERROR = 1
    INVALID_STREAM = 2
    REFUSED_STREAM = 3
    CANCEL = 5


SETTINGS_INITIAL_WINDOW_SIZE = 7


@dataclass(frozen=True, slots=True)
class Data:
    """A piece of a data frame: what has arrived of it. `fin` only with its last piece."""

    stream: int
    data: bytes
    fin: bool = False


@dataclass(frozen=True, slots=True)
class SynStream:
    """`headers` have lower-case names; a value with several is joined by NUL."""

    stream: int
    headers: Mapping[str, str] = field(default_factory=dict)
    fin: bool = False


@dataclass(frozen=True, slots=True)
class SynReply:
    stream: int
    headers: Mapping[str, str] = field(default_factory=dict)
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Headers:
    stream: int
    headers: Mapping[str, str] = field(default_factory=dict)
    fin: bool = False


@dataclass(frozen=True, slots=True)
class RstStream:
    stream: int
    status: int


@dataclass(frozen=True, slots=True)
class Settings:
    values: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ping:
    id: int


@dataclass(frozen=True, slots=True)
class GoAway:
    last_stream: int
    status: int = 0


@dataclass(frozen=True, slots=True)
class WindowUpdate:
    stream: int
    delta: int


Frame = Data | SynStream | SynReply | Headers | RstStream | Settings | Ping | GoAway | WindowUpdate


class Encoder:
    """Frames to bytes, in the order in which they are sent: the header compression has a memory."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(zlib.Z_BEST_SPEED, zdict=DICTIONARY)

    def encode(self, frame: Frame) -> bytes:
        match frame:
            case Data(stream, data, fin):
                return _HEAD.pack(stream & _ID, (fin << 24) | len(data)) + data
            case SynStream(stream, headers, fin):
                body = _HEAD.pack(stream, 0) + b"\0\0" + self._headers(headers)
                return _control(Type.SYN_STREAM, fin, body)
            case SynReply(stream, headers, fin):
                return _control(Type.SYN_REPLY, fin, stream.to_bytes(4, "big") + self._headers(headers))
            case Headers(stream, headers, fin):
                return _control(Type.HEADERS, fin, stream.to_bytes(4, "big") + self._headers(headers))
            case RstStream(stream, status):
                return _control(Type.RST_STREAM, 0, _HEAD.pack(stream, status))
            case Settings(values):
                entries = b"".join(_HEAD.pack(number & 0xFFFFFF, value) for number, value in values.items())
                return _control(Type.SETTINGS, 0, len(values).to_bytes(4, "big") + entries)
            case Ping(number):
                return _control(Type.PING, 0, number.to_bytes(4, "big"))
            case GoAway(last, status):
                return _control(Type.GOAWAY, 0, _HEAD.pack(last, status))
            case WindowUpdate(stream, delta):
                return _control(Type.WINDOW_UPDATE, 0, _HEAD.pack(stream, delta))

    def _headers(self, headers: Mapping[str, str]) -> bytes:
        block = [len(headers).to_bytes(4, "big")]
        for name, value in headers.items():
            for text in (name.lower().encode("latin-1"), value.encode("latin-1")):
                block += [len(text).to_bytes(4, "big"), text]
        return self._zlib.compress(b"".join(block)) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


def _control(kind: Type, flags: int, body: bytes) -> bytes:
    return _HEAD.pack(_CONTROL | VERSION << 16 | kind, flags << 24 | len(body)) + body


class Decoder:
    """Bytes to frames, in pieces of any size. Keeps at most one control frame; data passes through."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)
        self._buffer = bytearray()
        self._stream = 0  # of the data frame under way
        self._left = 0
        self._fin = False

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames, and pieces of data frames, that `data` completes. Raises SpdyError."""
        self._buffer += data
        frames: list[Frame] = []
        while self._buffer:
            if self._left:
                piece = bytes(self._buffer[: self._left])
                del self._buffer[: self._left]
                self._left -= len(piece)
                frames.append(Data(self._stream, piece, self._fin and not self._left))
                continue
            if len(self._buffer) < _HEAD.size:
                break
            first, second = _HEAD.unpack_from(self._buffer)
            length = second & 0xFFFFFF
            if not first & _CONTROL:
                del self._buffer[: _HEAD.size]
                self._stream, self._left, self._fin = first & _ID, length, bool(second >> 24 & FLAG_FIN)
                if not length:
                    frames.append(Data(self._stream, b"", self._fin))
                continue
            if length > LONGEST_CONTROL:
                raise SpdyError(f"a control frame of {length} bytes")
            if len(self._buffer) < _HEAD.size + length:
                break
            body = bytes(self._buffer[_HEAD.size : _HEAD.size + length])
            del self._buffer[: _HEAD.size + length]
            if first >> 16 & 0x7FFF != VERSION:
                raise SpdyError(f"SPDY version {first >> 16 & 0x7FFF}")
            frame = self._control(first & 0xFFFF, second >> 24, body)
            if frame is not None:
                frames.append(frame)
        return frames

    def _control(self, kind: int, flags: int, body: bytes) -> Frame | None:
        """Return None for an unknown type, which the protocol says to ignore."""
        fin = bool(flags & FLAG_FIN)
        try:
            number = unpack_from(">I", body)[0]
            match kind:
                case Type.SYN_STREAM:
                    if len(body) < 10:
                        raise SpdyError("a SYN_STREAM that is too short")
                    return SynStream(number & _ID, self._headers(body[10:]), fin)
                case Type.SYN_REPLY:
                    return SynReply(number & _ID, self._headers(body[4:]), fin)
                case Type.HEADERS:
                    return Headers(number & _ID, self._headers(body[4:]), fin)
                case Type.RST_STREAM:
                    return RstStream(number & _ID, unpack_from(">I", body, 4)[0])
                case Type.SETTINGS:
                    if len(body) < 4 + 8 * number:
                        raise SpdyError("a SETTINGS frame that is too short")
                    pairs = (_HEAD.unpack_from(body, 4 + 8 * index) for index in range(number))
                    return Settings({key & 0xFFFFFF: value for key, value in pairs})
                case Type.PING:
                    return Ping(number)
                case Type.GOAWAY:
                    return GoAway(number & _ID, unpack_from(">I", body, 4)[0])
                case Type.WINDOW_UPDATE:
                    return WindowUpdate(number & _ID, unpack_from(">I", body, 4)[0] & _ID)
        except error:
            raise SpdyError(f"a control frame of type {kind} that is too short") from None
        return None

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            data = self._zlib.decompress(block, LONGEST_CONTROL)
        except zlib.error as problem:
            raise SpdyError(f"headers that do not unpack: {problem}") from None
        if self._zlib.unconsumed_tail or self._zlib.eof:
            raise SpdyError(f"headers of more than {LONGEST_CONTROL} bytes")
        try:
            (count,) = unpack_from(">I", data)
            texts: list[str] = []
            at = 4
            for _ in range(2 * count):
                (length,) = unpack_from(">I", data, at)
                at += 4 + length
                if at > len(data):
                    raise SpdyError("a header that is longer than its frame")
                texts.append(data[at - length : at].decode("latin-1"))
        except error:
            raise SpdyError("fewer headers than announced") from None
        return dict(zip(texts[::2], texts[1::2], strict=True))
