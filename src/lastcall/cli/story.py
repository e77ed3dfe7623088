"""`lastcall story`: how a Pod of a cluster that stays ended, from the records that its front keeps."""

import asyncio
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NoReturn

import click

from lastcall.cli.exit_status import exit_status
from lastcall.cli.options import asked_for_one_line
from lastcall.cli.output import checked_output, output_options, stdout_console, takes_stdout, tell
from lastcall.cli.staying.clusters import cluster_errors, cluster_option, show_json
from lastcall.cli.terminal import say
from lastcall.endings import Ending, find_ending, is_ongoing, known_endings, outcome_words
from lastcall.kube.api import PODS
from lastcall.kube.cluster import ControlClient
from lastcall.records.record import Record
from lastcall.world.clock import RealClock

SCHEMA = "lastcall/endings/v2"

MOST_TOGETHER = 50
"""Pods in one page or trace, when no Pod is named."""

_NAMED = 12
"""Pods that an error names."""


@click.command(context_settings={"allow_extra_args": True})
@click.argument("pod", required=False)
@click.option(
    "--namespace", "-n", metavar="NAMESPACE", help="Namespace of the Pod.  [default: default; without POD: all]"
)
@cluster_option
@click.option(
    "--uid",
    metavar="UID",
    help="UID of the Pod, if several had its name; a prefix is enough.  [default: the latest]",
)
@click.option(
    "--follow", is_flag=True, help="Print the steps of POD's end as they happen, until it is gone; then the report."
)
@output_options
def story(
    pod: str | None,
    namespace: str | None,
    cluster: str,
    uid: str | None,
    follow: bool,
    output: str | None,
    output_file: Path | None,
    explain: bool,
) -> None:
    """Report how POD ended, or how far its deletion has got. For a running POD: how its containers ended before, and
    why. Without POD: report all Pods that ended.

    For long-running clusters (lastcall up). Exit status as for `lastcall run`: 0 all ended gracefully, 3 something was
    SIGKILLed, a preStop hook failed, or a container crashed or was restarted by a probe, 1 how it ended is not known.
    A Pod that is still ending counts as graceful.
    """
    _refuse(click.get_current_context().args)
    format_, pod = checked_output(output, output_file), _pod_name(pod)
    client = ControlClient(cluster)
    with cluster_errors():
        version = str(client.status().get("kubernetesVersion") or "")
        records = asyncio.run(_records(client))
    known = known_endings(records, version, RealClock().monotonic_ns())
    if follow:
        if pod is None and uid is None:
            raise click.UsageError("--follow needs POD")
        _follow(client, cluster, known, pod, namespace, uid, version, format_, output_file, explain)
    if pod is None and uid is None:
        ended = [e for e in known if e.zero_kind and namespace in (None, e.pod.namespace)]
        if format_ in ("text", "json"):
            _show_list(ended, len(known), cluster, version, format_, output_file)
            if format_ == "text":
                _show_failing([e for e in known if namespace in (None, e.pod.namespace)])
            return
        chosen = ended[-MOST_TOGETHER:]
        if len(chosen) < len(ended):
            say(f"the {MOST_TOGETHER} latest of {len(ended)} endings", err=True)
    else:
        chosen = [find_ending(known, pod, namespace, uid, cluster)]
    status = exit_status([ending for ending in chosen if not is_ongoing(ending) or ending.outcome != "unknown"])
    tell(
        stdout_console(),
        chosen,
        format_,
        output_file,
        kubernetes_version=version,
        status=status,
        explain=explain,
        cluster=cluster,
    )
    raise SystemExit(status)


def _refuse(arguments: Sequence[str]) -> None:
    """Raise click.UsageError if there are arguments after POD: other commands take the cluster as one."""
    if arguments:
        raise click.UsageError(
            f"Got unexpected extra argument ({arguments[0]}): story takes one POD. "
            f"To name the cluster, write --cluster {shlex.quote(arguments[0])}"
        )


def _pod_name(text: str | None) -> str | None:
    """Return NAME of `NAME` and of kubectl's `pod/NAME`. Raises click.UsageError for another kind."""
    if text is None or "/" not in text:
        return text
    kind, _, name = text.partition("/")
    if kind.lower() not in (PODS.plural, PODS.singular, *PODS.short_names) or not name or "/" in name:
        raise click.UsageError(f"POD {text!r} is not the name of a Pod: write NAME or pod/NAME, its namespace with -n")
    return name


def _follow(
    client: ControlClient,
    cluster: str,
    known: Sequence[Ending],
    pod: str | None,
    namespace: str | None,
    uid: str | None,
    version: str,
    format_: str,
    file: Path | None,
    explain: bool,
) -> NoReturn:
    """Of several Pods of one name the one that lives. Ends the command."""
    # late: 60 ms of `story --help`
    from lastcall.cli.staying.following import follow
    from lastcall.world.world import World

    where = namespace or "default"
    living = [e for e in known if e.pod.name == pod and e.pod.namespace == where and not e.zero_kind]
    first = living[-1] if living and uid is None else find_ending(known, pod, namespace, uid, cluster)
    lines = format_ == "json" and asked_for_one_line()
    with cluster_errors():
        ending = asyncio.run(
            follow(
                client,
                first,
                partial(known_endings, kubernetes_version=version),
                lines=lines,
                on_stderr=takes_stdout(format_, file),
                details=explain,
                world=World(),
            )
        )
    status = exit_status([ending])
    if not lines:
        tell(
            stdout_console(),
            [ending],
            format_,
            file,
            kubernetes_version=version,
            status=status,
            explain=explain,
            seen_live=True,
            cluster=cluster,
        )
    raise SystemExit(status)


async def _records(client: ControlClient) -> list[Record]:
    return [record async for record in await client.records()]


# -- all of them ----------------------------------------------------------------------------------------------------


def _show_list(ended: Sequence[Ending], pods: int, cluster: str, version: str, format_: str, file: Path | None) -> None:
    if file is not None:
        raise click.UsageError("--output-file needs POD; for all Pods together use --output html or chrome-trace")
    if format_ == "json":
        # late: only with --output json
        from lastcall.endings.render import about_cluster

        entries = [_entry(ending) for ending in ended]
        show_json(SCHEMA, {"endings": entries}, about_cluster(version, name=cluster))
        return
    if not ended:
        running = f"; {pods} of its Pods run" if pods else ""
        say(f"no Pod of cluster {cluster!r} has ended yet{running}")
        return
    rows: list[tuple[str, ...]] = [("NAMESPACE", "NAME", "UID", "DELETED", "GRACE", "GONE AFTER", "HOW IT ENDED")]
    rows += [_row(ending) for ending in ended]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        say("  ".join([*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)), row[-1]]))


def _show_failing(known: Sequence[Ending]) -> None:
    """Pods that live, of which containers ended: they have a story, and no end."""
    failing = [e for e in known if not e.zero_kind and e.outcome in ("killed", "crashed", "restarted")]
    for ending in failing[-_NAMED:]:
        pod = ending.pod
        say(f"{pod.namespace}/{pod.name} {outcome_words(ending)}: lastcall story {pod.name} -n {pod.namespace}")


def _row(ending: Ending) -> tuple[str, ...]:
    wall = ending.deleted_at_ns
    return (
        ending.pod.namespace,
        ending.pod.name,
        ending.pod.uid[:8],
        datetime.fromtimestamp(wall / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if wall is not None else "-",
        f"{ending.grace_seconds} s" if ending.grace_seconds is not None else "-",
        f"{ending.gone:.2f} s" if ending.gone is not None else "-",
        outcome_words(ending),
    )


def _entry(ending: Ending) -> dict[str, object]:
    wall = ending.deleted_at_ns
    return {
        "namespace": ending.pod.namespace,
        "name": ending.pod.name,
        "uid": ending.pod.uid,
        "deletedAt": datetime.fromtimestamp(wall / 1e9, UTC).isoformat().replace("+00:00", "Z") if wall else None,
        "graceSeconds": ending.grace_seconds,
        "outcome": ending.outcome,
        "ongoing": is_ongoing(ending),
        "gone": None if ending.gone is None else round(ending.gone, 6),
    }
