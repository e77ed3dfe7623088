"""Jobs and CronJobs."""

import re
from collections.abc import Iterator, Sequence

from lastcall.kube.api import CRONJOBS
from lastcall.lint import commands, images
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.handlers import exits_with_zero, on_term, takes_time
from lastcall.lint.subject import Finding, Op, found
from lastcall.lint.texts import command_of, listens_on, own_ports_in, python_text, shell_text
from lastcall.manifests import value_at

_OFTEN = re.compile(r"(\*|\*/([1-5]))( \*){4}\s*\Z")
"""Every minute to every five minutes."""


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        if workload.is_job:
            yield from _sidecars(workload)
            yield from _ends_as_done(workload)
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
    ports = listens_on(workload, container)
    for other in others:
        asked = own_ports_in(workload, other) & ports if other is not container else set()
        if asked and not listens_on(workload, other) & asked:
            return other.name, min(asked)
    return None


_EXITS_WITH_ZERO = re.compile(r"\bexit\s+0\b")


def _ends_as_done(workload: Workload) -> Iterator[Finding]:
    """The only container of a Job whose own handler of SIGTERM exits with 0.

    job_controller.go:isPodFailed: a deleted Pod that has not exited yet counts as failed, unless the Job replaces
    failed Pods alone. The controller looks up to 1 s after the deletion (syncJobBatchPeriod).
    """
    own = [each for each in workload.containers if each.role == "container"]
    if len(own) != 1:
        return
    (container,) = own
    spec = value_at(workload.subject.obj, workload.template_path[:-1]) or {}
    waits = bool(spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy"))
    script = shell_text(workload, container)
    trap = on_term(script) if script is not None else None
    if trap is not None and _EXITS_WITH_ZERO.search(trap) and (waits or not takes_time(trap)):
        what = "The trap"
    elif exits_with_zero(python_text(workload, container) or ""):
        what = "The handler"
    else:
        return
    counts = (
        "counts the work as done" if waits else "may count the work as done (always with podReplacementPolicy: Failed)"
    )
    text = (
        f"{what} of {container.name} for SIGTERM exits with 0: if its Pod is evicted or its node drained, {workload} "
        f"{counts}, though it was interrupted."
    )
    yield found("jobCountsAsDone", workload.subject, (*container.path, "command"), text)


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
