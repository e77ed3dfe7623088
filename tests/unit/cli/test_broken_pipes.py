"""Somebody stops reading what a command prints (`| head`): the command ends, and nobody sees a traceback."""

import errno
import io
import os
from dataclasses import replace

import pytest

from lastcall.cli import errors
from lastcall.cli.errors import guarded
from lastcall.cli.exit_status import BROKEN_PIPE
from lastcall.cli.output import stdout_console
from lastcall.cli.run.experiment import run_manifests
from lastcall.experiment.run.options import RunOptions
from lastcall.manifests.read import load_manifests

FAST = RunOptions(after=0, timeout=60)


class Closed(io.StringIO):
    """A pipe that nobody reads any more, from the `after`th write on."""

    def __init__(self, after: int = 0) -> None:
        super().__init__()
        self.left = after

    def write(self, text: str) -> int:
        self.left -= 1
        if self.left < 0:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        return super().write(text)


@pytest.fixture
def silenced(monkeypatch):
    """The real one takes file descriptor 1, which is pytest's here."""
    monkeypatch.setattr(errors, "_silence", lambda number: None)


@pytest.mark.loopback
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("after", [0, 3])
def test_a_run_whose_reader_has_gone_stops_its_cluster_and_says_nothing(
    pod_file, new_cluster, monkeypatch, capsys, silenced, stream, output, after
):
    cluster, closed, said = new_cluster(), Closed(after), []
    monkeypatch.setattr(f"sys.{stream}", closed)
    options = replace(FAST, output=output)
    status = guarded(
        lambda: run_manifests(load_manifests([str(pod_file)]), options, lambda _: cluster.at_start()), said.append
    )
    if closed.left >= 0:
        assert (status, cluster.stopped) == (0, 1)  # so little was told there that nobody missed it
        return
    assert (status, cluster.stopped, said) == (BROKEN_PIPE, 1, [])


def test_a_console_tells_of_a_broken_pipe_as_of_any_error(monkeypatch, silenced):
    monkeypatch.setattr("sys.stdout", Closed())
    said: list[str] = []

    def command() -> int:
        stdout_console().print("a line")
        return 0

    assert guarded(command, said.append) == BROKEN_PIPE and said == []
