"""Who does not serve metrics pays nothing for them: no module of Prometheus or OpenTelemetry is loaded elsewhere."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.loopback

FOREIGN = ("prometheus_client", "opentelemetry", "requests", "google.protobuf")


def is_in(name, modules):
    return any(name == each or name.startswith(each + ".") for each in modules)


def test_opentelemetry_is_loaded_by_its_own_module_alone():
    """Metrics do without the extra."""
    code = "import lastcall.trace.exporting.server, lastcall.trace.exporting.event_writer, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert any(is_in(each, ("prometheus_client",)) for each in loaded)
    assert [each for each in loaded if is_in(each, ("opentelemetry", "requests", "google"))] == []


@pytest.mark.parametrize(
    "module",
    [
        "lastcall.cli.run.command, lastcall.experiment.run.session, lastcall.kube.cluster.embedded",
        "lastcall.cli.up, lastcall.cli.story, lastcall.cli.rollout.command, lastcall.cli.doctor",
        "lastcall.kube.apiserver, lastcall.kube.controllers.manager, lastcall.kube.node.kubelet",
        "lastcall.kube.scheduler.scheduler",
        "lastcall.testing",
    ],
)
def test_no_other_command_or_role_loads_them(module):
    code = f"import {module}, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "lastcall" in loaded
    assert [each for each in loaded if is_in(each, (*FOREIGN, "lastcall.trace.exporting"))] == []
