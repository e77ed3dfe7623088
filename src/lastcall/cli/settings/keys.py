"""Which options have a value from elsewhere, and from where. Pure.

A key is the long name of an option. Whoever writes a lastcall.yaml into a repository decides for everybody who runs
lastcall in it; so a file that is merely found sets only `PROJECT`. Every option of every command is in one of the three
(tested): a new one is a decision.
"""

PROJECT = frozenset(
    {
        "after",
        "cluster",
        "confirm",
        "container-log-max-files",
        "container-log-max-size",
        "control",
        "disrupt",
        "engine",
        "explain",
        "fail-on",
        "feature-gates",
        "find-safe",
        "from",
        "grace",
        "grace-by-priority",
        "grace-critical",
        "graceful",
        "http2-connections",
        "kubernetes-version",
        "load",
        "max-lost",
        "max-p99",
        "max-pods",
        "namespace",
        "nodes",
        "output",
        "path",
        "platform",
        "port",
        "propagation",
        "quiet",
        "recursive",
        "request-timeout",
        "role",
        "runs",
        "service",
        "settle",
        "slow-path",
        "state-size",
        "stream-length",
        "stream-path",
        "timeout",
        "wait",
        "websocket-path",
        "workload",
    }
)
"""What is measured, how much, how long, in which form: of containers that a user starts anyway."""

NAMED = frozenset(
    {
        "apply-advice",
        "cni-bin-dir",
        "cni-conf-dir",
        "context",
        "controllers",
        "egress",
        "filename",
        "keep",
        "keep-on-failure",
        "kubeconfig",
        "kubeconfig-merge",
        "kustomize",
        "leader-elect",
        "output-file",
        "publish",
        "publish-node-ports",
        "seccomp-default",
        "state",
        "static-pods",
        "summary",
        "suppressions",
        "up",
    }
)
"""Files that are read, written or run, ways in and out of the cluster, protection, credentials: a file that was named
(`--config`, `$LASTCALL_CONFIG`) sets them, or a variable."""

COMMAND_LINE = frozenset(
    {
        "all",
        "cancel",
        "config",
        "detach",
        "die-with",
        "die-with-parent",
        "directories",
        "fix",
        "follow",
        "merge",
        "name",
        "older-than",
        "print",
        "rules",
        "uid",
        "unmerge",
    }
)
"""What a command does, and to what: said each time."""

GROUPS = {
    "node": dict.fromkeys(("connect", "disconnect", "shutdown")),
    "image": dict.fromkeys(("from-host", "import", "load", "ls", "prune", "pull", "rm")),
}
"""Commands that have commands, known before they are imported."""

ALL = "all"
"""The section of lastcall.yaml whose values are for every command that has the option."""
