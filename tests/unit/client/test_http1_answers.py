"""Answers in HTTP/1.1, however their bytes are cut."""

import pytest

from lastcall.client.http1 import LARGEST_HEAD, Answer, Malformed

SIZED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n1;name=value\r\no\r\n0\r\nX-Checksum: 1\r\n\r\n"
)
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"


def fed(data: bytes, size: int, method: str = "GET") -> Answer:
    answer = Answer(method)
    for start in range(0, len(data), size):
        answer.feed(data[start : start + size])
    return answer


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("data", [SIZED, CHUNKED, INTERIM + SIZED, INTERIM + CHUNKED])
def test_an_answer_is_the_same_however_its_bytes_are_cut(data: bytes, size: int) -> None:
    answer = fed(data, size)
    assert (answer.status, answer.done, answer.reusable, answer.unread) == (200, True, True, 5)
    assert (answer.take(), answer.take(), answer.unread) == (b"hello", b"", 0)


@pytest.mark.parametrize("data", [SIZED, CHUNKED])
def test_an_answer_that_ends_too_early_is_no_answer(data: bytes) -> None:
    for end in range(len(data)):
        answer = fed(data[:end], 1000) if end else Answer("GET")
        assert not answer.done
        with pytest.raises(Malformed, match="closed the connection" + (" in the middle" if end else "$")):
            answer.end()


def test_without_a_length_the_body_lasts_as_long_as_the_connection() -> None:
    answer = fed(b"HTTP/1.1 200 OK\r\n\r\nsome", 4)
    assert not answer.done
    answer.feed(b" more")
    answer.end()
    assert (answer.done, answer.reusable, answer.take()) == (True, False, b"some more")


@pytest.mark.parametrize(
    ("head", "reusable"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive", True),
        (b"HTTP/1.1 204 No Content", True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7", True),
    ],
)
def test_a_connection_takes_another_request_when_both_sides_know_the_end(head: bytes, reusable: bool) -> None:
    answer = fed(head + b"\r\n\r\n", 1000)
    assert (answer.done, answer.reusable) == (True, reusable)


def test_fields_keep_their_names_and_repeated_ones_are_joined() -> None:
    answer = fed(b"HTTP/1.1 200 \r\nRetry-After:\t7 \r\nWarning: a\r\nWarning: b\r\nContent-Length: 0\r\n\r\n", 1000)
    assert answer.headers == {"Retry-After": "7", "Warning": "a, b", "Content-Length": "0"}


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno field\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        SIZED + b"more",
        CHUNKED + b"more",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * LARGEST_HEAD,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 5000,
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        fed(data, len(data))
