"""The story as plain text, for pipes and files: no colour, no trailing blanks."""

import io
from collections.abc import Sequence

from rich.console import Console

from lastcall.timeline.render.text import print_endings
from lastcall.timeline.story import Ending


def plain_text(endings: Sequence[Ending], width: int, *, explain: bool = False, with_steps: bool = True) -> str:
    """What `print_endings` prints, in `width` columns."""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=False, highlight=False)
    print_endings(console, endings, explain=explain, with_steps=with_steps)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
