"""The pytest plugin in a pytest of its own: fixtures, reports of failed tests, workers of pytest-xdist, SIGKILL."""

import os
import signal

import ordinary_user
import pytest
from plugin_pytest import pytest_of
from waiting import eventually

pytestmark = pytest.mark.real_kernel

TESTS = """
import os, time
import pytest

def pod(script, **spec):
    # Without a probe a container is Ready as soon as it runs, before its shell has set the trap, or failed.
    probe = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1}
    container = {"name": "app", "image": "busybox", "command": ["sh", "-c", script], "readinessProbe": probe}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **spec}}

POLITE = "trap 'exit 0' TERM; touch /tmp/ready; sleep 600 & wait"
STUBBORN = "trap '' TERM; echo still here; touch /tmp/ready; sleep 600 & wait; wait"

@pytest.mark.parametrize("number", range(4))
def test_polite(lastcall_namespace, number):
    lastcall_namespace.apply(pod(POLITE), wait=True)
    assert len(lastcall_namespace.list("pods")) == 1
    assert lastcall_namespace.delete("web").graceful

def test_kubeconfig(lastcall_cluster, kubeconfig):
    assert os.stat(kubeconfig).st_mode & 0o777 == 0o600
    assert lastcall_cluster.server in open(kubeconfig).read()
"""

FAILS = (
    TESTS
    + """
def test_killed(lastcall_namespace):
    lastcall_namespace.apply(pod(STUBBORN), wait=True)
    assert lastcall_namespace.delete("web", grace=1).graceful

def test_never_ready(lastcall_namespace):
    lastcall_namespace.apply(pod("echo no database; exit 3", restartPolicy="Never"), wait=True)

def test_something_else(lastcall_namespace):
    lastcall_namespace.apply(pod("echo a last line; sleep 2; touch /tmp/ready; sleep 600"), wait=True)
    assert 1 == 2

def test_without_a_cluster():
    assert 1 == 2
"""
)

WAITS = """
def test_waits(lastcall_namespace):
    print("waiting", flush=True)
    time.sleep(600)
"""


@pytest.mark.core
@pytest.mark.parametrize("user", ordinary_user.USERS)
@pytest.mark.parametrize("more", [(), ("-n", "2"), ("-n", "2", "--lastcall-cluster", "shared")], ids=" ".join)
def test_tests_with_a_namespace_each_pass_and_leave_nothing(more: tuple[str, ...], user: str) -> None:
    with pytest_of(TESTS, *more, user=user) as command:
        result = command.finish(240)
    assert result.status == 0 and "5 passed" in result.out, result.out + result.err


def test_a_failed_test_tells_how_its_pods_ended_and_what_they_printed() -> None:
    """Its Pod is ready late, so that the Event of its start is written by then."""
    with pytest_of(FAILS) as command:
        result = command.finish(240)
    assert result.status == 1 and "4 failed, 5 passed" in result.out, result.out
    report = result.out.partition("short test summary")[0]  # which repeats a whole message if $CI is set
    sections = report.split("____ test_")
    (killed,) = (text for text in sections if text.startswith("killed"))
    assert "web was killed" in killed and "exit code 137" in killed and "SIGKILL" in killed
    (never,) = (text for text in sections if text.startswith("never_ready"))
    assert "will not be ready: its phase is Failed" in never and "| no database" in never and "NotReady" in never
    (other,) = (text for text in sections if text.startswith("something_else"))
    assert "web is Ready" in other and "| a last line" in other and "Started" in other
    (without,) = (text for text in sections if text.startswith("without_a_cluster"))
    assert "lastcall: namespace" not in without


OPERATORS = (
    TESTS
    + """
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced",
             "names": {"plural": "boats", "kind": "Boat", "shortNames": ["bt"]},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}

@pytest.fixture
def boat(lastcall_namespace):
    boat = {"apiVersion": "example.com/v1", "kind": "Boat", "status": {"sails": 2},
            "metadata": {"name": "one", "finalizers": ["example.com/h"]}}
    made = lastcall_namespace.apply(DEFINITION, boat, wait=True)[1]
    owner = {"apiVersion": "example.com/v1", "kind": "Boat", "name": "one", "uid": made["metadata"]["uid"]}
    owned = pod(STUBBORN)
    owned["metadata"]["ownerReferences"] = [owner]
    lastcall_namespace.apply(owned, wait=True)
    yield lastcall_namespace
    lastcall_namespace.apply({**boat, "metadata": {"name": "one"}})

def test_owned(boat):
    boat.apply({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "one"}})
    boat.delete("bt/one").assert_graceful()

def test_collected(boat):
    with pytest.raises(Exception):
        boat.delete("boat/one", timeout=1)
    boat.delete("web").assert_graceful()

def test_by_its_name(request):
    there = request.getfixturevalue("lastcall_namespace")
    there.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}})
    there.delete("configmap/settings")
    there.apply(pod(STUBBORN), wait=True)
    ending = there.delete("web")
    assert ending.graceful, ending.text
"""
)


def test_pods_of_an_operators_object_are_in_the_report() -> None:
    with pytest_of(OPERATORS, "-k", "owned or collected or by_its_name") as command:
        result = command.finish(240)
    assert result.status == 1 and "3 failed" in result.out, result.out + result.err
    report = result.out.partition("short test summary")[0]  # which repeats a whole message if $CI is set
    sections = report.split("____ test_")
    (owned,) = (text for text in sections if text.startswith("owned"))
    assert "its owner is gone: Boat one" in owned and owned.count("ended by SIGKILL, exit code 137") == 1, owned
    assert owned.index("✗ PID 1 of app") < owned.index("DELETE accepted"), "the cause comes first"
    assert "concurrent/futures" not in result.out and "def assert_graceful" not in result.out, result.out
    (collected,) = (text for text in sections if text.startswith("collected"))
    assert "/one is ending, and finalizers hold it (example.com/h)" in collected, collected
    (by_name,) = (text for text in sections if text.startswith("by_its_name"))
    assert by_name.count("ended by SIGKILL, exit code 137") == 1 and "no Pod ended" not in by_name, by_name
    assert "test_by_its_name - AssertionError: test-" in result.out


def test_the_cluster_that_the_environment_names_is_used_unless_an_option_says_more() -> None:
    named = f"import os\nos.environ['LASTCALL_CLUSTER'] = 'nobody'\n{TESTS}"
    with pytest_of(named, "-k", "kubeconfig") as command:
        assert "no cluster named 'nobody' is running" in command.finish(120).out
    with pytest_of(named, "-k", "kubeconfig", "--lastcall-options", "--nodes 2") as command:
        assert "--lastcall-options is for a cluster that pytest starts, and 'nobody' runs" in command.finish(120).out
    with pytest_of(named, "-k", "kubeconfig", "--lastcall-cluster", "worker") as command:
        assert "1 passed" in command.finish(120).out


HELD = """
def test_passes(lastcall_namespace):
    meta = {"name": "kept", "finalizers": ["example.com/hold"]}
    lastcall_namespace.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
"""
WITHOUT = """
import sys

import pytest

for name in ("kr8s", "kubernetes", "lightkube"):
    sys.modules[name] = None

@pytest.mark.parametrize("name", ("kr8s", "kubernetes", "lightkube"))
def test_with(request, name):
    request.getfixturevalue(f"lastcall_{name}")
"""


def test_a_namespace_that_a_finalizer_holds_is_left_with_a_warning() -> None:
    with pytest_of(HELD, "-W", "default::pytest.PytestWarning") as command:
        result = command.finish(120)
    assert result.status == 0 and "1 passed, 1 warning" in result.out, result.out + result.err
    assert "finalizers hold it (example.com/hold)" in result.out


def test_a_missing_client_library_is_named_before_a_cluster_is_looked_for() -> None:
    with pytest_of(WITHOUT, "-rs", "--lastcall-cluster", "nobody-started-this") as command:
        result = command.finish(60)
    assert result.status == 0 and "3 skipped" in result.out, result.out + result.err
    assert all(name in result.out for name in ("'kr8s'", "'kubernetes'", "'lightkube'"))


def test_a_grace_that_is_no_number_is_named() -> None:
    with pytest_of(HELD, "-o", "lastcall_namespace_grace=soon") as command:
        result = command.finish(120)
    assert "lastcall_namespace_grace: 'soon' is not a number of seconds" in result.out, result.out + result.err


def test_a_cluster_that_runs_already_is_used_and_stays() -> None:
    with pytest_of(TESTS, "--lastcall-cluster", "mine") as command:
        assert "no cluster named 'mine' is running" in command.finish(120).out


def test_nothing_stays_of_a_pytest_that_is_killed() -> None:
    waits = TESTS + WAITS
    with pytest_of(waits, "-s", "-k", "waits") as command:
        command.wait_for("waiting")
        (clusters,) = (command.home / "state").iterdir()
        assert len(list(clusters.iterdir())) == 1
        os.kill(command.pid, signal.SIGKILL)
        eventually(lambda: not clusters.exists() or not list(clusters.iterdir()), "its cluster ends")
        assert command.finish().status == -9


def test_a_run_that_uses_no_fixture_starts_nothing() -> None:
    with pytest_of("def test_it(): pass\n") as command:
        assert "1 passed" in command.finish(60).out
        assert not list((command.home / "state").iterdir())
