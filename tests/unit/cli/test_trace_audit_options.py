"""Options of `lastcall trace` for an audit log that do not go together, or cannot be meant so."""

import pytest
from click.testing import CliRunner

from lastcall.cli.trace.command import trace


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--audit-log", "x", "--audit-webhook", "127.0.0.1:1"), "give one of them"),
        (("--audit-log", "x", "--serve"), "--serve has no place for users"),
        (("--audit-webhook", "127.0.0.1:1", "--serve"), "--serve has no place for users"),
        (("--audit-webhook", "9465"), "--audit-webhook: '9465' has no port; fix: 127.0.0.1:9465"),
        (
            ("--audit-webhook", "example.com:1"),
            "--audit-webhook: 'example.com' in 'example.com:1' is not an IP address",
        ),
    ],
)
def test_audit_options_that_cannot_be_meant_so_are_refused(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(trace, list(arguments))
    assert (result.exit_code, words in result.output) == (2, True), result.output
