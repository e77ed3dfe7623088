"""What every call is asked for in the same way: whole ids, and what is wrong with it."""

from lastcall.cri.api import RuntimeService, RuntimeServiceError

_LENGTH = 64


class Ids:
    """An id that is cut short means the only one that begins so, as in containerd."""

    def __init__(self, runtime: RuntimeService) -> None:
        self._runtime = runtime

    async def sandbox(self, text: str) -> str:
        if len(text) >= _LENGTH:
            return text
        return _only(text, [each.id for each in await self._runtime.list_pod_sandbox()])

    async def container(self, text: str) -> str:
        if len(text) >= _LENGTH:
            return text
        return _only(text, [each.id for each in await self._runtime.list_containers()])


def _only(text: str, known: list[str]) -> str:
    """The one id that begins so, else the text as it is, which nobody knows."""
    found = [each for each in known if text and each.startswith(text)]
    return found[0] if len(found) == 1 else text


def demand(is_so: bool, text: str) -> None:
    """Raises RuntimeServiceError with reason InvalidArgument unless it is so."""
    if not is_so:
        raise RuntimeServiceError(text, "InvalidArgument")
