"""The socket of `lastcall runtime`: one that a killed process left is replaced, anything else stays."""

import os
import socket

import pytest

from lastcall.cluster.runtime.process import listen


class Server:
    def __init__(self) -> None:
        self.addresses: list[str] = []

    def add_insecure_port(self, address: str) -> None:
        self.addresses.append(address)


@pytest.fixture
def served(tmp_path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "a.sock"))
        yield sock


def test_a_socket_that_nobody_serves_is_replaced(served, tmp_path):
    server, path = Server(), str(tmp_path / "a.sock")
    listen(server, path)
    assert server.addresses == [f"unix://{path}"]
    assert not os.path.exists(path), "the server makes its own"


def test_a_socket_that_another_process_serves_stays(served, tmp_path):
    served.listen()
    with pytest.raises(OSError, match="another process serves it"):
        listen(Server(), str(tmp_path / "a.sock"))
    assert os.path.exists(tmp_path / "a.sock")


@pytest.mark.parametrize("link", [False, True])
def test_what_is_not_a_socket_is_never_removed(link, tmp_path):
    path, file = tmp_path / "a.sock", tmp_path / "file"
    file.write_text("dear")
    if link:
        path.symlink_to(file)
    else:
        path = file
    with pytest.raises(OSError, match="is not a socket"):
        listen(Server(), str(path))
    assert os.path.lexists(path) and file.read_text() == "dear"
