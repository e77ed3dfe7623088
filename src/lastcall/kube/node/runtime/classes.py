"""Which handler of the runtime a Pod asks for by its RuntimeClass. Asked only for Pods that name one.

Source: pkg/kubelet/runtimeclass/runtimeclass_manager.go:LookupRuntimeHandler.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import RUNTIMECLASSES
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.cri.api import RuntimeServiceError

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

RuntimeHandlerOf = Callable[["Pod"], Awaitable[str]]
"""The handler, "" for the runtime's own default; raises RuntimeServiceError."""


def runtime_handlers(client: Client) -> RuntimeHandlerOf:
    """Return a function that looks classes up in the API."""

    async def handler_of(pod: "Pod") -> str:
        name = pod["spec"].get("runtimeClassName")
        if not name:
            return ""
        try:
            return str((await client.get(RUNTIMECLASSES, name)).get("handler") or "")
        except StatusError as error:
            text = str(error) if error.code == 404 else f"failed to lookup RuntimeClass {name}: {error}"
            raise RuntimeServiceError(text) from error
        except ConnectionLost as error:
            raise RuntimeServiceError(f"failed to lookup RuntimeClass {name}: {error}") from error

    return handler_of
