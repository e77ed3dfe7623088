"""The directories of containers (cri/sandbox/directories.py)."""

import asyncio
import itertools
import os
from pathlib import Path

import pytest
from waiting import until

from lastcall.kube.cri.sandbox.directories import ContainerDirectories

pytestmark = pytest.mark.loopback


def made_in(parent: Path) -> ContainerDirectories:
    numbers = itertools.count(1)
    return ContainerDirectories(str(parent), lambda: f"id-{next(numbers)}")


def ready_in(parent: Path) -> list[str]:
    return os.listdir(parent / "ready") if (parent / "ready").exists() else []


def test_a_container_gets_an_empty_directory_of_its_id_that_only_its_owner_reads(tmp_path: Path) -> None:
    identity, directory = made_in(tmp_path / "containers").take()
    assert directory == str(tmp_path / "containers" / identity)
    assert os.listdir(directory) == []
    assert os.stat(directory).st_mode & 0o777 == 0o700


def test_directories_are_ready_before_containers_come_and_more_of_them_when_containers_follow_each_other(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        directories = made_in(tmp_path)
        running = asyncio.ensure_future(directories.run())
        for taken in range(40):
            at_least = (min(taken + 1, 16) + 1) // 2
            await until(lambda least=at_least: len(ready_in(tmp_path)) >= least)  # type: ignore[misc]
            ready = ready_in(tmp_path)
            assert len(ready) <= 16
            identity, directory = directories.take()
            assert identity in ready
            assert identity not in ready_in(tmp_path)
            os.rmdir(directory)
        running.cancel()

    asyncio.run(main())


def test_a_container_that_comes_when_none_is_ready_gets_one_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        directories = made_in(tmp_path)
        running = asyncio.ensure_future(directories.run())
        await until(lambda: ready_in(tmp_path))
        taken = [directories.take() for _ in range(40)]
        assert {identity for identity, _ in taken} | {"ready"} == set(os.listdir(tmp_path))
        assert len(taken) == 40
        running.cancel()

    asyncio.run(main())


def test_the_next_node_process_uses_what_a_killed_one_had_ready(tmp_path: Path) -> None:
    (tmp_path / "ready" / "of-the-first").mkdir(parents=True)

    async def main() -> None:
        directories = made_in(tmp_path)
        running = asyncio.ensure_future(directories.run())
        await until(lambda: len(ready_in(tmp_path)) == 1 and directories.take()[0] == "of-the-first")
        running.cancel()

    asyncio.run(main())


def test_a_disk_that_takes_no_directory_is_an_error_of_the_container_and_not_of_the_node(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    async def main() -> None:
        directories = made_in(tmp_path / "file")
        running = asyncio.ensure_future(directories.run())
        for _ in range(3):
            with pytest.raises(NotADirectoryError):
                directories.take()
            await asyncio.sleep(0)
        assert not running.done()
        running.cancel()

    asyncio.run(main())
