"""`lastcall … | head` with a real cluster: the command ends with 141 and says nothing, and the machine is clean."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from staying import Place

pytestmark = pytest.mark.real_kernel

READER_GONE = 141


@contextmanager
def nobody_reads() -> Iterator[int]:
    """A pipe whose reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)


def unread(place: Place, *words: str) -> tuple[int, str]:
    """(exit status, stderr) of a command whose output nobody reads."""
    with nobody_reads() as pipe:
        process = subprocess.Popen(
            place.command(*words), stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.PIPE, text=True
        )
    _, err = process.communicate(timeout=120)
    return process.returncode, err


def test_what_nobody_reads_of_a_cluster_ends_quietly_and_the_cluster_goes_on() -> None:
    with Place() as place:
        place.up()
        for words in (
            ["status"],
            ["status", "-o", "json"],
            ["get", "nodes"],
            ["kubeconfig"],
            ["kubeconfig", "--print"],
            ["story"],
            ["story", "-o", "json"],
            ["logs"],
            ["logs", "--follow"],
        ):
            assert unread(place, *words) == (READER_GONE, ""), words
        assert place.status()["phase"] == "running"
        assert unread(place, "down") == (READER_GONE, "")


def test_a_cluster_whose_report_nobody_reads_is_taken_away() -> None:
    with Place() as place:
        status, err = unread(place, "demo", "graceful")
        assert status == READER_GONE and "Traceback" not in err and "error" not in err, err
