"""`lastcall status`: the clusters of this user that stay."""

from typing import Any

import click

from lastcall.cli.options import text_or_json_option
from lastcall.cli.staying.clusters import cluster_errors, published_text, show_json
from lastcall.cli.staying.names import optional_name
from lastcall.cli.terminal import say, say_from
from lastcall.kube.cluster import (
    DEFAULT_NAME,
    ControlClient,
    ControlError,
    NewerVersion,
    NotRunning,
    died_of,
    names,
    way_out,
)

Status = dict[str, Any]


@click.command()
@optional_name
@text_or_json_option
def status(name: str | None, output: str) -> None:
    """Show the clusters of this user, or the cluster NAME alone."""
    with cluster_errors():
        found = [_with_memory(ControlClient(name).status())] if name is not None else _all()
    if output == "json":
        show_json("lastcall/clusters/v1", {"clusters": found})
        return
    if not found:
        say("no cluster is running: lastcall up starts one")
    for index, each in enumerate(found):
        say(*([""] if index else []), *text_of(each).splitlines())


def _all() -> list[Status]:
    found: list[Status] = []
    for name in names():
        try:
            found.append(_with_memory(ControlClient(name).status()))
        except NotRunning as error:
            say_from("lastcall", str(error))
        except (ControlError, NewerVersion) as error:
            found.append({"name": name, "phase": "unknown", "message": str(error)})
    return found


def text_of(cluster: Status) -> str:
    """Return one cluster's status for people."""
    head = f"{cluster['name']} · {cluster['phase']}"
    if "message" in cluster:
        return f"{head}\n  {cluster['message']}"
    pods = cluster["pods"]
    lines = [
        f"{head} since {cluster['since']} · Kubernetes {cluster['kubernetesVersion']}",
        f"  API server  {cluster['server']}",
        f"  kubeconfig  {cluster['kubeconfig']}",
        f"  state       {cluster['state'] or 'in memory, gone with the cluster'}",
        *published_text(cluster).splitlines(),
        *(f"  {node['name']:11} {_ready(node)}" for node in cluster["nodes"]),
        f"  Pods        {'unknown' if pods is None else _pods(pods)}",
        "",
        f"  {'process':14} {'pid':>8} {'PSS':>11}  restarts",
    ]
    for process in cluster["processes"]:
        pid, restarts = process["pid"], str(process["restarts"])
        if "lastDeath" in process:
            restarts += f" ({process['lastDeath']}, {process['lastDeathAt']})"
        lines.append(f"  {process['role']:14} {pid or '-':>8} {_size(process.get('pss')):>11}  {restarts}")
    lines += _died_again_and_again(cluster)
    containers = cluster["containers"]
    lines.append(f"  {'in containers':14} {containers['processes']:>8} {_size(containers['pss']):>11}")
    lines.append(f"  {'all':14} {'':8} {_size(cluster['pss']):>11}")
    lines += _faults(cluster["processes"])
    return "\n".join(lines)


def _died_again_and_again(cluster: Status) -> list[str]:
    """Below the processes: which of them die of the same object again and again."""
    lines = []
    for process in cluster["processes"]:
        role = process["role"]
        for each in process.get("diesOf") or ():
            lines.append(f"    {died_of(role, each)}: lastcall logs{_of(cluster)} --role {role}")
        if fix := way_out(process.get("servesAloneSeconds") or 0):
            lines.append(f"      {fix}")
    return lines


def _of(cluster: Status) -> str:
    return "" if cluster["name"] == DEFAULT_NAME else f" {cluster['name']}"


_MOST_FAULTS = 5
_MOST_TEXT = 80


def _faults(processes: list[Status]) -> list[str]:
    """Errors that were caught, the last first; a front of an earlier version reports none."""
    found = [(process["role"], each) for process in processes for each in process.get("faults") or ()]
    if not found:
        return []
    found.sort(key=lambda pair: str(pair[1]["at"]), reverse=True)
    count = sum(each["count"] for _, each in found)
    lines = ["", f"  {count} unexpected error{'' if count == 1 else 's'} caught (lastcall logs has the tracebacks)"]
    for role, each in found[:_MOST_FAULTS]:
        where = " ".join(filter(None, (each["component"], each["key"])))
        error = each["error"] if len(each["error"]) <= _MOST_TEXT else f"{each['error'][: _MOST_TEXT - 1]}…"
        lines.append(f"    {role}: {where}: {error} ({each['count']} times, last {each['at']})")
    if len(found) > _MOST_FAULTS:
        lines.append(f"    and {len(found) - _MOST_FAULTS} more (--output json has all)")
    return lines


def _ready(node: Status) -> str:
    ready = {True: "Ready", False: "not Ready", None: "unknown"}[node["ready"]]
    if node.get("cutOff"):
        ready += f", cut off (lastcall node connect {node['name']} reconnects it)"
    return ready if node["ready"] or not node["message"] else f"{ready}: {node['message']}"


def _pods(counts: dict[str, int]) -> str:
    phases = ", ".join(f"{count} {phase}" for phase, count in counts.items() if phase != "total")
    return f"{counts['total']}" + (f" ({phases})" if phases else "")


def _size(size: int | None) -> str:
    return "-" if size is None else f"{size / (1 << 20):.1f} MiB"


# -- memory: read here, so that front need not -------------------------------------------------------------------------


def _with_memory(cluster: Status) -> Status:
    """Add the proportional set sizes in bytes (null where /proc does not tell), and the containers' processes."""
    inside: list[int] = []
    for process in cluster["processes"]:
        process["pss"] = pss(process["pid"])
        if process["role"].startswith("shim-") and process["pid"]:
            inside += descendants(process["pid"])
    sizes = [size for size in map(pss, inside) if size is not None]
    cluster["containers"] = {"processes": len(inside), "pss": sum(sizes)}
    cluster["pss"] = sum(sizes) + sum(process["pss"] or 0 for process in cluster["processes"])
    return cluster


def pss(pid: int | None) -> int | None:
    """Return the proportional set size of a process in bytes, None if it is not known."""
    if pid is None:
        return None
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) << 10
    except (OSError, ValueError):
        return None
    return None


def descendants(pid: int) -> list[int]:
    """Return all processes below a process."""
    found = []
    waiting = [pid]
    while waiting:
        try:
            with open(f"/proc/{(each := waiting.pop())}/task/{each}/children") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            continue
        found += children
        waiting += children
    return found
