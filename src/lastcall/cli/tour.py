"""`lastcall tour`: the tour of the live page, on a cluster that lives as long as the command."""

import click

from lastcall.cli.page_options import port_option

CLUSTER = "tour"


@click.command()
@port_option
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
def tour(port: int, opens: bool) -> None:
    """Learn in a browser how a Pod stops: twelve levels and a lesson, on real Pods, until Ctrl-C.

    It starts a cluster named tour, and prints the link of its page. `lastcall ui` has the same tour for a cluster that
    you started with `lastcall up`.
    """
    # late: 260 ms of `tour --help`
    from lastcall.cli.up import up

    arguments = [CLUSTER, "--ui", "--ui-view", "/tour", "--ui-port", str(port), *(["--open"] if opens else [])]
    up.main(arguments, prog_name="lastcall up", standalone_mode=False)
