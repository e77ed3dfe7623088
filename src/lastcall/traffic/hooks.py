"""A preStop hook that waits first, then does what the hook of the manifest does: a container has but one. Pure.

(`core/v1.LifecycleHandler`: exactly one of exec, httpGet, sleep, tcpSocket.)
"""

# check: pure

import re
from typing import Any

from lastcall.records.said import tell
from lastcall.world.dataclass import dataclass

_SHELLS = ("sh", "bash", "ash", "dash")
_SLEEP = re.compile(r"\s*(?:exec\s+)?sleep\s+(\d+)s?\s*")
_SLEEP_FIRST = re.compile(r"\s*sleep\s+\d+s?\s*(?:;|&&)\s*")


@dataclass(frozen=True, slots=True)
class WaitingHook:
    """`patch` is for `lifecycle.preStop` (strategic merge; None takes the hook away), `text` what a reader writes.

    `keeps`: what the manifest's hook did is still done, after the wait. `why_not` is set where no patch can say both.
    """

    text: str
    patch: dict[str, Any] | None
    keeps: bool = False
    why_not: str = ""


def own_sleep(container: dict[str, Any]) -> int | None:
    """Return how long the container's hook sleeps, in seconds; 0 without a hook, None for any other hook."""
    hook = _hook(container)
    if not hook:
        return 0
    if "sleep" in hook:
        return int((hook["sleep"] or {}).get("seconds") or 0)
    command = _command(hook)
    if len(command) == 2 and _name(command[0]) == "sleep" and (found := _SLEEP.fullmatch(f"sleep {command[1]}")):
        return int(found[1])
    script = _script(command)
    found = _SLEEP.fullmatch(script) if script is not None else None
    return int(found[1]) if found else None


def waiting_hook(container: dict[str, Any], seconds: int, *, sleep_hooks: bool = True) -> WaitingHook:
    """Return the container's hook, waiting so long before anything else; 0: it does not wait.

    Without `sleep_hooks`, in Kubernetes before 1.30, the image's `sleep` does it.
    """
    if own_sleep(container) is not None:
        if not seconds:
            return WaitingHook("no preStop hook", None)
        if sleep_hooks:
            return WaitingHook(f"sleep: {{seconds: {seconds}}}", _instead(container, {"sleep": {"seconds": seconds}}))
        handler = {"exec": {"command": ["sleep", str(seconds)]}}
        return WaitingHook(f'exec: {{command: [sleep, "{seconds}"]}}', _instead(container, handler))
    hook = _hook(container)
    command, script = _command(hook), _script(_command(hook))
    if script is None:
        kind = next(iter(hook))
        what = f"exec {' '.join(command)}" if command else kind
        why_not = tell("the container has a preStop hook already ($hook), and may have only one", hook=what)
        return WaitingHook("", {}, why_not=why_not)
    rest = script[len(found[0]) :] if (found := _SLEEP_FIRST.match(script)) else script
    waits = f"sleep {seconds}; {rest}" if seconds else rest
    return WaitingHook(
        f"exec: {{command: [{command[0]}, {command[1]}, {waits!r}]}}",
        {"exec": {"command": [*command[:2], waits, *command[3:]]}},
        keeps=True,
    )


def _instead(container: dict[str, Any], handler: dict[str, Any]) -> dict[str, Any]:
    """A patch that leaves this handler alone: a merge would keep one of another kind beside it."""
    others = set(_hook(container)) - set(handler)
    return {"$retainKeys": list(handler), **handler} if others else handler


def keeps_hook(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Return whether a container's preStop hook still does what it did, or waits at least as long."""
    slept, sleeps = own_sleep(before), own_sleep(after)
    if slept is not None:
        return sleeps is None or sleeps >= slept
    script = _script(_command(_hook(before)))
    if script is None:
        return _hook(before) == _hook(after)
    rest = script[len(found[0]) :] if (found := _SLEEP_FIRST.match(script)) else script
    return (_script(_command(_hook(after))) or "").endswith(rest)


def _hook(container: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (container.get("lifecycle") or {}).get("preStop") or {}
    return found


def _command(hook: dict[str, Any]) -> list[str]:
    return [str(each) for each in (hook.get("exec") or {}).get("command") or []]


def _script(command: list[str]) -> str | None:
    """The script of `sh -c SCRIPT`."""
    shell = len(command) >= 3 and _name(command[0]) in _SHELLS and command[1] == "-c"
    return command[2] if shell else None


def _name(path: str) -> str:
    return path.rpartition("/")[2]
