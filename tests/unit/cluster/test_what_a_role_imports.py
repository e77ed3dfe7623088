"""What nobody uses costs a start nothing: what a role imports before its first Pod."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

RARE = (
    "yaml", "re2", "rich", "click", "grpc", "google.protobuf", "prometheus_client", "lastcall.cel",
    "lastcall.api.table", "lastcall.api.text.go_yaml", "lastcall.ui", "lastcall.exporting", "lastcall.tracing",
)  # fmt: skip
NODE = (
    "lastcall.api.validation", "lastcall.api.validators", "lastcall.api.defaults", "lastcall.api.schema",
    "lastcall.api.protobuf", "lastcall.api.custom.structural", "lastcall.apiserver.discovery", "lastcall.controllers",
    "lastcall.scheduler", "lastcall.store", "lastcall.cri.v1", "lastcall.node.static_pods.manifest",
    "lastcall.nftables.objects", "lastcall.proxy.proxier", "lastcall.proxy.policies.agent",
)  # fmt: skip
"""Beside RARE: what only the control plane uses, or a node with static Pods, Services or NetworkPolicies."""
CONTROL_PLANE = (
    "sqlite3", "lastcall.node.kubelet", "lastcall.cri.sandbox.runtime", "lastcall.store.etcd", "lastcall.store.sqlite",
    "lastcall.apiserver.expressions.rules", "lastcall.apiserver.openapi", "lastcall.apiserver.proxying.webhooks",
    "lastcall.apiserver.proxying.handler", "lastcall.apiserver.proxying.aggregation.backends",
    "lastcall.apiserver.subresources.metrics_server", "lastcall.apiserver.paths.metrics.endpoints",
    "lastcall.controllers.podautoscaler.controller", "lastcall.controllers.quota.controller",
    "lastcall.controllers.access.certificates.controller", "lastcall.controllers.access.policies.controller",
)  # fmt: skip
"""The same of webhooks, policies, aggregation, HorizontalPodAutoscalers, metrics, quotas and requests to sign."""


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("lastcall.cluster.node", NODE),
        ("lastcall.cluster.control_plane", CONTROL_PLANE),
        ("lastcall.apiserver.http", CONTROL_PLANE),
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
