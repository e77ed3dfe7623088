import pytest

from lastcall.cri.sandbox.shim.logs import LogFile, Stream, rfc3339_nano


@pytest.mark.parametrize(
    ("wall_ns", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_700_000_000_123_456_789, "2023-11-14T22:13:20.123456789Z"),
        (1_700_000_000_120_000_000, "2023-11-14T22:13:20.12Z"),
        (1_700_000_000_000_000_001, "2023-11-14T22:13:20.000000001Z"),
    ],
)
def test_times_are_go_s_rfc3339nano(wall_ns, text):
    assert rfc3339_nano(wall_ns) == text


def lines(path):
    return [line.split(b" ", 3)[1:] for line in path.read_bytes().splitlines()]


@pytest.mark.rule("node-semantics 17.2/lines")
def test_lines_are_cut_wherever_the_pipe_s_reads_end(tmp_path):
    told = []
    log = LogFile(str(tmp_path / "pod/c/0.log"))
    stream = Stream("stdout", log, lambda name, text, dropped: told.append((name, text, dropped)))
    for data in (b"a", b"b\nc", b"\n\n", b"\xffend"):
        stream.feed(data)
    stream.end()
    assert lines(tmp_path / "pod/c/0.log") == [
        [b"stdout", b"F", b"ab"],
        [b"stdout", b"F", b"c"],
        [b"stdout", b"F", b""],
        [b"stdout", b"P", b"\xffend"],
    ]
    assert told == [("stdout", "ab", 0), ("stdout", "c", 0), ("stdout", "", 0), ("stdout", "\ufffdend", 0)]
    assert (tmp_path / "pod/c/0.log").stat().st_mode & 0o777 == 0o640
    log.close()


def test_a_line_without_end_is_written_in_pieces_while_it_comes(tmp_path):
    log = LogFile(str(tmp_path / "0.log"))
    stream = Stream("stderr", log, lambda *told: None)
    for _ in range(5):
        stream.feed(b"x" * 10_000)
    assert [(tag, len(text)) for _, tag, text in lines(tmp_path / "0.log")] == [(b"P", 16384)] * 3
    stream.feed(b"\n")
    assert [(tag, len(text)) for _, tag, text in lines(tmp_path / "0.log")][3:] == [(b"F", 848)]
    log.close()


def test_a_log_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "0.log").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        LogFile(str(tmp_path / "0.log"))
    assert (tmp_path / "victim").read_text() == "mine"
