"""Every command that prints: a reader that goes away, closed streams, full disks, terminals of all kinds.

Never a traceback; the status is 141 where nobody reads what is told, and no escape sequence goes where none is known.
"""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lastcall.cli.commands import COMMANDS, OTHER_WORDS
from lastcall.cli.exit_status import BROKEN_PIPE

pytestmark = pytest.mark.loopback

PRINTING = {
    "help": ["--help"],
    "version": ["--version"],
    "run": ["run", "pod.yaml", "--output", "xml"],  # its report: test_broken_pipes.py
    "lint": ["lint", "pod.yaml"],
    "lint rules": ["lint", "--rules"],
    "lint sarif": ["lint", "pod.yaml", "-o", "sarif"],
    "down": ["down"],
    "status": ["status"],
    "ls": ["ls", "-o", "json"],
    "logs": ["logs", "nosuch"],
    "story": ["story", "--name", "nosuch"],
    "node": ["node", "connect", "node-1"],
    "doctor": ["doctor"],
    "image": ["image", "ls"],
    "completion": ["completion", "bash"],
    "get": ["get", "nodes", "nosuch"],
    "no command": ["nosuch"],
}
"""Without a cluster. Commands that are not here have at least their help page tried; with a cluster:
tests/clients/shown/test_pipes_of_a_cluster.py."""

FAILS = {"run": 2, "lint": 3, "lint sarif": 3, "logs": 1, "story": 1, "node": 1, "get": 1, "no command": 2}

SAY_NOTHING = ("run", "logs", "story", "node", "get", "no command")
"""On stdout: their errors go to stderr."""

ESCAPE = re.compile(r"\x1b")
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:[34][0-7]|[349]8;5;\d+|9[0-7])(?:;\d+)*m")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, in which no cluster runs, with a manifest that has a finding."""
    (tmp_path / ".git").mkdir()
    for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE", "LASTCALL_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
        "spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: 'x:1', imagee: y}]}\n"
    )
    return tmp_path


def start(words: list[str], **options: Any) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, **options.pop("variables", {})}
    return subprocess.Popen([sys.executable, "-m", "lastcall.cli.main", *words], env=environment, **options)


@contextmanager
def nobody_reads() -> Iterator[int]:
    """A pipe whose reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)


def status_with(name: str, words: list[str], **options: Any) -> int:
    """The exit status of a command that neither prints a traceback where it can be seen nor hangs."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    process = start(words, **streams)
    out, err = process.communicate(timeout=120)
    said = ((out or b"") + (err or b"")).decode()
    assert "Traceback" not in said and "internal error" not in said and "Exception ignored" not in said, said
    assert not ESCAPE.search(said), said
    return process.returncode


@pytest.mark.parametrize("name", PRINTING)
def test_a_reader_that_has_gone_ends_the_command_quietly(name: str) -> None:
    with nobody_reads() as pipe:
        status = status_with(name, PRINTING[name], stdout=pipe)
    assert status == (FAILS[name] if name in SAY_NOTHING else BROKEN_PIPE)


@pytest.mark.parametrize("word", [*COMMANDS, *OTHER_WORDS])
def test_a_help_page_that_nobody_reads_is_no_error_of_ours(word: str) -> None:
    with nobody_reads() as pipe:
        assert status_with(word, [word, "--help"], stdout=pipe) == BROKEN_PIPE


@pytest.mark.parametrize("name", PRINTING)
def test_a_closed_stream_is_as_dev_null(name: str) -> None:
    fine = FAILS.get(name, 0)
    if name == "doctor":
        fine = status_with(name, PRINTING[name])  # of this machine
    for closed in ((1,), (2,), (0, 1, 2)):

        def close(numbers: tuple[int, ...] = closed) -> None:
            for number in numbers:
                os.close(number)

        assert status_with(name, PRINTING[name], preexec_fn=close) == fine, closed


@pytest.mark.parametrize("name", ["version", "lint", "status", "no command"])
def test_a_full_disk_is_told_where_it_can_be(name: str) -> None:
    with open("/dev/full", "w") as full:
        assert status_with(name, PRINTING[name], stdout=full) == (2 if name == "no command" else 1)
        assert status_with(name, PRINTING[name], stderr=full) == FAILS.get(name, 0)


def in_terminal(words: list[str], **variables: str) -> str:
    """What a terminal of 40 columns gets."""
    ours, theirs = pty.openpty()
    process = start(words, stdin=theirs, stdout=theirs, stderr=theirs, variables={"COLUMNS": "40", **variables})
    os.close(theirs)
    said = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:
            break  # EIO: the last process that had it has ended
        if not more:
            break
        said += more
    os.close(ours)
    process.wait(120)
    text = said.decode()
    assert "Traceback" not in text and "internal error" not in text
    return text


@pytest.mark.parametrize("name", ["help", "lint", "status", "logs", "doctor", "image", "no command"])
def test_a_dumb_terminal_gets_no_escapes_and_no_color_is_heard(name: str) -> None:
    assert not ESCAPE.search(in_terminal(PRINTING[name], TERM="dumb"))
    assert not COLOUR.search(in_terminal(PRINTING[name], TERM="xterm-256color", NO_COLOR="1"))


def test_a_terminal_that_has_colours_gets_them() -> None:
    for name in ("lint", "doctor"):
        assert COLOUR.search(in_terminal(PRINTING[name], TERM="xterm-256color")), name


def test_no_line_of_a_table_is_wider_than_the_terminal() -> None:
    lines = in_terminal(PRINTING["doctor"], TERM="xterm").splitlines()
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in lines]
    assert len(plain) > 10 and max(map(len, plain)) <= 40
