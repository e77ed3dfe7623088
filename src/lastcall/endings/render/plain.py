"""The story as plain text, for pipes and files: no colour, no trailing blanks."""

from collections.abc import Sequence

from lastcall.endings.render.console import plain_lines
from lastcall.endings.render.text import print_endings
from lastcall.endings.story import Ending


def plain_text(endings: Sequence[Ending], width: int, *, explain: bool = False, with_steps: bool = True) -> str:
    """Return what `print_endings` prints, in `width` columns."""
    return plain_lines(width, lambda out: print_endings(out, endings, explain=explain, with_steps=with_steps))
