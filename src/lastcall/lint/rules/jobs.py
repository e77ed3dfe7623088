"""Jobs and CronJobs."""

import re
from collections.abc import Iterator, Sequence

from lastcall.kube.api import CRONJOBS
from lastcall.lint import commands, images
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.subject import Finding, Op, found
from lastcall.lint.texts import command_of, own_ports_in, ports_of

_OFTEN = re.compile(r"(\*|\*/([1-5]))( \*){4}\s*\Z")
"""Every minute to every five minutes."""


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        if workload.is_job:
            yield from _sidecars(workload)
        if workload.resource == CRONJOBS:
            yield from _overlap(workload)


def _sidecars(workload: Workload) -> Iterator[Finding]:
    own = [each for each in workload.containers if each.role == "container"]
    if len(own) < 2:
        return
    for container in own:
        argv = [*(container.spec.get("command") or []), *(container.spec.get("args") or [])]
        certain = commands.never_ends(argv)
        image = str(container.spec.get("image"))
        if certain:
            why = "its command goes on forever"
        elif images.runs_for_ever(image, own_command=bool(argv)):
            why = f"images such as {image} run until they are stopped"
        elif served := _served(workload, container, own):
            why = (
                f"it serves port {served[1]} of the Pod, which {served[0]} asks, and servers run until they are stopped"
            )
        else:
            continue
        text = f"{container.name} never ends by itself ({why}): {workload} never completes."
        raw = {key: value for key, value in _raw(workload, container.path).items() if key != "restartPolicy"}
        sidecar = {**raw, "restartPolicy": "Always"}
        inits = (*workload.spec_path, "initContainers")
        count = len(workload.pod_spec.get("initContainers") or ())
        add = Op("add", (*inits, count), sidecar) if count else Op("add", inits, [sidecar])
        yield found(
            "sidecarHoldsJob",
            workload.subject,
            container.path,
            text,
            patch=[Op("remove", container.path), add],
            certainty="certain" if certain else None,
        )


_TOLD_TO_END = re.compile("quit|exit|shutdown|pkill|kill", re.I)
"""Words in a command line that show a way to stop the server, such as a page or a flag."""


def _served(workload: Workload, container: Container, others: Sequence[Container]) -> tuple[str, int] | None:
    """Return (container, port) of another one that connects to this one, which is a server then; None for none.

    A server with such a way is left out, because the other container may use it.
    """
    if _TOLD_TO_END.search(" ".join(command_of(container))) or workload.pod_spec.get("shareProcessNamespace"):
        return None
    ports = ports_of(container)
    for other in others:
        asked = own_ports_in(workload, other) & ports if other is not container else set()
        if asked and not ports_of(other) & asked:
            return other.name, min(asked)
    return None


def _raw(workload: Workload, path: tuple[str | int, ...]) -> dict[str, object]:
    value = workload.subject.raw
    for step in path:
        value = value[step]  # type: ignore[index]
    return dict(value)


def _overlap(workload: Workload) -> Iterator[Finding]:
    spec = workload.subject.spec
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    if spec.get("concurrencyPolicy") != "Allow" or not _OFTEN.match(str(spec.get("schedule") or "")):
        return
    if job.get("activeDeadlineSeconds") or workload.pod_spec.get("activeDeadlineSeconds") or spec.get("suspend"):
        return
    said = ("spec", "concurrencyPolicy")
    has = workload.subject.has(said)
    text = (
        f"{workload} starts at {spec['schedule']!r} even if the previous run has not ended (concurrencyPolicy: Allow"
        f"{'' if has else ', the default'}), and no activeDeadlineSeconds limits a run."
    )
    patch = [Op("replace" if has else "add", said, "Forbid")]
    yield found("cronJobOverlaps", workload.subject, ("spec", "schedule"), text, patch=patch)
