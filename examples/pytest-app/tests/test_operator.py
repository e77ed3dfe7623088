"""The operator runs in the test's own process, as kopf's documentation shows, against the cluster."""

import time

import pytest
from kopf.testing import KopfRunner

from conftest import HERE, MANIFESTS


@pytest.fixture
def operator(lastcall_namespace, kubeconfig, monkeypatch):
    """A namespace that the operator watches."""
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    lastcall_namespace.apply(MANIFESTS / "greetings.yaml", wait=True)
    arguments = ["run", "--standalone", "-n", lastcall_namespace.namespace, str(HERE / "operator" / "greetings.py")]
    with KopfRunner(arguments, timeout=60) as runner:
        yield lastcall_namespace
    assert runner.exit_code == 0 and runner.exception is None, runner.output


def greeting(text):
    return {"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": "day"}, "spec": {"text": text}}


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.1)


def test_a_greeting_is_said_and_ends_with_its_object(operator):
    operator.apply(greeting("good day"))
    until(lambda: operator.list("pods"))
    operator.wait_ready("pod/day")
    assert operator.logs("day") == "good day\n"
    until(lambda: operator.get("greeting/day").get("status", {}).get("pod") == "day")
    operator.delete("greeting/day")
    until(lambda: not operator.list("pods"))
    assert operator.story("day").graceful
