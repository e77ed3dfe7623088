"""What the options are called in variables and in lastcall.yaml, and which of them a file may set. Pure."""

import click

ALL = "all"
"""The section of lastcall.yaml whose values are for every command that has the option."""

PROJECT = frozenset(
    (
        "after", "cluster", "confirm", "container-log-max-files", "container-log-max-size", "control", "disrupt",
        "engine", "explain", "fail-on", "feature-gates", "find-safe", "from", "grace", "grace-by-priority",
        "grace-critical", "graceful", "http2-connections", "kubernetes-version", "load", "logs", "max-lost",
        "max-p99", "max-pods", "most-workloads", "namespace", "node-capacity", "nodes", "output", "path", "platform",
        "port", "propagation", "quiet", "recursive", "request-timeout", "role", "runs", "service", "settle",
        "slow-path", "state-size", "stream-length", "stream-path", "timeout", "wait", "websocket-path", "workload",
    )
)  # fmt: skip
"""Options of a lastcall.yaml that nobody named: it may have come with a repository, so it sets what is measured, how
much, how long and in which form. It reads, writes and runs no files, and opens no way into or out of the cluster."""

COMMAND_LINE = frozenset({"all", "config", "delete", "delete-emptydir-data", "fix", "force", "yes"})
"""Options that consent to something or destroy something: given each time, on the command line."""


def key_of(option: click.Option) -> str:
    """Return the option's key: the last of its long names, `cluster` for --name and --cluster."""
    return next((each[2:] for each in reversed(option.opts) if each.startswith("--")), "")


def keyed(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command by key, without those for the command line only."""
    options = {key_of(each): each for each in command.params if isinstance(each, click.Option)}
    return {key: option for key, option in options.items() if key not in COMMAND_LINE}


def variable(*words: str) -> str:
    """Return the name of a variable: LASTCALL_UP_NODES for "up" and "nodes"."""
    return "_".join(("lastcall", *words)).replace("-", "_").upper()
