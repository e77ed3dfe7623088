"""Which instance a log request means, and what of a log a client sees: kuberuntime/logs/logs.go, kubelet_pods.go."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.node.logs.files import (
    LogLinks,
    container_id_of_link,
    log_files,
    log_link_name,
    remove_log,
)
from lastcall.kube.node.logs.reader import BLOCK, LogOptions, read_logs, tail_log_text, tail_offset
from lastcall.kube.node.logs.target import LogsNotAvailable, log_container_id
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

POD: dict[str, Any] = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [{"name": "app"}]}}
WHERE = 'container "app" in pod "p"'


def terminated(container_id: str = "") -> dict[str, Any]:
    return {"terminated": {"exitCode": 1, **({"containerID": container_id} if container_id else {})}}


@pytest.mark.parametrize(
    ("state", "last", "previous", "expected"),
    [
        ({"running": {}}, {}, False, "now"),
        ({"running": {}}, terminated("old"), False, "now"),
        ({"running": {}}, terminated("old"), True, "old"),
        ({"running": {}}, terminated(), True, f"previous terminated {WHERE} not found"),
        (terminated("end"), terminated("old"), False, "end"),
        (terminated(), terminated("old"), False, "old"),
        (terminated(), {}, False, f"{WHERE} is terminated"),
        ({"waiting": {"reason": "X"}}, terminated("old"), False, "old"),
        ({"waiting": {"reason": "X"}}, terminated(), False, f"{WHERE} is terminated"),
        ({"waiting": {"reason": "X"}}, {}, False, f"{WHERE} is waiting to start: X"),
        ({"waiting": {}}, {}, False, f"{WHERE} is waiting to start: "),
        ({"waiting": {"reason": "ErrImagePull"}}, {}, False, f"{WHERE} is waiting to start: image can't be pulled"),
        (
            {"waiting": {"reason": "ImagePullBackOff"}},
            {},
            False,
            f"{WHERE} is waiting to start: trying and failing to pull image",
        ),
        ({}, {}, False, f"{WHERE} is waiting to start - no logs yet"),
    ],
)
@pytest.mark.parametrize("field", ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"])
def test_a_request_means_the_newest_instance_that_has_run(
    field: str, state: dict[str, Any], last: dict[str, Any], previous: bool, expected: str
) -> None:
    """kubelet_pods_test.go:TestValidateContainerLogStatus."""
    status = {field: [{"name": "other"}, {"name": "app", "containerID": "now", "state": state, "lastState": last}]}
    try:
        found = log_container_id(POD, status, "app", previous)  # type: ignore[arg-type]
    except LogsNotAvailable as error:
        found = str(error)
    assert found == expected


def seen(path: Path, **options: Any) -> str:
    async def ended() -> bool:
        return False

    async def main(world: World) -> bytes:
        blocks = [each async for each in read_logs(path, LogOptions(**options), world=world, is_running=ended)]
        return b"".join(blocks)

    return run_virtual(main).decode()


T1, T2 = "2030-01-01T00:00:01.123456789Z", "2030-01-01T00:00:02.5Z"


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (f"{T1} stdout F a b  c\n", {}, "a b  c\n"),
        (f"{T1} stdout F \n", {}, "\n"),
        (f"{T1} stdout P a\n{T1} stdout F b\n", {}, "ab\n"),
        (f"{T1} stdout P:x a\n{T1} stdout F:y b\n", {}, "ab\n"),
        (f"{T1} stdout P a\n{T2} stdout F b\n{T2} stdout F c\n", {"timestamps": True}, f"{T1} ab\n{T2} c\n"),
        ("broken\n" + f"{T1} stdout F a\n", {}, "a\n"),
        (f"{T1} stdout F a\nhalf a li", {}, "a\n"),
        (f"{T1} stdout F a\n{T1} stderr F b\n", {"stream": "Stderr"}, "b\n"),
        (f"{T1} stdout F a\n{T2} stdout F b\n", {"since": datetime(2030, 1, 1, 0, 0, 2, tzinfo=UTC)}, "b\n"),
        (f"{T1} stdout F a\n", {"since": datetime(2030, 1, 1, 0, 0, 1, 123456, tzinfo=UTC)}, "a\n"),
        (f"{T1} stdout F a\n", {"since": datetime(2030, 1, 1, 0, 0, 1, 123457, tzinfo=UTC)}, ""),
        ("never stdout F a\n", {"since": datetime(2030, 1, 1, tzinfo=UTC)}, "a\n"),
        (
            "2030-01-01T01:00:01.123456789+01:00 stdout F a\n",
            {"since": datetime(2030, 1, 1, 0, 0, 1, 123456, tzinfo=UTC)},
            "a\n",
        ),
        (f"{T1} stdout F abc\n{T1} stdout F de\n", {"limit_bytes": 4}, "abc\n"),
        (f"{T1} stdout F abc\n{T1} stdout F de\n", {"limit_bytes": 5}, "abc\nd"),
        (f"{T1} stdout F abc\n", {"limit_bytes": 0}, ""),
        (f"{T1} stdout F a\n{T1} stdout F b\n", {"tail_lines": 1}, "b\n"),
        (f"{T1} stdout F a\n{T1} stdout F b\n", {"tail_lines": 2}, "a\nb\n"),
        ("", {"tail_lines": 1}, ""),
    ],
)
def test_what_a_client_sees_of_a_log(tmp_path: Path, text: str, options: dict[str, Any], expected: str) -> None:
    (tmp_path / "0.log").write_text(text)
    assert seen(tmp_path / "0.log", **options) == expected


@pytest.mark.parametrize("size", [1, 7, BLOCK - 1, BLOCK, BLOCK + 1])
@pytest.mark.parametrize("lines", [0, 1, 2, 5])
def test_the_last_lines_begin_at_a_line_whatever_its_length(tmp_path: Path, size: int, lines: int) -> None:
    """pkg/util/tail/tail_test.go."""
    text = b"".join(b"%d" % number + b"x" * (size - 1) + b"\n" for number in range(4))
    (tmp_path / "l").write_bytes(text)
    with (tmp_path / "l").open("rb") as file:
        assert text[tail_offset(file, lines) :] == text[max(0, 4 - lines) * (size + 1) :]


def test_a_line_without_an_end_is_the_last_one(tmp_path: Path) -> None:
    (tmp_path / "l").write_bytes(b"a\nb\nc")
    with (tmp_path / "l").open("rb") as file:
        assert [tail_offset(file, lines) for lines in (0, 1, 2, 3, 4)] == [5, 4, 2, 0, 0]


def test_the_end_of_a_log_is_text_without_stamps(tmp_path: Path) -> None:
    (tmp_path / "l").write_text(f"{T1} stdout F one\n{T1} stdout F two\n{T1} stdout F three\n")
    assert tail_log_text(tmp_path / "l", 2, 100) == "two\nthree\n"
    assert tail_log_text(tmp_path / "l", 9, 6) == "three\n"
    assert tail_log_text(tmp_path / "none", 9, 6) == ""


# -- files -------------------------------------------------------------------------------------------------------------


def test_the_id_of_a_link_follows_its_last_dash_and_its_name_is_cut() -> None:
    assert log_link_name("p", "n", "c", "id") == "p_n_c-id.log"
    assert container_id_of_link("p-q_n_c-d-id.log") == "id"
    assert container_id_of_link("noid.log") == ""
    long = log_link_name("p" * 300, "n", "c", "id")
    assert (len(long), long[-5:]) == (255, "p.log")


def test_a_log_is_removed_with_what_it_was_rotated_to_and_nothing_else(tmp_path: Path) -> None:
    names = ["0.log", "0.log.20300101-000000", "0.log.20300102-000000.gz", "10.log", "0.logs"]
    for name in names:
        (tmp_path / name).touch()
    assert log_files(f"{tmp_path}/0.log") == [f"{tmp_path}/{name}" for name in names[:3]]
    remove_log(f"{tmp_path}/0.log")
    assert sorted(os.listdir(tmp_path)) == ["0.logs", "10.log"]
    remove_log("")
    remove_log(f"{tmp_path}/none/0.log")


def test_a_link_is_made_to_a_log_that_is_there_and_removed_with_its_container(tmp_path: Path) -> None:
    links, log = LogLinks(f"{tmp_path}/links"), tmp_path / "0.log"
    links.add("p", "n", "c", "id", str(log))
    assert not (tmp_path / "links").exists(), "there is no log"
    log.touch()
    for _ in range(2):
        links.add("p", "n", "c", "id", str(log))
    assert os.readlink(tmp_path / "links/p_n_c-id.log") == str(log)
    links.remove("p", "n", "c", "other")
    assert os.listdir(tmp_path / "links") == ["p_n_c-id.log"]
    links.remove("p", "n", "c", "id")
    assert os.listdir(tmp_path / "links") == []
    LogLinks("").add("p", "n", "c", "id", str(log))
    LogLinks("").remove("p", "n", "c", "id")
