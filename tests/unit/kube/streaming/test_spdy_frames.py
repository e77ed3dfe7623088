"""SPDY/3.1 frames: what a real kubectl and a real API server said to each other, round trips, and hostile input."""

import base64
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.kube.streaming.spdy_frames import (
    DICTIONARY,
    Data,
    Decoder,
    Encoder,
    GoAway,
    Headers,
    Ping,
    RstStream,
    Settings,
    SpdyError,
    SynReply,
    SynStream,
    WindowUpdate,
)

KUBECTL_1_20 = (  # kubectl exec -i demo -- cat
    "gAMAAQAAACkAAAABAAAAAAAAePnjxqfCYmBgYASns5Ki1MRcaFHCmgoKaAAAAAD//w==",
    "gAMAAQAAABcAAAADAAAAAAAAwi5VXJKSmQcAAAD//w==",
    "gAMAAQAAABkAAAAFAAAAAAAAwirFVlySkl9aAgAAAP//",
    "gAMAAQAAABUAAAAHAAAAAAAAwimXWlQEAAAA//8=",
    "AAAAAwAAABJzb21lIGlucHV0CnNlY29uZAo=",
    "AAAAAwEAAAA=",
)
API_SERVER_1_36 = (
    "gAM=", "AAIAAAAUAAAAAQ==", "ePnjxqfCYmBgYAAAAAD//w==", "gAM=", "AAI=", "AAAADA==", "AAAAAw==", "AmEAAAAA//8=",
)  # fmt: skip

names = st.text("abcdefghijklmnopqrstuvwxyz-:", min_size=1, max_size=20)
values = st.text(st.characters(min_codepoint=0, max_codepoint=255), max_size=60)
headers = st.dictionaries(names, values, max_size=8)
ids = st.integers(0, (1 << 31) - 1)
words = st.integers(0, (1 << 32) - 1)
frames = st.one_of(
    st.builds(Data, ids, st.binary(max_size=3000), st.booleans()),
    st.builds(SynStream, ids, headers, st.booleans()),
    st.builds(SynReply, ids, headers, st.booleans()),
    st.builds(Headers, ids, headers, st.booleans()),
    st.builds(RstStream, ids, words),
    st.builds(Settings, st.dictionaries(st.integers(0, (1 << 24) - 1), words, max_size=5)),
    st.builds(Ping, words),
    st.builds(GoAway, ids, words),
    st.builds(WindowUpdate, ids, ids),
)


def decode(decoder: Decoder, *pieces: bytes) -> list:
    """Frames, with the pieces of each data frame put together."""
    found = []
    for frame in (frame for piece in pieces for frame in decoder.feed(piece)):
        last = found[-1] if found else None
        if isinstance(frame, Data) and isinstance(last, _Open) and last.stream == frame.stream:
            last.data += frame.data
            last.fin = frame.fin
        else:
            found.append(_Open(frame) if isinstance(frame, Data) else frame)
    return [Data(frame.stream, frame.data, frame.fin) if isinstance(frame, _Open) else frame for frame in found]


class _Open:
    def __init__(self, frame: Data) -> None:
        self.stream, self.data, self.fin = frame.stream, frame.data, frame.fin


def test_the_dictionary_is_the_one_of_the_protocol():
    assert len(DICTIONARY) == 1423
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2  # as the zlib header of every recorded session says


def test_what_kubectl_1_20_sends_is_understood():
    assert decode(Decoder(), *map(base64.b64decode, KUBECTL_1_20)) == [
        SynStream(1, {"streamtype": "error"}),
        SynStream(3, {"streamtype": "stdin"}),
        SynStream(5, {"streamtype": "stdout"}),
        SynStream(7, {"streamtype": "stderr"}),
        Data(3, b"some input\nsecond\n", fin=True),
    ]


def test_what_a_real_api_server_answers_is_understood():
    assert decode(Decoder(), *map(base64.b64decode, API_SERVER_1_36)) == [SynReply(1), SynReply(3)]


def test_frames_look_on_the_wire_as_the_protocol_draws_them():
    encoder = Encoder()
    assert encoder.encode(Data(3, b"hello\n")).hex() == "0000000300000006" + b"hello\n".hex()
    assert encoder.encode(Data(3, b"", fin=True)).hex() == "0000000301000000"
    assert encoder.encode(Ping(7)).hex() == "800300060000000400000007"
    assert encoder.encode(RstStream(5, 5)).hex() == "80030003000000080000000500000005"
    assert encoder.encode(GoAway(5, 0)).hex() == "80030007000000080000000500000000"
    assert encoder.encode(WindowUpdate(3, 0x8000)).hex() == "80030009000000080000000300008000"
    assert encoder.encode(Settings({7: 65536})).hex() == "800300040000000c000000010000000700010000"
    reply = encoder.encode(SynReply(1))
    assert reply[:4].hex() == "80030002"
    assert zlib.decompressobj(zdict=DICTIONARY).decompress(reply[12:]) == bytes(4)


@given(st.lists(frames, max_size=12), st.integers(1, 400))
def test_frames_survive_the_way_however_it_cuts_them(sent, cut):
    encoder, decoder = Encoder(), Decoder()
    wire = b"".join(encoder.encode(frame) for frame in sent)
    got = [frame for at in range(0, len(wire), cut) for frame in decoder.feed(wire[at : at + cut])]
    position = 0
    for frame in sent:
        if not isinstance(frame, Data):
            assert got[position] == frame
            position += 1
            continue
        data = b""
        while True:
            piece = got[position]
            assert isinstance(piece, Data) and piece.stream == frame.stream
            data += piece.data
            position += 1
            if len(data) == len(frame.data):
                assert piece.fin is frame.fin
                break
            assert not piece.fin
        assert data == frame.data
    assert position == len(got)


@given(st.lists(st.binary(max_size=200), max_size=8))
def test_no_bytes_do_worse_than_an_error(pieces):
    decoder = Decoder()
    with suppress(SpdyError):
        for piece in pieces:
            decoder.feed(piece)


@given(st.integers(0, 12), st.integers(0, 255), st.binary(max_size=60))
def test_no_control_frame_does_worse_than_an_error(kind, flags, body):
    head = (0x80030000 | kind).to_bytes(4, "big") + ((flags << 24) | len(body)).to_bytes(4, "big")
    with suppress(SpdyError):
        Decoder().feed(head + body)


def control(kind: int, body: bytes, length: int | None = None, version: int = 3) -> bytes:
    size = len(body) if length is None else length
    return (0x80000000 | version << 16 | kind).to_bytes(4, "big") + size.to_bytes(4, "big") + body


def packed(text: bytes) -> bytes:
    compressor = zlib.compressobj(zdict=DICTIONARY)
    return compressor.compress(text) + compressor.flush(zlib.Z_SYNC_FLUSH)


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        (control(1, b"", 0xFFFFFF), "a control frame of 16777215 bytes"),
        (control(1, bytes(10), version=2), "SPDY version 2"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", ""),  # a data frame, as far as one can see
        (control(1, bytes(4)), "too short"),
        (control(6, b"\0"), "too short"),
        (control(4, (1 << 30).to_bytes(4, "big")), "SETTINGS"),
        (control(2, bytes(4) + b"not zlib"), "do not unpack"),
        (control(2, bytes(4) + packed(bytes(1 << 20))), "headers of more than"),
        (control(2, bytes(4) + packed(b"\0\0\0\1")), "fewer headers"),
        (control(2, bytes(4) + packed(b"\0\0\0\1\0\0\xff\xff")), "longer than its frame"),
        (control(2, bytes(4) + packed(b"\xff\xff\xff\xff")), "fewer headers"),
    ],
)
def test_what_is_no_spdy_is_refused_in_words(wire, why):
    decoder = Decoder()
    if not why:
        assert all(isinstance(frame, Data) for frame in decoder.feed(wire))
        return
    with pytest.raises(SpdyError, match=why):
        decoder.feed(wire)


def test_a_data_frame_is_passed_on_as_it_comes_and_not_kept():
    decoder = Decoder()
    assert decoder.feed(b"\0\0\0\1\1\xff\xff\xff") == []
    total = 0
    while total < 0xFFFFFF:
        piece = bytes(min(65536, 0xFFFFFF - total))
        (frame,) = decoder.feed(piece)
        total += len(frame.data)
        assert frame.fin is (total == 0xFFFFFF)
