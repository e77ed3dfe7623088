"""Requests are sent again while an API server restarts: which, how often, and what is said."""

import pytest

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.client.access.patience import MOST_SECONDS, SECONDS, Patience, wait_before
from lastcall.kube.client.answers import lost_connection
from lastcall.kube.client.api import ConnectionLost, UnusableAnswer
from lastcall.world.virtual import run_virtual


def lost(sent: bool = True) -> ConnectionLost:
    error = ConnectionLost("refused")
    error.sent = sent
    return error


def answered(code: int, retry_after: str = "") -> StatusError:
    error = status_failure(code, "", "later")
    error.headers = {"Retry-After": retry_after} if retry_after else {}
    return error


@pytest.mark.parametrize(
    ("error", "method", "attempt", "seconds"),
    [
        (lost(), "GET", 0, 0.2),
        (lost(), "GET", 2, 0.8),
        (lost(), "GET", 60, MOST_SECONDS),
        (lost(), "DELETE", 0, None),
        (lost(sent=False), "DELETE", 0, 0.2),
        (answered(503), "GET", 0, None),
        (answered(503, "1"), "POST", 0, 1.0),
        (answered(429, "3"), "PATCH", 0, 3.0),
        (answered(429, "86400"), "GET", 0, SECONDS),
        (answered(500, "soon"), "GET", 0, None),
        (answered(404, "1"), "GET", 0, None),
        (answered(409, "1"), "PUT", 0, None),
        (UnusableAnswer("too large"), "GET", 0, None),
    ],
)
def test_what_is_sent_again_and_after_how_long(error, method, attempt, seconds):
    assert wait_before(error, method, attempt) == seconds


def run(seconds_down: float, begun: bool = True) -> tuple[list[str], str, int]:
    """(what is said, how it ended, attempts) of a GET to a server that is away for so long."""
    said: list[str] = []
    attempts = 0

    async def scenario(world) -> str:
        nonlocal attempts
        patience = Patience(world, said.append, "https://h:1")
        if begun:
            patience.begin()
        back = world.clock.monotonic_ns() + int(seconds_down * 1e9)

        async def attempt() -> str:
            nonlocal attempts
            attempts += 1
            if world.clock.monotonic_ns() < back:
                raise lost()
            return "answer"

        try:
            return await patience.send("GET", attempt)
        except ConnectionLost:
            return "lost"

    return said, run_virtual(scenario), attempts


def test_a_server_that_comes_back_is_waited_for_and_both_are_said_once():
    said, ended, attempts = run(20.0)
    assert ended == "answer" and 5 < attempts < 20
    assert [line.partition(":")[0].split(" ")[0] for line in said] == ["the", "the"]
    assert "does not answer: refused; trying again for 120 s" in said[0]
    assert "answers again, after" in said[1]


def test_what_is_said_of_a_server_that_is_away_does_not_name_the_path():
    said: list[str] = []

    async def scenario(world) -> None:
        patience = Patience(world, said.append, "https://here")
        patience.begin()
        answers = iter(
            [lost_connection("GET", "https://here/proxy/TOKEN/report", ConnectionResetError("reset by peer"))]
        )

        async def attempt() -> None:
            for error in answers:
                raise error

        await patience.send("GET", attempt)

    run_virtual(scenario)
    assert "does not answer: reset by peer; trying again" in said[0]
    assert "TOKEN" not in "".join(said)


def test_one_that_stays_away_is_given_up():
    said, ended, _ = run(10_000.0)
    assert ended == "lost" and len(said) == 1


def test_before_the_first_answer_nothing_is_tried_again():
    assert run(1.0, begun=False) == ([], "lost", 1)
