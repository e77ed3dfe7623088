"""Certificates of a node in its state directory: whole or not at all, the user's alone, looked at with each request."""

import asyncio
import stat
from pathlib import Path

from lastcall.apiserver.auth.pki import ClusterCA
from lastcall.cluster.joined.files import FileCredentials, Pair, PairFile

CA = ClusterCA.create()


def pair(name: str) -> Pair:
    return Pair(*CA.issue_client(name))


def test_what_was_written_is_read_again_and_is_the_user_s_alone(tmp_path: Path) -> None:
    file = PairFile(tmp_path, "kubelet-client.pem")
    assert file.read() is None
    file.keep_pending(b"key")
    assert file.pending_key() == b"key"
    first = pair("a")
    file.write(first)
    assert file.read() == Pair(first.certificate.rstrip() + b"\n", first.key)
    assert file.pending_key() == b""
    assert [stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()] == [0o600]


def test_half_a_file_is_no_certificate(tmp_path: Path) -> None:
    file = PairFile(tmp_path, "x.pem")
    file.path.write_bytes(pair("a").certificate)
    assert file.read() is None


def test_a_client_proves_itself_with_the_file_as_it_is_now(tmp_path: Path) -> None:
    file = PairFile(tmp_path, "x.pem")
    credentials = FileCredentials(file, CA.certificate_pem)

    async def story() -> None:
        nothing = await credentials.proof()
        file.write(pair("a"))
        first = await credentials.proof()
        assert first is not nothing
        assert await credentials.proof() is first
        assert not await credentials.refused(first)
        file.write(pair("b"))
        assert await credentials.refused(first), "there is another one: try again"
        file.path.write_bytes(b"damaged")
        assert (await credentials.proof()).tls is not None

    asyncio.run(story())
