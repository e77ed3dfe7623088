"""The page's server in this process, and its link handed to the user's browser."""

import asyncio
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from html import escape
from pathlib import Path

from lastcall.ui.entrance import Entrance
from lastcall.ui.server import PageServer


@asynccontextmanager
async def served(
    make: Callable[[Callable[[], None]], PageServer],
    port: int,
    tell: Callable[[str], None],
    *,
    opens: bool,
    not_opened: Callable[[], None],
) -> AsyncIterator[PageServer]:
    """Serve the page for the time of the block. `make` gets what a server calls when its link was used; `tell` hears
    of each. Raises NotListening, and OSError where the file for the browser cannot be written."""
    entrances: list[Entrance] = []
    server = make(lambda: tell(entrances[0].link))
    async with server.listening(port) as entrance:
        entrances.append(entrance)
        tell(entrance.link)
        with ExitStack() as stack:
            if opens:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lastcall-ui-"))
                loop = asyncio.get_running_loop()
                if not await loop.run_in_executor(None, _open, entrance.link, Path(folder)):
                    not_opened()
            yield server


def _open(link: str, folder: Path) -> bool:
    """By a file that only this user can read: other users see the command lines of processes, and a link in one."""
    file = folder / "open.html"
    file.touch(mode=0o600)
    file.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(link)}"><title>lastcall</title>')
    return webbrowser.open(file.as_uri())
