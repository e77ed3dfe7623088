"""Packets: JSON objects and descriptors over SEQPACKET sockets."""

import os

import pytest

from lastcall.world.wire import Packets, packets_pair


@pytest.fixture
def pair():
    ends = [Packets(sock) for sock in packets_pair()]
    yield ends
    for end in ends:
        end.close()


def test_messages_keep_their_bounds_and_their_descriptors(pair) -> None:
    one, two = pair
    read, write = os.pipe()
    one.send({"verb": "a", "text": "ä\udcff"})
    one.send({"verb": "b"}, (write,))
    os.close(write)
    (first, none), (second, (descriptor,)) = two.read()
    assert (first, none, second) == ({"verb": "a", "text": "ä\udcff"}, (), {"verb": "b"})
    assert not os.get_inheritable(descriptor)
    os.write(descriptor, b"x")
    os.close(descriptor)
    assert os.read(read, 10) == b"x" and os.read(read, 10) == b""
    os.close(read)
    assert two.read() == [] and not two.closed


@pytest.mark.parametrize("junk", [b"{", b"[]", b"\xff", b"1", b"[" * 60_000])
def test_nonsense_is_a_message_without_a_verb_and_its_descriptors_are_closed(pair, junk) -> None:
    one, two = pair
    read, write = os.pipe()
    rights = [(1, 1, write.to_bytes(4, "little"))]
    one.socket.sendmsg([junk], rights)
    os.close(write)
    one.send({"verb": "next"})
    assert two.read() == [({}, ()), ({"verb": "next"}, ())]
    assert os.read(read, 1) == b""
    os.close(read)


def test_a_closed_end_is_told_after_its_last_message(pair) -> None:
    one, two = pair
    one.send({"verb": "bye"})
    one.close()
    assert two.read() == [({"verb": "bye"}, ())] and two.closed
    assert two.read() == []


def test_a_reader_that_does_not_read_is_not_waited_for(pair) -> None:
    one, _ = pair

    def fill() -> None:
        for _ in range(100_000):
            one.send({"verb": "more", "text": "x" * 1000}, at_once=True)

    with pytest.raises(BlockingIOError):
        fill()
