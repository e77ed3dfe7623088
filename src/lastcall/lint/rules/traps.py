"""Shells as PID 1 whose trap ends them before the program that they started has ended."""

from collections.abc import Iterator

from lastcall.endings import fix as fix_of
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.handlers import left_job
from lastcall.lint.subject import Finding, found
from lastcall.lint.texts import shell_text

_HOW = {
    "exits": "passes it on and exits without waiting for {job}",
    "once": "passes it on and interrupts `wait`, after which the script is over, while {job} still runs",
}


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        shared = workload.pod_spec.get("shareProcessNamespace") or workload.pod_spec.get("hostPID")
        if not workload.idle and not shared:
            for container in workload.containers:
                yield from _left(workload, container)


def _left(workload: Workload, container: Container) -> Iterator[Finding]:
    """PID 1 that ends takes all others with it (pid_namespaces(7))."""
    script = shell_text(workload, container)
    left = left_job(script) if script is not None else None
    if left is None:
        return
    how = _HOW[left.how].format(job=left.job)
    text = (
        f"The trap of {container.name} for SIGTERM {how}: the shell is PID 1, and when it ends the kernel kills "
        f"{left.job}, whatever that still does."
    )
    fix = fix_of("shellKeepsSignal", "left")
    yield found("trapLeavesJob", workload.subject, (*container.path, "command"), text, fix=fix)
