"""What command lines say about signals and time."""

import pytest

from lastcall.lint import commands, images


@pytest.mark.parametrize(
    ("argv", "seconds"),
    [
        (["sleep", "15"], 15.0),
        (["/bin/sleep", "0.5"], 0.5),
        (["sleep", "1m"], 60.0),
        (["sh", "-c", "sleep 5"], 5.0),
        (["sh", "-c", "sleep 5; nginx -s quit; sleep 10"], 15.0),
        (["/bin/bash", "-ec", "echo bye && sleep 20"], 20.0),
        (["sh", "-c", "while kill -0 1; do sleep 1; done"], None),
        (["sh", "-c", "test -f /x || sleep 30"], None),
        (["sh", "-c", "sleep 30 &"], None),
        (["sh", "-c", "echo 'sleep 30'"], None),
        (["sh", "-c", "sleep $SECONDS"], None),
        (["/wait-shutdown"], None),
        (["sh"], None),
        ([], None),
        (["sh", "-c", "echo 'unclosed"], None),
    ],
)
def test_how_long_a_command_sleeps(argv, seconds):
    assert commands.sleeps_for(argv) == seconds


@pytest.mark.parametrize(
    ("argv", "busybox", "child"),
    [
        (["sh", "-c", "server"], False, "server"),
        (["sh", "-c", "server"], True, None),
        (["sh", "-c", "migrate; server"], True, None),
        (["sh", "-c", "server | tee /log"], True, "the commands of its pipeline"),
        (["bash", "-c", "a && b"], False, None),
        (["bash", "-c", "b > /log"], False, "b"),
        (["dash", "-c", "A=1 b"], False, "b"),
        (["sh", "-c", "exec b"], False, None),
        (["sh", "-c", 'a; exec b "$@"'], False, None),
        (["sh", "-c", "trap : TERM; b & wait"], False, None),
        (["sh", "-c", "b & wait"], False, "its children"),
        (["bash", "-c", "while true; do b; sleep 1; done"], False, "what its loop runs"),
        (["server", "-c", "x; y"], False, None),
        (["sh", "/entrypoint.sh"], False, None),
    ],
)
def test_what_a_shell_starts_as_a_child(argv, busybox, child):
    found = commands.child_of_shell(argv, busybox=busybox)
    assert (found.name if found else None) == child


@pytest.mark.parametrize(
    ("argv", "endless"),
    [
        (["sleep", "infinity"], True),
        (["tail", "-f", "/dev/null"], True),
        (["sh", "-c", "while true; do sync; sleep 5; done"], True),
        (["sh", "-c", "while true; do work && break; done"], False),
        (["sh", "-c", "while read line; do work; done"], False),
        (["sh", "-c", "tail -f /log &\nuntil [ -f /done ]; do sleep 1; done"], False),
        (["sh", "-c", "touch /log; tail -F /log & work"], False),
        (["sh", "-c", "sleep infinity & work; wait"], True),
        (["sh", "-c", "work && tail -f /log"], True),
        (["sh", "-c", "tail -f /log 2>&1"], True),
        (["sh", "-c", "tail -f /log & pid=$!; work; kill $pid; wait"], False),
        (["work"], False),
    ],
)
def test_what_never_ends(argv, endless):
    assert commands.never_ends(argv) is endless


@pytest.mark.parametrize(
    ("argv", "stops"),
    [
        (["nginx", "-s", "quit"], True),
        (["/usr/sbin/nginx", "-s", "stop"], True),
        (["sh", "-c", "kill -QUIT 1"], True),
        (["sh", "-c", "sleep 5 && nginx -s quit"], False),
        (["sh", "-c", "while kill -0 1; do sleep 1; done"], False),
        (["nginx", "-s", "reload"], False),
        (["sleep", "5"], False),
        ([], False),
    ],
)
def test_what_stops_a_server_at_once(argv, stops):
    assert commands.stops_a_server(argv) is stops


@pytest.mark.parametrize(
    ("image", "no_shell", "root"),
    [
        ("gcr.io/distroless/static-debian12:nonroot", True, False),
        ("gcr.io/distroless/base:debug", False, False),
        ("gcr.io/distroless/java21@sha256:aa", True, False),
        ("nginx", False, True),
        ("docker.io/library/nginx:1.29-alpine", False, True),
        ("localhost:5000/nginx:1", False, False),
        ("nginxinc/nginx-unprivileged", False, False),
        ("registry.example/distroless/api:1", False, False),
        ("", False, False),
    ],
)
def test_what_is_known_of_an_image_by_its_name(image, no_shell, root):
    assert images.has_no_shell(image) is no_shell
    assert images.runs_as_root(image) is root


@pytest.mark.parametrize(
    ("script", "lost"),
    [
        ("exec app; cleanup", "cleanup"),
        ("set -e\nexec app --flag \\\n --other >/log 2>&1\ntouch /done", "touch"),
        ("trap 'touch /done' EXIT\nexec python3 -c 'import x\nfor i in y: pass'\ntouch /done", "touch"),
        ("if a; then b; fi\nexec app\nc", "c"),
        ("exec app; echo 'no app' >&2; exit 127", ""),
        ("exec 3< file; app", ""),
        ("exec >>/log 2>&1\napp", ""),
        ("[ -x a ] && exec a\nexec b", ""),
        ("exec a || b", ""),
        ("exec a | tee log\nb", ""),
        ("exec a & b; wait", ""),
        ("(exec a); b", ""),
        ("{ exec a; }; b", ""),
        ("f() {\n exec a\n}\nf\nb", ""),
        ("while :; do\n exec a\ndone\nb", ""),
        ("case $1 in\n a)\n exec a\n ;;\n *)\n exec b\n ;;\nesac", ""),
        ("exec find / -exec rm {} \\; -print", ""),
        ("exec a # and then; b\n", ""),
        ("exec a\n# don't come here\n", ""),
        ("exec cat <<EOF\nb\nEOF\n", ""),
        ("exec 'a", ""),
        ("[ -x a ] &&\n exec a\nexec b", ""),
        ("[ -x a ] || # or else\n\n exec a\nb", ""),
        ("a |\n exec b\nc", ""),
        ("a |&\n exec b\nc", ""),
        ('a || # the "other"\nexec b\nc', ""),
        ("a &&\n b\nexec c\nd", "d"),
        ("exec {lock}>/var/lock/a; flock $lock; app", ""),
        ("exec {lock}> /var/lock/a 3>&-; app", ""),
        ("exec {copy}>&1; app", ""),
        ("exec >& log; app", ""),
        ("exec >&log; app", ""),
        ('exec >&"$log" 2>&1; app', ""),
        ("exec >| log; app", ""),
        ("exec &> log; app", ""),
        ("exec a &> log; app", ""),
        ("a >& log\nexec b >&2 2>&-\nc", "c"),
    ],
)
def test_what_comes_after_exec_is_never_run(script, lost):
    never = commands.never_run(script)
    assert (never[1][0] if never else "") == lost
