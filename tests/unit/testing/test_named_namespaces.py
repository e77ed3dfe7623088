"""Which named network namespaces of this machine are another test's."""

import os
import subprocess

import pytest
from tree import is_of_another_test, named_namespace

pytestmark = pytest.mark.loopback

LINE = "25 30 0:4 net:[4026532000] /run/netns/{} rw shared:9 - nsfs nsfs rw"


@pytest.mark.parametrize("name", ["containerd", "readme-m1", "network-lan"])
def test_a_named_namespace_tells_which_test_made_it(name: str) -> None:
    own = named_namespace(name)
    assert not is_of_another_test(LINE.format(own)), "one of its own that stays is a mistake"
    other = own.replace(str(os.getpid()), "1")
    assert is_of_another_test(LINE.format(other)), "of a process that lives"
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert not is_of_another_test(LINE.format(own.replace(str(os.getpid()), str(ended.pid)))), (
        "left by a test that ended"
    )
    assert not is_of_another_test(LINE.format(f"somebodys-{name}"))


def test_the_folder_of_named_namespaces_is_nobodys() -> None:
    assert is_of_another_test("25 30 254:0 /run/netns /run/netns rw,relatime shared:1 - ext4 /dev/vda rw,discard")
