"""`lastcall story POD --follow` on the kernel: steps come before the Pod is gone; Ctrl-C and `down` in the middle."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kubectls import needs_kubectl
from pods import container, pod
from staying import Place
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]

# Ready only when the trap is set; and it ends when it is told to by a file, not after a time.
WAITS = (
    "trap 'while [ ! -e /tmp/go ]; do sleep 0.1; done; exit 0' TERM; touch /tmp/ready; while true; do sleep 0.1; done"
)


@contextmanager
def followed(place: Place, *words: str) -> Iterator["subprocess.Popen[str]"]:
    process = place.start("story", "waits", "--follow", *words)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def create(place: Place) -> str:
    kubeconfig = place.ok("kubeconfig").strip()
    ready = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1}
    made = pod("waits", container("app", WAITS, readinessProbe=ready), terminationGracePeriodSeconds=600)
    place.kubectl(kubeconfig, "create", "-f", "-", stdin=json.dumps(made))
    place.kubectl(kubeconfig, "wait", "--for=condition=Ready", "--timeout=120s", "pod/waits")
    return kubeconfig


def read_until(process: "subprocess.Popen[str]", text: str) -> str:
    """What stdout has up to the line with `text`. pytest's own time limit ends it."""
    assert process.stdout is not None
    said = ""
    while text not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    return said


def test_steps_come_while_they_happen_and_the_report_when_all_is_over() -> None:
    with Place() as place:
        place.up()
        kubeconfig = create(place)
        with followed(place) as text, followed(place, "-o", "json-line") as lines:
            assert text.stderr is not None
            assert "waiting for the end of Pod default/waits" in text.stderr.readline()
            place.kubectl(kubeconfig, "delete", "pod", "waits", "--wait=false")
            assert "SIGTERM" in read_until(text, "SIGTERM")
            read_until(lines, "SIGTERM")
            assert "waits" in place.kubectl(kubeconfig, "get", "pod", "waits", "-o", "name"), "it is still ending"
            place.kubectl(kubeconfig, "exec", "waits", "--", "touch", "/tmp/go")
            out, _ = text.communicate(timeout=120)
            assert text.returncode == 0 and "default/waits ended gracefully" in out
            rest, _ = lines.communicate(timeout=120)
            assert lines.returncode == 0 and all(json.loads(line)["podUid"] for line in rest.splitlines())
        again = place.run("story", "waits", "--follow")
        assert again.status == 0 and "SIGTERM" in again.out and "ended gracefully" in again.out


def test_ctrl_c_and_a_cluster_that_ends_leave_the_follower_with_words() -> None:
    with Place() as place:
        place.up()
        kubeconfig = create(place)
        with followed(place) as first, followed(place) as second:
            for each in (first, second):
                assert each.stderr is not None and "waiting for the end" in each.stderr.readline()
            place.kubectl(kubeconfig, "delete", "pod", "waits", "--wait=false")
            for each in (first, second):
                read_until(each, "SIGTERM")
            os.kill(first.pid, signal.SIGINT)
            _, err = first.communicate(timeout=120)
            assert first.returncode == 130 and "Traceback" not in err, err
            assert place.status()["phase"] == "running"
            place.ok("down")
            _, err = second.communicate(timeout=120)
            assert second.returncode == 1 and "the cluster ended before Pod default/waits did" in err, err
        eventually(lambda: "no cluster is running" in place.ok("status"), "it is down")
