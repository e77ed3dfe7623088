import pytest

from lastcall.kube.cri.sandbox.shim.logs import LogFile, Stream, rfc3339_nano


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


def test_lines_that_were_too_many_to_tell_are_counted_also_at_the_end(tmp_path):
    told = []
    log = LogFile(str(tmp_path / "0.log"))
    stream = Stream("stdout", log, lambda name, text, dropped: told.append((text, dropped)), lines_per_second=1)
    stream.feed(b"1\n2\n3\n4\n5\n")
    stream.end()
    (*shown, (text, dropped)) = told
    assert shown[:2] == [("1", 0), ("2", 0)] and text == "" and len(shown) + dropped == 5
    assert len(lines(tmp_path / "0.log")) == 5
    log.close()


def test_a_log_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "0.log").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        LogFile(str(tmp_path / "0.log"))
    assert (tmp_path / "victim").read_text() == "mine"


def test_a_full_log_asks_once_to_be_rotated_and_holds_its_container_back_at_twice_its_size(tmp_path):
    path, told = tmp_path / "0.log", []
    log = LogFile(str(path), 10)
    log.on_full, log.on_hold = lambda: told.append("full"), told.append
    for _ in range(3):
        log.write(b"12345")
    assert told == ["full"]
    log.write(b"12345")
    assert told == ["full", True]
    path.rename(tmp_path / "0.log.1")
    log.reopen()
    assert told == ["full", True, False]
    log.write(b"new")
    log.close()
    assert (path.read_bytes(), (tmp_path / "0.log.1").stat().st_size) == (b"new", 20)


def test_a_log_that_nobody_rotates_loses_lines_until_somebody_does(tmp_path):
    path = tmp_path / "0.log"
    log = LogFile(str(path), 2)
    log.write(b"1234")
    log.lossy = True
    log.write(b"lost")
    path.rename(tmp_path / "old")
    log.reopen()
    log.write(b"kept")
    log.close()
    assert ((tmp_path / "old").read_bytes(), path.read_bytes()) == (b"1234", b"kept")


def test_a_log_that_was_there_counts(tmp_path):
    (tmp_path / "0.log").write_bytes(b"x" * 8)
    told = []
    log = LogFile(str(tmp_path / "0.log"), 10)
    log.on_full = lambda: told.append("full")
    log.write(b"12")
    assert told == ["full"]
    log.close()
