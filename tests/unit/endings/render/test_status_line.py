"""What is waited for: in place on a terminal, told once in a log."""

from io import StringIO

from lastcall.endings.render.status_line import StatusLine


def test_on_a_terminal_one_line_changes_in_place_and_goes() -> None:
    terminal, lines = StringIO(), []
    status = StatusLine(lines.append, terminal)
    status.show(100.0, 1.0, "Pods to become available: 0 of 3")
    status.show(101.0, 2.0, "Pods to become available: 1 of 3")
    status.clear()
    status.clear()
    told = terminal.getvalue()
    assert told.count("\n") == 0 and told.count("\r\x1b[K") == 3 and told.endswith("\r\x1b[K")
    assert "  waiting, 2 s: Pods to become available: 1 of 3" in told and lines == []


def test_a_line_never_wraps(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    terminal = StringIO()
    StatusLine(lambda line: None, terminal).show(1.0, 1.0, "x" * 700)
    assert len(terminal.getvalue().removeprefix("\r\x1b[K")) == 39 and terminal.getvalue().endswith("…")


def test_in_a_log_it_is_told_after_a_while_and_again_only_when_it_has_changed() -> None:
    lines: list[str] = []
    status = StatusLine(lines.append)
    for second in range(100):
        text = "Unhealthy: connection refused" if second < 50 else "Unhealthy: HTTP 404"
        status.show(1000.0 + second, float(second), f"Pods: web is not Ready ({text} ({second} times))")
    status.clear()
    assert [line.partition(":")[0] for line in lines] == ["still waiting after 15 s", "still waiting after 50 s"]
    assert "HTTP 404 (50 times)" in lines[1]
