import os
import resource
from pathlib import Path

import pytest

from lastcall.world.remove_tree import remove_tree


def test_files_links_and_nothing_at_all(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link", "none", "none/deeper"):
        remove_tree(str(tmp_path / name))
    assert os.listdir(tmp_path) == []


def test_links_in_a_tree_are_removed_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (victim / "sub").mkdir(parents=True)
    (victim / "sub" / "file").touch()
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    for place in (tree, tree / "a", tree / "a" / "b"):
        (place / "absolute").symlink_to(victim)
        (place / "relative").symlink_to(os.path.relpath(victim / "sub", place))
        (place / "dangling").symlink_to("nowhere")
    remove_tree(str(tree))
    assert os.listdir(tmp_path) == ["victim"]
    assert (victim / "sub" / "file").exists()


@pytest.mark.parametrize("mode", [0, 0o500, 0o200])
def test_directories_that_nobody_may_enter_are_no_obstacle(tmp_path: Path, mode: int) -> None:
    inner = tmp_path / "tree" / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    for directory in (inner, inner.parent, inner.parent.parent):
        directory.chmod(mode)
    remove_tree(str(tmp_path / "tree"))
    assert os.listdir(tmp_path) == []


def test_a_tree_deeper_than_any_stack_path_or_table_of_descriptors_goes(tmp_path: Path) -> None:
    top = os.open(tmp_path, os.O_RDONLY)
    os.mkdir("tree", dir_fd=top)
    current = os.open("tree", os.O_RDONLY, dir_fd=top)
    for _ in range(3000):
        os.mkdir("directory", dir_fd=current)
        following = os.open("directory", os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = following
    os.close(current)
    os.close(top)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        remove_tree(str(tmp_path / "tree"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert os.listdir(tmp_path) == []


def test_what_a_removal_left_that_was_cut_off_is_no_obstacle(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in (".removing-1/x", ".removing-2", "a/b/c"):
        (tree / name).mkdir(parents=True)
    (tree / ".removing-3").touch()
    remove_tree(str(tree))
    assert os.listdir(tmp_path) == []


def test_a_place_that_is_no_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        remove_tree(str(tmp_path / "file" / "below"))
