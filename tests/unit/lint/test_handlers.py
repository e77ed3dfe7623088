"""What shells and Python programs do on SIGTERM, by their source."""

import pytest

from lastcall.lint.handlers import exits_with_zero, left_job, on_term

STOP = "stop() {\n  kill -TERM $pid\n  exit 0\n}\n"
ASKED = "server --port 80 2>&1 & pid=$!; "


@pytest.mark.parametrize(
    ("script", "job", "how"),
    [
        (f"{ASKED}trap 'kill $pid' TERM; wait $pid", "server", "once"),
        (f"{ASKED}trap 'kill $pid' 15; wait $pid; code=$?; exit $code", "server", "once"),
        (f"{ASKED}trap 'kill $pid; exit 0' INT TERM; wait", "server", "exits"),
        (f"{STOP}trap stop SIGTERM\nLEVEL=1 /opt/server &\npid=$!\nwait", "server", "exits"),
        ("(cd /app; server) & trap 'pkill server; exit' TERM; wait", "its job", "exits"),
    ],
)  # fmt: skip
def test_a_trap_that_does_not_wait_leaves_its_job(script: str, job: str, how: str):
    assert left_job(script) == (job, how)


@pytest.mark.parametrize(
    "script",
    [
        f"{ASKED}trap 'kill $pid; wait $pid' TERM; wait $pid",
        f"{ASKED}trap 'kill $pid; sleep 9; exit' TERM; wait",
        f"{ASKED}trap 'kill $pid' TERM; wait $pid; wait $pid",
        f"{ASKED}trap 'kill $pid' TERM; wait $pid; cleanup",
        f"{ASKED}trap 'kill $pid' TERM; until wait $pid; do :; done",
        f"{ASKED}trap 'echo ending' TERM; wait $pid",
        f"{ASKED}trap stop TERM; wait $pid",
        f"{ASKED}trap 'kill $pid' TERM; exec other",
        "setup && trap 'kill $!' TERM; server",
        "trap 'kill $!; exit 0' TERM; while :; do sleep 9 & wait $!; done",
        "server & trap 'kill $! # wait' TERM",
        'server "a',
    ],
)
def test_a_trap_that_waits_or_that_only_a_shell_can_read_leaves_none(script: str):
    assert left_job(script) is None


def test_a_trap_is_read_with_the_functions_that_it_calls():
    assert on_term("end() { exit 0; }\ntrap end TERM") == "end\n exit 0; "
    assert on_term("trap '' TERM; work; trap 'exit 3' TERM") == "exit 3"
    assert on_term("trap 'exit 3' TERM; wait; trap - TERM") == "exit 3"
    assert on_term("trap '' TERM") is None
    assert on_term("# trap 'exit 0' TERM\ntrap 'exit 0' INT") is None


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        ("sys.exit(0)", True),
        ("os._exit(0)", True),
        ("raise SystemExit", True),
        ("sys.exit()", True),
        ("sys.exit(143)", False),
        ("sys.exit(code)", False),
        ("save(); sys.exit(0)", False),
        ("stopping.set()", False),
    ],
)
def test_a_handler_in_python_that_only_exits_is_known(handler: str, expected: bool):
    source = f"import os, signal, sys\ndef stop(*_):\n    print('ending', flush=True)\n    {handler}\n"
    assert exits_with_zero(f"{source}signal.signal(signal.SIGTERM, stop)") is expected
    assert not exits_with_zero(f"{source}signal.signal(signal.SIGINT, stop)")


def test_what_is_no_python_exits_with_nothing():
    assert not exits_with_zero("signal exit (")
    assert exits_with_zero("import signal\nsignal.signal(15, lambda *_: exit(0))")
