"""The command line itself: options, statuses, start-up."""

import errno
import os
import pty
import signal
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from lastcall._version import __version__
from lastcall.cli import exit_status
from lastcall.cli.commands import COMMANDS, cli
from lastcall.cli.demo import DEMOS, EXAMPLES
from lastcall.cli.errors import guarded
from lastcall.cli.staying import execute
from lastcall.endings import hopeless_reason
from lastcall.endings.story import Ending, PodFacts
from lastcall.experiment.reasons.why_not_ready import why_not_ready
from lastcall.manifests.read import load_manifests
from lastcall.world.interrupts import Interrupts
from lastcall.world.os_errors import describe_os_error


def lastcall(*arguments, stdin="", **environment):
    code = "from lastcall.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.loopback
def test_version_imports_neither_aiohttp_nor_rich_nor_a_command():
    code = (
        "import sys; from lastcall.cli.commands import invoke; invoke(['--version']); "
        "print(sorted(m for m in sys.modules if m.split('.')[0] in "
        "('aiohttp', 'rich', 'yaml', 'orjson', 'uvloop', 'cryptography') or m == 'lastcall.cli.run.command'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [f"lastcall {__version__}", "[]"]


@pytest.mark.loopback
def test_help_lists_every_command():
    done = lastcall("--help")
    assert done.returncode == 0
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "Missing argument"),
        (["run", "x.yaml", "--kubernetes-version", "1.99"], "'1.23', '1.27', '1.36'"),
        (["run", "x.yaml", "--feature-gates", "Nonsense=true"], "unknown feature gate 'Nonsense': known are Container"),
        (["up", "--feature-gates", "ContainerStopSignals"], "write ContainerStopSignals=true"),
        (
            ["run", "x.yaml", "--grace", "-1"],
            "'--grace': -1 is too short: write 30s, 1m30s or plain seconds, from 0s to 2147483647s",
        ),
        (["run", "x.yaml", "--grace", "soon"], "'soon' is not a time: write 30s"),
        (
            ["run", "x.yaml", "--timeout", "0"],
            "0 is too short: write 30s, 1m30s, 500ms or plain seconds, more than 0 and at most 24h",
        ),
        (["run", "x.yaml", "--max-pods", "1000"], "1000 is too many: give a whole number of Pods from 1 to 253"),
        (
            ["up", "--node-capacity", "gpu=1"],
            "'--node-capacity': 'gpu=1': 'gpu' is not a resource of nodes: cpu, memory",
        ),
        (["demo", "term", "--node-capacity", "memory=1"], "memory=1 is too little: give more than 100Mi"),
        (["up", "--nodes", "2", "--node-capacity", "node-3:cpu=1"], "no such node: the cluster has node-1 to node-2"),
        (["up", "--node-capacity", "cpu=2,node-1:cpu=1"], "own option: --node-capacity cpu=2 --node-capacity node-1:…"),
        (["up", "--cni-bin-dir", "/"], "--cni-bin-dir needs --cni-conf-dir, which configures the plugins"),
        (["down", "--timeout", "soon"], "'soon' is not a time: write 30s, 1m30s, 500ms or plain seconds"),
        (["run", "x.yaml", "--state-size", "lots"], "write 512m, 4g, or 50% of the machine's memory"),
        (["run", "x.yaml", "--output", "xml"], "'xml' is not one of"),
        (["run", "x.yaml", "--nope"], "No such option"),
        (["demo", "sideways"], "'sideways' is not one of"),
        (["fly"], "No such command 'fly'"),
        (["run", "/nonexistent/pod.yaml"], "/nonexistent/pod.yaml: No such file or directory"),
    ],
)
def test_bad_input_is_status_2_with_the_value_and_without_a_traceback(arguments, words):
    done = lastcall(*arguments)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.loopback
def test_every_problem_of_a_manifest_is_a_line_on_stderr():
    done = lastcall("run", "-", stdin="apiVersion: v1\nkind: Pood\n---\napiVersion: apps/v1\nkind: Deployment\n")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("lastcall: <stdin>:") for line in lines)


@pytest.mark.parametrize("command", ["run", "demo", "rollout", "trace", "up"])
def test_help_names_every_option_and_explains_the_common_ones(command):
    import click

    found = cli.get_command(click.Context(cli), command)
    options = [each for each in found.params if isinstance(each, click.Option) and not each.hidden]
    short, whole = (CliRunner().invoke(cli, [command, asked]).output for asked in ("--help", "--help-all"))
    for option in options:
        name = next(each for each in option.opts if each.startswith("--"))
        assert f" {name}" in short and f" {name}" in whole
        assert option.help.split()[0] in whole
    assert len(short.splitlines()) <= min(115, len(whole.splitlines()) - 10)
    assert "Other:" in short and all(len(line) <= 80 for line in short.splitlines())


def test_the_tables_of_help_name_parameters_that_exist():
    import click

    from lastcall.cli.sectioned_help import EXPLAINED, NAMED

    commands = [cli.get_command(click.Context(cli), name) for name in ("run", "rollout", "trace", "up")]
    existing = {each.name for command in commands for each in command.params}
    named = [name for table in (EXPLAINED, NAMED) for names in table.values() for name in names]
    assert set(named) <= existing and len(named) == len(set(named))


def test_every_command_is_in_one_group_of_the_help():
    from lastcall.cli.commands import GROUPS

    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)


@pytest.mark.loopback
def test_python_m_lastcall_is_the_command_line():
    done = subprocess.run([sys.executable, "-m", "lastcall", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"lastcall {__version__}\n"


def test_the_demos_are_as_documented_and_pass_their_checks():
    by_name = {}
    for names in DEMOS.values():
        for manifest in load_manifests([str(EXAMPLES / name) for name in names]):
            by_name[manifest.resource.kind, manifest.obj["metadata"]["name"]] = manifest.obj
    for name, grace, hook in (("term-demo", 30, "sleep 3"), ("sigkill-demo", 10, "sleep 2")):
        pod = by_name["Pod", name]
        (container,) = pod["spec"]["containers"]
        assert pod["spec"]["terminationGracePeriodSeconds"] == grace
        assert pod["metadata"]["labels"] == {"app": name}
        assert container["image"] == "busybox:1.36"
        assert container["lifecycle"]["preStop"]["exec"]["command"] == ["sh", "-c", hook]
        assert container["readinessProbe"] == {"exec": {"command": ["true"]}, "periodSeconds": 2}
        assert container["command"][:2] == ["sh", "-c"]
        (port,) = by_name["Service", name]["spec"]["ports"]
        assert (port["port"], port["targetPort"]) == (80, 8080)
    term = by_name["Pod", "term-demo"]["spec"]["containers"][0]["command"][2]
    assert term == (
        """trap 'echo "SIGTERM received, draining..."; sleep 5; exit 0' TERM; while true; do sleep 1; done"""
    )


def test_the_examples_in_the_repository_are_the_ones_that_are_shipped():
    root = EXAMPLES.parents[3] / "examples"
    for example in EXAMPLES.iterdir():
        assert (root / example.name).read_text() == example.read_text()


# -- statuses and errors


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        (["graceful"], 0),
        ([], 0),
        (["graceful", "killed"], 3),
        (["hookFailed", "graceful"], 3),
        (["killed", "unknown"], 1),
    ],
)
def test_the_exit_status_follows_the_outcomes(outcomes, status):
    endings = [Ending(PodFacts("u", "n", "p"), 0, "", None, 30, outcome) for outcome in outcomes]
    assert exit_status.exit_status(endings) == status


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (
            OSError(30, "Read-only file system", "/state"),
            1,
            "/state: Read-only file system (its file system is read-only",
        ),
        (OSError(24, "Too many open files"), 1, "ulimit -n"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (RecursionError(), 2, "nested too deeply"),
        (ValueError("what"), 1, "internal error: ValueError: what"),
        (click.UsageError("no"), 2, "no"),
        (ExceptionGroup("tasks", [OSError(28, "No space left on device")]), 1, "No space left on device"),
    ],
)
def test_whatever_happens_is_one_line_and_a_status(error, status, words, capsys, monkeypatch):
    monkeypatch.delenv("LASTCALL_DEBUG", raising=False)

    def fail():
        raise error

    assert guarded(fail) == status
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err


@pytest.mark.loopback
def test_a_reader_that_goes_away_is_no_crash():
    code = (
        "import sys; from lastcall.cli.errors import guarded\n"
        "def write():\n    while True: print('x' * 1000, flush=True)\n"
        "sys.exit(guarded(write))"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stdout.read(10)
    child.stdout.close()
    assert child.stderr.read() == ""
    child.stderr.close()
    assert child.wait(timeout=120) == exit_status.BROKEN_PIPE


def test_an_os_error_without_words_still_says_something():
    assert describe_os_error(OSError()) == "OSError"


# -- why a Pod is not Ready


def _pod(*states, phase="Pending", **status):
    containers = [{"name": f"c{i}", "ready": False, **state} for i, state in enumerate(states)]
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "status": {"phase": phase, "containerStatuses": containers, **status},
    }


def test_conditions_states_and_events_say_why_and_what_to_do():
    last = {"terminated": {"exitCode": 1, "reason": "Error", "message": "no config\n"}}
    message = "containers with unready status: [c0]"
    pod = _pod(
        {"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}, "lastState": last},
        {"state": {"running": {}}},
        {"state": {"waiting": {"reason": "ContainerCreating"}}},
        conditions=[{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": message}],
    )
    events = [
        {
            "type": "Warning",
            "reason": "FailedMount",
            "message": 'configmap "x" not found',
            "count": 3,
            "lastTimestamp": "2",
        },
        {"type": "Normal", "reason": "Pulled", "message": "ok"},
    ]
    lines = why_not_ready(pod, events)
    assert lines[0] == "default/web is not Ready: phase Pending"
    assert "  condition Ready is False: ContainersNotReady: containers with unready status: [c0]" in lines
    assert "  container c0: CrashLoopBackOff: back-off 10s" in lines
    assert "  container c0: Error: last time exit code 1: no config" in lines
    assert "  container c1: Running: but not ready: its readiness probe has not succeeded" in lines
    assert '  Event FailedMount: configmap "x" not found (3 times)' in lines
    assert not any("ContainerCreating" in line or "Pulled" in line for line in lines)
    assert any(line.startswith("  fix: ") for line in lines)


def test_only_what_waiting_does_not_change_is_hopeless():
    assert hopeless_reason(_pod({"state": {"waiting": {"reason": "ErrImageNeverPull"}}})) == "ErrImageNeverPull"
    assert hopeless_reason(_pod({"state": {"terminated": {"reason": "StartError", "exitCode": 128}}})) == "StartError"
    assert hopeless_reason(_pod({"state": {"waiting": {"reason": "CrashLoopBackOff"}}})) == ""
    assert hopeless_reason(_pod(phase="Failed", reason="NodeAffinity", message="no")) == "NodeAffinity"
    assert hopeless_reason({}) == ""


@pytest.mark.loopback
@pytest.mark.parametrize(("term", "said"), [("xterm", b"\r\x1b[Klastcall: no\r\n"), ("dumb", b"lastcall: no\r\n")])
def test_an_error_wipes_the_ctrl_c_away_that_a_terminal_shows(term, said) -> None:
    ours, theirs = pty.openpty()
    try:
        code = "from lastcall.cli.errors import say_on_stderr; say_on_stderr('no')"
        subprocess.run([sys.executable, "-c", code], stderr=theirs, env={**os.environ, "TERM": term}, check=True)
        assert os.read(ours, 100) == said
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("command", ["run", "demo", "story", "doctor", "up", "status"])
def test_every_output_option_has_kubectls_short_form(command) -> None:
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    assert any({"-o", "--output"} <= set(parameter.opts) for parameter in found.params)


def test_every_option_of_every_command_says_what_it_is_for():
    import click

    from lastcall.cli.commands import COMMANDS, cli

    def options(command, name):
        if isinstance(command, click.Group):
            for each in command.list_commands(click.Context(command)):
                yield from options(command.get_command(click.Context(command), each), f"{name} {each}")
        else:
            for option in command.params:
                if isinstance(option, click.Option):
                    yield name, option.opts[0], option.help

    found = [each for name in COMMANDS for each in options(cli.get_command(click.Context(cli), name), name)]
    assert len(found) > 60
    assert [each for each in found if not each[2]] == []


@pytest.mark.loopback
def test_a_signal_between_the_start_of_a_command_and_its_handler_ends_the_command():
    interrupts = Interrupts()
    interrupts.number = signal.SIGTERM
    assert execute._run(["sleep", "60"], dict(os.environ), interrupts) == 143


SLOW_PARENT = """
import os, signal, sys, time
from dataclasses import dataclass
from lastcall.errors import Interrupted
from lastcall.cli.staying import starting
from lastcall.kube.cluster.staying import detach

@dataclass
class Options:
    state: str = ""
    output: str = "text"
    name: str = "slow"

def slowly(main, start=detach.start_behind):
    begun = start(main)
    time.sleep(0.5)  # a busy machine: the child is far on by now
    return begun

def stay(options, teller, report=None):
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(60)
    return 0

starting.start_behind, starting.stay = slowly, stay
try:
    starting.in_background(Options())
except Interrupted as error:
    if sys.argv[1:] == ["twice"]:
        os.kill(os.getpid(), signal.SIGINT)  # before anything is said
    print(error)
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("the child has ended")
"""
"""Ctrl-C while a cluster is started in the background, and this process is slower than its child."""


@pytest.mark.loopback
def test_ctrl_c_that_comes_before_this_process_goes_on_ends_the_child_in_order() -> None:
    done = subprocess.run([sys.executable, "-c", SLOW_PARENT], capture_output=True, text=True, timeout=50, check=False)
    assert done.stdout == "Ctrl-C: tearing down the cluster\nthe child has ended\n", done.stderr


@pytest.mark.loopback
def test_a_second_ctrl_c_does_not_end_it_before_anything_is_said() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SLOW_PARENT, "twice"], capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stderr) == (130, "lastcall: stopped at once; the kernel ends the cluster\n")


@pytest.mark.parametrize(
    ("error", "path", "words"),
    [
        (errno.ENOSPC, "/state/credentials.json", "free some space on its file system"),
        (errno.EDQUOT, "/state/credentials.json", "your quota there is used up: free some space"),
        (errno.EROFS, "/state/lock", "its file system is read-only: make it writable, or use another directory"),
        (errno.ENOSPC, "/elsewhere/x", "free some space, or set TMPDIR to a place that has some"),
        (errno.ENOSPC, None, "free some space, or set TMPDIR to a place that has some"),
        (errno.EMFILE, "/state/lock", "raise the limit of open files: ulimit -n 4096"),
    ],
)
def test_a_full_or_read_only_disk_is_told_with_what_helps_there(
    error: int, path: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/elsewhere")
    where = f"{path}: " if path else ""
    assert describe_os_error(OSError(error, os.strerror(error), path)) == f"{where}{os.strerror(error)} ({words})"
