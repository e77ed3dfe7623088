"""Which paths of an image that is a volume are there, as the mounted layers would show them."""

import os
import stat

import pytest

from lastcall.kube.cri.api import Mount, RuntimeServiceError
from lastcall.kube.cri.sandbox.image_sub_paths import check_sub_path, has_path


@pytest.fixture
def layers(tmp_path):
    upper, lower = tmp_path / "upper", tmp_path / "lower"
    (upper / "etc/app").mkdir(parents=True)
    (upper / "shadow").mkdir()
    (upper / "to-lower").symlink_to("data/file")
    (upper / "round").symlink_to("round")
    (lower / "data").mkdir(parents=True)
    (lower / "data/file").touch()
    (lower / "etc/conf").mkdir(parents=True)
    (lower / "etc/back").symlink_to("../data")
    (lower / "link").symlink_to("data")
    (lower / "rooted").symlink_to("/etc/app")
    (lower / "out").symlink_to("/nowhere-else")
    (lower / "shadow").touch()
    (lower / "gone").mkdir()
    os.mknod(upper / "gone", stat.S_IFCHR, os.makedev(0, 0))
    return str(upper), str(lower)


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("etc/app", True),
        ("etc/conf", True),  # of the lower layer, in a directory that both have
        ("etc//./app/", True),
        ("/data", True),
        ("data/file", True),
        ("data/file/", False),
        ("data/file/below", False),
        ("data/file/..", False),
        ("link", True),
        ("link/file", True),
        ("to-lower", True),  # a link of one layer to what another one has
        ("etc/back/file", True),
        ("rooted", True),
        ("../../../etc", True),  # nothing is above the image's root
        ("out", False),
        ("round", False),
        ("nothing", False),
        ("nothing/..", False),
        ("gone", False),  # the upper layer took it away
        ("shadow", True),
        ("shadow/below", False),
        ("a" * 300, False),
        ("a\0b", False),
    ],
)
def test_a_path_is_there_when_the_layers_together_have_it(layers, path, there):
    assert has_path(layers, path) is there
    mount = Mount("/volume", "", readonly=True, image="data:1", image_sub_path=path)
    if there:
        check_sub_path(mount, layers)
    else:
        with pytest.raises(RuntimeServiceError, match=r"image 'data:1': its path .* does not exist"):
            check_sub_path(mount, layers)


def test_the_whole_image_needs_no_path():
    check_sub_path(Mount("/volume", "", readonly=True, image="data:1"), ())
