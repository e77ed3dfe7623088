"""What nobody uses costs a start nothing: what a role imports before its first Pod."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

RARE = (
    "yaml", "re2", "rich", "click", "grpc", "google.protobuf", "prometheus_client", "lastcall.kube.cel",
    "lastcall.kube.api.table", "lastcall.kube.api.text.go_yaml", "lastcall.ui", "lastcall.trace.exporting",
    "lastcall.trace", "zoneinfo",
)  # fmt: skip
NODE = (
    "lastcall.kube.api.validation", "lastcall.kube.api.validators", "lastcall.kube.api.defaults",
    "lastcall.kube.api.schema", "lastcall.kube.api.protobuf", "lastcall.kube.api.custom.structural",
    "lastcall.kube.apiserver.discovery", "lastcall.kube.controllers", "lastcall.kube.scheduler",
    "lastcall.kube.store", "lastcall.kube.cri.v1", "lastcall.kube.node.static_pods.manifest",
    "lastcall.kube.nftables.objects", "lastcall.kube.proxy.proxier", "lastcall.kube.proxy.policies.agent",
)  # fmt: skip
"""Beside RARE: what only the control plane uses, or a node with static Pods, Services or NetworkPolicies."""
CONTROL_PLANE = (
    "sqlite3", "lastcall.kube.node.kubelet", "lastcall.kube.cri.sandbox.runtime", "lastcall.kube.store.etcd",
    "lastcall.kube.store.sqlite", "lastcall.kube.apiserver.expressions.rules", "lastcall.kube.apiserver.openapi",
    "lastcall.kube.apiserver.proxying.webhooks", "lastcall.kube.apiserver.proxying.handler",
    "lastcall.kube.apiserver.proxying.aggregation.backends", "lastcall.kube.apiserver.subresources.metrics_server",
    "lastcall.kube.apiserver.paths.metrics.endpoints", "lastcall.kube.controllers.podautoscaler.controller",
    "lastcall.kube.controllers.quota.controller", "lastcall.kube.controllers.access.certificates.controller",
    "lastcall.kube.controllers.access.policies.controller",
)  # fmt: skip
"""The same of webhooks, policies, aggregation, HorizontalPodAutoscalers, metrics, quotas and requests to sign."""


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("lastcall.kube.cluster.node", NODE),
        ("lastcall.kube.cluster.control_plane", CONTROL_PLANE),
        ("lastcall.kube.apiserver.http", CONTROL_PLANE),
    ],
)
def test_a_role_imports_nothing_that_only_some_clusters_use(module: str, names: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    imported = run.stdout.split()
    assert module in imported
    assert [each for each in imported for name in (*RARE, *names) if f"{each}.".startswith(f"{name}.")] == []


@pytest.mark.parametrize("name", sorted({*RARE, *NODE, *CONTROL_PLANE}))
def test_what_is_not_imported_is_there_all_the_same(name: str) -> None:
    """A module that is called otherwise by now would be imported by nobody, whatever imports it."""
    assert find_spec(name) is not None
