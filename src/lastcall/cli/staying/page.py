"""`lastcall ui`: the live page of a cluster that stays."""

import click

from lastcall.cli.options import Whole
from lastcall.cli.staying.clusters import cluster_errors
from lastcall.cli.staying.names import name_argument


@click.command()
@name_argument
@click.option(
    "--port",
    type=Whole(0, 65535, "port"),
    metavar="PORT",
    default=0,
    help="Port on 127.0.0.1.  [default: any free one]",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
def ui(name: str, port: int, opens: bool) -> None:
    """Show cluster NAME (default: lastcall) in a browser, live, until Ctrl-C: its Pods, and how each of them ends.

    The page is served on 127.0.0.1 alone. The link that is printed is for one browser: it has a token that works once.
    """
    # late: 260 ms of `ui --help`
    from lastcall.cli.staying.serving_page import serve_page
    from lastcall.kube.cluster import ControlClient

    with cluster_errors():
        ControlClient(name).status()
    raise SystemExit(serve_page(name, port, opens))
