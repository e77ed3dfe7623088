"""Where the options of `run` and `rollout` are allowed, and which exclude each other: how their tables are read."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import click

from lastcall.cli.options import is_given, is_set

OWN, TAKEN, THERE = "own", "taken", "there"
"""The places of an experiment: a cluster of lastcall, one with a workload of --from-cluster, that of --context."""

CONTEXT = ("kubeconfig", "context", "as_user", "as_group", "as_uid", "as_user_extra", "insecure_skip_tls_verify")
"""Parameters that say which other cluster, and who asks it."""
CLUSTER = (
    "kubernetes_version", "state_size", "feature_gates", "max_pods", "node_capacity", "seccomp_default", "cni_conf_dir",
    "cni_bin_dir", "container_runtime",
)  # fmt: skip
"""Parameters of the cluster that a command starts itself."""
FOR_OWN = "$option applies to the cluster that $command starts itself: leave it out with --context"


class Allowed(NamedTuple):
    """Parameters, the places where they are allowed, and the error elsewhere. `values` are those that it is about.

    Values of a variable or of lastcall.yaml count, too, unless `given`: then only the command line does.
    """

    names: tuple[str, ...]
    places: tuple[str, ...]
    why: str
    values: tuple[str, ...] = ()
    given: bool = False


class Excluded(NamedTuple):
    """`name` excludes `others`, with one of `values` where there are some."""

    name: str
    others: tuple[str, ...]
    why: str
    values: tuple[str, ...] = ()


FOR_THERE = "$option needs --context: it applies to experiments on an existing cluster"
REQUESTS = (
    Allowed(("url", "url_ca", "image"), (THERE,), FOR_THERE),
    Allowed(("source",), (THERE,), FOR_THERE.replace("$option", "--from client"), values=("client",)),
    Allowed(("propagation",), (OWN, TAKEN), FOR_OWN, given=True),
    *(
        Allowed(
            ("source",),
            (OWN, TAKEN),
            f"--from {each} does not work with --context: use --from pod or --from client",
            (each,),
        )
        for each in ("node", "published", "balancer")
    ),
)
"""Of the requests that a command sends."""
URL = Excluded("url", ("source",), "--url needs requests from this machine: add --from client", values=("pod",))


def check_places(place: str, table: Sequence[Allowed], excluded: Sequence[Excluded] = (), **words: str) -> None:
    """Raise UsageError for the first option of the running command that is not allowed; `words` are for errors."""
    for row in table:
        if place not in row.places and (flag := _first(row.names, row.values, row.given)):
            raise click.UsageError(_filled(row.why, option=flag, **words))
    for pair in excluded:
        if _first([pair.name]) and (flag := _first(pair.others, pair.values)):
            raise click.UsageError(_filled(pair.why, option=flag, **words))


def _first(names: Iterable[str], values: Sequence[str] = (), given: bool = False) -> str:
    """Return the flag of the first of these parameters that asks for something, "" for none."""
    context = click.get_current_context()
    known = {each.name: each for each in context.command.params}
    for name in names:
        parameter = known.get(name)
        if parameter is not None and (is_given if given else is_set)(name):
            value: Any = context.params[name]
            if value in values if values else given or (value and value != parameter.default):
                return parameter.opts[0]
    return ""


def _filled(text: str, **words: str) -> str:
    for name, word in words.items():
        text = text.replace(f"${name}", word)
    return text.replace("$command", click.get_current_context().info_name or "")
