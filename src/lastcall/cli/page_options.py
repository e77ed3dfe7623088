"""`--ui`, `--ui-port`, `--ui-read-only` and `--open` of the commands that have a cluster."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lastcall.cli.options import Whole

if TYPE_CHECKING:
    from lastcall.ui import AskedPage

F = TypeVar("F", bound=Callable[..., Any])

port_option = click.option(
    "--port",
    type=Whole(0, 65535, "port"),
    metavar="PORT",
    default=0,
    help="Port on 127.0.0.1.  [default: any free one]",
)
"""Of the commands that are nothing but a page."""


def page_options(command: F) -> F:
    """Add them; the command takes them out of its keywords with `asked_page`."""
    for option in reversed(
        (
            click.option(
                "--ui",
                "ui",
                is_flag=True,
                help="Show the run live in a browser. The page ends with the command.",
            ),
            click.option(
                "--ui-port",
                type=Whole(0, 65535, "port"),
                metavar="PORT",
                default=None,
                help="Port of that page on 127.0.0.1; implies --ui.  [default: any free one]",
            ),
            click.option(
                "--ui-read-only",
                is_flag=True,
                help="Do not let that page change the cluster; implies --ui.",
            ),
            click.option("--ui-view", hidden=True, default="", help="Where the link leads to in the page."),
            click.option("--open", "opens", is_flag=True, help="Open the page in your browser; implies --ui."),
        )
    ):
        command = option(command)
    return command


def asked_page(options: dict[str, Any]) -> "AskedPage | None":
    """Take the page's keywords out of `options`. Return what is asked for, None for no page."""
    names = ("ui", "ui_port", "opens", "ui_read_only", "ui_view")
    ui, port, opens, read_only, view = (options.pop(name) for name in names)
    if not (ui or opens or read_only or port is not None):
        return None
    # late: only with --ui
    from lastcall.ui import AskedPage

    return AskedPage(port or 0, opens, read_only, view)
