import os
import socket
import struct

import pytest

from lastcall.world.wire import Frames, WireError


@pytest.fixture
def pair():
    ends = [Frames(sock) for sock in socket.socketpair()]
    yield ends
    for end in ends:
        end.close()


def test_messages_with_attachments_and_descriptors_arrive_in_order(pair):
    one, two = pair
    read, write = os.pipe()
    assert one.send({"call": 1, "text": "ä\udcff"}, (b"out", b""))
    assert one.send({"call": 2}, fds=(write,))
    assert one.send({"call": 3})
    got = []
    while len(got) < 3:
        got += two.receive()
    assert [message["call"] for message, _, _ in got] == [1, 2, 3]
    assert got[0][0]["text"] == "ä\udcff"
    assert got[0][1] == (b"out", b"")
    (descriptor,) = got[1][2]
    os.write(descriptor, b"x")
    assert os.read(read, 1) == b"x"
    assert got[2][2] == ()
    for fd in (read, write, descriptor):
        os.close(fd)


def test_a_frame_larger_than_the_socket_takes_several_writes(pair):
    one, two = pair
    blob = os.urandom(5 << 20)
    done = one.send({"answer": 1}, (blob,))
    assert not done and one.unsent > 0
    got = []
    for _ in range(10_000):
        one.flush()
        got += two.receive()
        if got:
            break
    assert got[0][1] == (blob,)
    assert one.unsent == 0


def test_a_closed_end_is_told_after_its_last_message(pair):
    one, two = pair
    one.send({"event": "bye"})
    one.close()
    assert two.receive()[0][0] == {"event": "bye"}
    assert two.receive() is None


@pytest.mark.parametrize(
    "junk",
    [
        b"\xff" * 8,
        struct.pack("=II", 3, 0) + b"abc",
        struct.pack("=II", 2, 0) + b"[]",
        struct.pack("=II", 1, 0) + b"\xff",
    ],
)
def test_what_is_no_frame_is_an_error(pair, junk):
    one, two = pair
    one.socket.sendall(junk)
    with pytest.raises(WireError):
        two.receive()


def test_descriptors_that_no_message_claims_are_closed(pair):
    one, two = pair
    read, write = os.pipe()
    socket.send_fds(one.socket, [struct.pack("=II", 2, 0) + b"{}"], [write])
    os.close(write)
    assert two.receive() == [({}, (), ())]
    two.close()
    assert os.read(read, 1) == b""  # nobody holds the other end
    os.close(read)


def test_descriptors_that_are_given_away_are_closed_here_when_they_are_on_their_way_or_never_will_be(pair):
    one, two = pair
    read, write = os.pipe()
    assert one.send({"call": 1}, given=(write,))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(write)
    ((_, _, (received,)),) = two.receive()
    os.write(received, b"x")
    assert os.read(read, 1) == b"x"
    os.close(received)
    again, kept = os.pipe()
    assert not one.send({"call": 2}, (bytes(8 << 20),))
    assert not one.send({"call": 3}, given=(kept,))
    os.fstat(kept)
    one.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(kept)
    for fd in (read, again):
        os.close(fd)
