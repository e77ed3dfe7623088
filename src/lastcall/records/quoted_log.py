"""Log lines whose foreign text is quoted: names and errors in them come from clients and containers."""

import logging

from lastcall.records.quoting import several_lines, without_commands


class QuotedFormatter(logging.Formatter):
    """As `logging.Formatter`; a terminal and a CI runner obey nothing in the line."""

    def format(self, record: logging.LogRecord) -> str:
        return without_commands(several_lines(super().format(record)))


def quote_what_nobody_handles() -> None:
    """Quote what libraries log where nobody has set up logging: it goes to stderr."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(QuotedFormatter())
