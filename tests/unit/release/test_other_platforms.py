"""What works without Linux: clients, `import lastcall`, and words that say how to get a Linux VM for the rest.

The platforms are pretended (pretend.py); nobody has tried lastcall on a real macOS or Windows.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import until

from lastcall.cli.commands import CLIENTS, COMMANDS, OTHER_WORDS
from lastcall.kube.api.resources import PODS, REPLICASETS
from lastcall.kube.client.kubeconfig import client_for, load_kubeconfig
from lastcall.world.elsewhere import why_not

pytestmark = pytest.mark.loopback

ROOT = Path(__file__).parents[3]
PRETEND = str(Path(__file__).with_name("pretend.py"))

on_each_platform = pytest.mark.parametrize("platform", ["darwin", "win32"])


def python(platform: str, code: str) -> str:
    """What CODE prints there."""
    done = subprocess.run(
        [sys.executable, PRETEND, platform, code], capture_output=True, text=True, timeout=250, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def lastcall(platform: str, *invocations: list[str]) -> list[tuple[int, str]]:
    """(exit status, stdout and stderr) of each."""
    code = f"""
import contextlib, io, json
from lastcall.cli.main import main
told = []
for arguments in {list(invocations)!r}:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main(arguments)
        except SystemExit as end:
            told.append((end.code or 0, out.getvalue()))
print(json.dumps(told))
"""
    return [(status, text) for status, text in json.loads(python(platform, code))]


def test_the_pretended_platform_lacks_what_linux_has() -> None:
    for code in ("import fcntl", "import pwd", "import os\nos.fork", "import signal\nsignal.SIGHUP"):
        lines = "".join(f"    {line}\n" for line in code.splitlines())
        told = python("win32", f"try:\n{lines}except (ImportError, AttributeError) as error: print(error)")
        assert re.split(r"[ .]", code)[-1] in told


@on_each_platform
def test_help_and_version_are_told(platform: str) -> None:
    (helped, help_text), (versioned, version) = lastcall(platform, ["--help"], ["--version"])
    assert helped == versioned == 0
    assert all(name in help_text for name in COMMANDS)
    assert version.startswith("lastcall ")


@on_each_platform
def test_lint_finds_what_it_finds_on_linux(platform: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, imag: b}]}\n")
    good = "examples/term-demo.yaml"
    answers = lastcall(platform, ["lint", good], ["lint", str(wrong)], ["lint", "-o", "json", str(wrong)])
    assert answers[0][0] == 0 and "nothing found" in answers[0][1]
    assert answers[1][0] == 3 and "unknownField" in answers[1][1]
    here = subprocess.run(
        [sys.executable, "-m", "lastcall.cli.main", "lint", "-o", "json", str(wrong)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answers[2] == (3, here.stdout)


@on_each_platform
def test_each_client_has_its_help_with_all_options(platform: str) -> None:
    assert set(CLIENTS) <= set(COMMANDS)
    answers = lastcall(platform, *([name, "--help"] for name in CLIENTS))
    for name, (status, text) in zip(CLIENTS, answers, strict=True):
        assert status == 0 and "needs Linux" not in text, name
    ((status, text),) = lastcall(platform, ["completion", "zsh"])  # for bash, click runs bash
    assert status == 0 and "_LASTCALL_COMPLETE" in text, text


@on_each_platform
def test_the_controllers_start_as_a_client_and_say_when_no_server_answers(platform: str, tmp_path: Path) -> None:
    ((status, text),) = lastcall(platform, ["controller-manager", "--kubeconfig", str(tmp_path / "missing")])
    assert status == 2 and "missing" in text and "internal error" not in text


REPLICA_SET = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "a"}]},
        },
    },
}


@on_each_platform
async def test_the_controllers_work_there_against_an_api_server(platform: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    server = [sys.executable, str(ROOT / "tests" / "support" / "api_process.py"), "--kubeconfig", str(kubeconfig)]
    code = f"from lastcall.cli.main import main; main(['controller-manager', '--kubeconfig', {str(kubeconfig)!r}])"
    with running(server):
        await until(kubeconfig.exists, "the API server is there")
        with running([sys.executable, PRETEND, platform, code]):
            client = client_for(load_kubeconfig(str(kubeconfig)))
            try:
                await client.create(REPLICASETS, REPLICA_SET, "default")

                async def pods_are_made() -> bool:
                    return len((await client.list(PODS, "default")).items) == 2

                await until(pods_are_made, "the controllers made the ReplicaSet's Pods")
            finally:
                await client.close()


@contextmanager
def running(command: list[str]) -> Iterator[None]:
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        yield
        assert process.poll() is None, "it has ended by itself"
    finally:
        process.kill()
        process.wait()


@on_each_platform
def test_every_other_command_says_how_to_get_a_linux_vm(platform: str) -> None:
    others = [name for name in (*COMMANDS, *OTHER_WORDS) if name not in CLIENTS]
    invocations = [[name, *rest] for name in others for rest in ([], ["--detach", "x"], ["--help"])]
    for arguments, (status, text) in zip(invocations, lastcall(platform, *invocations), strict=True):
        assert status == (0 if "--help" in arguments else 1), (arguments, text)
        assert f"lastcall {arguments[0]} needs Linux 5.11 or newer" in text
        assert {"darwin": "limactl start", "win32": "wsl --install"}[platform] in text
        assert "internal error" not in text


@on_each_platform
def test_import_lastcall_and_all_that_it_names(platform: str) -> None:
    names = "import lastcall\nfor name in lastcall.__all__: getattr(lastcall, name)\n"
    assert python(platform, names + "import lastcall.testing.plugin\nprint(0)") == "0\n"


@on_each_platform
def test_a_program_that_starts_a_cluster_is_told_in_words(platform: str) -> None:
    code = """
import lastcall
try:
    with lastcall.Cluster():
        print("started")
except lastcall.ClusterError as error:
    print(error)
"""
    assert "needs Linux 5.11 or newer" in python(platform, code)


def test_a_platform_that_nobody_thought_of_is_named() -> None:
    assert "This is freebsd14." in why_not("up", "freebsd14")


def test_uvloop_is_asked_for_on_linux_only() -> None:
    assert "\"uvloop>=0.21; sys_platform == 'linux'\"" in (ROOT / "pyproject.toml").read_text()
