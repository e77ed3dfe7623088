"""Has lastcall look at cases in virtual time: the session of `lastcall run` on a cluster without processes.

The clusters are those of the scenarios (tests/support), which must be importable.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from bench.diagnosis.application import Application, Object
from bench.diagnosis.case import Case, draw_cases
from bench.diagnosis.judge import Answer, read_answer
from bench.diagnosis.running import manifest
from bench.diagnosis.simulated import EXPRESSIBLE, images_of, programs_of
from lastcall.endings import exit_status
from lastcall.endings.render import endings_document
from lastcall.errors import LastcallError, UnreadyCause, causes_of
from lastcall.experiment.run import EmbeddedRun, RunOptions, RunSession
from lastcall.manifests.read import load_manifests
from lastcall.records.record import Record

SUPPORT = Path(__file__).resolve().parents[2] / "tests" / "support"


class Quiet:
    """Takes what a session says while it goes on, and says nothing."""

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None


class VirtualRun:
    """A virtual cluster as `EmbeddedRun` needs one."""

    def __init__(self, cluster: Any) -> None:
        self.client, self._cluster = cluster.client, cluster

    async def connect(self) -> None:
        """Do nothing: the client is in process."""

    async def wait_node_ready(self) -> None:
        """Do nothing: the cluster is handed over when its node is Ready."""

    def on_record(self, callback: Callable[[Record], None]) -> None:
        """Hand over every record, those of before, too."""
        records = self._cluster.all_records
        for each in records:
            callback(each)
        append = records.append

        class Heard(type(records)):  # type: ignore[misc]
            def append(self, item: Any) -> None:
                append(item)
                callback(item)

        records.__class__ = Heard

    def on_process_died(self, _: Any) -> None:
        """Do nothing: nothing dies here."""

    def recorder(self, actor: str) -> Any:
        return self._cluster.recorder.for_actor(actor)

    async def drain_records(self, seconds: float = 0.05) -> None:
        await self._cluster.sleep(seconds)

    def kubeconfig_path(self) -> str:
        return ""

    def last_words(self, role: str, lines: int = 20) -> str:
        return ""

    def why_it_hung(self, role: str) -> str:
        return ""

    def stop(self) -> None:
        """Do nothing: the scenario's end stops it."""


class VirtualPlace:
    """Answers as `running.Place` does."""

    def __init__(self) -> None:
        if str(SUPPORT) not in sys.path:
            sys.path.insert(0, str(SUPPORT))

    def provide(self, _: str) -> None:
        """Do nothing: every image is there, but those of `images_of`."""

    def ask(self, app: Application, objects: list[Object]) -> Answer:
        from virtual_cluster import run_cluster  # type: ignore[import-not-found]  # of tests/support

        options = RunOptions(after=_seconds(app.args, "--after", 1.0), timeout=_seconds(app.args, "--timeout", 60.0))
        said: list[tuple[int, str, str]] = []
        with NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(manifest(objects))
            file.flush()
            try:
                manifests = load_manifests([file.name])
            except LastcallError as error:
                return read_answer(2, "", str(error))

        async def scenario(cluster: Any) -> None:
            said.append(await _run(cluster, manifests, options))

        run_cluster(scenario, programs_of(app), images=images_of(app))
        return read_answer(*said[0])


async def _run(cluster: Any, manifests: Any, options: RunOptions) -> tuple[int, str, str]:
    """Return the exit status, the document and the error of a session."""
    place, live, clock = EmbeddedRun(VirtualRun(cluster)), Quiet(), cluster.world.clock
    session = RunSession(place, manifests, options, live, clock=clock)
    text = ""
    causes: tuple[UnreadyCause, ...] = ()
    try:
        endings = await asyncio.wait_for(session.run(), 600)
        status = exit_status(endings)
    except LastcallError as error:
        endings, text, status, causes = session.endings(), str(error), 1, causes_of(error)
    if text and not endings and not causes:
        return status, "", text
    version = options.kubernetes_version
    document = endings_document(
        endings, kubernetes_version=version, lastcall_version="", exit_status=status, error=text, not_ready=causes
    )  # fmt: skip
    return status, json.dumps(document), text


def _seconds(args: list[str], name: str, default: float) -> float:
    return float(args[args.index(name) + 1].removesuffix("s")) if name in args else default


def draw_virtual(count: int, seed: str) -> list[Case]:
    """Return cases whose faults can be had in the virtual world."""
    drawn = draw_cases(count * 4, f"virtual {seed}")
    fits = [each for each in drawn if all(name in EXPRESSIBLE for name, _ in each.faults)]
    return fits[:count]
