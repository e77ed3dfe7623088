"""What a shell was given to do: only a list of commands has a last one that `exec` can put in the shell's place."""

import pytest

from lastcall.endings.shell_script import place_of, script_of, shape_of, without_pipeline


@pytest.mark.parametrize(
    ("argv", "script"),
    [
        (("sh", "-c", " node server.js\n"), "node server.js"),
        (("/bin/bash", "-l", "-ec", "a; b"), "a; b"),
        (("busybox", "sh", "-c", "a"), "a"),
        (("sh", "/entrypoint.sh"), ""),
        (("sh", "-c"), ""),
        (("python3", "-c", "print()"), ""),
        ((), ""),
    ],
)
def test_the_script_is_what_follows_the_flag_of_a_shell(argv: tuple[str, ...], script: str) -> None:
    assert script_of(argv) == script


@pytest.mark.parametrize(
    ("script", "shape"),
    [
        ("", ""),
        ("node server.js", "plain"),
        ("migrate && server --port 8080", "list"),
        ("a || b", "list"),
        ("echo 'a | b & c'; server", "list"),
        ("server > /log 2>&1", "list"),
        ("server &> /log", "list"),
        ("server --name $(hostname | cut -c1-8)", "list"),
        ("until nslookup db; do sleep 1; done; server", "list"),
        ("server 2>&1 | tee /log", "pipeline"),
        ("cd /app && server | tee /log", "pipeline"),
        ("a\nserver|tee /log", "pipeline"),
        ("metrics & server", "jobs"),
        ("metrics &\nserver &\nwait", "jobs"),
        ("while true; do poll; sleep 5; done", "loop"),
        ("while true; do poll; done\n", "loop"),
        ("sleep 5\necho done", "list"),
        ("echo 'no end", ""),
    ],
)
def test_a_script_is_told_by_what_its_shell_does_in_the_end(script: str, shape: str) -> None:
    assert shape_of(script.strip()) == shape


def test_a_simple_pipeline_can_be_written_without_a_shell_that_waits() -> None:
    assert without_pipeline(("sh", "-c", "python3 -u /s.py 2>&1 | tee /log")) == (
        "exec python3 -u /s.py",
        "exec python3 -u /s.py > >(tee /log) 2>&1",
    )
    assert without_pipeline(("sh", "-c", "exec server|tee /log")) == ("exec server", "exec server > >(tee /log)")


@pytest.mark.parametrize("script", ["a | b | c", "a $X | tee /log", "a; b | c", "a || b", "server"])
def test_what_is_no_simple_pipeline_is_not_rewritten(script: str) -> None:
    assert without_pipeline(("sh", "-c", script)) is None


@pytest.mark.parametrize(
    ("script", "place"),
    [
        ("python3 app.py; echo it has left", "before"),
        ("migrate && /usr/bin/python3 app.py && cleanup", "before"),
        ("migrate && python3 app.py", "last"),
        ("python3 migrate.py; python3 app.py", "last"),
        ("python3 app.py", "last"),
        ("./start.sh", ""),
        ("echo 'unfinished", ""),
        ("", ""),
    ],
)
def test_only_the_program_of_the_last_command_can_take_the_shells_place(script: str, place: str) -> None:
    assert place_of(script, "python3") == place
