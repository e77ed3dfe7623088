"""Who audits: it decides what of each request is written down, and gives the lines to the log.

Source: apiserver pkg/endpoints/filters/{audit,authn_audit}.go.
"""

import ipaddress
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lastcall.kube.apiserver.audit.log import AuditLog, AuditOptions
from lastcall.kube.apiserver.audit.policy import NONE, Policy, decide
from lastcall.kube.apiserver.audit.request import AuditedRequest
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.world.clock import rfc3339_micro
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.apiserver.auth.authentication import UserInfo
    from lastcall.world.aiohttp_inside import server as web

_log = logging.getLogger("lastcall.kube.apiserver.audit")

IN_PROCESS = ("127.0.0.1",)
"""The address of clients in this process."""


class Auditor:
    """`write` takes one line, and does not wait."""

    def __init__(self, world: World, policy: Policy, write: Callable[[bytes], None]) -> None:
        self._world, self._policy, self._write = world, policy, write

    def now(self) -> str:
        """Return the time as events have it."""
        return _stamp(self._world.clock.wall_ns())

    def begin(
        self, request: "web.BaseRequest", user: "UserInfo | None", info: RequestInfo, received: str, *, long: bool
    ) -> AuditedRequest | None:
        """Begin the event of a request over HTTP; None for one that is not written down."""
        decision = decide(self._policy, user, info)
        if decision.level == NONE:
            return None
        audited = AuditedRequest(
            decision,
            self._emit,
            info,
            audit_id=request.headers.get("Audit-ID") or self._world.new_uid(),
            uri=request.raw_path,
            user=user,
            sources=source_ips(request),
            user_agent=request.headers.get("User-Agent", ""),
            received=received,
            long_running=long,
        )
        if user is not None:
            self._received(audited)
        return audited

    def begin_in_process(self, user: "UserInfo", user_agent: str, uri: str, info: RequestInfo) -> AuditedRequest | None:
        """Begin the event of a request of this process."""
        decision = decide(self._policy, user, info)
        if decision.level == NONE:
            return None
        audited = AuditedRequest(
            decision,
            self._emit,
            info,
            audit_id=self._world.new_uid(),
            uri=uri,
            user=user,
            sources=IN_PROCESS,
            user_agent=user_agent,
            received=self.now(),
            long_running=info.verb == "watch",
        )
        self._received(audited)
        return audited

    def _received(self, audited: AuditedRequest) -> None:
        self._emit(audited, "RequestReceived")

    def _emit(self, audited: AuditedRequest, stage: str) -> None:
        if stage in audited.decision.omit_stages:
            return
        received = str(audited.fields["requestReceivedTimestamp"])
        try:
            line = audited.line(stage, received if stage == "RequestReceived" else self.now())
        except Exception:
            _log.exception("the audit event of %s was not written", audited.fields["requestURI"])
            return
        self._write(line)


@dataclass(frozen=True, slots=True)
class Audit:
    """What audits, and what its lines go to."""

    auditor: Auditor
    log: AuditLog


def open_audit(world: World, options: AuditOptions) -> Audit:
    log = AuditLog(options)
    return Audit(Auditor(world, options.policy, log.write), log)


def _stamp(wall_ns: int) -> str:
    return rfc3339_micro(datetime.fromtimestamp(wall_ns // 1000 / 1e6, UTC))


def source_ips(request: "web.BaseRequest") -> list[str]:
    """Return where a request came from: what its headers claim, then the other end of the connection
    (apimachinery pkg/util/net/http.go:SourceIPs)."""
    found = [ip for each in request.headers.get("X-Forwarded-For", "").split(",") if (ip := _ip(each))]
    if (real := _ip(request.headers.get("X-Real-Ip", ""))) and real not in found:
        found.append(real)
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    if isinstance(peer, tuple) and (remote := _ip(str(peer[0]))) and found[-1:] != [remote]:
        found.append(remote)
    return found


def _ip(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        return ""
