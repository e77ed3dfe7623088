"""Every end of a container is told: crashes and restarts by probes, of Pods that live on or were deleted later."""

from typing import Any

import pytest
from ending_stories import (
    LATE,
    REFUSED,
    deleted,
    hook_failed,
    probe_failed,
    probed,
    rule_restarts,
    run,
)

from lastcall.cli.exit_status import exit_status
from lastcall.endings.ending import build_endings
from lastcall.endings.facts.pod import facts_from_records, pod_facts
from lastcall.endings.render.chrome_trace import trace_document
from lastcall.endings.render.json_v1 import LAYOUT
from lastcall.endings.render.plain import plain_text
from lastcall.endings.search import find_ending
from lastcall.endings.story import ContainerFacts, Ending, MountedFiles, PodFacts
from lastcall.endings.verdict import is_ongoing, outcome_words
from lastcall.kube.api.pods.recorded import container_facts
from lastcall.records import kinds as k
from lastcall.records.record import Record
from lastcall.ui.saved_stories import html_page


def finding(ending: Ending, id_: str) -> Any:
    (found,) = [each for each in ending.findings if each.id == id_]
    return found


def test_a_container_that_crashed_and_was_started_again_is_a_crash_with_its_last_words(new_tape: Any) -> None:
    tape = new_tape()
    run(tape, -10, -9.9, lines=("connecting", "FATAL no DB_URL"))
    run(tape, -9, -8.5, lines=("connecting", "FATAL no DB_URL"))
    tape.started(at=-5)
    deleted(tape)
    ending = tape.ending()
    assert (ending.outcome, exit_status([ending])) == ("crashed", 3)
    found = finding(ending, "crashed")
    assert found.severity == "problem"
    assert "app crashed 2 times, the last one 500 ms after its start (exit code 3)" in found.text
    assert found.text.endswith("FATAL no DB_URL")
    assert [(c.exit.code, c.exit.ended_by, c.run_seconds) for c in ending.earlier] == [
        (3, "itself", pytest.approx(0.1)), (3, "itself", pytest.approx(0.5))]  # fmt: skip
    assert ending.containers[0].restarts == 2
    text = plain_text([ending], 100)
    assert "what app printed last (exit code 3):" in text and "\n  FATAL no DB_URL" in text


def test_last_words_that_repeat_are_given_once_with_their_number(new_tape: Any) -> None:
    tape = new_tape()
    run(tape, -10, -9, lines=("connecting", *["no leader: 1/3", "retry"] * 3, "giving up"))
    tape.started(at=-5)
    deleted(tape)
    lines = plain_text([tape.ending()], 100).partition("printed last")[2].splitlines()[1:]
    shown = ["connecting", "no leader: 1/3 (3 times)", "retry (3 times)", "giving up"]
    assert [line.strip() for line in lines if line.strip()] == shown


def test_a_container_that_crashed_and_was_not_started_again_is_a_crash_too(new_tape: Any) -> None:
    tape = new_tape()
    run(tape, -2, -1.9, code=127, lines=("sh: serve: not found",))
    tape.accepted(5)
    tape.over(0.2, endpoint=False)
    ending = tape.ending()
    assert (ending.outcome, exit_status([ending])) == ("crashed", 3)
    assert "serve is not in the image" in finding(ending, "commandNotStarted").advice
    assert not [each for each in ending.findings if each.id == "endedByItself"]


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("OSError: [Errno 30] Read-only file system: '/var/cache/app'", "Mount a volume that can be written"),
        ("open /etc/tls/key.pem: permission denied", "fsGroup or defaultMode"),
        ("bind: Address already in use", "has that port"),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "NAME.NAMESPACE"),
        ("dial tcp: lookup orders-db on 10.96.0.10:53: no such host", "NAME.NAMESPACE"),
        ("Error: getaddrinfo ENOTFOUND orders-db", "NAME.NAMESPACE"),
        ("ConnectionRefusedError: [Errno 111] Connection refused", "What it connects to refuses"),
        ("Error: connect ECONNREFUSED 10.96.0.7:5432", "What it connects to refuses"),
        ("invalid literal for int() with base 10: 'tcp://10.96.20.132:80'", "enableServiceLinks: false"),
        ("cannot reach tcp://10.96.20.132:80: timed out", "See what it printed"),
        ("KeyError: 'DB_URL'", "See what it printed"),
        ("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "--max-old-space-size"),
        ("5: v8::internal::V8::FatalProcessOutOfMemory(v8::internal::Isolate*, char const*)", "--max-old-space-size"),
        ('Exception in thread "main" java.lang.OutOfMemoryError: Java heap space', "a larger -Xmx"),
        ("A server is already running (pid: 1, file: /run/app/server.pid). Exiting", "If /run/app/server.pid is left"),
        ("broker: already running (pid 1), will not start", "If a PID or lock file is left"),
        ("lock file /data/.lock exists: is another process running?", "If /data/.lock is left"),
        ("PermissionError: [Errno 13] Permission denied: '/.cache'", "HOME"),
        ("mkdir /.npm: permission denied", "HOME"),
    ],
)
def test_what_the_kernel_refused_a_program_that_crashed_is_what_is_mended(new_tape: Any, line: str, fix: str) -> None:
    tape = new_tape()
    run(tape, -2, -1.9, code=1, lines=("starting", line))
    tape.accepted(5)
    tape.over(0.2, endpoint=False)
    assert fix in finding(tape.ending(), "crashed").advice


@pytest.mark.parametrize(
    ("line", "subdomain", "fix"),
    [
        ("cannot reach web-0.db-headless: Temporary failure in name resolution", "db", "Use web-0.db, with a headless"),
        (
            "dial tcp: lookup web-0.db-headless.default.svc on 10.96.0.10:53: no such host",
            "db",
            "serviceName: db-headless",
        ),
        ("cannot reach web-0.db: Temporary failure in name resolution", "db", "DNS does not resolve"),
        ("cannot reach cache-0.db-headless: Temporary failure in name resolution", "db", "DNS does not resolve"),
        ("cannot reach web-0.db-headless: Temporary failure in name resolution", "", "DNS does not resolve"),
    ],
)
def test_a_peer_that_is_looked_up_below_another_service_is_named(
    new_tape: Any, line: str, subdomain: str, fix: str
) -> None:
    tape = new_tape()
    tape.pod = PodFacts(tape.uid, "default", "web-1", containers=(ContainerFacts("app"),), subdomain=subdomain)
    run(tape, -2, -1.9, code=1, lines=(line,))
    tape.started(at=-1)
    deleted(tape)
    assert fix in finding(tape.ending(), "crashed").advice


def test_a_pod_that_lives_because_its_delete_is_refused_has_a_story(new_tape: Any) -> None:
    tape = new_tape()
    tape.started(at=-2)
    message = 'failed calling webhook "policy.example.com": service "policy" not found'
    for at in (-1.0, -0.5):
        tape.add(at, "apiserver", k.DELETE_REFUSED, user="gc", userAgent="kcm", message=message)
    ending = tape.ending()
    found = finding(ending, "deleteRefused")
    assert found.text == f"The API server refused the DELETE by gc: {message}"
    assert found.advice.startswith("The API server asks webhook policy.example.com before it deletes a Pod.")
    assert find_ending([ending], ending.pod.name, ending.pod.namespace, None, "c") is ending


def test_what_is_not_known_of_a_crash_is_not_called_a_configuration(new_tape: Any) -> None:
    tape = new_tape()
    run(tape, -2, -1.9, code=1, lines=("starting", "ValueError: invalid header value b'token\\n'"))
    tape.started(at=-1)
    deleted(tape)
    assert "configuration" not in finding(tape.ending(), "crashed").advice


def test_the_first_crash_is_quoted_if_the_later_ones_ended_with_another_line(new_tape: Any) -> None:
    tape = new_tape()
    run(tape, -10, -9.9, lines=("starting", "cache not reachable"))
    run(tape, -9, -8.9, lines=("already running (pid 1)",))
    run(tape, -8, -7.9, lines=("already running (pid 1)",))
    tape.started(at=-1)
    deleted(tape)
    text = finding(tape.ending(), "crashed").text
    assert text.endswith(
        "The last line that it printed: already running (pid 1). The first of them had ended with another line: cache "
        "not reachable"
    ), text


def test_a_subpath_that_names_no_file_of_its_volume_is_named(new_tape: Any) -> None:
    tape = new_tape()
    mount = MountedFiles("/etc/quotes/quotes.conf", "config", "ConfigMap", "quotes", sub_path="quotes.conf")
    tape.pod = PodFacts(tape.uid, "default", "web", containers=(ContainerFacts("app", files=(mount,)),))
    run(tape, -2, -1.9, code=1, lines=("IsADirectoryError: [Errno 21] Is a directory: '/etc/quotes/quotes.conf'",))
    tape.started(at=-1)
    deleted(tape)
    assert "subPath quotes.conf is no file of ConfigMap quotes" in finding(tape.ending(), "crashed").advice


def refused(error: str, **facts: Any) -> dict[str, Any]:
    """The facts of an exit after an execve that the kernel refused."""
    found = {"path": "/app/run", "error": error, "format": "script", "interpreter": "", "carriageReturn": False,
             "machine": "", **facts}  # fmt: skip
    return {"notExecuted": found}


NOT_THERE, NO_FORMAT = "no such file or directory", "exec format error"


@pytest.mark.parametrize(
    ("error", "facts", "fix"),
    [
        (NOT_THERE, refused(NOT_THERE, interpreter="/bin/sh", carriageReturn=True),
         "Save /app/run with LF line ends: its first line ends with a carriage return (CRLF), so the kernel looks for "
         "an interpreter called \"/bin/sh\\r\"."),
        (NOT_THERE, refused(NOT_THERE, interpreter="/bin/bash"),
         "Use an image that has /bin/bash, or change the first line of /app/run, which names it: the image has no such "
         "interpreter."),
        (NOT_THERE, refused(NOT_THERE, format="elf", interpreter="/lib/ld-musl-x86_64.so.1"),
         "Build /app/run for the C library of this image, or link it statically: its loader, /lib/ld-musl-x86_64.so.1, "
         "is not in the image."),
        (NOT_THERE, {}, "/app/run is there: what is missing is the interpreter that its first line names"),
        (NO_FORMAT, refused(NO_FORMAT, format="text"),
         "Begin /app/run with a line such as #!/bin/sh, or command: [sh, /app/run]"),
        (NO_FORMAT, refused(NO_FORMAT, format="elf", machine="arm64"),
         "Use an image for this node's architecture: /app/run is built for arm64."),
        (NO_FORMAT, {}, "The kernel does not know the format of /app/run"),
    ],
)  # fmt: skip
def test_what_the_kernel_does_not_execute_is_named_with_what_the_file_is(
    new_tape: Any, error: str, facts: dict[str, Any], fix: str
) -> None:
    tape = new_tape()
    run(tape, -2, -1.9, code=255, lines=(f"exec /app/run: {error}",), **facts)
    tape.accepted(5)
    tape.over(0.2, endpoint=False)
    found = finding(tape.ending(), "commandNotStarted")
    assert found.advice.startswith(fix), found.advice
    assert found.change.program == "fixCommand"
    assert not [each for each in tape.ending().findings if each.id == "crashed"]


@pytest.mark.parametrize(
    ("code", "line", "fix"),
    [
        (127, "/run.sh: line 4: serve\r: not found", "Save the script with LF line ends"),
        (127, "run.sh: line 4: $'serve\\r': command not found", "Save the script with LF line ends"),
        (2, "run.sh: 1: set: Illegal option -\r", "Save the script with LF line ends"),
        (127, "/usr/bin/env: \u2018bash\\r\u2019: No such file or directory", "Save the script with LF line ends"),
        (127, "sh: /scripts/run.sh: not found",
         "Either /scripts/run.sh does not exist, or the interpreter that its first line names"),
        (127, "bash: line 1: ./run.sh: cannot execute: required file not found",
         "./run.sh is there: what is missing is the interpreter that its first line names"),
        (127, "/usr/bin/env: \u2018node\u2019: No such file or directory", "node, which env is to start, is not"),
        (127, "env: can't execute 'node': No such file or directory", "node, which env is to start, is not in the"),
        (127, "/usr/bin/env: 'bash\\r': No such file or directory\n/usr/bin/env: use -[v]S to pass options in shebang "
         "lines", "Save the script with LF line ends"),
        (127, "sh: serve: not found", "serve is not in the image: correct the command that the shell runs"),
        (127, "/bin/sh: 1: serve: not found", "serve is not in the image"),
        (127, "bash: line 1: serve: command not found", "serve is not in the image"),
        (126, "sh: 1: ./serve: Permission denied", "Make ./serve executable"),
    ],
)  # fmt: skip
def test_a_script_with_carriage_returns_that_a_shell_runs_is_known_by_what_the_shell_prints(
    new_tape: Any, code: int, line: str, fix: str
) -> None:
    tape = new_tape()
    run(tape, -2, -1.9, code=code, lines=("starting", *line.split("\n")))
    tape.accepted(5)
    tape.over(0.2, endpoint=False)
    found = finding(tape.ending(), "commandNotStarted")
    assert found.advice.startswith(fix), found.advice
    assert found.change.program == "fixCommand"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (1, "progress 99 %\rprogress 100 %"),
        (1, "lookup: db: not found"),
        (127, "key user:7: not found in cache"),
        (126, "sh: 1: serve: not found"),
    ],
)
def test_a_program_that_says_not_found_itself_has_crashed(new_tape: Any, code: int, line: str) -> None:
    tape = new_tape()
    run(tape, -2, -1.9, code=code, lines=("starting", line))
    tape.accepted(5)
    tape.over(0.2, endpoint=False)
    assert finding(tape.ending(), "crashed")


@pytest.mark.parametrize(
    ("line", "executable"),
    [
        ("/run.sh: line 3: /usr/bin/app: Interrupted system call", False),
        ("/run.sh: fork: retry: Resource temporarily unavailable", False),
        ("sh: can't fork: Resource temporarily unavailable", False),
        ("sh: 1: /app: Text file busy", False),
        ("bash: line 1: /app: Argument list too long", False),
        ("bash: line 1: /app: cannot execute binary file: Exec format error", False),
        ("bash: line 1: /app: Is a directory", False),
        ("bash: line 1: /app: cannot execute", True),
        ("starting", True),
        ("", True),
    ],
)
def test_exit_code_126_is_about_a_file_that_is_not_executable_unless_the_last_line_names_another_error(
    new_tape: Any, line: str, executable: bool
) -> None:
    tape = new_tape()
    run(tape, -2, -1.9, code=126, lines=("starting", line))
    tape.accepted(5)
    tape.over(0.2, endpoint=False)
    found = finding(tape.ending(), "crashed")
    assert ("make the file executable" in found.advice) is executable, found.advice
    assert found.change.program == ("fixCommand" if executable else "fixCrash")


def test_a_sidecar_that_the_node_ended_with_its_pod_is_no_crash_and_did_not_end_by_itself(new_tape: Any) -> None:
    tape = new_tape()
    tape.pod = PodFacts(tape.uid, "default", "web",
                        containers=(ContainerFacts("proxy", "sidecar"), ContainerFacts("app")))  # fmt: skip
    run(tape, -10, -5, code=0)
    tape.started("proxy", at=-11)
    tape.add(-4.9, "kubelet", k.KILLING, "proxy", message="Stopping container proxy", gracePeriodSeconds=30)
    tape.add(-4.9, "runtime", k.STOP_REQUESTED, "proxy", timeoutSeconds=30)
    tape.add(-4.8, "runtime", k.PROCESS_EXITED, "proxy", pid=7, exitCode=143, signal="SIGTERM", oomKilled=False,
             oomKills=0, memoryLimit=None)  # fmt: skip
    tape.accepted(5)
    tape.over(0.2, endpoint=False)
    ending = tape.ending()
    assert ending.outcome == "graceful"
    assert [(each.id, each.container) for each in ending.findings if "ended by itself" in each.text] == [
        ("endedByItself", "app")
    ]


RULES = [("In", (42,)), ("NotIn", (0, 1))]


@pytest.mark.parametrize("rule", RULES)
def test_an_exit_for_which_a_rule_restarts_the_container_is_no_crash(new_tape: Any, rule: Any) -> None:
    tape = new_tape()
    tape.pod = PodFacts(tape.uid, "default", "web", containers=(ContainerFacts("app", restart_rules=(rule,)),))
    run(tape, -10, -9, code=42)
    run(tape, -8, -7, code=42)
    tape.started(at=-5)
    deleted(tape)
    ending = tape.ending()
    assert (ending.outcome, [each.exit.ended_by for each in ending.earlier]) == ("graceful", ["restartRule"] * 2)
    assert not [each for each in ending.findings if each.severity == "problem"]
    found = finding(ending, "restartedByRule")
    assert (
        "app was restarted by its restartPolicyRules 2 times, the last one 1.0 s after its start: exit code 42"
        in found.text
    )


def test_another_exit_than_those_of_its_rules_is_a_crash(new_tape: Any) -> None:
    tape = new_tape()
    tape.pod = PodFacts(tape.uid, "default", "web", containers=(ContainerFacts("app", restart_rules=RULES[:1]),))
    run(tape, -10, -9, code=3)
    tape.started(at=-5)
    deleted(tape)
    assert tape.ending().outcome == "crashed"


def test_rules_of_an_object_and_of_a_record_are_the_same() -> None:
    rules = [
        {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}},
        {"action": "Terminate", "exitCodes": {"operator": "In", "values": [1]}},
    ]
    containers = [{"name": "app", "restartPolicy": "Never", "restartPolicyRules": rules},
                  {"name": "web", "restartPolicyRules": rules}]  # fmt: skip
    pod = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": {"containers": containers}}
    created = Record("1", 0, 0, "apiserver", k.POD_CREATED, "u", facts={"containers": container_facts(pod)})
    for facts in (pod_facts(pod), facts_from_records("u", [created])):
        assert [each.restart_rules for each in facts.containers] == [(("In", (42,)),), ()]


def test_a_signal_of_its_own_is_a_crash(new_tape: Any) -> None:
    tape = new_tape()
    run(tape, -2, -1.9, code=139, signal=11)
    tape.accepted(5)
    tape.over(0.2, endpoint=False)
    found = finding(tape.ending(), "crashed")
    assert "(exit code 139: SIGSEGV)" in found.text and "It printed nothing" in found.text


def test_success_is_no_crash(new_tape: Any) -> None:
    tape = new_tape()
    run(tape, -10, -9.9, code=0)
    run(tape, -9, -8, code=0)
    deleted_ending = tape
    deleted_ending.accepted(5)
    deleted_ending.over(0.2, endpoint=False)
    ending = tape.ending()
    assert (ending.outcome, exit_status([ending])) == ("graceful", 0)
    assert "restartPolicy Always" in finding(ending, "endsAndIsRestarted").text
    assert outcome_words(ending) == "had already ended"


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("received SIGINT, stopping", "Find what sends it"),
        ("Caught a signal", "Find what sends it"),
        ("done: 3 design rows", "A Job"),
        ("", "A Job"),
    ],
)
def test_a_program_that_says_a_signal_ended_it_is_no_job(new_tape: Any, line: str, advice: str) -> None:
    tape = new_tape()
    run(tape, -10, -9.9, code=0)
    tape.output(-9.95, line)
    run(tape, -9, -8, code=0)
    found = finding(tape.ending(), "endsAndIsRestarted")
    assert advice in found.advice
    assert (line in found.text) == (advice == "Find what sends it" or not line)


def test_what_a_container_exits_with_on_its_stop_signal_is_no_crash(new_tape: Any) -> None:
    tape = new_tape()
    tape.started()
    tape.accepted(5)
    tape.observed(5)
    tape.killing(5)
    tape.stop(0.01, 5, disposition="handled")
    tape.exit(0.1, 3)
    tape.over(0.2, endpoint=False)
    assert tape.ending().outcome == "graceful"


COMMAND_LATE = 'command timed out: "python3 /app/ping.py" timed out after 1s'
PROBES: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("slow start", {"probe": "liveness", "output": REFUSED, "before": False}, "livenessProbeKilled",
     "because its livenessProbe failed (dial tcp 10.244.0.2:8080: connect: connection refused): it did not listen yet "
     "(exit code 137: SIGKILL, 2.0 s after SIGTERM)",
     "A startupProbe with the same check, failureThreshold * periodSeconds at least 38 s (19.0 s were not enough"),
    ("hung", {"probe": "liveness", "output": LATE, "before": True}, "livenessProbeKilled",
     ": it did not answer in time", "A longer livenessProbe.timeoutSeconds"),
    ("slow from the start", {"probe": "liveness", "output": LATE, "before": False}, "livenessProbeKilled",
     ": it did not answer in time", "If it starts slowly, a startupProbe"),
    ("slow each time", {"probe": "liveness", "output": LATE, "before": False, "ready": True}, "livenessProbeKilled",
     ": it did not answer in time", "A longer livenessProbe.timeoutSeconds"),
    ("a slow command", {"probe": "liveness", "output": COMMAND_LATE, "before": False}, "livenessProbeKilled",
     ": it did not answer in time", "its command took longer each time"),
    ("stopped listening", {"probe": "liveness", "output": REFUSED, "before": True, "code": 0}, "livenessProbeKilled",
     ": it no longer listened (exit code 0)", "It had answered before"),
    ("another port", {"probe": "liveness", "output": REFUSED, "before": False, "listeners": (9090,)},
     "livenessProbeKilled", ": it listened on port 9090", "livenessProbe port: 9090, because nothing listens on 8080"),
    ("an error", {"probe": "liveness", "output": "HTTP probe failed with statuscode: 404", "before": False},
     "livenessProbeKilled", ": it listened, and answered with an error", "Correct the probe's path"),
    ("its own fault, or another's", {"probe": "liveness", "output": "HTTP probe failed with statuscode: 500",
     "before": True}, "livenessProbeKilled", "answered with an error", "faults restart this container"),
    ("a command", {"probe": "liveness", "output": "", "before": True}, "livenessProbeKilled",
     "because its livenessProbe failed (exit code 137", "Correct the livenessProbe"),
    ("startup too short", {"probe": "startup", "output": REFUSED, "before": False}, "startupProbeKilled",
     "had not succeeded in time (dial tcp", "startupProbe: failureThreshold * periodSeconds at least 38 s"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "id_", "text", "advice"), [row[1:] for row in PROBES], ids=[r[0] for r in PROBES])
def test_a_restart_by_a_probe_says_how_the_program_looked_and_what_helps(
    new_tape: Any, facts: dict[str, Any], id_: str, text: str, advice: str
) -> None:
    tape = new_tape()
    probed(tape, -30, -9, **facts)
    tape.started(at=-8)
    deleted(tape)
    ending = tape.ending()
    assert (ending.outcome, exit_status([ending])) == ("restarted", 3)
    found = finding(ending, id_)
    assert f"The kubelet restarted app 19.0 s after its start, {text.removeprefix(', ')}"[:30] in found.text
    assert text in found.text and advice in found.advice, found
    assert not [each for each in ending.findings if each.id in ("killed", "crashed", "endedByItself")]


@pytest.mark.parametrize(
    ("status", "line", "advice"),
    [
        (400, "ERROR django.security.DisallowedHost: Invalid HTTP_HOST header: '10.244.0.2:8000'.", "httpHeaders: "),
        (403, "Invalid host header", "httpHeaders: "),
        (404, "Invalid host header", "Correct the probe's path"),
        (400, "the host is up", "Correct the probe's path"),
    ],
)
@pytest.mark.parametrize("probe", ["liveness", "startup"])
def test_a_probe_whose_host_header_is_refused_is_not_told_to_ask_another_path_after_a_restart(
    new_tape: Any, probe: str, status: int, line: str, advice: str
) -> None:
    tape = new_tape()
    probed(tape, -30, -9, probe, f"HTTP probe failed with statuscode: {status}", False)
    tape.output(-15, line)
    tape.output(-14, "Bad Request: /healthz")
    tape.started(at=-8)
    deleted(tape)
    found = finding(tape.ending(), f"{probe}ProbeKilled")
    assert advice in found.advice and str(status) in found.advice
    assert "it listened, and answered with an error" in found.text


@pytest.mark.parametrize(
    ("before", "said"), [(False, "Leave host out"), (None, "startupProbe"), (True, "It had answered")]
)
def test_a_probe_that_asks_the_node_is_told_so_unless_it_had_been_answered(
    new_tape: Any, before: Any, said: str
) -> None:
    tape = new_tape()
    asks = (("livenessProbe", "httpGet", "localhost"),)
    tape.pod = PodFacts(tape.uid, "default", "web", containers=(ContainerFacts("app", asks_node=asks),))
    output = 'Get "http://localhost:8080/": dial tcp 127.0.0.1:8080: connect: connection refused'
    probed(tape, -30, -9, "liveness", output, before if before is not None else False)
    if before is None:
        tape.pod = PodFacts(tape.uid, "default", "web", containers=(ContainerFacts("app"),))
    tape.started(at=-8)
    deleted(tape)
    found = finding(tape.ending(), "livenessProbeKilled")
    assert said in found.advice
    if said == "Leave host out":
        assert "it asks localhost, which is the node" in found.text
        assert found.change.patch == {"containers": [{"name": "app", "livenessProbe": {"httpGet": {"host": None}}}]}


def test_a_run_that_ran_out_of_memory_before_is_told(new_tape: Any) -> None:
    tape = new_tape()
    run(tape, -10, -9, code=137, signal=9, oomKilled=True, oomKills=1, memoryLimit=64 << 20, limitReached=True)
    tape.started(at=-5)
    deleted(tape)
    ending = tape.ending()
    assert ending.outcome == "crashed"
    found = finding(ending, "outOfMemory")
    assert "app was killed 1.0 s after its start because it ran out of memory" in found.text
    assert "more than 64Mi" in found.advice


def test_runs_that_ran_out_of_memory_are_told_once_with_their_number(new_tape: Any) -> None:
    tape = new_tape()
    memory = {"oomKilled": True, "oomKills": 1, "memoryLimit": 64 << 20, "limitReached": True}
    run(tape, -20, -19, code=137, signal=9, **memory)
    run(tape, -10, -9.5, code=137, signal=9, **memory)
    tape.accepted(5)
    tape.observed(5)
    tape.over(0.1, endpoint=False)
    text = finding(tape.ending(), "outOfMemory").text
    assert text.startswith("app was killed 2 times, the last one 500 ms after its start, because it ran out of memory")


def test_a_run_that_somebody_killed_before_is_told_once(new_tape: Any) -> None:
    tape = new_tape()
    run(tape, -20, -19, code=137, signal=9)
    run(tape, -10, -9, code=137, signal=9)
    tape.started(at=-5)
    deleted(tape)
    assert "lastcall did not send it" in finding(tape.ending(), "killedByOther").text


def test_an_init_container_that_is_tried_again_until_it_succeeds_is_no_crash(new_tape: Any) -> None:
    tape = new_tape()
    tape.pod = PodFacts(tape.uid, "default", "web", containers=(ContainerFacts("wait", "init"), ContainerFacts("app")))
    run(tape, -10, -9.9, code=1, container="wait", lines=("no db yet",))
    run(tape, -8, -7.9, code=0, container="wait")
    tape.started(at=-5)
    deleted(tape)
    ending = tape.ending()
    assert ending.outcome == "graceful"
    found = finding(ending, "initContainerFailed")
    assert found.severity == "info" and "succeeded when it was tried again" in found.text
    assert [c.name for c in ending.containers] == ["app"]


def test_an_init_container_that_keeps_failing_is_the_crash_of_its_pod(new_tape: Any) -> None:
    tape = new_tape()
    tape.pod = PodFacts(tape.uid, "default", "web", containers=(ContainerFacts("wait", "init"), ContainerFacts("app")))
    run(tape, -10, -9.9, code=1, container="wait", lines=("no db",))
    tape.accepted(5)
    tape.over(0.2, endpoint=False)
    ending = tape.ending()
    assert ending.outcome == "crashed" and "no container is started" in finding(ending, "initContainerFailed").text


def test_an_init_container_that_is_being_tried_again_has_not_succeeded(new_tape: Any) -> None:
    tape = new_tape()
    tape.pod = PodFacts(tape.uid, "default", "web", containers=(ContainerFacts("wait", "init"), ContainerFacts("app")))
    run(tape, -10, -9.9, code=1, container="wait", lines=("no db",))
    tape.started(at=-0.5, container="wait")
    tape.accepted(5)
    tape.over(0.2, endpoint=False)
    found = finding(tape.ending(), "initContainerFailed")
    assert found.severity == "problem" and "no container is started before it succeeds" in found.text


def living(*tapes: Any) -> list[Ending]:
    records = [record for tape in tapes for record in tape.records]
    return build_endings(records, [PodFacts(tapes[0].uid, "default", "web")], kubernetes_version="1.36")


def test_a_pod_that_lives_on_has_a_story_of_its_containers_ends(new_tape: Any) -> None:
    tape = new_tape()
    probed(tape, 1, 22, "liveness", REFUSED, False)
    tape.started(at=23)
    (ending,) = living(tape)
    assert is_ongoing(ending) and outcome_words(ending) == "is running, after 1 restart"
    assert "it did not listen yet" in finding(ending, "livenessProbeKilled").text
    assert ending.not_known == ("It has not been deleted: times count from its first record.",)
    made = LAYOUT.to_json(ending)
    assert made["ongoing"] and made["earlierEnds"][0]["endedBy"] == "livenessProbe"
    assert made["earlierEnds"][0]["failedProbe"] == {"output": REFUSED, "succeededBefore": False}
    assert "before the DELETE" not in plain_text([ending], 100)


def test_pages_and_traces_of_a_pod_that_lives_have_its_last_words(new_tape: Any) -> None:
    tape = new_tape()
    run(tape, 1, 1.1, lines=("FATAL <no> DB_URL",))
    run(tape, 3, 3.1, lines=("FATAL <no> DB_URL",))
    tape.started(at=20)
    endings = living(tape)
    page = html_page(endings, kubernetes_version="1.36", lastcall_version="0")
    assert '{"title":"what app printed last (exit code 3)","lines":["FATAL \\u003cno> DB_URL"]}' in page
    assert "is running, after 2 restarts" in page
    assert "is running" in str(trace_document(endings, kubernetes_version="1.36", lastcall_version="0"))


def test_a_pod_that_waits_after_its_probe_killed_it_was_restarted_and_not_killed(new_tape: Any) -> None:
    tape = new_tape()
    probed(tape, 1, 22, "liveness", REFUSED, False)
    (ending,) = living(tape)
    assert ending.outcome == "restarted" and outcome_words(ending) == "is not running"
    assert [each.id for each in ending.findings if each.severity == "problem"] == ["livenessProbeKilled"]


@pytest.mark.parametrize(
    ("end", "id_", "waits", "runs"),
    [
        (
            probe_failed,
            "livenessProbeKilled",
            "The kubelet ended app 2 times, the last one 18.0 s after its start because",
            "The kubelet restarted app 2 times, the last one 18.0 s after its start because",
        ),
        (
            hook_failed,
            "restartedPostStart",
            "The kubelet ended app 2 times, the last one 20.0 s after its start because",
            "The kubelet restarted app 2 times, the last one 20.0 s after its start because",
        ),
        (
            rule_restarts,
            "restartedByRule",
            "app ended 2 times, the last one 20.0 s after its start, with exit code 42, for which its "
            "restartPolicyRules restart it.",
            "app was restarted by its restartPolicyRules 2 times",
        ),
    ],
)
def test_what_waits_for_its_next_start_has_ended_once_more_than_it_was_restarted(
    new_tape: Any, end: Any, id_: str, waits: str, runs: str
) -> None:
    """In back-off kubectl's RESTARTS says one less: the sentence counts ends, until the container is started again."""
    tape = new_tape()
    end(tape, 1, 21)
    end(tape, 31, 51)
    (ending,) = living(tape)
    assert finding(ending, id_).text.startswith(waits)
    tape.started(at=71)
    (ending,) = living(tape)
    assert finding(ending, id_).text.startswith(runs)


@pytest.mark.parametrize(
    ("deleted_first", "result", "outcome", "why"),
    [
        (False, "failure", "restarted", "the kubelet had ended app, whose livenessProbe failed"),
        (False, "success", "graceful", "its containers had ended by themselves"),
        (True, "failure", "graceful", "it was deleted by"),
    ],
)
def test_a_pod_that_starts_nothing_again_is_ended_by_its_probe_and_not_by_itself(
    new_tape: Any, deleted_first: bool, result: str, outcome: str, why: str
) -> None:
    """The kubelet ends the Pod as a whole then: its Killing gives no reason."""
    tape = new_tape()
    tape.started(at=-30)
    for answer in ("failure", result):
        tape.add(-9, "kubelet", k.PROBE_CHANGED, "app", probe="liveness", result=answer, output=LATE,
                 succeededBefore=True)  # fmt: skip
    if deleted_first:
        tape.accepted(5)
        tape.observed(5)
    at = 0.01 if deleted_first else -8.8
    tape.killing(5, at=at)
    tape.stop(at + 0.01, 5, disposition="handled")
    tape.exit(at + 0.1, 0)
    if not deleted_first:
        tape.add(-7, "kubelet", k.TERMINATION_OBSERVED, cause="completed", gracePeriodSeconds=5)
        tape.accepted(0)
    tape.over(0.2, endpoint=False)
    ending = tape.ending()
    assert ending.outcome == outcome and ending.decided_by.why.startswith(why), ending.decided_by
    if outcome == "restarted":
        assert outcome_words(ending) == "had been ended by a probe before its end began"
        assert finding(ending, "livenessProbeKilled").text.startswith("The kubelet ended app")


def test_a_pod_between_two_runs_is_not_running_and_tells_of_its_crash(new_tape: Any) -> None:
    tape = new_tape()
    run(tape, 1, 1.1, lines=("FATAL",))
    (ending,) = living(tape)
    assert is_ongoing(ending) and outcome_words(ending) == "is not running"
    assert "app crashed 100 ms after its start" in finding(ending, "crashed").text
    assert "before the DELETE" not in plain_text([ending], 100)
