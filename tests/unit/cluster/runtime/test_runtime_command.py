"""`lastcall runtime`: what is wrong is told with flag, value and fix, before anything starts."""

import pytest

from lastcall.cli.errors import UserError
from lastcall.cli.runtime import socket_of


@pytest.mark.parametrize(
    ("listen", "text"),
    [
        ("tcp://127.0.0.1:1", "is not a Unix socket; fix: write unix:///run/lastcall.sock"),
        ("unix://relative.sock", "is not a Unix socket"),
        ("unix:///", "is not a Unix socket"),
        ("unix:///nowhere/at/all.sock", "/nowhere/at does not exist"),
        (f"unix:///{'a' * 101}", "more than 100 bytes"),
    ],
)
def test_an_address_on_which_nobody_can_serve_is_bad_input(listen, text):
    with pytest.raises(UserError, match="--listen") as failed:
        socket_of(listen)
    assert text in str(failed.value)


def test_a_unix_socket_in_a_directory_is_taken(tmp_path):
    assert socket_of(f"unix://{tmp_path}/a.sock") == f"{tmp_path}/a.sock"
