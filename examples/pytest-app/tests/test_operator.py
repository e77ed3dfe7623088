"""The operator runs in the test's own process, as kopf's documentation shows, against the cluster."""

import threading

import kopf
import pytest
from kopf.testing import KopfRunner

from conftest import HERE, MANIFESTS


@pytest.fixture
def operator(lastcall_namespace, kubeconfig, monkeypatch):
    """A namespace that the operator watches."""
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    lastcall_namespace.apply(MANIFESTS / "greetings.yaml", wait=True)
    registry, started = kopf.OperatorRegistry(), threading.Event()  # the handlers of this test alone
    kopf.on.startup(registry=registry)(lambda **_: started.set())
    arguments = ["run", "--standalone", "-n", lastcall_namespace.namespace, str(HERE / "operator" / "greetings.py")]
    with KopfRunner(arguments, timeout=60, registry=registry) as runner:
        while not started.wait(0.1):
            assert not runner.future.done(), runner.output
        yield lastcall_namespace
        for each in lastcall_namespace.list("greetings"):
            lastcall_namespace.delete(each)  # the operator has to remove its finalizers
    assert runner.exit_code == 0 and runner.exception is None, runner.output


def greeting(text):
    return {"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": "day"}, "spec": {"text": text}}


def test_a_greeting_is_said_and_ends_with_its_object(operator):
    operator.apply(greeting("good day"))
    operator.wait_for("greeting/day", "jsonpath={.status.pod}=day", timeout=30)
    operator.wait_ready("pod/day")
    assert operator.logs("day") == "good day\n"
    operator.delete("greeting/day").assert_graceful()
