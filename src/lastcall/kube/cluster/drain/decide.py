"""Which Pods a drain evicts, which it leaves, and for which it needs an option. Pure.

Source: kubectl pkg/drain/filters.go (daemonSetFilter, mirrorPodFilter, localStorageFilter, unreplicatedFilter, asked in
this order until one says no). Its options have kubectl's names.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from lastcall.kube.api.meta import AnyObject, Object, name_of, namespace_of
from lastcall.kube.api.pods.spec import is_mirror_pod, is_pod_terminal
from lastcall.kube.controllers.ownership import controller_of
from lastcall.world.dataclass import dataclass

DAEMON_SET = "ignore_daemonsets"
LOCAL_STORAGE = "delete_emptydir_data"
UNMANAGED = "force"
WHY = {
    DAEMON_SET: ("their DaemonSet would replace them on the node", "--ignore-daemonsets"),
    LOCAL_STORAGE: ("the data of their emptyDir volumes would be lost", "--delete-emptydir-data"),
    UNMANAGED: ("no controller would replace them", "--force"),
}
"""The option that is missing → why it is needed, and its name for the command line."""


@dataclass(frozen=True, slots=True)
class DrainOptions:
    """`grace` seconds for every Pod, None for each Pod's own; `timeout` seconds until no Pod may be left, 0 for as long
    as it takes."""

    grace: int | None = None
    timeout: float = 0.0
    force: bool = False
    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """`refused` has Pods by the option that is missing for them; a drain with any of those evicts none."""

    evicted: list[Object] = field(default_factory=list)
    ignored: list[Object] = field(default_factory=list)
    refused: Mapping[str, list[str]] = field(default_factory=dict)

    def refusal(self) -> str:
        """Return why nothing is evicted, and what to do; "" if all Pods may be."""
        return "; ".join(
            f"{', '.join(names)}: {WHY[option][0]} (add {WHY[option][1]} to end them all the same)"
            for option, names in self.refused.items()
        )


def plan_drain(pods: Iterable[Object], daemon_sets: Collection[tuple[str, str]], options: DrainOptions) -> DrainPlan:
    """Return what becomes of the Pods of a node. `daemon_sets` are those that exist, by namespace and name."""
    evicted: list[Object] = []
    ignored: list[Object] = []
    refused: dict[str, list[str]] = {}
    for pod in sorted(pods, key=lambda each: (namespace_of(each), name_of(each))):
        needed = _needed(pod, daemon_sets)
        if is_mirror_pod(pod) or (needed[:1] == [DAEMON_SET] and options.ignore_daemonsets):
            ignored.append(pod)
            continue
        missing = next((each for each in needed if not getattr(options, each)), "")
        if missing:
            refused.setdefault(missing, []).append(f"{namespace_of(pod)}/{name_of(pod)}")
        else:
            evicted.append(pod)
    return DrainPlan(evicted, ignored, refused)


def _needed(pod: AnyObject, daemon_sets: Collection[tuple[str, str]]) -> list[str]:
    """The options without which a Pod is not evicted. A Pod that has ended needs none."""
    if is_pod_terminal(pod):
        return []
    owner = controller_of(pod)
    found = []
    if owner is not None and owner["kind"] == "DaemonSet":
        # One whose DaemonSet has been deleted is as good as unmanaged.
        there = (namespace_of(pod), owner["name"]) in daemon_sets
        found.append(DAEMON_SET if there else UNMANAGED)
    if any("emptyDir" in volume for volume in pod["spec"].get("volumes") or ()):
        found.append(LOCAL_STORAGE)
    if owner is None:
        found.append(UNMANAGED)
    return found
