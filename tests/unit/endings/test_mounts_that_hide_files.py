"""A crash on a directory where a file should be is named with the mount that hides the file, and its subPath."""

from typing import Any

import pytest
from cause_examples import run

from lastcall.endings import Finding, pod_facts
from lastcall.kube.api.patch.apply import strategic_merge_patch
from lastcall.kube.api.resources import PODS

PATH = "/etc/app/settings.ini"


def pod(volume: dict[str, Any], **mount: Any) -> dict[str, Any]:
    mounts = [{"name": "conf", "mountPath": PATH, **mount}]
    spec = {"containers": [{"name": "app", "volumeMounts": mounts}], "volumes": [{"name": "conf", **volume}]}
    return {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": spec}


def crash_of(new_tape: Any, given: dict[str, Any], line: str, **facts: Any) -> Finding:
    tape = new_tape()
    tape.pod = type(tape.pod)(tape.pod.uid, "d", "p", containers=pod_facts(given).containers)
    run(tape, -2, -1.9, code=1, lines=("starting", line), **facts)
    tape.accepted(5)
    tape.over(0.2, endpoint=False)
    ids = ("mountHidesFile", "commandNotStarted", "crashed")
    (finding,) = [each for each in tape.ending().findings if each.id in ids]
    return finding


LINES = [
    f"IsADirectoryError: [Errno 21] Is a directory: '{PATH}'",
    f"read {PATH}: is a directory",
    f"Error: EISDIR: illegal operation on a directory, open '{PATH}'",
    f"cat: {PATH}: Is a directory",
]


@pytest.mark.parametrize("line", LINES)
def test_a_whole_volume_at_the_path_of_a_file_wants_a_sub_path(new_tape: Any, line: str) -> None:
    given = pod({"configMap": {"name": "settings"}})
    found = crash_of(new_tape, given, line)
    assert found.id == "mountHidesFile"
    assert f"it reads {PATH} as a file, and volume conf (ConfigMap settings) is mounted there" in found.text
    (container,) = strategic_merge_patch(PODS, given, {"spec": found.change.patch})["spec"]["containers"]
    assert container["volumeMounts"] == [{"name": "conf", "mountPath": PATH, "subPath": "settings.ini"}]


def test_the_only_file_that_the_volume_picks_is_the_one_that_is_meant(new_tape: Any) -> None:
    secret = {"secret": {"secretName": "s", "items": [{"key": "ini", "path": "app.ini"}]}}
    found = crash_of(new_tape, pod(secret), LINES[0])
    assert "subPath: app.ini" in found.advice
    assert "(Secret s)" in found.text


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (pod({"configMap": {"name": "settings"}}, subPath="settings.ini"), LINES[0]),
        (pod({"emptyDir": {}}), LINES[0]),
        (pod({"configMap": {"name": "settings"}}), "Is a directory: '/etc/app'"),
        (pod({"configMap": {"name": "settings"}}), f"{PATH}.d: Is a directory"),
        (pod({"configMap": {"name": "settings"}}), f"{PATH}: permission denied"),
    ],
)
def test_another_path_or_another_error_is_a_crash(new_tape: Any, given: dict[str, Any], line: str) -> None:
    assert crash_of(new_tape, given, line).id == "crashed"


def test_a_script_that_is_not_executed_is_named_with_the_key_that_it_comes_from(new_tape: Any) -> None:
    given = pod({"configMap": {"name": "scripts", "items": [{"key": "start", "path": "run.sh"}]}}, mountPath="/app")
    found = crash_of(new_tape, given, "exec /app/run.sh: no such file or directory")
    assert found.id == "commandNotStarted"
    assert found.text.endswith(
        "no such file or directory. /app/run.sh is key start of ConfigMap scripts (volume conf)."
    )
