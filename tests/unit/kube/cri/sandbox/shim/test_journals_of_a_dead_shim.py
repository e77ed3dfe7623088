"""What init and the next shim read of the processes of a shim that is no more."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lastcall.kube.cri.sandbox.shim.containers import Container
from lastcall.kube.cri.sandbox.shim.loop import Loop
from lastcall.kube.cri.sandbox.shim.past import read_journals
from lastcall.kube.cri.sandbox.shim.procfs import start_time


def test_containers_and_execs_are_told_apart_and_ends_are_known(tmp_path: Path) -> None:
    (tmp_path / "c1").write_text(
        '{"pid":7,"startTime":9,"podUid":"u","container":"app","sandboxId":"s"}\n'
        '{"exitCode":137,"signal":"SIGKILL","finishedAt":5}\n'
    )
    (tmp_path / "exec-e1").write_text('{"pid":8,"startTime":9,"podUid":"u","container":"app"}\n{"exitC')
    container, command = read_journals(str(tmp_path))
    assert (container.container_id, container.exec_id, container.over) == ("c1", "", True)
    assert (container.exit_code, container.signal, container.finished_at) == (137, "SIGKILL", 5)
    assert (container.pod_uid, container.container, container.sandbox_id) == ("u", "app", "s")
    assert (command.container_id, command.exec_id, command.over) == ("", "e1", False)
    command.ended(0, "", 6)
    again = read_journals(str(tmp_path))[1]
    assert (again.exit_code, again.finished_at) == (0, 6)
    again.remove()
    again.remove()
    assert os.listdir(tmp_path) == ["c1"]
    assert read_journals(str(tmp_path / "nowhere")) == []


@pytest.mark.loopback
def test_a_number_that_belongs_to_somebody_else_by_now_is_not_taken_for_the_process(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        for name, started in (("same", start_time(process.pid)), ("other", start_time(process.pid) - 1)):
            (tmp_path / name).write_text(f'{{"pid":{process.pid},"startTime":{started}}}\n')
        other, same = read_journals(str(tmp_path))
        assert (same.lives(), other.lives()) == (True, False)
        process.kill()
    assert not same.lives()


class _KilledAtItsGroups:
    """Control groups whose making is the last that a shim does: `error` is raised in the middle of it."""

    mode = "none"

    def __init__(self, error: BaseException) -> None:
        self._error = error
        self.made: list[str] = []

    def create_container(self, path: str, resources: dict[str, Any]) -> None:
        self.made.append(path)
        raise self._error

    def remove_container(self, path: str) -> bool:
        self.made.remove(path)
        return True


def _start_with(cgroups: Any, directory: Path) -> None:
    spec = {"id": "c1", "pid": "CONTAINER", "podUid": "u", "name": "app", "logPath": "", "stdin": False, "tty": False}
    context: Any = SimpleNamespace(
        directory=str(directory), cgroups=cgroups, maps=([(0, 65536)], [(0, 65536)]), loop=Loop()
    )
    sandbox: Any = SimpleNamespace(id="s", users=None, shm="", namespaces={})
    Container(context, spec, sandbox, listener=cast(Any, None)).start(-1)


def test_a_container_whose_shim_dies_while_its_groups_are_made_has_a_journal(tmp_path: Path) -> None:
    """The next shim takes away the groups of the containers that journals name, and knows of no others."""
    cgroups = _KilledAtItsGroups(SystemExit())
    with pytest.raises(SystemExit):
        _start_with(cgroups, tmp_path)
    assert cgroups.made == [journal.container_id for journal in read_journals(str(tmp_path))] == ["c1"]


def test_a_container_whose_groups_cannot_be_made_leaves_no_journal(tmp_path: Path) -> None:
    cgroups = _KilledAtItsGroups(OSError(28, "No space left on device"))
    with pytest.raises(OSError, match="No space"):
        _start_with(cgroups, tmp_path)
    assert cgroups.made == [] and os.listdir(tmp_path) == []
