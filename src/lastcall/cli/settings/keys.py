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
        "logs",
        "max-lost",
        "max-p99",
        "max-pods",
        "most-workloads",
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
        "as",
        "as-group",
        "as-uid",
        "as-user-extra",
        "base",
        "cni-bin-dir",
        "cni-conf-dir",
        "context",
        "controllers",
        "advertise-address",
        "bind-address",
        "client-ca-file",
        "egress",
        "events",
        "etcd-cafile",
        "etcd-certfile",
        "etcd-keyfile",
        "etcd-prefix",
        "etcd-servers",
        "etcd-user",
        "filename",
        "image",
        "keep",
        "keep-on-failure",
        "kubeconfig",
        "kubeconfig-merge",
        "kustomize",
        "leader-elect",
        "lease",
        "otlp-endpoint",
        "node-agent-image",
        "node-agent-namespace",
        "output-file",
        "publish",
        "publish-node-ports",
        "scheduler",
        "seccomp-default",
        "serve",
        "secure-port",
        "service-account-issuer",
        "service-account-signing-key-file",
        "service-cluster-ip-range",
        "state",
        "static-pods",
        "summary",
        "suppressions",
        "tls-cert-file",
        "tls-private-key-file",
        "up",
        "url-ca",
        "use-service-account-credentials",
        "wheel",
    }
)
"""Files that are read, written or run, ways in and out of the cluster, protection, credentials: a file that was named
(`--config`, `$LASTCALL_CONFIG`) sets them, or a variable."""

COMMAND_LINE = frozenset(
    {
        "all",
        "all-namespaces",
        "cancel",
        "config",
        "count",
        "copy-to",
        "delete",
        "detach",
        "die-with",
        "die-with-parent",
        "directories",
        "fix",
        "follow",
        "insecure-skip-tls-verify",
        "from-cluster",
        "merge",
        "name",
        "node-agent",
        "node-agent-ptrace",
        "node-agent-rules",
        "older-than",
        "print",
        "rules",
        "selector",
        "uid",
        "unmerge",
        "url",
        "yes",
    }
)
"""What a command does, and to what: said each time."""

GROUPS = {
    "node": dict.fromkeys(("connect", "disconnect", "shutdown")),
    "image": dict.fromkeys(("build-agent", "from-host", "import", "load", "ls", "prune", "pull", "rm")),
}
"""Commands that have commands, known before they are imported."""

ALL = "all"
"""The section of lastcall.yaml whose values are for every command that has the option."""
