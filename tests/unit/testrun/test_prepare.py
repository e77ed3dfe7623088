"""A machine that lacks something: what is missing is named, and the run goes on (tools/testrun/{prepare,report}.py)."""

import subprocess

import pytest
from testrun import prepare, report
from testrun.tiers import TIERS


def test_a_program_that_takes_too_long_to_come_is_named_and_the_run_goes_on(monkeypatch, capsys) -> None:
    def slow(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 900)

    monkeypatch.setattr(subprocess, "run", slow)
    assert not prepare._unpack("kubectl 1.20", "get-kubectl")
    assert "tests that need it are skipped: kubectl 1.20 (it took more than 900 s)" in capsys.readouterr().out


@pytest.mark.parametrize(("uid", "tier", "said"), [(1000, "main", True), (1000, "fast", False)])
def test_an_ordinary_user_is_told_which_packages_are_missing(monkeypatch, capsys, uid, tier, said) -> None:
    def query(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[0] == "dpkg-query", "an ordinary user installs nothing"
        return subprocess.CompletedProcess(command, 1, "gcc installed\nnftables config-files\n", "")

    monkeypatch.setattr(prepare.os, "getuid", lambda: uid)
    monkeypatch.setattr(prepare.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(subprocess, "run", query)
    prepare._packages(TIERS[tier])
    out = capsys.readouterr().out
    assert ("nftables" in out) == said and " gcc" not in out


def test_a_machine_without_git_has_a_result_without_a_commit(monkeypatch) -> None:
    monkeypatch.setattr(report.shutil, "which", lambda name: None)
    assert report.commit() == ("", False)
