"""Credential plugins that hang, flood, lie or leave children behind: each is bounded, and what is wrong is said."""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

import pytest
from waiting import until

from lastcall.kube.client.access import plugin as running
from lastcall.kube.client.access.config import ClientConfig, ExecPlugin
from lastcall.kube.client.access.credentials import AGAIN_SECONDS, Credentials, CredentialsFailed
from lastcall.kube.client.access.exec_credential import read_answer, takes_terminal
from lastcall.kube.client.access.plugin import PluginError, ask

pytestmark = pytest.mark.loopback

V1 = "client.authentication.k8s.io/v1"
HEAD = f'{{"kind": "ExecCredential", "apiVersion": "{V1}"'
ANSWER = HEAD + ', "status": {"token": "t"}}'


def written(folder: Path, script: str) -> ExecPlugin:
    path = folder / "log-me-in"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return ExecPlugin(str(path), api_version=V1, interactive_mode="Never")


CONFIG = ClientConfig("http://h:1")


async def test_its_answer_is_read_and_each_line_that_it_says_is_handed_on(tmp_path):
    said: list[str] = []
    plugin = written(tmp_path, f"printf 'open \\033[31mhttps://login\\n' >&2; echo '{ANSWER}'")
    assert (await ask(CONFIG, plugin, said.append)).token == "t"
    assert said == ["open \x1b[31mhttps://login"]


async def test_one_that_hangs_is_ended_with_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "SECONDS", 1.0)
    plugin = written(tmp_path, f"sleep 600 & echo $! >{tmp_path}/child; wait")
    with pytest.raises(PluginError, match=r"gave no credentials within 1 s, and was ended"):
        await ask(CONFIG, plugin)
    child = int((tmp_path / "child").read_text())

    def is_gone() -> bool:
        with suppress(OSError):
            return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        return True

    await until(is_gone, "the child is gone")


async def test_a_child_that_holds_the_output_does_not_keep_it(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "SECONDS", 1.0)
    began = time.monotonic()
    with pytest.raises(PluginError, match="was ended"):
        await ask(CONFIG, written(tmp_path, f"sleep 600 & echo '{ANSWER}'"))
    assert time.monotonic() - began < 60


async def test_one_that_floods_is_ended(tmp_path):
    with pytest.raises(PluginError, match="wrote more than 1 MiB"):
        await ask(CONFIG, written(tmp_path, "yes"))


async def test_what_it_says_is_bounded(tmp_path):
    said: list[str] = []
    plugin = written(tmp_path, f"yes | head -c 1000000 >&2; echo '{ANSWER}'")
    await ask(CONFIG, plugin, said.append)
    assert sum(len(line) + 1 for line in said) <= running.MOST_SAID


async def test_one_in_the_current_directory_is_not_run_by_its_name(tmp_path, monkeypatch):
    written(tmp_path, f"echo '{ANSWER}'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    with pytest.raises(PluginError, match="executable log-me-in not found"):
        await ask(CONFIG, ExecPlugin("log-me-in", api_version=V1, interactive_mode="Never"))


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (b"", "it is not JSON"),
        (b"hello", "it is not JSON"),
        (b"[]", "it is not an ExecCredential"),
        (b'{"kind": "Pod"}', "it is not an ExecCredential"),
        (b'{"kind": "ExecCredential", "apiVersion": "v9"}', "plugin returned version v9"),
        (HEAD.encode() + b"}", "didn't return a status field"),
        (HEAD.encode() + b', "status": []}', "status is not an object"),
        (
            HEAD.encode() + b', "status": {}}',
            "didn't return a token or cert",
        ),
    ],
)
def test_an_answer_that_is_not_one_is_refused_without_repeating_it(output, why):
    with pytest.raises(ValueError, match=why):
        read_answer(output, V1)


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ('{"token": 7}', "status.token is not a string"),
        ('{"token": "a\\nInjected: b"}', "control characters"),
        ('{"clientKeyData": "k"}', "only certificate or key"),
        ('{"token": "t", "expirationTimestamp": "soon"}', "is not a time"),
        ('{"token": "t", "expirationTimestamp": "2026-01-01T00:00:00"}', "is not a time"),
    ],
)
def test_a_status_that_is_wrong_is_refused(status, why):
    with pytest.raises(ValueError, match=why):
        read_answer(ANSWER.replace('{"token": "t"}', status).encode(), V1)


@pytest.mark.parametrize(
    ("mode", "terminal", "takes"),
    [
        ("Never", True, False),
        ("Never", False, False),
        ("IfAvailable", True, True),
        ("IfAvailable", False, False),
        ("Always", True, True),
    ],
)
def test_the_terminal_is_given_as_the_mode_says(mode, terminal, takes):
    assert takes_terminal(mode, terminal) is takes


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def counted(folder: Path, status: str) -> ExecPlugin:
    answer = ANSWER.replace('{"token": "t"}', status)
    return written(folder, f"echo x >>{folder}/runs; cat {folder}/say 2>/dev/null || echo '{answer}'")


def runs(folder: Path) -> int:
    path = folder / "runs"
    return len(path.read_text().split()) if path.exists() else 0


async def test_it_is_asked_once_and_again_when_its_answer_has_expired(tmp_path):
    plugin = counted(tmp_path, '{"token": "t", "expirationTimestamp": "2999-01-01T00:00:00Z"}')
    credentials = Credentials(ClientConfig("http://h:1", plugin=plugin))
    for _ in range(3):
        assert (await credentials.proof()).authorization == "Bearer t"
    assert runs(tmp_path) == 1
    expired = counted(tmp_path, '{"token": "t", "expirationTimestamp": "2001-01-01T00:00:00Z"}')
    credentials = Credentials(ClientConfig("http://h:1", plugin=expired))
    await credentials.proof()
    await credentials.proof()
    assert runs(tmp_path) == 3


async def test_after_a_refusal_it_is_asked_again_but_not_with_every_request(tmp_path):
    clock = Clock()
    credentials = Credentials(ClientConfig("http://h:1", plugin=counted(tmp_path, '{"token": "t"}')), None, clock)
    proof = await credentials.proof()
    assert [await credentials.refused(proof) for _ in range(5)] == [False] * 5  # the same token again
    assert runs(tmp_path) == 2
    clock.now += AGAIN_SECONDS
    (tmp_path / "say").write_text(ANSWER.replace('"t"', '"new"'))
    assert await credentials.refused(proof)
    assert (await credentials.proof()).authorization == "Bearer new"


async def test_one_that_failed_rests(tmp_path):
    clock = Clock()
    plugin = written(tmp_path, f"echo x >>{tmp_path}/runs; exit 3")
    credentials = Credentials(ClientConfig("http://h:1", plugin=plugin), None, clock)
    for _ in range(3):
        with pytest.raises(CredentialsFailed, match=r"getting credentials: exec: .* failed with exit code 3"):
            await credentials.proof()
    assert runs(tmp_path) == 1
    clock.now += AGAIN_SECONDS
    with pytest.raises(CredentialsFailed):
        await credentials.proof()
    assert runs(tmp_path) == 2
