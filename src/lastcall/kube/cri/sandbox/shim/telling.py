"""Messages about a container: to the caller that started it, and to every node that is connected."""

from __future__ import annotations

from lastcall.kube.cri.sandbox.shim import messages, namespaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lastcall.kube.cri.sandbox.shim.containers import Container
    from lastcall.kube.cri.sandbox.shim.past import PastProcess
    from lastcall.kube.cri.sandbox.shim.peer import Call
    from lastcall.world.messages import Message


class Announcer:
    """Reports on one container to the caller that started it and, by `tell`, to every node.

    `beside` returns the other containers of a Pod that run. A `containers.Listener`.
    """

    def __init__(
        self, tell: Callable[[Message], None], beside: Callable[[Container], list[Container]], call: Call
    ) -> None:
        self._tell = tell
        self._beside = beside
        self._call = call

    def started(self, container: Container) -> None:
        assert container.process is not None
        self._tell(messages.Started(container=facts_of(container)))
        self._call.answer(messages.Running(pid=container.process.pid, started_at=container.started_at))

    def start_failed(self, container: Container, text: str) -> None:
        self._tell(messages.StartFailed(id=container.id, message=text))
        self._call.fail(text, "StartError")

    def changed(self, container: Container) -> None:
        self._tell(messages.Changed(container=facts_of(container)))

    def log_full(self, container: Container) -> None:
        self._tell(messages.LogFull(id=container.id))

    def exited(self, container: Container) -> None:
        # A first process that ends takes the containers with it, and is gone after they are. A node that heard of
        # them alone would start them again in the old sandbox.
        if namespaces.pause_is_ending(container.sandbox):
            self._tell(messages.SandboxEnded(id=container.sandbox.id))
        self._tell(messages.Exited(container=facts_of(container)))

    def alone(self, container: Container) -> bool:
        return not self._beside(container)

    def beside(self, container: Container) -> list[Container]:
        return self._beside(container)


def facts_of(container: Container) -> messages.Facts:
    process = container.process
    status = process.exit if process is not None else None
    return messages.Facts(
        id=container.id,
        sandbox_id=container.sandbox.id,
        pid=process.pid if process else 0,
        start_time=process.start_time if process else 0,
        state=_state(container),
        started_at=container.started_at,
        finished_at=container.finished_at,
        exit_code=status.code if status else 0,
        signal=status.signal if status else "",
        message=container.failure,
        stop_signal_sent=container.stop_signal_sent,
        oom_killed=container.out_of_memory,
        info=container.info,
    )


def _state(container: Container) -> str:
    if container.failure:
        return "failed"
    if container.process is not None and container.process.exit is not None:
        return "exited"
    return "running" if container.running else "starting"


def past_facts(past: PastProcess) -> messages.Facts:
    """Return the facts as `facts_of` does. When it was started is no longer known."""
    return messages.Facts(
        id=past.container_id,
        sandbox_id=past.sandbox_id,
        pid=past.pid,
        start_time=past.start_time,
        state="exited" if past.over else "unknown",
        started_at=0,
        finished_at=past.finished_at,
        exit_code=past.exit_code or 0,
        signal=past.signal,
        message="",
        stop_signal_sent=False,
    )
