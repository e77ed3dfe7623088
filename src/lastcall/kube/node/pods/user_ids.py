"""The user and group ids that a node has for Pods with a user namespace of their own."""

from lastcall.world.dataclass import dataclass

IDS_PER_POD = 65_536
"""userNamespaces.idsPerPod of KubeletConfiguration."""


@dataclass(frozen=True, slots=True)
class UserIDs:
    """`pods` ranges of `IDS_PER_POD` ids from `first` on; with `by_default` also for Pods that do not ask.

    `why` says why there are none.
    """

    first: int = IDS_PER_POD
    pods: int = 1024
    by_default: bool = False
    why: str = ""
