"""Unpacking image layers, which are hostile input."""

import contextlib
import gzip
import hashlib
import io
import os
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lastcall.kube.cri.sandbox.images.layers import NeedsMerge, merge_layer, unpack_layer
from lastcall.kube.cri.sandbox.images.layout import ImageError

Entry = tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], bytes]


def tar_of(*entries: Entry) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, fields, *content in entries:
            info = tarfile.TarInfo(name)
            info.mode = 0o644
            for key, value in fields.items():
                setattr(info, key, value)
            data = content[0] if content else b""
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def unpack(target: Path, *entries: Entry) -> None:
    data = tar_of(*entries)
    unpack_layer(io.BytesIO(data), digest(data), digest(data), str(target))


def merge(target: Path, *entries: Entry) -> None:
    data = tar_of(*entries)
    merge_layer(lambda: io.BytesIO(data), digest(data), digest(data), str(target))


def directory(name: str, mode: int = 0o755) -> Entry:
    return name, {"type": tarfile.DIRTYPE, "mode": mode}


def link(name: str, target: str) -> Entry:
    return name, {"type": tarfile.SYMTYPE, "linkname": target}


def hard(name: str, target: str) -> Entry:
    return name, {"type": tarfile.LNKTYPE, "linkname": target}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def outside(root: Path) -> dict[str, str]:
    """All that is beside the root; must never change."""
    paths = sorted(root.parent.rglob("*"))
    return {str(path): path.read_text() if path.is_file() else "" for path in paths if root not in path.parents}


def test_files_directories_and_links_come_out_with_modes_times_and_setuid(root: Path) -> None:
    unpack(
        root,
        directory("bin"),
        ("bin/su", {"mode": 0o4755, "mtime": 1_000_000_000}, b"#!"),
        link("bin/sh", "su"),
        hard("bin/bash", "bin/su"),
        directory("tmp", 0o1777),
        ("without/parents/file", {}, b"x"),
        ("pipe", {"type": tarfile.FIFOTYPE, "mode": 0o600}),
    )
    status = (root / "bin/su").stat()
    assert stat.S_IMODE(status.st_mode) == 0o4755
    assert (status.st_mtime, status.st_nlink) == (1_000_000_000, 2)
    assert os.readlink(root / "bin/sh") == "su"
    assert stat.S_IMODE((root / "tmp").stat().st_mode) == 0o1777
    assert (root / "without/parents/file").read_bytes() == b"x"
    assert stat.S_ISFIFO((root / "pipe").stat().st_mode)


def test_a_directory_without_write_permission_still_gets_its_files(root: Path) -> None:
    unpack(root, directory("closed", 0o555), ("closed/file", {}, b"x"))
    assert stat.S_IMODE((root / "closed").stat().st_mode) == 0o555
    assert (root / "closed/file").exists()


def test_devices_are_skipped(root: Path) -> None:
    unpack(
        root,
        ("null", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}),
        ("disk", {"type": tarfile.BLKTYPE, "devmajor": 8}),
    )
    assert os.listdir(root) == []


@pytest.mark.parametrize(
    "entries",
    [
        [("../escaped", {}, b"x")],
        [("a/../../escaped", {}, b"x")],
        [("..", {"type": tarfile.DIRTYPE})],
        [link("../escaped", "/etc")],
        [directory("a"), hard("a/passwd", "../outside/secret")],
        [hard("a", "a")],
        [directory("a"), hard("b", "a")],
        [link("loop", "loop"), ("loop/file", {}, b"x")],
        [("file", {}, b"x"), ("file/below", {}, b"x")],
        [("a/.wh.", {})],
        [("a/.wh...", {})],
        [("a/.wh..", {})],
        [("/".join(["d"] * 300) + "/file", {}, b"x")],
        [("x" * 300, {}, b"x")],
        [("weird", {"type": b"Z"}, b"")],
        [("time", {"pax_headers": {"mtime": "1e300"}}, b"x")],
    ],
    ids=lambda entries: entries[-1][0][:20],
)
def test_a_hostile_layer_is_refused_and_touches_nothing_outside(root: Path, entries: list[Entry]) -> None:
    before = outside(root)
    with pytest.raises(ImageError):
        unpack(root, *entries)
    assert outside(root) == before


@pytest.mark.parametrize("target", ["/", "/outside", "../outside", "../../../../../../..", "x/../../outside"])
def test_links_out_of_the_image_lead_back_into_it(root: Path, target: str) -> None:
    before = outside(root)
    absolute = target.replace("/outside", str(root.parent / "outside")) if target.startswith("/o") else target
    unpack(root, link("way", absolute), ("way/secret", {}, b"overwritten"), hard("copy", "way/secret"))
    assert outside(root) == before
    written = [path for path in root.rglob("secret") if not path.is_symlink()]
    assert written and all(path.read_bytes() == b"overwritten" for path in written)


def test_a_link_at_the_end_of_a_name_is_replaced_and_not_followed(root: Path) -> None:
    before = outside(root)
    secret = str(root.parent / "outside" / "secret")
    unpack(root, link("passwd", secret), ("passwd", {}, b"new"), link("d", "../outside"), directory("d"))
    assert outside(root) == before
    assert (root / "passwd").read_bytes() == b"new"
    assert not (root / "d").is_symlink()


def test_an_absolute_name_is_relative_to_the_image(root: Path) -> None:
    unpack(root, ("/etc/hostname", {}, b"x"), ("./etc/./hosts", {}, b"y"))
    assert sorted(os.listdir(root / "etc")) == ["hostname", "hosts"]


def test_an_entry_through_a_link_goes_where_the_link_points_in_the_image(root: Path) -> None:
    unpack(root, directory("usr/lib"), link("lib", "usr/lib"), ("lib/libc.so", {}, b"x"))
    assert (root / "usr/lib/libc.so").read_bytes() == b"x"
    assert (root / "lib").is_symlink()


def test_a_directory_replaced_by_a_link_in_the_same_layer_is_not_written_through_an_old_handle(root: Path) -> None:
    unpack(root, ("a/one", {}, b"1"), directory("b"), link("a", "b"), ("a/two", {}, b"2"))
    assert (root / "b/two").read_bytes() == b"2"


def test_a_whiteout_becomes_a_device_that_overlayfs_reads_as_gone(root: Path) -> None:
    try:
        unpack(root, directory("etc"), ("etc/.wh.passwd", {}))
    except NeedsMerge:
        pytest.skip("this machine lets nobody make whiteout devices")
    status = (root / "etc/passwd").lstat()
    assert stat.S_ISCHR(status.st_mode) and status.st_rdev == 0
    assert os.listdir(root / "etc") == ["passwd"]


def test_an_opaque_directory_asks_for_merging(root: Path) -> None:
    with pytest.raises(NeedsMerge):
        unpack(root, directory("etc"), ("etc/.wh..wh..opq", {}))


def test_merging_takes_away_what_is_hidden_but_nothing_of_the_same_layer(root: Path) -> None:
    merge(root, ("etc/passwd", {}, b"1"), ("etc/group", {}, b"1"), ("var/log/a", {}, b"1"), ("var/log/d/b", {}, b"1"))
    merge(
        root,
        ("etc/passwd", {}, b"2"),
        ("etc/.wh.passwd", {}),
        ("etc/.wh.group", {}),
        ("var/log/new", {}, b"2"),
        ("var/log/.wh..wh..opq", {}),
    )
    assert {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()} == {
        "etc/passwd": b"2",
        "var/log/new": b"2",
    }


def test_other_bytes_than_the_digest_says_are_refused(root: Path) -> None:
    data = tar_of(("file", {}, b"x"))
    with pytest.raises(ImageError, match="other bytes than its digest says"):
        unpack_layer(io.BytesIO(data), digest(b"other"), digest(data), str(root))
    packed = gzip.compress(data)
    with pytest.raises(ImageError, match="the image config says"):
        unpack_layer(io.BytesIO(packed), digest(packed), digest(b"other"), str(root))


def test_a_gzip_layer_is_unpacked_and_bytes_behind_the_archive_are_part_of_its_digest(root: Path) -> None:
    data = tar_of(("file", {}, b"x")) + bytes(10240)
    packed = gzip.compress(data)
    unpack_layer(io.BytesIO(packed), digest(packed), digest(data), str(root))
    assert (root / "file").read_bytes() == b"x"


@pytest.mark.parametrize("data", [b"", b"nonsense" * 200, b"\x1f\x8bbroken", b"\x28\xb5\x2f\xfdzstd"])
def test_what_is_no_layer_is_a_clear_error(root: Path, data: bytes) -> None:
    with pytest.raises(ImageError, match="layer sha256:"):
        unpack_layer(io.BytesIO(data), digest(data), digest(b"?"), str(root))


def test_a_truncated_layer_is_a_clear_error(root: Path) -> None:
    whole = tar_of(("file", {}, b"x" * 5000))
    packed = gzip.compress(whole)
    for data in (whole[:2000], packed[: len(packed) // 2]):
        with pytest.raises(ImageError):
            unpack_layer(io.BytesIO(data), digest(data), digest(data), str(root))


NAMES = st.lists(st.sampled_from(["a", "b", "c", "..", ".", "", ".wh.a", ".wh..wh..opq"]), min_size=1, max_size=4)
TARGETS = st.one_of(NAMES.map("/".join), NAMES.map(lambda parts: "/" + "/".join(parts)))
ENTRIES = st.lists(
    st.one_of(
        st.tuples(NAMES.map("/".join), st.just({}), st.binary(max_size=8)),
        st.tuples(NAMES.map("/".join), st.just({"type": tarfile.DIRTYPE, "mode": 0o755})),
        st.builds(link, NAMES.map("/".join), TARGETS),
        st.builds(hard, NAMES.map("/".join), TARGETS),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=ENTRIES, merging=st.booleans())
def test_no_layer_changes_anything_outside(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry], merging: bool
) -> None:
    place = tmp_path_factory.mktemp("layer")
    for name in ("a", "b", "c"):
        (place / name).write_text(name)
    (place / "root").mkdir()
    before = outside(place / "root")
    with contextlib.suppress(ImageError, NeedsMerge):
        (merge if merging else unpack)(place / "root", *entries)
    assert outside(place / "root") == before
