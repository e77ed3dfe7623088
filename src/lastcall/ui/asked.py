"""Which live page a command is asked for."""

from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AskedPage:
    """`port` 0 is any free one; `opens`: in the user's browser; `read_only`: the page changes nothing.

    `view`: where the link leads to in the page, such as /tour.
    """

    port: int = 0
    opens: bool = False
    read_only: bool = False
    view: str = ""
