"""`lastcall doctor`: what of this machine a cluster needs is there, what is not, and how to change that."""

# check: reaches inside because doctor looks at the control groups and the directory that a cluster would get

# check: starts processes because it forks one that systemd may move

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import click

from lastcall.cli.context_options import context_options
from lastcall.cli.options import json_text, text_or_json_option
from lastcall.cli.terminal import show
from lastcall.contexts import ContextOptions
from lastcall.kube.cluster.node_capacity import state_bytes
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.kube.cluster.scratch.directory import FILES, claim, try_overlay
from lastcall.kube.cluster.user_ids import claim_blocks
from lastcall.kube.cri.sandbox.cgroups.place import NOT_MOUNTED, Place, make_place
from lastcall.kube.node.meminfo import read_meminfo
from lastcall.world import needs, probes
from lastcall.world.need import Need
from lastcall.world.probes import Probe

SCHEMA = "lastcall/doctor/v1"

_STYLES = {"ok": "green", "degraded": "yellow", "missing": "bold red"}


@click.command()
@context_options(namespace=False)
@text_or_json_option
def doctor(asked: ContextOptions, output: str) -> None:
    """Check whether this machine can run a cluster.

    doctor tries every requirement in a short-lived process and reports ok, degraded (what you lose) or missing (what to
    do). Exit status 0 if nothing is missing, 1 otherwise. With --context it lists what experiments have left in that
    cluster; 1 if there is something.
    """
    if asked != ContextOptions():
        # late: 104 ms of `doctor --help`
        from lastcall.cli.leftovers import look_for_leftovers

        raise SystemExit(look_for_leftovers(asked, output))
    found = needs.check({**_try_cgroups(), "files on disk": _try_disk()})
    if output == "json":
        show(render_json(found))
    else:
        _print_table(found)
    if any(need.status == "missing" for need in found):
        raise SystemExit(1)


def _try_cgroups() -> dict[str, Probe]:
    """Make the directories that a cluster would make, and take them away again."""
    place = make_place("doctor")
    with _waiting_process() if place.waiting is not None else nullcontext(0) as pid:
        try:
            place.settle(pid)
            place.create()
            limits = Probe(errno.ENOENT, place.why)
            if place.mode != "none":
                limits = Probe(0, f"{place.mode}: {' '.join(place.controllers())}")
            return {
                "cgroups": limits,
                "cgroup place": Probe(0, place.where),
                "logout": Probe(errno.EPERM if (why := place.ends_at_logout()) else 0, why),
                "cgroup hierarchies": _hierarchies(place),
            }
        finally:
            place.remove()


def _try_disk() -> Probe:
    """Make the directory for what containers write, use it as one does, and remove it again."""
    size = state_bytes(ClusterOptions().state_size, read_meminfo()["MemTotal"])
    ids = claim_blocks(1, ClusterOptions().max_pods)
    try:
        scratch, why = claim(f"doctor-{os.getpid()}", size, mapped=ids.pods > 0)
    finally:
        ids.release()
    if scratch is None:
        return Probe(errno.EOPNOTSUPP, why)

    def use() -> str:
        try_overlay(f"{scratch.path}/{FILES}")
        return os.path.dirname(scratch.path)

    try:
        return probes.in_namespaces(use)
    finally:
        scratch.remove()


@contextmanager
def _waiting_process() -> Iterator[int]:
    """A process in place of the cluster's first one, which systemd may move."""
    end_read, end_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(end_write)
        os.read(end_read, 1)
        os._exit(0)
    os.close(end_read)
    try:
        yield pid
    finally:
        os.close(end_write)
        os.waitpid(pid, 0)


def _hierarchies(place: Place) -> Probe:
    if not place.shared:
        return Probe(0, ", ".join(sorted(_hierarchy(name) for name in (*place.directories, *place.others))))
    by_reason: dict[str, list[str]] = {}
    for name, why in place.shared.items():
        by_reason.setdefault(why, []).append(_hierarchy(name))
    not_mounted = all(why == NOT_MOUNTED for why in by_reason)
    reasons = "; ".join(f"{', '.join(sorted(names))} ({why})" for why, names in by_reason.items())
    return Probe(errno.ENOENT if not_mounted else errno.EACCES, reasons)


def _hierarchy(name: str) -> str:
    return name.removeprefix("name=") or "version 2"


def render_json(found: Sequence[Need]) -> str:
    """Return the envelope with `{"ready", "needs": [{"name", "status", "found", "lose", "fix"}]}`."""
    # late: only with --output json
    from lastcall.endings.render import envelope

    entries = [
        {"name": need.name, "status": need.status, "found": need.found, "lose": need.lose, "fix": need.fix}
        for need in found
    ]
    ready = all(need.status != "missing" for need in found)
    return json_text({**envelope(SCHEMA), "ready": ready, "needs": entries})


def _print_table(found: Sequence[Need]) -> None:
    # late: 47 ms of `doctor --help`
    from rich.table import Table

    from lastcall.cli.console import CommandConsole
    from lastcall.endings.render import Text

    console = CommandConsole()
    if not console.is_terminal:
        console = CommandConsole(width=200)  # a command to copy stays on its line
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("need", "", "found"):
        table.add_column(title, overflow="fold")
    for need in found:
        # Text, not markup: what the kernel says may have brackets.
        table.add_row(Text(need.name), Text(need.status, style=_STYLES[need.status]), Text(need.found))
        for what, words in (("you lose", need.lose), ("to fix it", need.fix)):
            if words:
                table.add_row("", Text(what, style="dim"), Text(words))
    console.print(table)
    console.print()
    console.print(Text(summary(found)))


def summary(found: Sequence[Need]) -> str:
    """Return the last line of the report."""
    missing = [need.name for need in found if need.status == "missing"]
    degraded = [need.name for need in found if need.status == "degraded"]
    if missing:
        return f"A cluster cannot start here: {missing[0]} must be fixed first."
    if degraded:
        return f"A cluster can start here, with limits: {', '.join(degraded)}."
    return "A cluster can start here, nothing is missing."
