"""`lastcall rollout` as a function: which requests an update loses, in a cluster of its own."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lastcall.errors import ClusterError, InvalidManifest, NotReady, UnreadyCause
from lastcall.manifests.applying import Manifests, read
from lastcall.world.dataclass import dataclass

_BAD_INPUT = 2
_NO_VERDICT = 4


@dataclass(frozen=True, slots=True)
class Rollout:
    """What became of the requests. `document` is `lastcall/rollout/v1`, `text` what the command said on stderr."""

    document: Mapping[str, Any]
    exit_status: int
    text: str

    @property
    def lost_requests(self) -> int:
        """Return the requests lost over all runs, with the manifests as they are."""
        return int(self.document["pooled"]["manifest"]["lost"])

    @property
    def total_requests(self) -> int:
        return int(self.document["pooled"]["manifest"]["total"])

    @property
    def conclusive(self) -> bool:
        """Return False where requests were lost before anything was disrupted, or nobody answered."""
        return self.exit_status != _NO_VERDICT

    @property
    def causes(self) -> Mapping[str, int]:
        """Return cause → how many requests were lost by it, over all runs."""
        counts: dict[str, int] = {}
        for experiment in self._of_manifest():
            for cause, count in (experiment.get("byCause") or {}).items():
                counts[cause] = counts.get(cause, 0) + int(count)
        return counts

    @property
    def advice(self) -> tuple[str, ...]:
        """Return what would have saved requests, each once."""
        said = (each["sentence"] for experiment in self._of_manifest() for each in experiment.get("advice") or ())
        return tuple(dict.fromkeys(said))

    @property
    def patch(self) -> Mapping[str, Any]:
        """Return all advice as one strategic merge patch of the workload; {} where there is none."""
        return next((each["patch"] for each in self._of_manifest() if each.get("patch")), {})

    def _of_manifest(self) -> list[Any]:
        return [each for each in self.document["experiments"] if not each.get("withAdvice")]

    def __str__(self) -> str:
        sentences = [str(each.get("sentence", "")) for each in self._of_manifest()]
        return "\n".join(dict.fromkeys([*filter(None, sentences), *(f"fix: {each}" for each in self.advice)]))

    def __repr__(self) -> str:
        return f"<Rollout: {self.lost_requests} of {self.total_requests} requests lost>"

    def assert_nothing_lost(self) -> None:
        """Raise AssertionError with the verdict and the advice if requests were lost, or nothing is known."""
        if self.exit_status != 0:
            raise AssertionError(str(self))


def arguments(options: Mapping[str, Any]) -> list[str]:
    """Convert keywords to options of the command line: `find_safe=True` is --find-safe, `from_="pod"` is --from pod."""
    found: list[str] = []
    for key, value in options.items():
        flag = f"--{key.rstrip('_').replace('_', '-')}"
        if value is True:
            found.append(flag)
        elif value not in (False, None):
            found += [flag, str(value)]
    return found


async def run_rollout(manifests: Sequence[Manifests], timeout: float, options: Mapping[str, Any]) -> Rollout:
    """Run `lastcall rollout` and return its report.

    Raises InvalidManifest, NotReady and ClusterError, with what the command said, and TimeoutError.
    """
    files = [str(each) for each in manifests if isinstance(each, str | Path) and "\n" not in str(each)]
    objects = read([each for each in manifests if not (isinstance(each, str | Path) and "\n" not in str(each))])
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode() if objects else b""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "lastcall.cli.main", "rollout", *files, *(["-"] if objects else []),
        "--output", "json", *arguments(options),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(timeout):
            out, said = await process.communicate(stdin)
    except BaseException:
        if process.returncode is None:
            process.terminate()
            await process.wait()
        raise
    text, status = said.decode(errors="replace"), process.returncode or 0
    if not out.strip():
        kind = InvalidManifest if status == _BAD_INPUT else NotReady if "not Ready" in text else ClusterError
        raise kind(text.strip() or f"lastcall rollout ended with exit status {status} and printed nothing")
    document = json.loads(out)
    if "notReady" in document and not document["experiments"]:
        raise NotReady(text.strip(), [UnreadyCause(**each) for each in document["notReady"]])
    return Rollout(document, status, text)
