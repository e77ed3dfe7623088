"""What is logged reaches a terminal quoted."""

import io
import logging

from lastcall.records.quoted_log import QuotedFormatter, quote_what_nobody_handles

HOSTILE = "web\x1b[2J\u202e\n::error::forged"
QUOTED = "web\\x1b[2J\\u202e\n\\x3a:error::forged"


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("lastcall", logging.WARNING, "", 0, "Pod %s", (text,), None)


def test_foreign_text_in_a_log_line_is_quoted() -> None:
    assert QuotedFormatter().format(record(HOSTILE)) == f"Pod {QUOTED}"


def test_what_nobody_handles_is_quoted(monkeypatch) -> None:
    last = logging._StderrHandler(logging.WARNING)  # type: ignore[attr-defined]
    monkeypatch.setattr(logging, "lastResort", last)
    quote_what_nobody_handles()
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    last.handle(record(HOSTILE))
    assert written.getvalue() == f"Pod {QUOTED}\n"
