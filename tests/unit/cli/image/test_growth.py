"""What an import shows while it goes on: on a terminal alone."""

import io
import sys

import pytest

from lastcall.cli.image.growth import growth


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_how_much_there_is_and_nothing_of_it_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with growth("importing a.tar") as show:
        show(3 << 20)
    assert "importing a.tar: 3.0 MiB" in terminal.getvalue() and terminal.getvalue().endswith("\r\x1b[K")


def test_a_file_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with growth("importing a.tar") as show:
        show(3 << 20)
    assert file.getvalue() == ""
