"""Unpacked images under a real overlayfs, as root and as an ordinary user without a single capability."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ordinary_user
import pytest

pytestmark = [pytest.mark.real_kernel, pytest.mark.core]

PROGRAM = Path(__file__).with_name("image_scenario.py")


@pytest.fixture(params=ordinary_user.USERS)
def run(request: pytest.FixtureRequest) -> Any:
    prefix = ordinary_user.command_prefix(request.param)

    def run(scenario: str) -> dict[str, Any]:
        command = [*prefix, sys.executable, str(PROGRAM), scenario]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, cwd="/", check=False)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        if prefix:
            assert int(answer["capEff"], 16) == 0
        return answer

    return run


def test_the_host_s_busybox_runs_in_its_image(run: Any) -> None:
    seen = run("busybox")
    if "skipped" in seen:
        pytest.skip(seen["skipped"])
    assert seen["output"] == "hello\n/etc/passwd\nwrote\n"
    assert seen["trap"] == "got TERM\n"
    assert seen["env"] == "env\n"
    assert seen["lowerUnchanged"]


def test_the_host_s_own_directories_make_an_image_and_stay_read_only(run: Any) -> None:
    seen = run("directories")
    assert seen["output"] == "hello\n/etc/passwd\nwrote\n"
    assert "Read-only file system" in seen["readOnly"]
    assert seen["sleep"] == "slept\n"


def test_a_whiteout_hides_a_file_and_a_directory_of_the_layer_below(run: Any) -> None:
    seen = run("whiteouts")
    assert seen["layers"] == 2
    assert seen["tree"] == {"etc/group": "one", "etc/new": "two"}
    assert seen["top"] == ["etc"]


def test_an_opaque_directory_merges_the_layers_into_one(run: Any) -> None:
    seen = run("opaque")
    assert seen["layers"] == 1
    assert seen["tree"] == {"etc/new": "two", "var/a": "one"}


def test_more_layers_than_overlayfs_takes_become_one(run: Any) -> None:
    seen = run("many")
    assert (seen["layers"], seen["files"]) == (1, 63)


def test_owners_are_kept_where_more_than_one_id_is_mapped(run: Any) -> None:
    seen = run("owners")
    assert seen["uid"] == (33 if seen["mapped"] > 33 else 0)
    assert seen["mode"] == 0o755


def test_an_image_that_does_not_fit_is_a_clear_error_and_leaves_nothing(run: Any) -> None:
    seen = run("full")
    assert seen["error"].startswith("ImageError: layer sha256:")
    assert seen["error"].endswith("cannot be unpacked: No space left on device")
    assert seen["left"] == []
