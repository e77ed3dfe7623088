"""Help for commands with many options: `--help` explains the common ones by topic, `--help-all` each of them."""

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

import click

from lastcall.cli.terminal import say_all

Row = tuple[str, str]
WIDTH = 76
"""Columns of a line with names of options."""

EXPLAINED = {
    "Manifests": ("filenames", "kustomizations", "recursive", "namespace", "sets", "taken", "wait"),
    "Pods to follow": ("all_namespaces", "selector", "count"),
    "Cluster": ("name_option", "detached", "nodes", "state", "kubeconfig_merge"),
    "Experiment": (
        *("disrupt", "grace", "after", "control", "timeout", "runs", "apply_advice", "find_safe"),
        "kubernetes_version",
    ),
    "Requests and network": ("rates", "path", "source", "propagation", "publish", "publish_node_ports", "egress"),
    "Report": (
        *("output", "output_file", "explain", "max_lost", "max_p99", "keep", "keep_on_failure"),
        *("ui", "opens", "audit_log"),
    ),
    "Existing cluster": ("context", "url", "yes", "node_agent"),
    "Metrics": ("serve",),
}
"""Topic → parameters that `--help` explains, in this order."""
NAMED = {
    "Experiment": ("settle", "confirm", "release", "summary", "logs"),
    "Requests": (
        *("service", "port", "workload", "request_timeout", "slow_path", "stream_path", "websocket_path", "length"),
        "http2_connections",
    ),
    "Existing cluster": (
        *("kubeconfig", "as_user", "as_group", "as_uid", "as_user_extra", "insecure_skip_tls_verify", "copy_to"),
        *("delete", "url_ca", "image", "node_agent_image", "node_agent_namespace", "node_agent_ptrace"),
        "node_agent_rules",
    ),
    "Nodes and containers": (
        *("node_capacity", "max_pods", "seccomp_default", "container_runtime", "cni_conf_dir", "cni_bin_dir"),
        *("feature_gates", "state_size", "static_pods", "container_log_max_size", "container_log_max_files"),
    ),
    "Parts of the cluster": (
        *("controllers", "scheduler", "etcd_servers", "etcd_prefix", "etcd_cafile", "etcd_certfile", "etcd_keyfile"),
        *("etcd_user", "service_account_key", "die_with_parent"),
    ),
    "Audit log": ("audit_policy", "audit_log_maxsize", "audit_log_maxbackup", "audit_webhook"),
    "Metrics": ("otlp_endpoint", "events", "lease", "most_workloads"),
    "Live page": ("ui_port", "ui_read_only"),
}
"""Topic → parameters that `--help` only names."""


class SectionedCommand(click.Command):
    """A command whose `--help` has sections. What no table names is explained under "Other"."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with `--help-all` before `--help`."""
        params = super().get_params(ctx)
        return [*params[:-1], _help_all(self), params[-1]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections; with `--help-all` all options in one list."""
        if ctx.meta.get(__name__):
            super().format_options(ctx, formatter)
            return
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        rows = {str(each.name): row for each in options if (row := each.get_help_record(ctx))}
        named = {name for names in NAMED.values() for name in names}
        explained = {name for names in EXPLAINED.values() for name in names}
        topics = {**EXPLAINED, "Other": tuple(name for name in rows if name not in named | explained)}
        for topic, names in topics.items():
            if found := [rows[name] for name in names if name in rows]:
                with formatter.section(topic):
                    formatter.write_dl(found, col_max=26)
        if short := list(_named(rows)):
            with formatter.section("More options, which --help-all explains"):
                for line in short:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def _named(rows: dict[str, Row]) -> Iterator[str]:
    """Yield lines with the options of each topic: click would break a line within an option."""
    for topic, names in NAMED.items():
        if options := [_flag(rows[name][0]) for name in names if name in rows]:
            yield from wrap(f"{topic}: {' '.join(options)}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _flag(shown: str) -> str:
    """Return the first long option of what a row shows: `-n, --namespace NAMESPACE` → `--namespace`."""
    return next(word.strip(",") for word in shown.split() if word.startswith("--"))


def _help_all(command: click.Command) -> click.Option:
    def show(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value and not context.resilient_parsing:
            context.meta[__name__] = True
            say_all(context.get_help())
            context.exit()

    return click.Option(
        ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=show, help="Explain every option."
    )
