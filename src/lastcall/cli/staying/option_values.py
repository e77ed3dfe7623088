"""What `lastcall up` is asked for: its options as data, checked against one another."""

from typing import Any

from lastcall.cli.options import read_service_account_key
from lastcall.cli.page_options import asked_page
from lastcall.cli.run.option_values import (
    asked_cluster,
    check_cni,
    check_feature_gates,
    check_node_capacity,
    check_propagation_nodes,
    check_runtime,
)
from lastcall.cli.staying.audit_options import asked_audit
from lastcall.cli.staying.life import UpOptions
from lastcall.cli.terminal import note


def asked_up(options: dict[str, Any]) -> UpOptions:
    """Return the options as given on the command line; `options` are used up. Raises click.UsageError, UserError."""
    options["service_account_key"] = read_service_account_key(options["service_account_key"])
    options["audit"] = asked_audit(options, note)
    if options["etcd"] is not None:
        # late: few have an etcd
        from lastcall.kube.cluster import check_etcd

        check_etcd(options["etcd"])
    options["die_with"] = options["die_with"] or 0
    options["page"] = asked_page(options)
    state, store = options.pop("state"), "sqlite" if options["etcd"] is None else "etcd"
    cluster = asked_cluster(options, restart_roles=True, store=store)
    check_feature_gates(cluster.kubernetes_version, cluster.feature_gates)
    check_propagation_nodes(cluster.propagation, cluster.nodes)
    check_node_capacity(cluster.node_capacity, cluster.nodes)
    check_cni(cluster.cni_conf_dir, cluster.cni_bin_dir, cluster.nodes)
    check_runtime(cluster.container_runtime, cluster.nodes, cni=cluster.cni_conf_dir, egress=cluster.egress)
    return UpOptions(cluster=cluster, state=state, **options)
