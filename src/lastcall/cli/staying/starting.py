"""Start a cluster that stays, in the foreground or the background, and write what the user needs of it."""

import os
import shlex
import sys
from contextlib import suppress
from dataclasses import replace

from lastcall.cli.errors import guarded, say_on_stderr
from lastcall.cli.staying.clusters import published_text, show_json
from lastcall.cli.staying.life import TORN_DOWN, Facts, UpOptions, stay
from lastcall.cli.terminal import say_all
from lastcall.kube.cluster import DEFAULT_NAME, Background, Report, start_behind
from lastcall.world.interrupts import Interrupts

# -- in the foreground ------------------------------------------------------------------------------------------------


class Terminal:
    """Write to stdout and stderr. A terminal that is gone is not an error, unless the text `must_be_heard`: a
    parent that ended before its pidfd was opened leaves no other trace."""

    def __init__(self, output: str, way_out: str, *, must_be_heard: bool = False) -> None:
        self._output = output
        self._way_out = way_out
        self._unheard: tuple[type[OSError], ...] = () if must_be_heard else (OSError,)

    def note(self, text: str) -> None:
        with suppress(OSError):
            say_on_stderr(text)

    def ready(self, facts: Facts) -> None:
        if "notApplied" in facts:
            self.note(facts["notApplied"])
        with suppress(*self._unheard):
            if self._output == "json":
                # late: only with --output json
                from lastcall.endings.render import about_cluster

                show_json("lastcall/cluster/v1", facts, about_cluster(facts["kubernetesVersion"], name=facts["name"]))
            else:
                say_all(f"{ready_text(facts)}\n{self._way_out}")
            sys.stdout.flush()


def ready_text(facts: Facts) -> str:
    """Return what the user of a new cluster needs."""
    state = facts["state"] or "in memory, gone with the cluster (--state DIR keeps it)"
    ready = "its node is Ready" if facts["nodeCount"] == 1 else f"its {facts['nodeCount']} nodes are Ready"
    return (
        f"cluster {facts['name']} is up: Kubernetes {facts['kubernetesVersion']}, {ready}\n\n"
        f"  API server  {facts['server']}\n"
        f"  kubeconfig  {facts['kubeconfig']}\n"
        f"  state       {state}\n"
        f"{published_text(facts)}{_page_text(facts)}\n"
        f"  export KUBECONFIG={shlex.quote(facts['kubeconfig'])}\n"
    )


def _page_text(facts: Facts) -> str:
    """What a browser is opened with."""
    link = "open it in a browser within 60 s; afterwards the command prints the next link"
    return f"  page        {facts['page']} ({link})\n" if "page" in facts else ""


def in_foreground(options: UpOptions) -> int:
    """Stay until a signal or `lastcall down`; the exit status. Raises LastcallError."""
    teller = Terminal(options.output, "Ctrl-C ends the cluster.", must_be_heard=options.ends_with_another)
    status = stay(options, teller)
    teller.note(f"cluster {options.name} is gone")
    return status


# -- in the background ------------------------------------------------------------------------------------------------


class _Reporter:
    """Send to the process that started this one, once: it is gone afterwards."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def note(self, text: str) -> None:
        self.report.send({"note": text})

    def ready(self, facts: Facts) -> None:
        self.report.send({"ready": facts})


def in_background(options: UpOptions) -> int:
    """Start the cluster in a process of its own; the exit status when its node is Ready, or when it failed."""
    if options.state:
        options = replace(options, state=os.path.abspath(options.state))

    def main(report: Report) -> int:
        teller = _Reporter(report)
        return guarded(lambda: stay(options, teller, report), teller.note)

    teller = Terminal(
        options.output, f"lastcall down {options.name} ends the cluster.".replace(f" {DEFAULT_NAME} ", " ")
    )
    begun: list[Background] = []
    with Interrupts(lambda status: _leave(begun, status), TORN_DOWN, until_reported=True) as interrupts:
        # Within: on a busy machine the child is far on before this process goes on.
        starting = start_behind(main)
        begun.append(starting)
        interrupts.on_first = starting.terminate
        if interrupts.number:
            starting.terminate()
        facts = None
        for message in starting.messages():
            if "note" in message and not interrupts.number:
                teller.note(message["note"])
            if "ready" in message:
                facts = message["ready"]
                break
        if facts is None:
            status = starting.wait()
            if interrupts.number:
                raise interrupts.error()
            return status or 1
        if interrupts.number:
            starting.wait()
            raise interrupts.error()
        teller.ready(facts)
        return 1 if "notApplied" in facts else 0


def _leave(begun: list[Background], status: int) -> None:
    """The second Ctrl-C."""
    for starting in begun:
        starting.kill()
    os._exit(status)
