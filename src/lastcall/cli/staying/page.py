"""`lastcall ui`: the live page of a cluster that stays."""

import click

from lastcall.cli.page_options import port_option
from lastcall.cli.staying.clusters import cluster_errors
from lastcall.cli.staying.names import name_argument
from lastcall.ui import AskedPage


@click.command()
@name_argument
@port_option
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
@click.option("--read-only", is_flag=True, help="Do not let the page change the cluster.")
def ui(name: str, port: int, opens: bool, read_only: bool) -> None:
    """Show cluster NAME (default: lastcall) in a browser, live, until Ctrl-C: its Pods, and how each of them ends.

    The page is served on 127.0.0.1 alone. The link that is printed lets one browser in: its token works
    once, within 60 s.
    """
    # late: 260 ms of `ui --help`
    from lastcall.cli.staying.serving_page import serve_page
    from lastcall.kube.cluster import ControlClient

    with cluster_errors():
        ControlClient(name).status()
    raise SystemExit(serve_page(name, AskedPage(port, opens, read_only)))
