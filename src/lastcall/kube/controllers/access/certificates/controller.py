"""The controllers of CertificateSigningRequests: certificatesigningrequest-{approving,signing,cleaner}-controller.

They are imported, and begin, with the first request (`FirstRequest`). `Sign` is for a signer that has the
authority's key.

Source: pkg/controller/certificates/certificate_controller.go.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import name_of, uid_of
from lastcall.kube.api.resources import CERTIFICATESIGNINGREQUESTS, SUBJECTACCESSREVIEWS
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.access.certificates import decide
from lastcall.kube.controllers.access.certificates.request import read_request
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.worker import Retry, Worker
from lastcall.world.clock import now, rfc3339_now
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.certificates import CertificateSigningRequest, CertificateSigningRequestSpec

COMPONENT = "certificatesigningrequest-signing-controller"

Sign = Callable[[bytes, Sequence[str], timedelta], bytes]
"""(PKCS#10 in PEM, usages, how long it is good) → certificate in PEM. Raises ValueError."""


class CertificateController:
    """`sign` None: requests are approved and cleared away, and another signer signs them."""

    def __init__(self, world: World, client: Client, informers: Informers, sign: Sign | None) -> None:
        self._world, self._client, self._sign = world, client, sign
        self._requests: Informer[CertificateSigningRequest] = informers.get(CERTIFICATESIGNINGREQUESTS)
        self._worker = Worker(world, COMPONENT, self._sync, client=client)
        self._requests.add_handler(self._changed, lambda _, request: self._changed(request))

    async def run(self) -> None:
        """Work until cancelled."""
        await self._worker.run([self._requests])

    def _changed(self, request: CertificateSigningRequest) -> None:
        self._worker.queue.add(name_of(request))

    async def _sync(self, key: str) -> None:
        request = self._requests.get("", key)
        if request is None:
            return
        left = (decide.gone_at(request) - now(self._world.clock)).total_seconds()
        try:
            if left <= 0:
                await self._client.delete(CERTIFICATESIGNINGREQUESTS, key, uid=uid_of(request))
                return
            self._worker.queue.add_after(key, left)
            if not decide.is_decided(request):
                await self._approve(request)
            elif self._sign is not None and decide.is_to_be_signed(request):
                await self._issue(request, self._sign)
        except StatusError as error:
            if is_conflict(error):
                raise Retry(error.message) from error
            if not is_not_found(error):
                raise

    async def _approve(self, request: CertificateSigningRequest) -> None:
        """(`sarApprover.handle`) Client certificates of nodes, where the one that asks has the right to."""
        spec = request["spec"]
        if spec.get("signerName") != decide.KUBELET_CLIENT:
            return
        requested = read_request(_pem(request))
        if decide.problem_of(decide.KUBELET_CLIENT, requested, spec.get("usages") or []):
            return
        kinds = [("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")]
        if decide.is_self_request(request, requested):
            text = "Auto approving self kubelet client certificate after SubjectAccessReview."
            kinds.insert(0, ("selfnodeclient", text))
        for kind, text in kinds:
            if await self._may(spec, kind):
                await self._say(request, "approval", "Approved", "AutoApproved", text)
                return

    async def _may(self, spec: CertificateSigningRequestSpec, subresource: str) -> bool:
        attributes = {
            "group": "certificates.k8s.io",
            "resource": "certificatesigningrequests",
            "verb": "create",
            "subresource": subresource,
            "version": "*",
        }
        who = {"user": spec.get("username", ""), "uid": spec.get("uid", ""), "groups": spec.get("groups") or []}
        review = {"spec": {**who, "extra": spec.get("extra") or {}, "resourceAttributes": attributes}}
        answer = await self._client.create(SUBJECTACCESSREVIEWS, review)
        return bool((answer.get("status") or {}).get("allowed"))

    async def _issue(self, request: CertificateSigningRequest, sign: Sign) -> None:
        """(`signer.handle`)"""
        spec = request["spec"]
        usages = spec.get("usages") or []
        pem = _pem(request)
        try:
            problem = decide.problem_of(spec["signerName"], read_request(pem), usages)
            if not problem:
                certificate = sign(pem, usages, decide.lifetime(request))
        except ValueError as error:
            problem = str(error)
        if problem:
            await self._say(request, "status", "Failed", "SignerValidationFailure", problem)
            return
        status = {**(request.get("status") or {}), "certificate": base64.b64encode(certificate).decode("ascii")}
        await self._client.update(CERTIFICATESIGNINGREQUESTS, {**request, "status": status}, subresource="status")

    async def _say(
        self, request: CertificateSigningRequest, subresource: str, kind: str, reason: str, message: str
    ) -> None:
        moment = rfc3339_now(self._world.clock)
        condition = {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastUpdateTime": moment,
            "lastTransitionTime": moment,
        }
        status = request.get("status") or {}
        conditions = [*(status.get("conditions") or ()), condition]
        changed = {**request, "status": {**status, "conditions": conditions}}
        await self._client.update(CERTIFICATESIGNINGREQUESTS, changed, subresource=subresource)


def _pem(request: CertificateSigningRequest) -> bytes:
    return base64.b64decode(request["spec"]["request"])
